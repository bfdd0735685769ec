"""A model as a session takes it: loaded, forgiven what other runtimes forgive, with its options."""

from collections import Counter
from logging import INFO, WARNING
from pathlib import Path
from typing import Any

from sardonyx.errors import ExternalDataError, InputError, UnsupportedError
from sardonyx.format.load import load, load_opened
from sardonyx.format.opened import OpenedFile
from sardonyx.format.private import hold_private
from sardonyx.format.save import save
from sardonyx.format.storage import ExternalData
from sardonyx.graph import Graph, Model, Tensor, TensorType, Type, Value
from sardonyx.graph.clone import clone_model
from sardonyx.graph.sort import require_made, sort_graph
from sardonyx.ops.catalog import Catalog, canonical_domain
from sardonyx.runtime.options import SessionOptions
from sardonyx.runtime.values import plain

FILE_NAME = "session.optimized_model_external_initializers_file_name"
INLINE_LIMIT = "sardonyx.inline_limit"
"""How many nodes inlining the model's functions may make."""
FILE_THRESHOLD = "session.optimized_model_external_initializers_min_size_in_bytes"


def load_model(source: Any, options: SessionOptions) -> Model:
    """The model a session was asked for, as a copy that the session may change."""
    for key in ("session.load_model_format", "session.save_model_format"):
        if options.entry(key).upper() == "ORT":
            raise UnsupportedError(
                "models in onnxruntime's own format cannot be read or written",
                hint="use the ONNX file that the .ort file was made from",
            )
    external = not (options.initializers or options.external_files)
    if isinstance(source, OpenedFile):
        model = load_opened(source, external_data=external)
    elif isinstance(source, Model):
        model = clone_model(source)
        hold_private(model)
    else:
        model = load(source, external_data=external)
        hold_private(model)
    if model.graph is None:
        raise InputError("the model has no graph", hint="the file is empty or damaged")
    return model


def read_model(source: Any, options: SessionOptions) -> Model:
    """The model a session runs: as the options want it, and forgiven what is forgiven."""
    model = load_model(source, options)
    prepare_model(model, options)
    return model


def prepare_model(model: Model, options: SessionOptions) -> None:
    """Put the options' constants and sizes into a model, and mend what is forgiven, in place."""
    assert model.graph is not None
    _set_constants(model, options)
    if options.free_dimensions or options.denoted_dimensions:
        for value in (*model.graph.inputs, *model.graph.outputs):
            value.type = _with_sizes(value.type, options)
    forgive(model, options)
    _inline(model, options)


def _inline(model: Model, options: SessionOptions) -> None:
    """Inline functions here, where the options say how much may come of that."""
    limit = options.entry(INLINE_LIMIT)
    if not limit:
        return
    if not limit.isdecimal():
        raise InputError(
            f"the configuration entry {INLINE_LIMIT} is '{limit}'", hint="give a number of nodes"
        )
    # Only few sessions ask for this, and others do without what it imports.
    from sardonyx.graph.inline import inline_functions
    from sardonyx.ops.convert import upgrade_model

    upgrade_model(model)
    inline_functions(model, inline_limit=int(limit[:18]))


def overridable(model: Model) -> list[Value]:
    """Constants that are inputs too, so that a feed may replace them."""
    assert model.graph is not None
    inputs = set(model.graph.inputs)
    return [value for value in model.graph.initializers if value in inputs]


def fix_constants(model: Model) -> Model:
    """The model with constants that no feed replaces; itself where there are only such."""
    if not overridable(model):
        return model
    twin = clone_model(model)
    assert twin.graph is not None
    fixed = set(overridable(twin))
    twin.graph.inputs = [value for value in twin.graph.inputs if value not in fixed]
    return twin


def _set_constants(model: Model, options: SessionOptions) -> None:
    assert model.graph is not None
    constants = {value.name: value for value in model.graph.initializers}
    for name, given in options.initializers.items():
        if name not in constants:
            raise InputError(
                f"the model has no constant '{name}' to replace",
                hint=f"it has: {', '.join(list(constants)[:20]) or 'none'}",
            )
        array, former = plain(given), constants[name].tensor
        if former is not None and tuple(former.shape) != array.shape:
            raise InputError(
                f"the constant '{name}' has the shape {list(former.shape)}, "
                f"what is to replace it {list(array.shape)}"
            )
        constants[name].tensor = Tensor(array, name)
    files = options.external_files
    for tensor in model.tensors() if files else ():
        data = tensor.data
        if isinstance(data, ExternalData) and data.location in files:
            data.require_inside(tensor, len(files[data.location]))
            tensor.data = ExternalData(data.entries, _opener(files))


def _opener(files: dict[str, Any]) -> Any:
    def open_slice(location: str, offset: int, length: int | None) -> Any:
        if location not in files:
            raise ExternalDataError(f"'{location}' is not among the files in memory")
        whole = files[location]
        return whole[offset:] if length is None else whole[offset : offset + length]

    return open_slice


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


def forgive(model: Model, options: SessionOptions) -> None:
    """Mend what breaks a rule and yet has one meaning, with a notice; the checker reports it."""
    assert model.graph is not None
    require_made(model.graph)
    _sort(model.graph, options)
    used = Counter(node.domain for graph in model.graphs() for node in graph.nodes)
    known = {canonical_domain(domain) for domain in model.opsets}
    known |= {canonical_domain(function.domain) for function in model.functions}
    for domain in used:
        if canonical_domain(domain) not in known:
            message = "the model uses '%s' without importing it: version 1 is taken"
            options.say(WARNING, message, domain)
    if "ai.onnx" in model.opsets or "ai.onnx" in used:
        options.say(INFO, "the model spells the default domain 'ai.onnx'")
    outputs, inputs = set(model.graph.outputs), set(model.graph.inputs)
    captured = {value for part in model.graph.walk() for value in part.captured()}
    unused = [
        value
        for value in model.graph.initializers
        if not value.users and value not in outputs | inputs | captured
    ]
    for value in unused:
        model.graph.initializers.remove(value)
    if unused:
        names = ", ".join(value.name for value in unused[:10])
        options.say(INFO, "dropped %d constants that nothing uses: %s", len(unused), names)


def _sort(graph: Graph, options: SessionOptions) -> None:
    if sort_graph(graph):
        options.say(WARNING, "nodes of graph '%s' stand before what they read: sorted", graph.name)


def optimization(options: SessionOptions) -> tuple[int, tuple[str, ...]]:
    """The level at which a session optimizes, and the passes left out.

    >>> optimization(SessionOptions())
    (2, ())
    """
    named = options.entry("optimization.disable_specified_optimizers").split(";")
    skip = {name for name in named if name}
    if options.entry("session.disable_quant_qdq") == "1":
        skip.add("clean_quantization")
    return min(int(options.graph_optimization_level), 2), tuple(sorted(skip))


def optimize_model(model: Model, options: SessionOptions, catalog: Catalog | None) -> Model:
    """The model as the options' level of optimization makes it."""
    level, named = optimization(options)
    if level <= 0:
        return model
    # A program that is loaded from the cache does without the passes.
    from sardonyx.passes.options import Options
    from sardonyx.passes.pipeline import LEVELS, PORTABLE, run_pipeline

    known = {item.__name__ for item in PORTABLE}
    skip = tuple(name for name in named if name in known)
    return run_pipeline(model, LEVELS[level], Options(skip=skip), catalog=catalog)


def write_optimized(model: Model, options: SessionOptions, catalog: Catalog | None) -> None:
    """Write the optimized model where the options ask for it."""
    path = Path(options.optimized_model_filepath)
    threshold = options.entry(FILE_THRESHOLD, "1024")
    if not threshold.isdigit():
        raise InputError(f"'{threshold}' is no number of bytes", where=FILE_THRESHOLD)
    save(
        optimize_model(model, options, catalog), path,
        external_data=options.entry(FILE_NAME) or None, size_threshold=int(threshold),
    )  # fmt: skip
    options.say(INFO, "wrote the optimized model to '%s'", path)
