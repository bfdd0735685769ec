"""Attention that was written out."""

import pytest

from sardonyx.graph import Model
from sardonyx.passes.raise_attention import raise_attention
from tests.passes.cases import becomes, model_of, operators, run_pass, stays, weights

QKV = "(float[b,2,n,4] q, float[b,2,m,4] k, float[b,2,m,4] v) => (float[b,2,n,4] y)"
FIXED = QKV.replace("b,", "2,").replace("n,", "3,").replace("m,", "2,")
HALF = "float h = {0.5}"
INFINITE = "float low = {-inf}"
ZERO = "float zero = {0.0}"
SEEN = "bool[3,2] w = {1, 0, 1, 1, 0, 1}"


def attention(scale: str = "c = Mul(a, h)", mask: str = "d = Identity(c)") -> str:
    body = f"t = Transpose<perm=[0, 1, 3, 2]>(k) a = MatMul(q, t) {scale} {mask}"
    return body + " p = Softmax<axis=-1>(d) y = MatMul(p, v)"


def plain(scale: str) -> str:
    return attention(scale, "").replace("Softmax<axis=-1>(d)", "Softmax<axis=-1>(c)")


def masked(kind: str, mask: str, *more: str, signature: str = FIXED) -> Model:
    """A model with a mask that is an input."""
    inputs = signature.replace(" v)", f" v, {kind} w)")
    return model_of(inputs, attention(mask=mask), HALF, *more, opset=23)


@pytest.mark.parametrize("scale", ["c = Mul(a, h)", "c = Mul(h, a)", "c = Div(a, h)"])
def test_scaled(scale: str) -> None:
    becomes(model_of(QKV, plain(scale), HALF, opset=23), ["Attention"], raise_attention)


def test_unscaled() -> None:
    body = plain("").replace("(c)", "(a)")
    result = becomes(model_of(QKV, body, opset=23), ["Attention"], raise_attention)
    assert result.graph.nodes[0].attribute("scale") == 1.0


def test_scaled_before_the_product() -> None:
    body = plain("").replace("(c)", "(a)").replace("MatMul(q, t)", "MatMul(r, u)")
    body = body.replace("a =", "r = Mul(q, h) u = Div(t, e) a =", 1)
    model = model_of(QKV, body, HALF, "float e = {4.0}", opset=23)
    result = becomes(model, ["Attention"], raise_attention)
    assert result.graph.nodes[0].attribute("scale") == pytest.approx(0.125)


@pytest.mark.parametrize("position", ["q", "k"])
def test_scaled_before_heads_are_split(position: str) -> None:
    signature = QKV.replace(f"float[b,2,n,4] {position}", f"float[b,n,2,4] {position}")
    signature = signature.replace(f"float[b,2,m,4] {position}", f"float[b,m,2,4] {position}")
    split = f"s = Mul({position}, h) z = Transpose<perm=[0, 2, 1, 3]>(s)"
    fed = {"q": "z, k", "k": "q, z"}[position]
    body = f"{split} y = Attention<scale=3.0>({fed}, v)"
    model = model_of(signature, body, HALF, opset=23)
    result = becomes(model, ["Transpose", "Attention"], raise_attention)
    assert result.graph.nodes[-1].attribute("scale") == 1.5


@pytest.mark.parametrize("shape", [(3, 2), (1, 1, 3, 2), (1, 2, 3, 2), (2, 3, 2)])
def test_masked(shape: tuple[int, ...]) -> None:
    body = attention(mask="d = Add(c, w)")
    model = model_of(FIXED, body, HALF, weights("w", *shape), opset=23)
    becomes(model, ["Attention"], raise_attention)


def test_a_mask_that_is_the_same_for_all_queries_is_spread() -> None:
    for shape in ((1, 1), (1, 2), (2, 1, 1, 2), (1,)):
        model = model_of(FIXED, attention(mask="d = Add(c, w)"), HALF, weights("w", *shape),
                         opset=23)  # fmt: skip
        becomes(model, ["Expand", "Attention"], raise_attention)


def test_a_mask_is_spread_over_sizes_that_are_open() -> None:
    model = masked("float[b,1,1,m]", "d = Add(c, w)", signature=QKV)
    expected = ["Transpose", "Shape", "Shape", "Concat", "Expand", "Attention"]
    becomes(model, expected, raise_attention)


def test_a_condition() -> None:
    body = attention(mask="d = Where(w, c, low)")
    becomes(model_of(FIXED, body, HALF, INFINITE, SEEN, opset=23), ["Attention"], raise_attention)


def test_a_condition_that_bars() -> None:
    body = attention(mask="n = Not(w) d = Where(n, low, c)")
    model = model_of(FIXED, body, HALF, INFINITE, SEEN, opset=23)
    becomes(model, ["Not", "Not", "Attention"], raise_attention)


def test_an_added_condition() -> None:
    body = attention(mask="e = Where(w, zero, low) d = Add(c, e)")
    model = model_of(FIXED, body, HALF, INFINITE, ZERO, SEEN, opset=23)
    becomes(model, ["Attention"], raise_attention)


def test_a_finite_fill_stays_a_number() -> None:
    model = masked("bool[2,1,3,2]", "d = Where(w, c, low)", "float low = {-3.4028235e38}")
    becomes(model, ["Where", "Attention"], raise_attention)


def test_a_fill_that_scores_survive() -> None:
    model = masked("bool[2,1,3,2]", "d = Where(w, c, low)", "float low = {-10000.0}")
    stays(model, "", raise_attention)


def test_two_masks_are_added() -> None:
    body = attention(mask="e = Add(c, w) d = Add(x, e)")
    model = model_of(FIXED, body, HALF, weights("w", 3, 2), weights("x", 2, 1, 3, 2), opset=23)
    becomes(model, ["Add", "Attention"], raise_attention)


def test_a_guard_against_rows_without_a_key() -> None:
    body = attention(mask="e = Where(w, zero, low) d = Add(c, e)")
    guard = "i = IsNaN(p) g = Where(i, zero, p) y = MatMul(g, v)"
    signature = FIXED.replace(" v)", " v, bool[2,1,3,2] w)")
    body = body.replace("y = MatMul(p, v)", guard)
    model = model_of(signature, body, HALF, INFINITE, ZERO, opset=23)
    becomes(model, ["Attention"], raise_attention)
    other = model_of(signature, body.replace("(i, zero, p)", "(i, h, p)"), HALF, INFINITE, ZERO,
                     opset=23)  # fmt: skip
    assert run_pass_keeps(other)


def run_pass_keeps(model: Model) -> bool:
    """True where no attention is made."""
    result, _ = run_pass(model, raise_attention)
    return all(node.op_type != "Attention" for node in result.graph.nodes)


REPEAT = """
  ku = Unsqueeze(k, two) ke = Expand(ku, wide) kr = Reshape(ke, flat)
  vu = Unsqueeze(v, two) ve = Expand(vu, wide) vr = Reshape(ve, flat)
  t = Transpose<perm=[0, 1, 3, 2]>(kr) a = MatMul(q, t) p = Softmax<axis=-1>(a) y = MatMul(p, vr)
"""
REPEATED = (
    "int64[1] two = {2}", "int64[5] wide = {1, 1, 3, 1, 1}", "int64[4] flat = {0, 6, -1, 4}"
)  # fmt: skip


def test_keys_for_groups_of_heads() -> None:
    signature = QKV.replace("b,2,n", "b,6,n")
    model = model_of(signature, REPEAT, *REPEATED, opset=23)
    becomes(model, ["Attention"], raise_attention)


def test_heads_that_alternate_are_no_groups() -> None:
    signature = QKV.replace("b,2,n", "b,6,n")
    body = REPEAT.replace("(k, two)", "(k, one)").replace("(v, two)", "(v, one)")
    wide = "int64[5] wide = {1, 3, 1, 1, 1}"
    model = model_of(signature, body, "int64[1] one = {1}", wide, REPEATED[2], opset=23)
    result, _ = run_pass(model, raise_attention)
    assert [node.op_type for node in result.graph.nodes].count("Expand") == 2


PAST = (
    "(float[b,2,n,4] q, float[b,2,n,4] k, float[b,2,n,4] v, float[b,2,o,4] pk, float[b,2,o,4] pv)"
    " => (float[b,2,n,4] y, float[b,2,t,4] kk, float[b,2,t,4] vv)"
)
JOINED = """
  kk = Concat<axis=-2>(pk, k) vv = Concat<axis=2>(pv, v) t = Transpose<perm=[0, 1, 3, 2]>(kk)
  a = MatMul(q, t) p = Softmax<axis=-1>(a) y = MatMul(p, vv)
"""


def test_a_past_is_joined_inside() -> None:
    result = becomes(model_of(PAST, JOINED, opset=23), ["Attention"], raise_attention)
    assert [item.name for item in result.graph.nodes[0].outputs][1:] == ["kk", "vv"]


def test_a_past_that_is_read_before() -> None:
    signature = PAST.replace(" y,", " y, int64[4] s,")
    model = model_of(signature, JOINED + " s = Shape(kk)", opset=23)
    result, _ = run_pass(model, raise_attention)
    assert sorted(node.op_type for node in result.graph.nodes) == [
        "Attention", "Concat", "Concat", "Shape",
    ]  # fmt: skip


def test_pasts_of_two_lengths() -> None:
    signature = PAST.replace("float[b,2,o,4] pv", "float[b,2,r,4] pv")
    model = model_of(signature, JOINED, opset=23)
    stays(model, "lengths differ", raise_attention)


def test_keys_that_lie_otherwise_are_turned() -> None:
    signature = QKV.replace("float[b,2,m,4] k", "float[b,m,2,4] k")
    body = plain("c = Mul(a, h)").replace("0, 1, 3, 2", "0, 2, 3, 1")
    becomes(model_of(signature, body, HALF, opset=23), ["Transpose", "Attention"], raise_attention)


def test_not_before_opset_23() -> None:
    stays(model_of(QKV, plain("c = Mul(a, h)"), HALF, opset=22), "", raise_attention)


def test_a_scale_for_each_place() -> None:
    signature = QKV.replace("m,", "2,")
    model = model_of(signature, plain("c = Mul(a, h)"), weights("h", 2), opset=23)
    stays(model, "", raise_attention)


def test_a_scale_below_zero() -> None:
    model = model_of(QKV, plain("c = Mul(a, h)"), "float h = {-0.5}", opset=23)
    stays(model, "", raise_attention)


def test_a_mask_before_the_scale() -> None:
    body = attention("e = Add(a, w)", "d = Mul(e, h)")
    stays(model_of(FIXED, body, HALF, weights("w", 3, 2), opset=23), "", raise_attention)


def test_another_axis() -> None:
    body = plain("c = Mul(a, h)").replace("axis=-1", "axis=2")
    stays(model_of(QKV, body, HALF, opset=23), "", raise_attention)


def test_scores_that_are_returned() -> None:
    signature = QKV.replace(" y)", " y, float[b,2,n,m] p)")
    stays(model_of(signature, plain("c = Mul(a, h)"), HALF, opset=23), "", raise_attention)


def test_operands_of_three_dimensions() -> None:
    signature = QKV.replace("b,2,", "b,")
    body = plain("c = Mul(a, h)").replace("0, 1, 3, 2", "0, 2, 1")
    stays(model_of(signature, body, HALF, opset=23), "four dimensions", raise_attention)


def test_numbers_of_double_precision() -> None:
    body = plain("").replace("(c)", "(a)")
    model = model_of(QKV.replace("float", "double"), body, opset=23)
    stays(model, "no float", raise_attention)


def test_heads_that_are_broadcast() -> None:
    signature = QKV.replace("float[b,2,m,4] v", "float[b,1,m,4] v")
    stays(model_of(signature, plain("c = Mul(a, h)"), HALF, opset=23), "heads", raise_attention)


def test_a_mask_that_widens_the_scores() -> None:
    signature = FIXED.replace("2,2,3,4] q", "1,2,3,4] q").replace("2,2,2,4]", "1,2,2,4]")
    model = model_of(signature, attention(mask="d = Add(c, w)"), HALF, weights("w", 2, 1, 3, 2),
                     opset=23)  # fmt: skip
    stays(model, "does not broadcast", raise_attention)


def test_subgraphs() -> None:
    body = plain("c = Mul(a, h)").replace("y =", "z =")
    shape = "float[1,2,3,4]"
    model = model_of(
        f"(bool g, {shape} q, {shape} k, {shape} v) => ({shape} y)",
        f"""y = If (g) <
             then_branch = i () => ({shape} z) {{ {body} }},
             else_branch = e () => ({shape} r) {{ r = Neg(v) }}
           >""",
        HALF, opset=23,
    )  # fmt: skip
    becomes(model, ["If", "Attention", "Neg"], raise_attention)


SQUARE = QKV.replace("m,", "n,")
LENGTHS = "s = Shape<start=2, end=3>(q) l = Squeeze(s, i0)"
RANGES = f"{LENGTHS} r = Range(z, l, o) k1 = Unsqueeze(r, i0) q1 = Unsqueeze(r, i1)"
ONES = f"{LENGTHS} ss = Concat<axis=0>(s, s) f = ConstantOfShape<value=bool[1] {{1}}>(ss)"
COUNTS = ("int64 z = {0}", "int64 o = {1}", "int64[1] i0 = {0}", "int64[1] i1 = {1}")

CAUSAL = [
    f"{RANGES} w = LessOrEqual(k1, q1)",
    f"{RANGES} w = GreaterOrEqual(q1, k1)",
    f"{ONES} w = Trilu<upper=0>(f)",
    f"{ONES} t4 = Trilu<upper=0>(f) u4 = Unsqueeze(t4, i0) w = Unsqueeze(u4, i0)",
]
NOT_CAUSAL = [
    f"{RANGES} w = LessOrEqual(q1, k1)",
    f"{RANGES} w = Less(k1, q1)",
    f"{ONES} w = Trilu<upper=1>(f)",
    f"{ONES} w = Trilu<upper=0>(f, o)",
    f"{LENGTHS} r = Range(o, l, o) p1 = Concat<axis=0>(i0, r) k1 = Unsqueeze(p1, i0) "
    "q1 = Unsqueeze(p1, i1) w = LessOrEqual(k1, q1)",
]


def causal_flags(mask: str, end: str, *more: str) -> list[int]:
    body = attention(mask=f"{mask} {end}")
    model = model_of(SQUARE, body, HALF, INFINITE, ZERO, *COUNTS, *more, opset=23)
    result, _ = run_pass(model, raise_attention)
    last = result.graph.nodes[-1]
    assert last.op_type == "Attention"
    return [last.attribute("is_causal", 0), len([item for item in last.inputs if item])]


@pytest.mark.parametrize("mask", CAUSAL)
@pytest.mark.parametrize("end", ["d = Where(w, c, low)", "e = Where(w, zero, low) d = Add(c, e)"])
def test_causal_masks(mask: str, end: str) -> None:
    assert causal_flags(mask, end) == [1, 3]


@pytest.mark.parametrize("mask", NOT_CAUSAL)
def test_masks_that_are_not_causal(mask: str) -> None:
    fill = "float low = {-3.4028235e38}"
    body = attention(mask=f"{mask} d = Where(w, c, low)")
    model = model_of(SQUARE, body, HALF, fill, *COUNTS, opset=23)
    result, _ = run_pass(model, raise_attention)
    assert result.graph.nodes[-1].attribute("is_causal", 0) == 0


def test_constant_triangles() -> None:
    fixed = QKV.replace("b,", "1,").replace("n,", "3,").replace("m,", "2,")
    body = attention(mask="d = Where(w, c, low)")
    triangle = "bool[3,2] w = {1, 0, 1, 1, 1, 1}"
    model = model_of(fixed, body, HALF, INFINITE, triangle, opset=23)
    result = becomes(model, ["Attention"], raise_attention)
    assert result.graph.nodes[0].attribute("is_causal") == 1
    added = "float[1,1,3,2] w = {0, -inf, 0, 0, 0, 0}"
    model = model_of(fixed, attention(mask="d = Add(c, w)"), HALF, added, opset=23)
    result = becomes(model, ["Attention"], raise_attention)
    assert result.graph.nodes[0].attribute("is_causal") == 1


FOURS = "(float[6,2,4,4] q, float[6,2,4,4] k, float[6,2,4,4] v) => (float[6,2,4,4] y)"
IN_WINDOWS = attention("c = Mul(a, h) s = Reshape(c, five) e = Add(s, w)", "d = Reshape(e, four)")
SHAPES = ("int64[5] five = {-1, 3, 2, 4, 4}", "int64[4] four = {-1, 2, 4, 4}")


@pytest.mark.parametrize(
    ("batches", "shape", "before"),
    [
        (3, (1, 3, 1, 4, 4), ["Reshape"]),
        (3, (3, 2, 4, 4), ["Reshape"]),
        (6, (3, 1, 4, 4), ["Expand", "Reshape"]),
        (6, (4, 4), ["Expand", "Reshape"]),
    ],
)
def test_masks_of_windows(batches: int, shape: tuple[int, ...], before: list[str]) -> None:
    signature = FOURS.replace("6,", f"{batches},")
    model = model_of(signature, IN_WINDOWS, HALF, *SHAPES, weights("w", *shape), opset=23)
    becomes(model, [*before, "Attention"], raise_attention)


def test_masks_of_windows_in_any_number_of_batches() -> None:
    signature = "(float[b,3,2,4,4] q5, float[b,3,2,4,4] k5, float[b,3,2,4,4] v5)"
    split = " ".join(f"{name} = Reshape({name}5, four)" for name in "qkv")
    model = model_of(f"{signature} => (float[c,2,4,4] y)", f"{split} {IN_WINDOWS}", HALF, *SHAPES,
                     weights("w", 3, 1, 4, 4), opset=23)  # fmt: skip
    made = ["Shape", "Div", "Concat", "Expand", "Reshape", "Attention"]
    result, _ = run_pass(model, raise_attention)
    assert operators(result)[-6:] == made


@pytest.mark.parametrize(
    "change",
    [
        ("five = {-1, 3, 2, 4, 4}", "five = {-1, 3, 4, 2, 4}"),
        ("five = {-1, 3, 2, 4, 4}", "five = {3, -1, 1, 8, 4}"),
        ("w)", "w) y2 = Neg(s)"),
        ("w)", "w) y2 = Neg(e)"),
    ],
)
def test_windows_that_do_not_fit(change: tuple[str, str]) -> None:
    shapes = [item.replace(*change) for item in SHAPES]
    signature = FOURS.replace("y)", "y, float[?,?,?,?,?] y2)") if "y2" in change[1] else FOURS
    body = IN_WINDOWS.replace("Add(s, w)", "Add(s, " + change[1] if "y2" in change[1] else
                              "Add(s, w)")  # fmt: skip
    model = model_of(signature, body, HALF, *shapes, "float w = {0.5}", opset=23)
    stays(model, "", raise_attention)


def test_windows_of_an_open_size() -> None:
    signature = "(float[6,2,n,4] q, float[6,2,n,4] k, float[6,2,n,4] v, float[3,1,n,n] w)"
    body = IN_WINDOWS.replace(
        "s = Reshape(c, five)",
        """z = Shape<start=2>(w)
      f = Concat<axis=0>(five, z) g = Concat<axis=0>(four, z) s = Reshape(c, f)""",
    )
    shapes = "int64[3] five = {2, 3, 2}", "int64[2] four = {6, 2}"
    model = model_of(f"{signature} => (float[6,2,n,4] y)", body.replace("(e, four)", "(e, g)"),
                     HALF, *shapes, opset=23)  # fmt: skip
    stays(model, "open size", raise_attention)
