"""The rewrite engine: what patterns match, and what is done with them."""

import time
from typing import Any

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.graph import Graph, Model, Node, Opsets, TensorType
from sardonyx.graph.verify import verify
from sardonyx.ops.catalog import standard
from sardonyx.passes.operand import Operand
from sardonyx.passes.options import Options
from sardonyx.passes.rules import Rule, apply_rules, because
from sardonyx.passes.unit import FROM, Unit
from tests.passes.cases import becomes, model_of, operators, run_function, run_pass, stays, weights


class SquareOfSum(Rule):
    """Mul(Add(a, b), Add(a, b)) -> Pow(Add(a, b), 2)."""

    def pattern(op: Any, a: Any, b: Any) -> Any:
        total = op.Add(a, b)
        return op.Mul(total, total)

    def replace(op: Any, a: Operand, b: Operand) -> Any:
        return op.Pow(op.Add(a, b), np.float32(2))


class FuseClip(Rule):
    """Min(Max(x, low), high) -> Clip(x, low, high), for constant numbers."""

    def pattern(op: Any, x: Any, low: Any, high: Any) -> Any:
        return op.Min(op.Max(x, low).named("lower"), high)

    def check(low: Operand, high: Operand) -> Any:
        if low.scalar is None or high.scalar is None:
            return because("a bound is not a constant number")
        return low.scalar <= high.scalar or because("the bounds are crossed")

    def replace(op: Any, x: Operand, low: Operand, high: Operand, lower: Node) -> Any:
        assert lower.op_type == "Max"
        return op.Clip(x, low.array.reshape(()), high.array.reshape(()))


class KeepTop(Rule):
    """TopK(Neg(x)) with two outputs -> TopK(x, largest=0), values negated."""

    def pattern(op: Any, x: Any, k: Any) -> Any:
        return op.TopK(op.Neg(x), k, outputs=2, largest=1)

    def replace(op: Any, x: Operand, k: Operand) -> Any:
        values, indices = op.TopK(x, k, outputs=2, largest=0)
        return op.Neg(values), indices


class DropBias(Rule):
    """Conv(x, w, b) -> Conv(x, w), for b of zeros; b may be absent."""

    def pattern(op: Any, x: Any, w: Any, b: Any = None) -> Any:
        return op.Conv(x, w, b).named("conv")

    def check(b: Operand | None) -> Any:
        if b is None:
            return because("there is no bias")
        return (b.constant and not b.array.any()) or because("the bias is not zero")

    def replace(op: Any, x: Operand, w: Operand, conv: Node) -> Any:
        return op.Conv(x, w, **dict(conv.attributes))


class Halve(Rule):
    """Mul(x, 0.5) or Mul(x, 0.25) -> Identity; for literals and alternatives."""

    def pattern(op: Any, x: Any) -> Any:
        return op.either("Relu", "Abs")(op.Mul(x, 0.5))

    def replace(op: Any, x: Operand) -> Any:
        return op.Mul(op.Relu(x), np.float32(0.5))


def rule(kind: type[Rule]) -> Any:
    def step(unit: Unit) -> bool:
        return bool(apply_rules(unit, kind))

    step.__name__ = kind.__name__
    return step


CLIP = "(float[n,3] x) => (float[n,3] y)"
BOUNDS = ("float low = {-1}", "float high = {1}")


def test_commutative_inputs_match_in_either_order() -> None:
    for first in ("Max(x, low)", "Max(low, x)"):
        for second in ("Min(a, high)", "Min(high, a)"):
            model = model_of(CLIP, f"a = {first} y = {second}", *BOUNDS)
            becomes(model, ["Clip"], rule(FuseClip))


def test_a_failed_check_gives_its_reason() -> None:
    crossed = model_of(CLIP, "a = Max(x, high) y = Min(a, low)", *BOUNDS)
    stays(crossed, "FuseClip: the bounds are crossed", rule(FuseClip))
    open_bound = model_of("(float[3] x, float z) => (float[3] y)", "a = Max(x, z) y = Min(a, x)")
    stays(open_bound, "a bound is not a constant number", rule(FuseClip))


def test_inner_values_with_other_users_are_left_alone() -> None:
    model = model_of(
        "(float[n,3] x) => (float[n,3] y, float[n,3] z)",
        "a = Max(x, low) y = Min(a, high) z = Neg(a)", *BOUNDS,
    )  # fmt: skip
    stays(model, "", rule(FuseClip))
    returned = model_of(
        "(float[n,3] x) => (float[n,3] y, float[n,3] a)", "a = Max(x, low) y = Min(a, high)",
        *BOUNDS,
    )  # fmt: skip
    stays(returned, "", rule(FuseClip))


def test_one_placeholder_twice_means_one_value() -> None:
    body = "s = Add(x, y) z = Mul(s, s)"
    signature = "(float[2] x, float[2] y) => (float[2] z)"
    becomes(model_of(signature, body), ["Add", "Pow"], rule(SquareOfSum))
    stays(model_of(signature, "s = Add(x, y) z = Mul(s, x)"), "", rule(SquareOfSum))


def test_several_outputs() -> None:
    signature = "(float[5] x) => (float[2] v, int64[2] i)"
    model = model_of(signature, "m = Neg(x) v, i = TopK(m, k)", "int64[1] k = {2}")
    becomes(model, ["TopK", "Neg"], rule(KeepTop))
    wrong = model_of(signature, "m = Neg(x) v, i = TopK<largest=0>(m, k)", "int64[1] k = {2}")
    stays(wrong, "", rule(KeepTop))


def test_optional_inputs() -> None:
    signature, w = "(float[1,1,4] x) => (float[1,2,2] y)", weights("w", 2, 1, 3)
    with_bias = model_of(signature, "y = Conv(x, w, b)", w, "float[2] b = {0, 0}")
    result = becomes(with_bias, ["Conv"], rule(DropBias))
    assert len(result.graph.nodes[0].inputs) == 2
    stays(model_of(signature, "y = Conv(x, w)", w), "there is no bias", rule(DropBias))


def test_numbers_and_alternatives() -> None:
    signature = "(float[3] x) => (float[3] y)"
    model = model_of(signature, "a = Mul(x, h) y = Relu(a)", "float h = {0.5}")
    becomes(model, ["Relu", "Mul"], rule(Halve))
    stays(model_of(signature, "a = Mul(x, h) y = Relu(a)", "float h = {0.4}"), "", rule(Halve))
    stays(model_of(signature, "a = Mul(x, h) y = Neg(a)", "float h = {0.5}"), "", rule(Halve))


def test_rules_work_in_subgraphs() -> None:
    model = model_of(
        "(bool c, float[3] x) => (float[3] y)",
        """y = If (c) <
             then_branch = t () => (float[3] p) { a = Max(x, low) p = Min(a, high) },
             else_branch = e () => (float[3] q) { q = Neg(x) }
           >""",
        *BOUNDS,
    )
    becomes(model, ["If", "Clip", "Neg"], rule(FuseClip))


def test_new_nodes_say_where_they_came_from() -> None:
    model = model_of(CLIP, "[lower] a = Max(x, low) [upper] y = Min(a, high)", *BOUNDS)
    result, _ = run_pass(model, rule(FuseClip))
    assert result.graph.nodes[0].metadata == {FROM: "upper;lower"}
    old = model_of(CLIP, "a = Max(x, low) y = Min(a, high)", *BOUNDS, ir=8)
    assert run_pass(old, rule(FuseClip))[0].graph.nodes[0].metadata is None


def test_names_of_outputs_stay() -> None:
    result, _ = run_pass(
        model_of(CLIP, "a = Max(x, low) y = Min(a, high)", *BOUNDS), rule(FuseClip)
    )
    assert result.graph.nodes[0].outputs[0].name == "y"


def test_a_large_graph_takes_seconds() -> None:
    graph = Graph("g")
    value = graph.add_input("x", TensorType(DataType.FLOAT, (3,)))
    low, high = (graph.add_initializer(_number(n), name) for n, name in ((-1, "l"), (1, "h")))
    for _ in range(10_000):
        value = graph.add("Min", [graph.add("Max", [value, low]).output, high]).output
    graph.outputs.append(value)
    unit = Unit(Model(graph, Opsets({"": 21}), 10), graph, Opsets({"": 21}), standard(), Options())
    start = time.perf_counter()
    assert apply_rules(unit, FuseClip) == 10_000
    assert time.perf_counter() - start < 20
    verify(graph)
    assert set(operators(unit.model)) == {"Clip"}


def _number(number: float) -> Any:
    from sardonyx.graph import Tensor

    return Tensor(np.float32(number))


class DivideSizes(Rule):
    """Neg(Abs(x)) -> Abs(x), with hooks that fail: on unknown shapes, and on odd sizes."""

    def pattern(op: Any, x: Any) -> Any:
        return op.Neg(op.Abs(x))

    def check(x: Operand) -> Any:
        return len(x.shape) == 1  # type: ignore[arg-type]

    def replace(op: Any, x: Operand) -> Any:
        made = op.Abs(x)
        assert x.shape[0] % 2 == 0, "the size is odd"  # type: ignore[index,operator]
        return made


def divide_sizes(unit: Unit) -> bool:
    return bool(apply_rules(unit, DivideSizes))


def test_a_rule_that_fails_leaves_the_node_and_says_so(failed_rules: list[str]) -> None:
    body = "a = Abs(x) [last] y = Neg(a)"
    for size in ("3", "n"):
        model = model_of(f"(float[{size}] x) => (float[{size}] y)", body)
        stays(model, "DivideSizes: it failed: AssertionError: the size is odd", divide_sizes)
        (line,) = failed_rules
        assert line.startswith("test_rules leaves node 'last' (Neg) as it is: DivideSizes: it ")
        failed_rules.clear()


def test_a_rule_that_fails_in_its_check(failed_rules: list[str]) -> None:
    twin, unit = run_function("a = Abs(x) y = Neg(a)", divide_sizes)
    assert "DivideSizes: it failed: TypeError" in "".join(unit.reasons)
    assert [node.op_type for node in twin.functions[0].graph.nodes] == ["Abs", "Neg"]
    assert len(failed_rules) == 1 and "node 'y' (Neg)" in failed_rules[0]
    failed_rules.clear()
