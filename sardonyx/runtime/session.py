"""InferenceSession: a model made ready to run, with onnxruntime's names and behaviour."""

import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from copy import deepcopy
from logging import INFO
from typing import Any

import numpy as np

from sardonyx.boundary import public, public_methods, raise_outward
from sardonyx.compiler.stop import Stop
from sardonyx.errors import CancelledError, InputError, ResourceError, SardonyxError
from sardonyx.format.load import load
from sardonyx.format.save import to_bytes
from sardonyx.graph import Model, Type
from sardonyx.graph.collect import collection_paused
from sardonyx.ops.catalog import Catalog, standard
from sardonyx.ops.operator import Operator
from sardonyx.runtime.binding import IOBinding
from sardonyx.runtime.describe import ModelMetadata, NodeArg, describe_model, describe_value
from sardonyx.runtime.feeds import identities, in_one_piece, make_ready, own
from sardonyx.runtime.options import RunOptions, SessionOptions
from sardonyx.runtime.prepare import read_model, write_optimized
from sardonyx.runtime.profile import Recording, RunProfile, make_profile
from sardonyx.runtime.providers import Runner, choose_providers, make_runner
from sardonyx.runtime.source import ModelSource
from sardonyx.runtime.sparse import SparseValue
from sardonyx.runtime.values import OrtValue
from sardonyx.runtime.watching import Event, Watcher


@public_methods("using the session", plain=("__init__", "run", "run_with_iobinding"))
class InferenceSession:
    """A model made ready to run; any number of threads may run it at once.

    `source` is a path, bytes, a protobuf message or a `Model`; `operators` adds custom ones.

    >>> import numpy as np
    >>> import sardonyx as sx
    >>> session = sx.InferenceSession("examples/digits.onnx")
    >>> session.get_inputs()[0].name, session.get_inputs()[0].shape
    ('pixels', ['batch', 64])
    >>> (probabilities,) = session.run(None, {"pixels": np.zeros((2, 64), np.float32)})
    >>> probabilities.shape
    (2, 10)
    """

    @public("making the session")
    def __init__(
        self,
        source: Any,
        sess_options: SessionOptions | None = None,
        providers: Sequence[Any] | None = None,
        provider_options: Sequence[Mapping[Any, Any]] | None = None,
        *,
        operators: Sequence[type[Operator]] = (),
        disabled_optimizers: Sequence[str] = (),
        enable_fallback: bool = True,
        **ignored: Any,
    ) -> None:
        self._options = sess_options or SessionOptions()
        self._wanted = list(providers or self._options.provider_choices)
        self._operators = (*self._options.operators, *operators)
        self._fallback = bool(enable_fallback)
        for name in ignored:
            self._options.say(INFO, "the argument %s has no effect", name)
        if disabled_optimizers:
            key = "optimization.disable_specified_optimizers"
            names = ";".join([self._options.entry(key), *disabled_optimizers])
            self._options = deepcopy(self._options)
            self._options.add_session_config_entry(key, names)
        options = self._options
        options.log_what_has_no_effect()
        self._source = ModelSource(source, lambda given: read_model(given, options), options)
        self._open(provider_options)
        if options.optimized_model_filepath:
            write_optimized(self._model, options, self._catalog)

    @property
    def _model(self) -> Model:
        return self._source.model

    def _open(self, provider_options: Sequence[Mapping[Any, Any]] | None = None) -> None:
        if self._options.cancelled:
            raise CancelledError(
                "making the session was cancelled",
                hint="call SessionOptions.set_load_cancellation_flag(False) first",
            )
        self._catalog: Catalog | None = None
        if self._operators:
            added = {(item.domain, item.name): item for item in self._operators}
            self._catalog = standard() | added
        self._providers = choose_providers(self._wanted, provider_options, self._options)
        fallback = self._fallback and self._options.entry("session.disable_cpu_ep_fallback") != "1"
        with collection_paused():
            self._runner: Runner = make_runner(
                self._providers, self._source, self._catalog, self._options, fallback=fallback
            )
        start = time.perf_counter_ns()
        self._recording = Recording(start) if self._options.enable_profiling else None

    def _ready(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """What is fed as runs take it; the model is looked at only for what is no array."""
        found = {}
        for name, item in feeds.items():
            if type(item) is np.ndarray:
                found[name] = in_one_piece(item)
            else:
                found[name] = make_ready(name, self._type(name), item)
        return found

    def _type(self, name: str) -> Type | None:
        assert self._model.graph is not None
        known = (*self._model.graph.inputs, *self._model.graph.initializers)
        return next((value.type for value in known if value.name == name), None)

    def __getstate__(self) -> dict[str, Any]:
        """A session is pickled as its model: the other process makes its own program of it."""
        return {
            "model": to_bytes(self._model),
            "options": self._options,
            "wanted": self._wanted,
            "operators": self._operators,
            "fallback": self._fallback,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        content = state["model"]
        self._options, self._wanted = state["options"], state["wanted"]
        self._source = ModelSource(content, load, self._options)
        self._operators, self._fallback = state["operators"], state["fallback"]
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

        >>> import numpy as np
        >>> import sardonyx as sx
        >>> session = sx.InferenceSession("examples/digits.onnx")
        >>> pixels = np.zeros((1, 64), np.float32)
        >>> outputs, inner = session.run(None, {"pixels": pixels}, intermediates="^Gemm_1$")
        >>> inner["Gemm_1"].shape
        (1, 10)
        """
        try:
            if run_options is None and intermediates is None and self._recording is None:
                fresh = self._runner.run_again(output_names, input_feed)
                if fresh is not None:
                    return fresh
            given = input_feed if run_options is None else run_options.with_adapters(input_feed)
            feeds = self._ready(given)
            names = list(output_names) if output_names else None
            if intermediates is None:
                return self._run(names, feeds, run_options)
            return self._collect(names, feeds, run_options, _pattern(intermediates))
        except SardonyxError:
            raise
        except Exception as error:  # noqa: BLE001 - as `public` does, without a call
            _require_arguments(output_names, input_feed)
            raise_outward(error, "running the model")

    def _run(
        self, names: list[str] | None, feeds: dict[str, Any], options: RunOptions | None,
        rooms: Mapping[str, Any] | None = None,
    ) -> list[Any]:  # fmt: skip
        """Run on what is ready, into `rooms` where they fit."""
        with nullcontext() if options is None else options.stopping() as stop:
            watcher = self._watcher(stop)
            results = self._runner.run(names, feeds, watcher, rooms)
        if self._recording is not None and watcher is not None:
            self._recording.add(watcher.events, self._runner.computed())
        return self._finish(names, results, identities(feeds.values()))

    def _collect(
        self, names: list[str] | None, feeds: dict[str, Any], options: RunOptions | None,
        wanted: re.Pattern[str],
    ) -> tuple[list[Any], dict[str, Any]]:  # fmt: skip
        """Run on what is ready, and return inner values whose names are wanted too."""
        with nullcontext() if options is None else options.stopping() as stop:
            watcher = None if stop is None else Watcher(stop)
            if watcher is not None:
                watcher.require_going()
            results, found = self._runner.collect(names, feeds, wanted, watcher)
        taken, constants = identities(feeds.values()), self._runner.constants
        kept = {name: own(item, taken, constants) for name, item in found.items()}
        return self._finish(names, results, taken), kept

    def _watcher(self, stop: Stop | None) -> Watcher | None:
        if stop is None and self._recording is None:
            return None
        watcher = Watcher(stop, times=self._recording is not None)
        watcher.require_going()
        return watcher

    def _finish(self, names: list[str] | None, results: list[Any], taken: set[int]) -> list[Any]:
        constants, sparse = self._runner.constants, self._runner.sparse
        owned = [own(item, taken, constants) for item in results]
        if not sparse:
            return owned
        asked = [value.name for value in self.get_outputs()] if names is None else names
        return [
            SparseValue.from_dense(item) if name in sparse else item
            for name, item in zip(asked, owned, strict=True)
        ]

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

        try:
            threading.Thread(target=work, daemon=True).start()
        except RuntimeError as error:
            raise ResourceError(
                f"no thread is to be had: {error}", hint="call run, or allow more threads"
            ) from None

    def io_binding(self) -> IOBinding:
        """Inputs and outputs bound to memory, for `run_with_iobinding`."""
        return IOBinding(self)

    def run_with_iobinding(
        self, iobinding: IOBinding, run_options: RunOptions | None = None
    ) -> None:
        """Run on what is bound, and put results where they are bound.

        They are computed there, unless that memory is of another type or shape or is read too.
        """
        try:
            names, given = iobinding.requests()
            rooms, results = iobinding.rooms(), None
            if run_options is None and self._recording is None:
                results = self._runner.run_again(names, given, rooms)
            if results is None:
                feeds = given if run_options is None else run_options.with_adapters(given)
                results = self._run(names or None, self._ready(feeds), run_options, rooms)
            iobinding.accept(results)
        except SardonyxError:
            raise
        except Exception as error:  # noqa: BLE001 - as `public` does, without a call
            raise_outward(error, "running the model")

    def get_inputs(self) -> list[NodeArg]:
        """The inputs to feed: those that no constant stands for."""
        assert self._model.graph is not None
        constants = set(self._model.graph.initializers)
        return [
            describe_value(value) for value in self._model.graph.inputs if value not in constants
        ]

    def get_outputs(self) -> list[NodeArg]:
        """The outputs."""
        assert self._model.graph is not None
        return [describe_value(value) for value in self._model.graph.outputs]

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Constants that a feed may replace."""
        assert self._model.graph is not None
        inputs = set(self._model.graph.inputs)
        return [
            describe_value(value) for value in self._model.graph.initializers if value in inputs
        ]

    def get_modelmeta(self) -> ModelMetadata:
        """What the model says about itself."""
        return describe_model(self._model)

    def get_providers(self) -> list[str]:
        """The providers in use."""
        return list(self._providers)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """The options of each provider in use."""
        return {name: dict(options) for name, options in self._providers.items()}

    def set_providers(
        self,
        providers: Sequence[Any] | None = None,
        provider_options: Sequence[Mapping[Any, Any]] | None = None,
    ) -> None:
        """Make the session again with other providers."""
        self._wanted = list(providers or [])
        self._open(provider_options)

    def get_session_options(self) -> SessionOptions:
        """The options the session was made with."""
        return self._options

    def enable_fallback(self) -> None:
        """Let the reference run a model that the provider cannot take, as it does by default."""
        self._fallback = True

    def disable_fallback(self) -> None:
        """Raise where a provider cannot take the model, the next time providers are set."""
        self._fallback = False

    def end_profiling(self) -> str:
        """Write what was recorded as a Chrome trace, and return the file's name."""
        if self._recording is None:
            raise InputError(
                "profiling is not enabled", hint="set SessionOptions.enable_profiling = True first"
            )
        path = self._recording.write(self._options.profile_file_prefix)
        self._recording = None
        return path

    def get_profiling_start_time_ns(self) -> int:
        """When profiling began."""
        return self._recording.start if self._recording is not None else 0

    def profile(self, feeds: Mapping[str, Any], *, runs: int = 5, warmups: int = 1) -> RunProfile:
        """Run the model some times and say how long each kernel and each node took.

        Kernels run one by one for that, so that a run takes a little longer than it does otherwise.

        >>> import numpy as np
        >>> import sardonyx as sx
        >>> session = sx.InferenceSession("examples/digits.onnx")
        >>> profile = session.profile({"pixels": np.zeros((1, 64), np.float32)}, runs=2)
        >>> [row.calls for row in profile.nodes]
        [2, 2, 2, 2]
        """
        if runs < 1:
            raise InputError(f"a profile of {runs} runs says nothing", hint="ask for 1 or more")
        ready = self._ready(feeds)
        events: list[list[Event]] = []
        spans: list[tuple[int, int]] = []
        for turn in range(warmups + runs):
            watcher = Watcher(times=True)
            start = time.perf_counter_ns()
            self._runner.run(None, ready, watcher)
            if turn >= warmups:
                events.append(watcher.events)
                spans.append((start, time.perf_counter_ns()))
        return make_profile(events, spans, self._runner.computed(), self._runner.order())

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


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise InputError(
            f"'{text}' is no regular expression: {error}", hint="'.*' matches every name"
        ) from None


def _require_arguments(output_names: Any, input_feed: Any) -> None:
    """An error where what a run was called with is of another kind than it must be."""
    if not isinstance(input_feed, Mapping):
        raise InputError(
            f"what is fed is a {type(input_feed).__name__}", hint="feed a dict: name -> array"
        )
    asked = output_names if isinstance(output_names, Iterable) else [output_names or ""]
    if isinstance(asked, str) or not all(isinstance(name, str) for name in asked):
        raise InputError(
            f"the outputs asked for are {output_names!r}", hint="give a list of names, or None"
        )
    wrong = next((name for name in input_feed if not isinstance(name, str)), None)
    if wrong is not None:
        raise InputError(f"an input is called {wrong!r}", hint="inputs are known by names")
