"""Fit a model to what a release of another runtime reads: the lowest IR and opset needed."""

import re
from collections.abc import Iterator

from sardonyx.boundary import public
from sardonyx.dtypes import DataType
from sardonyx.errors import SaveError
from sardonyx.graph import (
    Graph,
    MapType,
    Model,
    OptionalType,
    SequenceType,
    SparseTensor,
    SparseTensorType,
    TensorType,
    Type,
)
from sardonyx.graph.clone import clone_model
from sardonyx.ops.catalog import canonical_domain
from sardonyx.ops.convert import convert_opset

_RELEASES: dict[str, dict[tuple[int, int], tuple[int, int, int]]] = {
    "onnxruntime": {
        (1, 0): (6, 11, 2),
        (1, 3): (6, 12, 2),
        (1, 6): (7, 13, 2),
        (1, 8): (7, 14, 2),
        (1, 9): (7, 15, 2),
        (1, 12): (8, 17, 3),
        (1, 14): (8, 18, 3),
        (1, 15): (9, 19, 3),
        (1, 17): (9, 20, 4),
        (1, 18): (10, 21, 4),
        (1, 20): (10, 21, 5),
        (1, 21): (10, 22, 5),
        (1, 23): (11, 23, 5),
        (1, 31): (13, 26, 5),
    },
    "onnx": {
        (1, 6): (6, 11, 2),
        (1, 7): (7, 12, 2),
        (1, 8): (7, 13, 2),
        (1, 9): (7, 14, 2),
        (1, 10): (8, 15, 2),
        (1, 11): (8, 16, 3),
        (1, 12): (8, 17, 3),
        (1, 13): (8, 18, 3),
        (1, 14): (9, 19, 3),
        (1, 15): (9, 20, 4),
        (1, 16): (10, 21, 5),
        (1, 17): (10, 22, 5),
        (1, 18): (11, 23, 5),
        (1, 19): (12, 24, 5),
        (1, 20): (13, 25, 5),
        (1, 21): (13, 26, 5),
        (1, 22): (13, 27, 5),
        (1, 23): (14, 28, 5),
    },
}
"""The IR version, opset and ai.onnx.ml opset that each release reads at most."""


@public("fitting the model to a release")
def fit_version(model: Model, release: str) -> Model:
    """A copy of `model` that the given release reads, such as `"onnxruntime>=1.20"`.

    Operator sets newer than it knows are converted down; the IR version becomes the lowest that
    says the same.

    >>> import sardonyx as sx
    >>> model = sx.load("examples/digits.onnx")
    >>> fit_version(model, "onnxruntime>=1.20").ir_version
    4
    """
    newest_ir, opset, ml_opset = _limits(release)
    twin = clone_model(model)
    for domain, limit in (("", opset), ("ai.onnx.ml", ml_opset)):
        for spelling in [item for item in twin.opsets if canonical_domain(item) == domain]:
            if twin.opsets[spelling] > limit:
                twin = convert_opset(twin, limit, spelling)
    needs = list(_needs(twin))
    needed, reason = max(needs, default=(3, ""))
    if needed > newest_ir:
        raise SaveError(
            f"the model needs IR version {needed} for {reason}; {release} reads up to {newest_ir}",
            hint="take that out of the model, or save for a newer release",
        )
    if model.ir_version > 4:
        twin.ir_version = max(4, needed)
    return twin


def _limits(release: str) -> tuple[int, int, int]:
    found = re.fullmatch(r"\s*(\w+)\s*(?:>=|==|~=|\s)\s*(\d+)\.(\d+)(?:\.\d+)?\s*", release)
    table = _RELEASES.get(found[1]) if found else None
    if found is None or table is None:
        raise SaveError(
            f"'{release}' names no release that is known",
            hint=f"write for example 'onnxruntime>=1.20'; known are: {', '.join(_RELEASES)}",
        )
    wanted = (int(found[2]), int(found[3]))
    fitting = [limits for version, limits in table.items() if version <= wanted]
    if not fitting:
        oldest = ".".join(map(str, min(table)))
        raise SaveError(f"'{release}' is older than {oldest}, the oldest release that is known")
    return fitting[-1]


def _needs(model: Model) -> Iterator[tuple[int, str]]:
    """IR versions that a model needs, each with what needs it."""
    if model.training:
        yield 7, "training information"
    if model.functions:
        yield 8, "functions"
    if model.device_configurations:
        yield 11, "device configurations"
    for function in model.functions:
        if function.attribute_defaults:
            yield 9, f"default attributes of function '{function.name}'"
        if function.overload or function.metadata:
            yield 10, f"overload or metadata of function '{function.name}'"
    for graph in model.graphs():
        yield from _graph_needs(graph)


def _graph_needs(graph: Graph) -> Iterator[tuple[int, str]]:
    inputs = set(graph.inputs)
    if any(value not in inputs for value in graph.initializers):
        yield 4, "initializers that are not inputs"
    if graph.quantization:
        yield 5, "quantization annotations"
    if graph.metadata:
        yield 10, f"metadata of graph '{graph.name}'"
    for value in [*graph.values(), *graph.outputs, *graph.declared]:
        yield from _type_needs(value.type, value.name)
        if isinstance(value.tensor, SparseTensor):
            yield 6, f"the sparse initializer '{value.name}'"
        if value.metadata or (value.tensor is not None and getattr(value.tensor, "metadata", None)):
            yield 10, f"metadata of value '{value.name}'"
    for node in graph.nodes:
        if node.overload or node.metadata:
            yield 10, f"overload or metadata of {node.where()}"
        if node.device_configurations:
            yield 11, f"device configurations of {node.where()}"
        for attribute in node.attributes.values():
            for tensor in attribute.tensors:
                yield from _type_needs(tensor.type, tensor.name)


def _type_needs(type_: Type | None, name: str) -> Iterator[tuple[int, str]]:
    match type_:
        case SparseTensorType():
            yield 8, f"the sparse type of '{name}'"
        case TensorType():
            if isinstance(type_.element, DataType):
                yield type_.element.since_ir, f"{type_.element.text} in '{name}'"
        case OptionalType():
            yield 8, f"the optional type of '{name}'"
            yield from _type_needs(type_.element, name)
        case SequenceType():
            yield from _type_needs(type_.element, name)
        case MapType():
            yield from _type_needs(type_.value, name)
