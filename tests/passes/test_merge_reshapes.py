"""Chains of nodes that only change the shape."""

from sardonyx.passes.merge_reshapes import merge_reshapes
from tests.passes.cases import becomes, model_of, stays


def test_a_chain_is_one_reshape() -> None:
    body = "a = Reshape(x, s) b = Unsqueeze(a, z) c = Squeeze(b, z) y = Flatten<axis=1>(c)"
    model = model_of("(float[n,2,6] x) => (float[n,12] y)", body, "int64[3] s = {-1, 3, 4}",
                     "int64[1] z = {0}")  # fmt: skip
    result = becomes(model, ["Reshape"], merge_reshapes)
    assert [value.tensor.numpy().tolist() for value in result.graph.initializers] == [[-1, 12]]


def test_old_squeeze() -> None:
    body = "a = Unsqueeze<axes=[1]>(x) y = Unsqueeze<axes=[0]>(a)"
    model = model_of("(float[n,2] x) => (float[1,n,1,2] y)", body, opset=11)
    becomes(model, ["Reshape"], merge_reshapes)


def test_the_first_may_have_other_users() -> None:
    model = model_of("(float[2,6] x) => (float[12] y, float[3,4] z)",
                     "a = Reshape(x, s) y = Reshape(a, t) z = Neg(a)",
                     "int64[2] s = {3, 4}", "int64[1] t = {12}")  # fmt: skip
    becomes(model, ["Reshape", "Reshape", "Neg"], merge_reshapes)


def test_two_sizes_that_move_stay() -> None:
    body = """a = Shape<end=1>(x) b = Shape<start=1>(x) r = Concat<axis=0>(b, a)
              c = Reshape(x, r) y = Unsqueeze(c, z)"""
    model = model_of("(float[n,m] x) => (float[m,n,1] y)", body, "int64[1] z = {2}")
    stays(model, "", merge_reshapes)


def test_subgraphs() -> None:
    model = model_of(
        "(bool c, float[6] x) => (float[2,3] y)",
        """y = If (c) <
             then_branch = t () => (float[2,3] p) { a = Reshape(x, s) p = Reshape(a, r) },
             else_branch = e () => (float[2,3] q) { q = Reshape(x, r) }
           >""",
        "int64[2] s = {3, 2}", "int64[2] r = {2, 3}",
    )  # fmt: skip
    becomes(model, ["If", "Reshape", "Reshape"], merge_reshapes)
