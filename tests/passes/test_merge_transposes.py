"""Transposes that meet."""

from sardonyx.passes.drop_identities import drop_identities
from sardonyx.passes.merge_transposes import merge_transposes
from tests.passes.cases import becomes, model_of, stays, weights

CUBE = "(float[n,2,3] x) => (float[?,?,?] y)"
THERE, BACK = "perm=[0, 2, 1]", "perm=[0, 2, 1]"


def test_two_become_one_or_none() -> None:
    body = "a = Transpose<perm=[1, 2, 0]>(x) y = Transpose<perm=[1, 2, 0]>(a)"
    becomes(model_of(CUBE, body), ["Transpose"], merge_transposes)
    inverse = f"a = Transpose<{THERE}>(x) b = Transpose<{BACK}>(a) y = Neg(b)"
    becomes(model_of(CUBE, inverse), ["Neg"], merge_transposes)


def test_an_order_not_written_out_is_left() -> None:
    body = "a = Transpose(x) y = Transpose<perm=[1, 2, 0]>(a)"
    stays(model_of(CUBE, body), "an order is not written out", merge_transposes)


def test_they_meet_through_elementwise_nodes() -> None:
    body = (
        f"a = Transpose<{THERE}>(x) b = Add(a, w) c = Relu(b) d = Transpose<{BACK}>(c) y = Neg(d)"
    )
    model = model_of(CUBE, body, weights("w", 3, 1))
    becomes(model, ["Add", "Relu", "Neg"], merge_transposes, merge_transposes, drop_identities)


def test_without_a_second_one_nothing_moves() -> None:
    body = f"a = Transpose<{THERE}>(x) b = Relu(a) y = Neg(b)"
    stays(model_of(CUBE, body), "", merge_transposes)


def test_one_of_two_inputs_is_not_enough() -> None:
    signature = "(float[n,2,3] x, float[n,3,2] z) => (float[?,?,?] y)"
    body = f"a = Transpose<{THERE}>(x) b = Add(a, z) y = Transpose<{BACK}>(b)"
    stays(model_of(signature, body), "", merge_transposes)


def test_sizes_of_one_are_reshaped_beside_a_reshape() -> None:
    body = "a = Transpose<perm=[1, 0, 2]>(x) y = Reshape(a, s)"
    model = model_of("(float[n,1,4] x) => (float[n,2,2] y)", body, "int64[3] s = {-1, 2, 2}")
    becomes(model, ["Reshape", "Reshape"], merge_transposes)
    moved = model_of("(float[n,2,4] x) => (float[?,?] y)", "a = Transpose<perm=[1, 0, 2]>(x) "
                     "y = Reshape(a, s)", "int64[2] s = {2, -1}")  # fmt: skip
    stays(moved, "sizes above 1 move", merge_transposes)


FOLDED = "a = Reshape(x, s) b = Transpose<perm=[0, 2, 1]>(a) y = Reshape(b, t)"


def test_a_fold_around_a_transpose_goes() -> None:
    signature = "(float[n,2,3,4] x) => (float[n,2,4,3] y)"
    targets = ("int64[3] s = {-1, 3, 4}", "int64[4] t = {-1, 2, 4, 3}")
    becomes(model_of(signature, FOLDED, *targets), ["Transpose"], merge_transposes)
    mixed = ("int64[3] s = {-1, 6, 4}", "int64[4] t = {-1, 2, 4, 3}")
    stays(model_of(signature, FOLDED, *mixed), "more than the first axes", merge_transposes)
    other = model_of("(float[n,2,3,4] x) => (float[n,4,2,3] y)", FOLDED, targets[0],
                     "int64[4] t = {-1, 4, 2, 3}")  # fmt: skip
    stays(other, "the folded axes change", merge_transposes)


def test_subgraphs() -> None:
    model = model_of(
        "(bool c, float[2,3] x) => (float[2,3] y)",
        """y = If (c) <
             then_branch = t () => (float[2,3] p) {
               a = Transpose<perm=[1, 0]>(x) b = Transpose<perm=[1, 0]>(a) p = Neg(b) },
             else_branch = e () => (float[2,3] q) { q = Neg(x) }
           >""",
    )
    becomes(model, ["If", "Neg", "Neg"], merge_transposes)
