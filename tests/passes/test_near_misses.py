"""Models that passes nearly fit: for each condition the one thing that is otherwise."""

from collections.abc import Callable

import pytest

from sardonyx.passes.clean_quantization import clean_quantization
from sardonyx.passes.flatten_products import flatten_products
from sardonyx.passes.fuse_affine import fuse_affine
from sardonyx.passes.fuse_convolution import fuse_convolution
from sardonyx.passes.fuse_microsoft import fuse_microsoft
from sardonyx.passes.fuse_products import fuse_products
from sardonyx.passes.lift_constants import lift_constants
from sardonyx.passes.merge_casts import merge_casts
from sardonyx.passes.merge_transposes import merge_transposes
from sardonyx.passes.options import Options
from sardonyx.passes.raise_activations import raise_activations
from sardonyx.passes.raise_groups import raise_groups
from sardonyx.passes.raise_normalization import raise_normalization
from sardonyx.passes.unit import Unit
from sardonyx.passes.unroll_loops import unroll_loops
from tests.passes.cases import becomes, model_of, run_function, run_pass, stays, weights

Step = Callable[[Unit], bool]
Case = tuple[Step, str, str, tuple[str, ...], str]

W, B = weights("w", 4, 3), weights("b", 3)
NORM = (weights("s", 3), weights("o", 3), weights("m", 3), weights("v", 3, positive=True))
ROWS = "(float[5,4] x) => (float[5,3] y)"
CUBE = "(float[n,5,4] x) => (float[n,5,3] y)"
FOLD = ("int64[2] f = {-1, 4}", "int64[3] t = {-1, 5, 3}")
FOLDED = "a = Reshape(x, f) "
IMAGE = "(float[n,2,5,5] x) => (float[n,3,?,?] y)"
KERNEL = weights("k", 3, 2, 3, 3)
HALF = "float h = {0.5}"
RANKS = """u = If (c) <
    then_branch = p () => (float[2,3,4] q) { q = Identity(z) },
    else_branch = e () => (float[6,4] r) { r = Reshape(z, f) } > """


def given(signature: str, *more: str) -> str:
    """A signature with more inputs."""
    return signature.replace(") =>", f", {', '.join(more)}) =>")


def gemm(attributes: str = "", bias: str = "b", rest: str = "") -> str:
    return f"{FOLDED} p = Gemm{attributes}(a, w, {bias}) {rest} y = Reshape(p, t)"


FLATTENED: list[Case] = [
    (flatten_products, CUBE, gemm("<alpha=2.0>"), (W, B, *FOLD), "the product is scaled"),
    (flatten_products, CUBE, gemm("<transB=1>"), (weights("w", 3, 4), B, *FOLD),
     "a factor is transposed"),
    (flatten_products, CUBE, gemm(), (W, weights("b", 1, 3), *FOLD), "the addend is no vector"),
    (flatten_products, CUBE.replace("y)", "y, float[?,3] q)"), gemm(rest="q = Neg(p)"),
     (W, B, *FOLD), "the product is used elsewhere"),
    (flatten_products, CUBE, FOLDED + "p = MatMul(a, w) q = Add(p, b) y = Reshape(q, t)",
     (W, weights("b", 1, 3), *FOLD), "the addend is no vector"),
    (flatten_products, CUBE.replace("y)", "y, float[?,3] r)"),
     FOLDED + "p = MatMul(a, w) q = Add(p, b) r = Neg(q) y = Reshape(q, t)", (W, B, *FOLD),
     "the product is used elsewhere"),
    (flatten_products, CUBE.replace("y)", "y, float[?,3] r)"),
     FOLDED + "p = MatMul(a, w) r = Neg(p) y = Reshape(p, t)", (W, *FOLD),
     "the product is used elsewhere"),
    (flatten_products, CUBE, FOLDED + "p = MatMul(a, w) q = Add(p, b) y = Reshape(q, t)",
     (weights("w", 1, 4, 3), B, *FOLD), "the factors are not matrices"),
    (flatten_products, "(bool c, float[2,3,4] z) => (float[2,3,3] y)",
     RANKS + gemm().replace("(x,", "(u,"), (W, B, FOLD[0], "int64[3] t = {2, 3, 3}"),
     "a shape is not known"),
]  # fmt: skip

MULTIPLIED: list[Case] = [
    (fuse_products, ROWS, "p = MatMul(x, w) y = Add(p, c)", (W, weights("c", 5, 3)),
     "the addend does not broadcast to the product"),
    (fuse_products, given(ROWS, "float[3] c"), "p = Gemm(x, w, c) y = Add(p, b)", (W, B),
     "the bias is not constant"),
    (fuse_products, "(bool c, float[6,4] x, float[2,3,4] z) => (float[?,?,4] y)",
     RANKS + "p = Gemm(x, i) y0 = Add(p, u) y = Reshape(y0, g)",
     (weights("i", 4, 4), FOLD[0], "int64[3] g = {-1, 1, 4}"), "a shape is not known"),
    (fuse_products, ROWS, "p = Gemm(x, w) y = Add(p, c)", (W, weights("c", 5, 3)),
     "it does not broadcast"),
    (fuse_products, given(ROWS, "float c"), "p = MatMul(x, w) y = Mul(p, c)", (W,),
     "the factor is not constant"),
    (fuse_products, "(int32[n,2] x) => (int32[n,2] y)", "p = MatMul(x, w) y = Mul(p, c)",
     ("int32[2,2] w = {1, 2, 3, 4}", "int32 c = {2}"), "no floating-point matrix"),
    (fuse_products, given(ROWS, "float c"), "p = Gemm(x, w) y = Mul(p, c)", (W,),
     "the factor is not constant"),
    (fuse_products, ROWS, "p = Gemm(x, w) y = Mul(p, c)", (W, weights("c", 5, 1)),
     "not per column"),
    (fuse_products, given(ROWS, "float[4,3] w"),
     "p = Gemm(x, w) y = BatchNormalization(p, s, o, m, v)", NORM, "the weights are not constant"),
    (fuse_products, ROWS, "p = Gemm<alpha=2.0>(x, w) y = BatchNormalization(p, s, o, m, v)",
     (W, *NORM), "the product is scaled"),
    (fuse_products, given(ROWS, "float[3] s"),
     "p = Gemm(x, w) y = BatchNormalization(p, s, o, m, v)", (W, *NORM[1:]),
     "it is not a constant scale"),
]  # fmt: skip

LAYER = "(float[n,3,5] x) => (float[n,3,5] y)"
ADDED: list[Case] = [
    (fuse_affine, given("(float[n] x) => (float[n] y)", "float[n] z"),
     "p = Mul(x, z) y = Mul(p, h)", (HALF,), "a factor is not constant"),
    (fuse_affine, "(bfloat16[n] x) => (bfloat16[n] y)", "p = Mul(x, h) y = Mul(p, h)",
     ("bfloat16 h = {16128}",), "its own rules of rounding"),
    (fuse_affine, given(LAYER, "float[3] s"), "p = BatchNormalization(x, s, o, m, v) y = Mul(p, h)",
     (*NORM[1:], HALF), "it is not a constant scale and shift"),
    (fuse_affine, given(LAYER, "float z"), "p = BatchNormalization(x, s, o, m, v) y = Mul(p, z)",
     NORM, "the second operand is not constant"),
    (fuse_affine, "(float[n] x) => (float[n] y)", "p = Neg(x) q = Add(p, h) y = Mul(q, p)",
     (HALF,), "the negation is used elsewhere"),
    (fuse_affine, "(float[n] x, float m, float g, float b) => (float[n] y, float q)",
     "p = Mul(x, g) q = Mul(m, g) r = Sub(b, q) y = Add(p, r)", (), "a part is used elsewhere"),
    (fuse_affine, "(float[n] x, float m, float g, float b) => (float[n] y)",
     "p = Mul(x, g) q = Mul(m, g) r = Sub(b, q) y = Add(p, r)", (),
     "the difference is not computed"),
]  # fmt: skip

CONVOLVED: list[Case] = [
    (fuse_convolution, given(IMAGE, "float z"), "p = Conv(x, k) y = Mul(p, z)", (KERNEL,),
     "s is not constant"),
    (fuse_convolution, given(IMAGE.replace("n,3", "n,?"), "float[c,2,3,3] k"),
     "p = Conv(x, k) y = Add(p, h)", (HALF,), "the number of channels is not known"),
    (fuse_convolution, given(IMAGE, "float[3] b"), "p = Conv(x, k, b) y = Add(p, h)",
     (KERNEL, HALF), "the bias is not constant"),
    (fuse_convolution, "(float[n,2,5,5] x) => (float[n,2,?,?] y)",
     "p = Pad(x, r) y = AveragePool<kernel_shape=[3, 3], ceil_mode=1>(p)",
     ("int64[8] r = {0, 0, 1, 1, 0, 0, 1, 1}",), "the last window may hang over"),
]  # fmt: skip

TURNED: list[Case] = [
    (merge_transposes, "(float[n,1,4] x) => (float[1,n,4] y)", "y = Transpose<perm=[1, 0, 2]>(x)",
     (), "no neighbour changes the shape"),
    (merge_transposes, "(float[n,1,m,1] x) => (float[?] y)",
     "a = Transpose<perm=[1, 0, 3, 2]>(x) y = Reshape(a, s)", ("int64[1] s = {-1}",),
     "more than one size is open"),
    (clean_quantization, "(uint8[2,2] x) => (uint8[2,2] y)",
     "a = DequantizeLinear<axis=0>(x, s, z) y = QuantizeLinear<axis=1>(a, s, z)",
     ("float[2] s = {0.5, 0.25}", "uint8[2] z = {0, 1}"), "the axes differ"),
    (clean_quantization, "(int8[n] x) => (uint8[n] y)",
     "a = DequantizeLinear(x, h) y = QuantizeLinear(a, h)", (HALF,), "types differ"),
    (clean_quantization, "(float[n] x, uint8 z) => (uint8[n] y)",
     "a = Relu(x) y = QuantizeLinear(a, h, z)", (HALF,), "the zero point is not constant"),
    (raise_groups, "(float[2,4,3,3] x) => (float[2,4,3,3] y)",
     "a = Reshape(x, s) i = InstanceNormalization(a, one, zero) r = Reshape(i, t) "
     "p = Mul(r, g) y = Add(p, g)",
     ("int64[4] s = {2, 2, 6, 3}", "float[2] one = {1, 1}", "float[2] zero = {0, 0}",
      "int64[4] t = {2, 4, 3, 3}", weights("g", 4, 1, 1)), "not one of groups"),
    (raise_groups, "(float[2,4,3,3] x) => (float[2,4,3,3] y)",
     "a = Reshape(x, s) i = InstanceNormalization(a, one, zero) r = Reshape(i, t) "
     "p = Mul(r, g) y = Add(p, g)",
     ("int64[3] s = {2, 3, 12}", "float[3] one = {1, 1, 1}", "float[3] zero = {0, 0, 0}",
      "int64[4] t = {2, 4, 3, 3}", weights("g", 4, 1, 1)), "do not fall into groups"),
]  # fmt: skip

DOUBLES = "(double[b,3,4] x, double[b,3,5] z) => (double[b,4,5] y)"
FUSED: list[Case] = [
    (fuse_microsoft, "(float[b,3,4] x, float[b,3,4] z) => (float[b,3,4] y)",
     "a = Add(x, z) y = LayerNormalization(a, g, g)", (weights("g", 1, 4),),
     "the scale is no vector"),
    (fuse_microsoft, "(double[b,2] x) => (double[b,2] y)", "a = Add(x, d) y = Gelu(a)",
     ("double[2] d = {1, 2}",), "a shape is not known"),
    (fuse_microsoft, "(double[b,2] x) => (double[b,2] y)", 'y = Gelu<approximate="tanh">(x)', (),
     "no float that it takes"),
    (fuse_microsoft, DOUBLES, "a = Transpose<perm=[0, 2, 1]>(x) y = MatMul(a, z)", (),
     "no float that it takes"),
]  # fmt: skip

CASES = [*FLATTENED, *MULTIPLIED, *ADDED, *CONVOLVED, *TURNED, *FUSED]


@pytest.mark.parametrize(
    ("step", "signature", "body", "parts", "reason"),
    CASES,
    ids=[f"{case[0].__name__}-{case[4]}" for case in CASES],
)
def test_kept(step: Step, signature: str, body: str, parts: tuple[str, ...], reason: str) -> None:
    _, unit = run_pass(model_of(signature, body, *parts), step)
    assert any(reason in noted for noted in unit.reasons), unit.reasons


SQUARES = (
    "q = Mul(x, x) v = ReduceMean<keepdims=1>(q, axes) p = Add(v, e) s = Sqrt(p) r = Div(x, s)"
)
MEANS = ("float e = {0.01}", "int64[1] axes = {1}")


@pytest.mark.parametrize(
    ("end", "parts", "reason"),
    [
        ("y = Mul(r, g)", MEANS, "not taken over the last axes"),
        ("y = Neg(r)", MEANS, "not taken over the last axes"),
        ("y = Mul(r, h)", (MEANS[0], "int64[1] axes = {-1}"), "not one for each normalized place"),
    ],
)
def test_root_mean_squares(end: str, parts: tuple[str, ...], reason: str) -> None:
    model = model_of("(float[n,3,4] x) => (float[n,3,4] y)", f"{SQUARES} {end}", *parts,
                     weights("g", 4), "float[1] h = {0.5}", opset=23)  # fmt: skip
    _, unit = run_pass(model, raise_normalization)
    assert any(reason in noted for noted in unit.reasons), unit.reasons


def test_types_that_few_runtimes_take() -> None:
    model = model_of("(bfloat16[n] x) => (bfloat16[n] y)", "s = Sigmoid(x) y = Mul(x, s)",
                     opset=24)  # fmt: skip
    stays(model, "no float that every runtime takes", raise_activations)


def test_an_order_that_does_not_fit_where_nobody_runs_it() -> None:
    body = """m = ReduceMax<keepdims=0>(x) n = Abs(m) never = Less(n, zero)
              y = If(never) <
                then_branch = t () => (float[4,6] u) {
                  a = Transpose<perm=[0, 2]>(x) u = Reshape(a, s) },
                else_branch = e () => (float[4,6] v) { v = Neg(x) }>"""
    model = model_of("(float[4,6] x) => (float[4,6] y)", body, "float zero = {0}",
                     "int64[2] s = {4, 6}")  # fmt: skip
    stays(model, "", merge_transposes)


def test_functions_know_no_types() -> None:
    _, unit = run_function("a = Cast<to=11>(x) y = Cast<to=1>(a)", merge_casts)
    assert any("the type is not known" in noted for noted in unit.reasons)
    body = """s = Constant<value_ints=[-1, 3, 4]>() t = Constant<value_ints=[-1, 2, 4, 3]>()
              a = Reshape(x, s) b = Transpose<perm=[0, 2, 1]>(a) y = Reshape(b, t)"""
    _, unit = run_function(body, merge_transposes, shape=(2, 2, 3, 4))
    assert any("a shape is not known" in noted for noted in unit.reasons)


def branch(body: str, *parts: str) -> object:
    """A model whose first branch is this."""
    return model_of(
        "(bool c, float[5,4] x) => (float[5,3] y)",
        f"""y = If (c) <
             then_branch = t () => (float[5,3] p) {{ {body} }},
             else_branch = e () => (float[5,3] q) {{ q = MatMul(x, w) }}
           >""",
        W, B, *parts,
    )  # fmt: skip


def test_products_in_subgraphs() -> None:
    model = branch("a = MatMul(x, w) p = Add(a, b)")
    becomes(model, ["If", "Gemm", "MatMul"], fuse_products)
    model = branch("a = Mul(x, h) p = MatMul(a, w)", HALF)
    becomes(model, ["If", "MatMul", "MatMul"], flatten_products)


def test_constants_in_subgraphs() -> None:
    model = branch("d = Constant<value_float=2.0>() a = MatMul(x, w) p = Add(a, d)")
    becomes(model, ["If", "MatMul", "Add", "MatMul"], lift_constants)
    returned = model_of("(float[n] x) => (float y)", "y = Constant<value_float=2.0>()")
    stays(returned, "", lift_constants)


def test_a_loop_over_an_open_size_is_unrolled() -> None:
    body = """y = Loop (m, c, x) < body = b (int64 i, bool going, float[n] s)
              => (bool go, float[n] r) { go = Identity(going) r = Mul(s, s) } >"""
    model = model_of("(float[n] x) => (float[n] y)", body, "int64 m = {2}", "bool c = {1}")
    becomes(model, ["Mul", "Mul"], unroll_loops, options=Options(unroll_limit=2))
