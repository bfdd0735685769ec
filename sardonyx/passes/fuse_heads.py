"""Attention -> the operators of onnxruntime's own domain that compute it from packed heads.

Attention(*Split(x w + b), mask)    -> com.microsoft.Attention(x, w, b, mask)
Attention(q, k, v, mask, past)      -> MultiHeadAttention(q, k, v, mask, past)

A mask of conditions stays with Attention: it gives zeros for a query that may see nothing, which
numbers added to scores cannot say.
"""

import numpy as np

from sardonyx.graph import Node, Value
from sardonyx.passes.fuse_embeddings import DOMAIN, FLOATS
from sardonyx.passes.read_scores import maker_of
from sardonyx.passes.rules import RuleBuilder
from sardonyx.passes.unit import Unit, drop_unused, is_operator, record_origin
from sardonyx.record import record

_UNKNOWN_TO_HEADS = (
    "softcap", "softmax_precision", "qk_matmul_output_mode", "left_window_size",
    "right_window_size",
)  # fmt: skip
"""Attributes of Attention that these operators have not, or mean otherwise."""


@record
class _Projection:
    """Queries, keys and values side by side: x w + b, in this order, with these sizes."""

    x: Value
    weights: Value
    bias: Value | None
    sizes: tuple[int, int, int]
    nodes: tuple[Node, ...]


def fuse_heads(unit: Unit) -> bool:
    """Use onnxruntime's attention of packed heads, with the projection where that is one."""
    changed = False
    for node in list(unit.nodes()):
        if is_operator(node, "Attention") and _is_multi_head(unit, node):
            projection = _read_projection(unit, node)
            if projection is not None:
                _pack(unit, node, projection)
                changed = True
            elif not node.attribute("is_causal", 0):
                _keep_apart(unit, node)
                changed = True
    return changed


def _is_multi_head(unit: Unit, node: Node) -> bool:
    heads = node.attribute("q_num_heads")
    plain = not any(node.attribute(name, 0) for name in _UNKNOWN_TO_HEADS)
    if not heads or node.attribute("kv_num_heads") != heads or not plain or len(node.inputs) > 6:
        return False
    if len(node.outputs) > 3 or unit.dtype(node.inputs[0]) not in FLOATS:
        return False
    mask = node.inputs[3] if len(node.inputs) > 3 else None
    if mask is None:
        return True
    shape = unit.shape(mask)
    return shape is not None and len(shape) == 4 and unit.dtype(mask) in FLOATS


def _read_projection(unit: Unit, node: Node) -> _Projection | None:
    """The product that queries, keys and values are split off from, for this node alone."""
    if len(node.outputs) > 1 or any(node.inputs[4:]):
        return None
    split = maker_of(node.inputs[0], node, "Split")
    if split is None or split.outputs != node.inputs[:3]:
        return None
    sizes = tuple((unit.shape(value) or (None,))[-1] for value in split.outputs)
    joined, axis = split.inputs[0], split.attribute("axis", 0)
    shape = unit.shape(joined)
    if joined is None or shape is None or len(shape) != 3 or axis not in (2, -1):
        return None
    alone = all(len(value.uses) == 1 for value in (joined, *split.outputs))
    if not alone or not all(isinstance(size, int) for size in sizes) or sizes[0] != sizes[1]:
        return None
    return _read_product(unit, node, split, sizes)  # type: ignore[arg-type]


def _read_product(
    unit: Unit, near: Node, split: Node, sizes: tuple[int, int, int]
) -> _Projection | None:
    add = maker_of(split.inputs[0], near, "Add")
    places = (0, 1) if add is not None else ()
    found = [place for place in places if add and unit.is_constant(add.inputs[place])]
    bias = add.inputs[found[0]] if add and found else None
    product = maker_of(add.inputs[1 - found[0]] if add and found else split.inputs[0], near,
                       "MatMul")  # fmt: skip
    if product is None or len(product.output.uses) != 1:
        return None
    x, weights = product.inputs
    whole = unit.is_constant(weights) and len(unit.shape(weights) or ()) == 2
    if x is None or weights is None or not whole:
        return None
    if bias is not None and unit.shape(bias) != (sum(sizes),):
        return None
    nodes = (split, add, product) if add is not None else (split, product)
    return _Projection(x, weights, bias, sizes, nodes)


def _pack(unit: Unit, node: Node, found: _Projection) -> None:
    op = RuleBuilder(unit, node)
    mask = node.inputs[3] if len(node.inputs) > 3 else None
    element = unit.dtype(found.weights)
    assert element is not None
    bias = found.bias or np.zeros(sum(found.sizes), element.numpy)
    equal = found.sizes[0] == found.sizes[2]
    given = {
        "num_heads": node.attribute("q_num_heads"),
        "scale": node.attribute("scale"),
        "unidirectional": node.attribute("is_causal", 0) or None,
        "qkv_hidden_sizes": None if equal else list(found.sizes),
    }
    fed = (found.x, found.weights, bias, None, None, mask)
    y = op.node("Attention", fed if mask is not None else fed[:3], 1, DOMAIN, given)
    unit.substitute(node.outputs[0], y)
    record_origin(unit, op.made, [node, *found.nodes])
    drop_unused([node, *found.nodes])


def _keep_apart(unit: Unit, node: Node) -> None:
    q, k, v, mask, *past = (*node.inputs, None, None, None)[:6]
    op = RuleBuilder(unit, node)
    given = {"num_heads": node.attribute("q_num_heads"), "scale": node.attribute("scale")}
    fed = (q, k, v, None, None, mask, *past)
    made = op.node("MultiHeadAttention", fed, len(node.outputs), DOMAIN, given)
    results = made if isinstance(made, tuple) else (made,)
    for old, new in zip(node.outputs, results, strict=True):
        unit.substitute(old, new)
    record_origin(unit, op.made, [node])
    drop_unused([node])
