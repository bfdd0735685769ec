"""InferenceSession: a model made ready to run, with onnxruntime's names and behaviour."""

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from logging import getLogger
from pathlib import Path
from typing import Any

import numpy as np

from sardonyx.errors import EvaluationError, InputError, SardonyxError
from sardonyx.format.load import load
from sardonyx.format.save import save, to_bytes
from sardonyx.graph import (
    MapType,
    Model,
    OptionalType,
    SequenceType,
    SparseTensorType,
    Tensor,
    TensorType,
    Type,
    Value,
)
from sardonyx.graph.clone import clone_model
from sardonyx.graph.types import element_text
from sardonyx.ops.catalog import Catalog, standard
from sardonyx.ops.operator import Operator
from sardonyx.runtime.binding import IOBinding
from sardonyx.runtime.options import RunOptions, SessionOptions
from sardonyx.runtime.profile import Profile
from sardonyx.runtime.providers import PROVIDERS, Runner, choose_providers
from sardonyx.runtime.source import ModelSource
from sardonyx.runtime.values import OrtValue, plain

_log = getLogger("sardonyx")


@dataclass(frozen=True, slots=True)
class NodeArg:
    """An input or output of a model: its name, its type as text, and its shape.

    Sizes in `shape` are numbers, names of symbolic dimensions, or None.
    """

    name: str
    type: str
    shape: list[int | str | None]


@dataclass(frozen=True, slots=True)
class ModelMetadata:
    """What a model says about itself."""

    producer_name: str
    graph_name: str
    graph_description: str
    domain: str
    description: str
    version: int
    custom_metadata_map: dict[str, str]


class InferenceSession:
    """A model made ready to run; any number of threads may run it at once.

    `source` is a path, bytes, a protobuf message or a `Model`; `operators` adds custom ones.

    >>> import sardonyx as sx
    >>> session = sx.InferenceSession("examples/digits.onnx")
    >>> session.get_inputs()[0].name, session.get_inputs()[0].shape
    ('pixels', ['batch', 64])
    >>> (probabilities,) = session.run(None, {"pixels": np.zeros((2, 64), np.float32)})
    >>> probabilities.shape
    (2, 10)
    """

    def __init__(
        self,
        source: Any,
        sess_options: SessionOptions | None = None,
        providers: Sequence[Any] | None = None,
        provider_options: Sequence[dict[Any, Any]] | None = None,
        *,
        operators: Sequence[type[Operator]] = (),
        **ignored: Any,
    ) -> None:
        self._options = sess_options or SessionOptions()
        self._wanted = list(providers or [name for name, _ in self._options.provider_choices])
        self._operators = tuple(operators)
        for name in ignored:
            _log.info("the argument %s has no effect", name)
        self._source = ModelSource(source, lambda: _read(source, self._options), self._options)
        self._open()

    @property
    def _model(self) -> Model:
        return self._source.model

    def _open(self) -> None:
        catalog: Catalog | None = None
        if self._operators:
            catalog = standard() | {(item.domain, item.name): item for item in self._operators}
        self._providers = choose_providers(self._wanted)
        self._runner: Runner = PROVIDERS[self._providers[0]](self._source, catalog, self._options)
        self._profile = Profile() if self._options.enable_profiling else None

    def __getstate__(self) -> dict[str, Any]:
        """A session is pickled as its model: the other process makes its own program of it."""
        return {
            "model": to_bytes(self._model),
            "options": self._options,
            "wanted": self._wanted,
            "operators": self._operators,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        content = state["model"]
        self._options, self._wanted = state["options"], state["wanted"]
        self._source = ModelSource(content, lambda: load(content), self._options)
        self._operators = state["operators"]
        self._open()

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
        *,
        intermediates: str | None = None,
    ) -> Any:
        """Run the model: outputs in the order asked for, or in the model's own for None.

        `intermediates` is a regular expression: then the result is (outputs, values), where
        `values` maps the name of every inner value that it matches to what it was.
        """
        feeds = {name: plain(value) for name, value in input_feed.items()}
        kept: dict[str, Any] = {}
        observers: list[Callable[[Value, Any], None]] = []
        if intermediates is not None:
            observers.append(_collector(re.compile(intermediates), kept))
        if run_options is not None and run_options.terminate:
            raise EvaluationError("the run was terminated by its RunOptions")
        if self._profile is not None:
            observers.append(self._profile.recorder())
        names = list(output_names) if output_names else None
        results = self._runner.run(names, feeds, observe=_all(observers))
        taken = {id(item) for item in feeds.values()}
        results = [_own(item, taken) for item in results]
        return results if intermediates is None else (results, kept)

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
    ) -> list[OrtValue]:
        """Run on values made with `OrtValue`, and return such."""
        return [
            OrtValue(item) for item in self.run(output_names, input_dict_ort_values, run_options)
        ]

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[Any, Any, str], None],
        user_data: Any,
        run_options: RunOptions | None = None,
    ) -> None:
        """Run in another thread, which calls `callback(results, user_data, error)` at the end."""

        def work() -> None:
            try:
                results, problem = self.run(output_names, input_feed, run_options), ""
            except SardonyxError as error:
                results, problem = [], str(error)
            callback(results, user_data, problem)

        threading.Thread(target=work, daemon=True).start()

    def io_binding(self) -> IOBinding:
        """Inputs and outputs bound to memory, for `run_with_iobinding`."""
        return IOBinding(self)

    def run_with_iobinding(
        self, iobinding: IOBinding, run_options: RunOptions | None = None
    ) -> None:
        """Run on what is bound, and put results where they are bound."""
        names, feeds = iobinding.requests()
        iobinding.accept(self.run(names or None, feeds, run_options))

    def get_inputs(self) -> list[NodeArg]:
        """The inputs to feed: those that no constant stands for."""
        assert self._model.graph is not None
        constants = set(self._model.graph.initializers)
        return [_argument(value) for value in self._model.graph.inputs if value not in constants]

    def get_outputs(self) -> list[NodeArg]:
        """The outputs."""
        assert self._model.graph is not None
        return [_argument(value) for value in self._model.graph.outputs]

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Constants that a feed may replace."""
        assert self._model.graph is not None
        inputs = set(self._model.graph.inputs)
        return [_argument(value) for value in self._model.graph.initializers if value in inputs]

    def get_modelmeta(self) -> ModelMetadata:
        """What the model says about itself."""
        model, graph = self._model, self._model.graph
        assert graph is not None
        return ModelMetadata(
            model.producer_name, graph.name, graph.doc_string, model.domain, model.doc_string,
            model.model_version, dict(model.metadata),
        )  # fmt: skip

    def get_providers(self) -> list[str]:
        """The providers in use."""
        return list(self._providers)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """The options of each provider in use."""
        return {name: {} for name in self._providers}

    def set_providers(
        self, providers: Sequence[Any] | None = None, provider_options: Any = None
    ) -> None:
        """Make the session again with other providers."""
        self._wanted = list(providers or [])
        self._open()

    def get_session_options(self) -> SessionOptions:
        """The options the session was made with."""
        return self._options

    def enable_fallback(self) -> None:
        """Accepted: there is nothing to fall back from."""

    def disable_fallback(self) -> None:
        """Accepted: there is nothing to fall back from."""

    def end_profiling(self) -> str:
        """Write what was recorded as a Chrome trace, and return the file's name."""
        if self._profile is None:
            raise InputError(
                "profiling is not enabled", hint="set SessionOptions.enable_profiling = True first"
            )
        path = self._profile.write(self._options.profile_file_prefix)
        self._profile = None
        return path

    def get_profiling_start_time_ns(self) -> int:
        """When profiling began."""
        return self._profile.start if self._profile is not None else 0

    def explain(self) -> str:
        """Each node, and what runs it.

        >>> import sardonyx as sx
        >>> session = sx.InferenceSession("examples/digits.onnx")
        >>> len(session.explain().splitlines())
        4
        """
        rows = self._runner.explain()
        width = max((len(node) for node, _ in rows), default=0)
        return "\n".join(f"{node:<{width}}    {runs}" for node, runs in rows)


def _read(source: Any, options: SessionOptions) -> Model:
    """The model with the options' constants and sizes; written out where that is asked for."""
    twin = clone_model(source if isinstance(source, Model) else load(source))
    if twin.graph is None:
        raise InputError("the model has no graph", hint="the file is empty or damaged")
    constants = {value.name: value for value in twin.graph.initializers}
    for name, given in options.initializers.items():
        if name not in constants:
            raise InputError(f"the model has no constant '{name}' to replace")
        constants[name].tensor = Tensor(plain(given), name)
    if options.free_dimensions or options.denoted_dimensions:
        for value in (*twin.graph.inputs, *twin.graph.outputs):
            value.type = _with_sizes(value.type, options)
    if options.optimized_model_filepath:
        save(twin, options.optimized_model_filepath)
        _log.info("wrote %s", Path(options.optimized_model_filepath))
    return twin


def _with_sizes(type_: Type | None, options: SessionOptions) -> Type | None:
    if not isinstance(type_, TensorType) or type_.shape is None:
        return type_
    denotations = type_.dim_denotations or (None,) * len(type_.shape)
    shape = []
    for size, denotation in zip(type_.shape, denotations, strict=True):
        if isinstance(size, str) or size is None:
            size = options.free_dimensions.get(size or "", size)  # noqa: PLW2901
            size = options.denoted_dimensions.get(denotation or "", size)  # noqa: PLW2901
        shape.append(size)
    return type_.with_shape(tuple(shape))


def _own(item: Any, taken: set[int]) -> Any:
    """An output in memory of its own: not the model's, an input's or another output's.

    `taken` holds the identities of arrays that belong to somebody, and is added to.
    """
    if isinstance(item, list):
        return [_own(part, taken) for part in item]
    if not isinstance(item, np.ndarray):
        return item
    if not item.flags.owndata or not item.flags.writeable or id(item) in taken:
        item = item.copy()
    taken.add(id(item))
    return item


def _collector(wanted: re.Pattern[str], kept: dict[str, Any]) -> Callable[[Value, Any], None]:
    def collect(value: Value, item: Any) -> None:
        if value.name and wanted.search(value.name):
            kept[value.name] = _own(item, {id(item)})

    return collect


def _all(observers: list[Callable[[Value, Any], None]]) -> Callable[[Value, Any], None] | None:
    if len(observers) < 2:
        return observers[0] if observers else None

    def observe(value: Value, item: Any) -> None:
        for observer in observers:
            observer(value, item)

    return observe


def _argument(value: Value) -> NodeArg:
    type_ = value.type
    shape = list(type_.shape or ()) if isinstance(type_, TensorType) else []
    return NodeArg(value.name, type_text(type_), shape)


def type_text(type_: Type | None) -> str:
    """A type as onnxruntime writes it.

    >>> from sardonyx.dtypes import DataType
    >>> type_text(SequenceType(TensorType(DataType.INT64, (2,))))
    'seq(tensor(int64))'
    """
    match type_:
        case SparseTensorType():
            return f"sparse_tensor({element_text(type_.element)})"
        case TensorType():
            return f"tensor({element_text(type_.element)})"
        case SequenceType():
            return f"seq({type_text(type_.element)})"
        case OptionalType():
            return f"optional({type_text(type_.element)})"
        case MapType():
            return f"map({element_text(type_.key)},{type_text(type_.value)})"
    return ""
