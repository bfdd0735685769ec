"""How much arithmetic a model does: floating-point operations of its products, from shapes."""

from collections.abc import Callable, Mapping

from sardonyx.dims import Expression, Size, product
from sardonyx.graph import Model, Node, Value
from sardonyx.ops.catalog import canonical_domain
from sardonyx.ops.fact import Fact, Sizes
from sardonyx.ops.infer import infer_facts
from sardonyx.record import record

Shapes = list[Sizes | None]


@record
class Cost:
    """The arithmetic of one node: `flops` is None where its shapes are not known."""

    node: Node
    flops: Size | None


def estimate_costs(model: Model, facts: Mapping[Value, Fact] | None = None) -> list[Cost]:
    """Two operations for each multiply-add of every matrix product and convolution.

    `facts` is what `infer_facts` found, where it is at hand. Sizes may be symbolic.

    >>> import sardonyx as sx
    >>> model = sx.load_text('<ir_version: 10, opset_import: ["": 21]>'
    ...                      'g (float[n,3] x, float[3,5] w) => (y) { y = MatMul(x, w) }')
    >>> [cost.flops for cost in estimate_costs(model)]
    [30*n]
    """
    known = infer_facts(model) if facts is None else facts
    costs = []
    for node in () if model.graph is None else model.graph.all_nodes():
        rule = _RULES.get((canonical_domain(node.domain), node.op_type))
        if rule is not None:
            inputs = [None if value is None else _shape(known, value) for value in node.inputs]
            outputs = [_shape(known, value) for value in node.outputs]
            costs.append(Cost(node, rule(node, inputs, outputs)))
    return costs


def node_work(node: Node, inputs: Shapes, outputs: Shapes) -> int:
    """The arithmetic of a node whose shapes are numbers; 0 where it is free or not known.

    Every element of what a window slides over counts as often as the window is large.

    >>> node_work(Node("MatMul"), [(2, 3), (3, 5)], [(2, 5)])
    60
    """
    rule = _RULES.get((canonical_domain(node.domain), node.op_type))
    found = None if rule is None else rule(node, inputs, outputs)
    window = node.attribute("kernel_shape", None) if rule is None else None
    if window and outputs:
        found = _times(*window, *(outputs[0] or (None,)))
    return found if isinstance(found, int) else 0


def total_flops(costs: list[Cost], sizes: Mapping[str, int] | None = None) -> Size:
    """The known costs added up, with symbols replaced by `sizes`.

    >>> from sardonyx.dims import symbol
    >>> total_flops([Cost(Node("MatMul"), symbol("n") * 6), Cost(Node("Gemm"), 4)], {"n": 2})
    16
    """
    total: Size = sum((cost.flops for cost in costs if cost.flops is not None), start=0)
    return total.substitute(sizes) if sizes and isinstance(total, Expression) else total


def _shape(facts: Mapping[Value, Fact], value: Value) -> Sizes | None:
    fact = facts.get(value)
    return None if fact is None else fact.shape


def _times(*sizes: Size | None) -> Size | None:
    if any(size is None for size in sizes):
        return None
    return product([size for size in sizes if size is not None])


def _matmul(node: Node, inputs: Shapes, outputs: Shapes) -> Size | None:
    left, result = inputs[0] if inputs else None, outputs[0] if outputs else None
    return _times(2, left[-1], *result) if left and result is not None else None


def _gemm(node: Node, inputs: Shapes, outputs: Shapes) -> Size | None:
    left, result = inputs[0] if inputs else None, outputs[0] if outputs else None
    if left is None or result is None or len(left) != 2:
        return None
    return _times(2, left[0 if node.attribute("transA", 0) else 1], *result)


def _conv_of(weight: int) -> Callable[[Node, Shapes, Shapes], Size | None]:
    """The rule of a convolution: each output element takes one product with each weight."""

    def rule(node: Node, inputs: Shapes, outputs: Shapes) -> Size | None:
        kernel = inputs[weight] if len(inputs) > weight else None
        result = outputs[0] if outputs else None
        if kernel is None or result is None or len(kernel) < 2:
            return None
        return _times(2, *result, *kernel[1:])

    return rule


def _conv_transpose(node: Node, inputs: Shapes, outputs: Shapes) -> Size | None:
    """Each input element takes one product with each weight of its group."""
    source, kernel = (*inputs, None, None)[:2]
    if source is None or kernel is None or len(kernel) < 2:
        return None
    return _times(2, *source, *kernel[1:])


_RULES: dict[tuple[str, str], Callable[[Node, Shapes, Shapes], Size | None]] = {
    ("", "MatMul"): _matmul,
    ("", "MatMulInteger"): _matmul,
    ("", "QLinearMatMul"): _matmul,
    ("", "Gemm"): _gemm,
    ("com.microsoft", "FusedMatMul"): _matmul,
    ("com.microsoft", "FusedGemm"): _gemm,
    ("", "Conv"): _conv_of(1),
    ("", "ConvInteger"): _conv_of(1),
    ("", "QLinearConv"): _conv_of(3),
    ("com.microsoft", "FusedConv"): _conv_of(1),
    ("", "ConvTranspose"): _conv_transpose,
}
"""Operators by domain and name; all others count as free."""
