"""Calls are inlined by the passes only where the model does not grow."""

import sardonyx as sx
from sardonyx.passes.inline_calls import inline_calls
from tests.scale import models
from tests.scale.hostile import CASES


def _loaded(proto: object) -> sx.Model:
    return sx.load(proto.SerializeToString())  # type: ignore[attr-defined]


def _nodes(model: sx.Model) -> int:
    return sum(len(graph.nodes) for graph in model.graphs())


def test_functions_that_double_do_not_grow() -> None:
    for case in ("functions that double", "functions in branches", "functions without nodes"):
        model = _loaded(CASES[case]())
        before = _nodes(model)
        inline_calls(model)
        assert _nodes(model) <= before, case


def test_a_function_behind_a_small_one_is_not_copied() -> None:
    """`f` only calls `g`: inlining both at each call of `f` would copy `g` five times."""
    calls = " ".join(f"y{item} = local.f (x)" for item in range(5))
    outputs = ", ".join(f"y{item}" for item in range(5))
    model = sx.load_text(
        '<ir_version: 10, opset_import: ["": 21, "local": 1]>'
        f"m (float[2] x) => ({outputs}) {{ {calls} }}"
        '<domain: "local", opset_import: ["": 21, "local": 1]> f (x) => (y) { y = local.g (x) }'
        '<domain: "local", opset_import: ["": 21]> g (x) => (y) { a = Neg (x) b = Abs (a)'
        " c = Exp (b) y = Relu (c) }"
    )
    before = _nodes(model)
    assert inline_calls(model)
    assert _nodes(model) <= before
    assert [function.name for function in model.functions] == ["f"]


def test_a_chain_is_inlined_at_once() -> None:
    model = _loaded(models.chained_functions(500))
    assert inline_calls(model) and not inline_calls(model)
    assert model.graph is not None and len(model.graph.nodes) == 500 and not model.functions


def test_a_function_that_nobody_calls_is_dropped() -> None:
    model = _loaded(models.called_often(3))
    assert model.graph is not None
    for function in models.chained_functions(3).functions:
        function.name = f"unused{function.name}"
        for node in function.node:
            node.op_type = f"unused{node.op_type}" if node.domain else node.op_type
    model.functions += _loaded(models.chained_functions(3)).functions
    inline_calls(model)
    assert [function.name for function in model.functions] == ["f"]
