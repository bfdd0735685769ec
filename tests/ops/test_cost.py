"""How much arithmetic nodes do."""

from typing import Any

import pytest

from sardonyx.dims import symbol
from sardonyx.graph import Graph, Model, Opsets
from sardonyx.ops.cost import Cost, estimate_costs, total_flops
from tests.ops.direct import text_model

N = symbol("n")


@pytest.mark.parametrize(
    ("inputs", "call", "flops"),
    [
        ("float[2,3] a, float[3,5] b", "MatMul(a, b)", 60),
        ("float[n,2,3] a, float[3,5] b", "MatMul(a, b)", 60 * N),
        ("float[3] a, float[3] b", "MatMul(a, b)", 6),
        ("float[] a, float[3,5] b", "MatMul(a, b)", None),
        ("float[2,3] a, float[3,5] b", "Gemm(a, b)", 60),
        ("float[2,3] a, float[2,5] b", "Gemm<transA=1>(a, b)", 60),
        ("float[] a, float[2,5] b", "Gemm(a, b)", None),
        ("uint8[2,3] a, uint8[3,5] b", "MatMulInteger(a, b)", 60),
        ("float[1,3,8,8] a, float[4,3,3,3] b", "Conv(a, b)", 2 * 4 * 36 * 27),
        ("float[1,4,8,8] a, float[4,1,3,3] b", "Conv<group=4>(a, b)", 2 * 4 * 36 * 9),
        ("float[1,3,8,8] a, float[] b", "Conv(a, b)", None),
        ("float[1,3,8] a, float[3,4,2] b", "ConvTranspose(a, b)", 2 * 24 * 8),
        ("float[1,3,8] a, float[] b", "ConvTranspose(a, b)", None),
        ("float[] a, float[3,4,2] b", "ConvTranspose(a, b)", None),
    ],
)
def test_flops(inputs: str, call: str, flops: Any) -> None:
    (cost,) = estimate_costs(text_model(f"g ({inputs}) => (y) {{ y = {call} }}"))
    assert cost.flops == flops and cost.node.op_type == call.partition("<")[0].partition("(")[0]


def test_absent_inputs_and_operators_that_count_as_free() -> None:
    text = "g (float[2,3] a, float[3,5] b) => (z) { y = Gemm(a, b, ) z = Relu(y) }"
    costs = estimate_costs(text_model(text))
    assert [cost.flops for cost in costs] == [60]
    assert estimate_costs(Model(None, Opsets({"": 21}), 10)) == []
    graph = Graph("g")
    graph.outputs.append(graph.add("MatMul", [], ["y"]).output)
    graph.outputs.append(graph.add("Conv", [], ["z"]).output)
    graph.outputs.append(graph.add("Gemm", [], ["w"]).output)
    graph.outputs.append(graph.add("ConvTranspose", [], ["v"]).output)
    found = estimate_costs(Model(graph, Opsets({"": 21}), 10), {})
    assert [cost.flops for cost in found] == [None] * 4


def test_sums_with_sizes_put_in() -> None:
    node = estimate_costs(text_model("g (float[2,3] a) => (y) { y = MatMul(a, a) }"))[0].node
    costs = [Cost(node, 6 * N), Cost(node, None), Cost(node, 4)]
    assert total_flops(costs) == 6 * N + 4
    assert total_flops(costs, {"n": 2}) == 16
    assert total_flops(costs, {"m": 2}) == 6 * N + 4
    assert total_flops(costs[1:], {"n": 2}) == 4
    assert total_flops([]) == 0
