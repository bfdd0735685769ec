"""What a model is, in figures: for people, and for programs that sort through models."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from sardonyx.boundary import public
from sardonyx.dims import HIDDEN
from sardonyx.dtypes import DataType
from sardonyx.format.storage import ExternalData
from sardonyx.graph import Dimension, Graph, Model, Node, Tensor, TensorType, Value
from sardonyx.graph.clone import clone_model
from sardonyx.ops.catalog import NEWEST_OPSETS, canonical_domain, standard
from sardonyx.ops.cost import estimate_costs, total_flops
from sardonyx.ops.fact import Fact, to_type
from sardonyx.ops.infer import infer_facts

OLD_OPSET = 13
"""Below this opset, many exporters and runtimes no longer take a model."""
HUGE_CONSTANT = 1 << 20
"""From this size on, a constant in a node's attribute is worth a remark."""


MANY_ELEMENTS = 1 << 10
"""From this size on, a weight of type int64 is worth a remark."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An input or output of a model, with its type as text."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Summary:
    """What a model is; sizes are in bytes, and texts where they may be symbolic."""

    producer: str
    ir_version: int
    opsets: dict[str, int]
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    parameters: int
    weight_bytes: int
    memory_bytes: int
    flops: str
    uncounted: int
    """How many matrix products and convolutions have no known cost."""
    nodes: int
    operators: dict[str, int]
    dynamic_dimensions: tuple[str, ...]
    metadata: dict[str, str]
    functions: tuple[str, ...]
    quantization: dict[str, int]
    external_data: dict[str, int]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WeightStatistics:
    """One stored tensor, and what its elements are like; None where that has no meaning."""

    name: str
    type: str
    bytes: int
    minimum: float | None
    maximum: float | None
    mean: float | None
    zeros: float | None
    """The part of the elements that is zero, from 0 to 1."""
    nans: int
    infinities: int
    external: str


@public("summarizing the model")
def summarize(model: Model, sizes: Mapping[str, int] | None = None) -> Summary:
    """Describe a model. `sizes` gives dynamic dimensions a size for the estimate of its cost.

    >>> import sardonyx as sx
    >>> summary = summarize(sx.load("examples/digits.onnx"), {"batch": 1})
    >>> summary.inputs[0].type, summary.parameters, summary.operators["Gemm"]
    ('float[batch,64]', 2410, 2)
    """
    graph = Graph() if model.graph is None else model.graph
    facts = infer_facts(model)
    constants = set(graph.initializers)
    costs = estimate_costs(with_sizes(model, sizes)) if sizes else estimate_costs(model, facts)
    tensors = list(model.tensors())
    nodes = [node for part in model.graphs() for node in part.nodes]
    counts = Counter(_operator(node) for node in nodes)
    inputs = [value for value in graph.inputs if value not in constants]
    return Summary(
        producer=f"{model.producer_name} {model.producer_version}".strip(),
        ir_version=model.ir_version,
        opsets={domain or "ai.onnx": version for domain, version in model.opsets.items()},
        inputs=tuple(_argument(value, facts) for value in inputs),
        outputs=tuple(_argument(value, facts) for value in graph.outputs),
        parameters=sum(tensor.size for tensor in tensors),
        weight_bytes=sum(tensor.nbytes for tensor in tensors),
        memory_bytes=sum(map(_memory, tensors)),
        flops=str(total_flops(costs)),
        uncounted=sum(cost.flops is None for cost in costs),
        nodes=len(nodes),
        operators=dict(counts.most_common()),
        dynamic_dimensions=tuple(dynamic_dimensions(inputs)),
        metadata=dict(model.metadata),
        functions=tuple(f"{item.domain}.{item.name}" for item in model.functions),
        quantization=_quantization(tensors, nodes),
        external_data=dict(_external(tensors)),
        warnings=tuple(_warnings(model, graph, facts, constants)),
    )


def with_sizes(model: Model, sizes: Mapping[str, int]) -> Model:
    """A copy of a model whose inputs have these sizes in place of dynamic dimensions.

    A dimension is known by its name, or as `input[axis]` where it has none.

    >>> import sardonyx as sx
    >>> str(with_sizes(sx.load("examples/digits.onnx"), {"batch": 8}).graph.inputs[0].type)
    'float[8,64]'
    """
    twin = clone_model(model)
    for value in () if twin.graph is None else twin.graph.inputs:
        if isinstance(value.type, TensorType) and value.type.shape is not None:
            shape = tuple(
                sizes.get(name, size) if (name := _dynamic_name(value, axis, size)) else size
                for axis, size in enumerate(value.type.shape)
            )
            value.type = value.type.with_shape(shape)
    return twin


def _dynamic_name(value: Value, axis: int, size: Dimension) -> str:
    """What a dimension is called that has no fixed size; nothing for one that has."""
    if isinstance(size, str):
        return size
    return f"{value.name}[{axis}]" if size is None or size < 0 else ""


def weight_statistics(tensor: Tensor) -> WeightStatistics:
    """What a tensor's elements are like.

    >>> weight_statistics(Tensor(np.array([0, 1, np.nan, 4], np.float32), "w")).zeros
    0.25
    """
    external = tensor.data.location if isinstance(tensor.data, ExternalData) else ""
    known = tensor.element in set(DataType)
    text = str(tensor.type)
    dtype = tensor.dtype if known else None
    if dtype is None or not (dtype.is_float or dtype.is_integer) or not tensor.size:
        return WeightStatistics(
            tensor.name, text, tensor.nbytes, None, None, None, None, 0, 0, external
        )
    array = tensor.numpy().reshape(-1)
    if dtype.is_float and array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float32)
    elif dtype.bits < 8:
        array = array.astype(np.int8 if dtype.name.startswith("INT") else np.uint8)
    finite = array[np.isfinite(array)] if dtype.is_float else array
    return WeightStatistics(
        tensor.name,
        text,
        tensor.nbytes,
        float(finite.min()) if finite.size else None,
        float(finite.max()) if finite.size else None,
        float(finite.mean(dtype=np.float64)) if finite.size else None,
        float(np.count_nonzero(array == 0) / array.size),
        int(np.isnan(array).sum()) if dtype.is_float else 0,
        int(np.isinf(array).sum()) if dtype.is_float else 0,
        external,
    )


def _operator(node: Node) -> str:
    domain = canonical_domain(node.domain)
    return f"{domain}.{node.op_type}" if domain else node.op_type


def _argument(value: Value, facts: Mapping[Value, Fact]) -> Argument:
    declared = value.type
    known = facts.get(value)
    inferred = None if known is None else to_type(known, HIDDEN)
    vague = declared is None or (isinstance(declared, TensorType) and declared.shape is None)
    return Argument(value.name, str((inferred if vague else declared) or declared or "?"))


def _memory(tensor: Tensor) -> int:
    """Bytes of the array: elements below one byte take a whole one each."""
    if tensor.element not in set(DataType) or tensor.dtype == DataType.STRING:
        return tensor.nbytes
    return 0 if tensor.dtype == DataType.UNDEFINED else tensor.size * tensor.dtype.numpy.itemsize


def dynamic_dimensions(inputs: Iterable[Value]) -> Iterable[str]:
    """The dimensions of inputs that have no fixed size, each once."""
    seen: dict[str, None] = {}
    for value in inputs:
        shape = value.type.shape if isinstance(value.type, TensorType) else None
        names = [_dynamic_name(value, axis, size) for axis, size in enumerate(shape or ())]
        seen |= dict.fromkeys(name for name in names if name)
    return seen


def _quantization(tensors: Iterable[Tensor], nodes: Iterable[Node]) -> dict[str, int]:
    """Nodes that quantize or compute on quantized values, and weights of narrow types."""
    found: Counter[str] = Counter()
    for node in nodes:
        if any(mark in node.op_type for mark in ("uantize", "QLinear", "Integer", "NBits")):
            found[_operator(node)] += 1
    for tensor in tensors:
        narrow = tensor.element in set(DataType) and tensor.dtype.bits <= 8 and tensor.size > 1
        if narrow and tensor.dtype not in (DataType.BOOL, DataType.STRING, DataType.UNDEFINED):
            found[f"{tensor.dtype.text} weights"] += 1
    return dict(found.most_common())


def _external(tensors: Iterable[Tensor]) -> Counter[str]:
    found: Counter[str] = Counter()
    for tensor in tensors:
        if isinstance(tensor.data, ExternalData):
            found[tensor.data.location] += tensor.nbytes
    return found


def _warnings(
    model: Model, graph: Graph, facts: Mapping[Value, Fact], constants: set[Value]
) -> Iterable[str]:
    if 0 < model.opset < OLD_OPSET:
        yield (
            f"opset {model.opset} is old (the newest is {NEWEST_OPSETS['']}): "
            "`sardonyx convert --opset` raises it"
        )
    unknown = [
        value.name
        for node in graph.nodes
        for value in node.outputs
        if value.name and _shapeless(facts.get(value))
    ]
    if unknown:
        yield f"{len(unknown)} values have no known shape, the first is '{unknown[0]}'"
    for value in graph.inputs:
        if value not in constants and not value.uses:
            yield f"the input '{value.name}' is not used"
    unused = [value.name for value in graph.initializers if not value.uses]
    if unused:
        yield f"{len(unused)} constants are not used, the first is '{unused[0]}'"
    for node in graph.all_nodes():
        size = sum(
            tensor.nbytes for attribute in node.attributes.values() for tensor in attribute.tensors
        )
        if size >= HUGE_CONSTANT:
            yield f"{node.where()} holds {size:,} bytes in an attribute; initializers load faster"
    whole = [
        tensor
        for tensor in model.tensors()
        if tensor.element == DataType.INT64 and tensor.size >= MANY_ELEMENTS
    ]
    if whole:
        size = sum(tensor.nbytes for tensor in whole)
        yield (
            f"{len(whole)} weights are int64 and take {size:,} bytes, the first is "
            f"'{whole[0].name}': some runtimes have no int64, and int32 often will do"
        )
    missing = sorted({_operator(node) for node in graph.all_nodes() if _foreign(model, node)})
    if missing:
        yield f"operators that are not known here: {', '.join(missing)}"


def _shapeless(fact: Fact | None) -> bool:
    return fact is None or (fact.is_tensor and fact.shape is None)


def _foreign(model: Model, node: Node) -> bool:
    known = (canonical_domain(node.domain), node.op_type) in standard()
    return not known and model.function(node) is None
