"""Shapes that inference knows."""

import pytest

from sardonyx.dims import symbol
from sardonyx.passes.fold_shapes import fold_shapes, reshape_target
from tests.passes.cases import becomes, model_of, run_pass, stays


def test_a_known_shape_is_a_constant() -> None:
    body = """s = Shape(x) g = Gather(s, one) u = Unsqueeze(g, zero) r = Concat<axis=0>(u, m)
              y = Reshape(x, r)"""
    model = model_of("(float[2,6] x) => (float[6,2] y)", body, "int64 one = {1}",
                     "int64[1] zero = {0}", "int64[1] m = {2}")  # fmt: skip
    becomes(model, ["Reshape"], fold_shapes)


def test_one_open_size_is_computed_by_reshape() -> None:
    body = "s = Shape<start=0, end=1>(x) r = Concat<axis=0>(s, m) y = Reshape(x, r)"
    model = model_of("(float[n,6] x) => (float[n,2,3] y)", body, "int64[2] m = {2, 3}")
    result = becomes(model, ["Reshape"], fold_shapes)
    assert result.graph.initializers[0].tensor.numpy().tolist() == [-1, 2, 3]


def test_a_size_beside_a_kept_one_stays_computed() -> None:
    body = """s = Shape<start=0, end=1>(x) t = Shape<start=1, end=2>(x) u = Mul(t, three)
              r = Concat<axis=0>(s, u, four) y = Reshape(x, r)"""
    model = model_of("(float[n,m,12] x) => (float[n,p,4] y)", body, "int64[1] three = {3}",
                     "int64[1] four = {4}")  # fmt: skip
    stays(model, "", fold_shapes)


def test_two_open_sizes_that_move_stay_computed() -> None:
    signature = "(float[n,m,4] x) => (float[m,n,4] y)"
    body = """a = Shape<end=1>(x) b = Shape<start=1, end=2>(x) r = Concat<axis=0>(b, a, k)
              y = Reshape(x, r)"""
    stays(model_of(signature, body, "int64[1] k = {4}"), "", fold_shapes)


def test_expand_to_the_own_size_needs_no_size() -> None:
    body = "s = Shape<end=1>(x) r = Concat<axis=0>(s, k) y = Expand(x, r)"
    model = model_of("(float[n,1] x) => (float[n,4] y)", body, "int64[1] k = {4}")
    result = becomes(model, ["Expand"], fold_shapes)
    assert result.graph.initializers[0].tensor.numpy().tolist() == [1, 4]
    other = model_of("(float[n,1] x, float[m] z) => (float[?,?] y)",
                     "s = Shape(z) r = Concat<axis=0>(k, s) y = Expand(x, r)",
                     "int64[1] k = {1}")  # fmt: skip
    stays(other, "", fold_shapes)


def test_subgraphs() -> None:
    model = model_of(
        "(bool c, float[2,3] x) => (float[3,2] y)",
        """y = If (c) <
             then_branch = t () => (float[3,2] p) {
               s = Shape(x) r = Gather(s, i) p = Reshape(x, r) },
             else_branch = e () => (float[3,2] q) { q = Transpose(x) }
           >""",
        "int64[2] i = {1, 0}",
    )
    becomes(model, ["If", "Reshape", "Transpose"], fold_shapes)


@pytest.mark.parametrize(
    ("before", "after", "target"),
    [
        ((2, 3), (3, 2), [3, 2]),
        ((symbol("n"), 3), (symbol("n"), 3, 1), [-1, 3, 1]),
        ((symbol("n"), 3), (symbol("n"), symbol("n"), 3), None),
        ((None, None), (None, None, 1), None),
        ((2, 3), (symbol("n"), 0), None),
        ((symbol("n"), symbol("m")), (symbol("n"), symbol("m"), 1), [0, 0, 1]),
        ((symbol("n"), 4), (symbol("n") * 4,), [-1]),
        ((symbol("n"), symbol("m")), (symbol("m"), symbol("n")), None),
        ((2, 0), (0, 2), None),
        (None, (None, 3), [-1, 3]),
        ((2,), None, None),
    ],
)
def test_reshape_target(before: object, after: object, target: object) -> None:
    assert reshape_target(before, after) == target  # type: ignore[arg-type]


def test_the_other_results_of_a_node_keep_their_places() -> None:
    signature = "(float[3,n] x, float[1] z) => (float[?] y, int64[1] b)"
    body = "s = Shape(x) a, b = Split<num_outputs=2>(s) y = Expand(z, a)"
    result, _ = run_pass(model_of(signature, body), fold_shapes)
    split = next(node for node in result.graph.nodes if node.op_type == "Split")
    assert all(value.name for value in split.outputs)


def test_values_only_a_run_tells_stay() -> None:
    model = model_of("(float[n] x) => (int64[?] y)", "a = NonZero(x) y = Shape(a)")
    result, _ = run_pass(model, fold_shapes)
    assert [node.op_type for node in result.graph.nodes] == ["NonZero", "Shape"]
