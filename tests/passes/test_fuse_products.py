"""What is linear around a matrix product."""

import numpy as np
import pytest

from sardonyx.passes.flatten_products import flatten_products
from sardonyx.passes.fuse_products import fuse_products
from tests.passes.cases import becomes, model_of, stays, weights

MATRIX = "(float[n,4] x) => (float[n,3] y)"
CUBE = "(float[n,m,4] x) => (float[n,m,3] y)"
W, B = weights("w", 4, 3), weights("b", 3)


@pytest.mark.parametrize("shape", [(3,), (1, 3), (1,)])
def test_a_bias_makes_a_gemm(shape: tuple[int, ...]) -> None:
    becomes(model_of(MATRIX, "a = MatMul(x, w) y = Add(b, a)", W, weights("b", *shape)), ["Gemm"],
            fuse_products)  # fmt: skip


def test_gemm_is_for_matrices() -> None:
    stays(model_of(CUBE, "a = MatMul(x, w) y = Add(a, b)", W, B), "not matrices", fuse_products)
    wide = model_of(
        "(float[n,4] x, float[k,n,3] b) => (float[k,n,3] y)", "a = MatMul(x, w) y = Add(a, b)", W
    )
    stays(wide, "another rank", fuse_products)
    integers = model_of("(int32[n,2] x) => (int32[n,2] y)", "a = MatMul(x, w) y = Add(a, b)",
                        "int32[2,2] w = {1, 2, 3, 4}", "int32[2] b = {1, 2}")  # fmt: skip
    stays(integers, "does not take this type", fuse_products)


def test_gemm_takes_a_bias() -> None:
    model = model_of(MATRIX, "a = Gemm(x, w) y = Add(a, b)", W, B)
    becomes(model, ["Gemm"], fuse_products)
    both = model_of(MATRIX, "a = Gemm(x, w, b) y = Add(a, b)", W, B)
    becomes(both, ["Gemm"], fuse_products)
    scaled = model_of(MATRIX, "a = Gemm<beta=0.5>(x, w, b) y = Add(a, b)", W, B)
    stays(scaled, "the bias is scaled", fuse_products)


def test_gemm_takes_transposes() -> None:
    signature = "(float[4,n] x) => (float[n,3] y)"
    model = model_of(signature, "a = Transpose<perm=[1, 0]>(x) y = Gemm(a, w, b)", W, B)
    result = becomes(model, ["Gemm"], fuse_products)
    assert result.graph.nodes[0].attribute("transA") == 1


@pytest.mark.parametrize("factor", ["float k = {1.5}", weights("k", 3, positive=True)])
@pytest.mark.parametrize("step", ["Mul(a, k)", "Div(a, k)"])
def test_factors(factor: str, step: str) -> None:
    becomes(model_of(CUBE, f"a = MatMul(x, w) y = {step}", W, factor), ["MatMul"], fuse_products)
    becomes(
        model_of(MATRIX, f"a = Gemm(x, w, b) y = {step}", W, B, factor), ["Gemm"], fuse_products
    )


def test_a_factor_behind_a_sum() -> None:
    body = "p = MatMul(x, w) q = Add(p, b) y = Mul(s, q)"
    becomes(model_of(CUBE, body, W, B, weights("s", 3)), ["MatMul", "Add"], fuse_products)
    stays(model_of(CUBE, body, W, B, weights("s", 1, 1, 3)), "one for a column", fuse_products)
    stays(model_of(CUBE, body, W, weights("b", 1, 1, 3), weights("s", 3)), "no constant vector",
          fuse_products)  # fmt: skip


def test_factors_of_another_shape() -> None:
    model = model_of("(float[2,2,4] x) => (float[2,2,3] y)", "a = MatMul(x, w) y = Mul(a, k)", W,
                     weights("k", 2, 1))  # fmt: skip
    stays(model, "not one for a column", fuse_products)
    divided = model_of(CUBE, "a = MatMul(x, w) y = Div(k, a)", W, "float k = {2}")
    stays(divided, "", fuse_products)


def test_normalization_behind_a_gemm() -> None:
    norm = (weights("s", 3), weights("o", 3), weights("m", 3), weights("v", 3, positive=True))
    body = "a = Gemm<transB=1>(x, w, b) y = BatchNormalization(a, s, o, m, v)"
    becomes(model_of(MATRIX, body, weights("w", 3, 4), B, *norm), ["Gemm"], fuse_products)


def test_products_work_on_more_dimensions() -> None:
    body = "a = Reshape(x, s) p = MatMul(a, w) q = Add(p, b) y = Reshape(q, t)"
    model = model_of("(float[n,5,4] x) => (float[n,5,3] y)", body, W, B, "int64[2] s = {-1, 4}",
                     "int64[3] t = {-1, 5, 3}")  # fmt: skip
    becomes(model, ["MatMul", "Add"], flatten_products)
    gemm = "a = Reshape(x, s) p = Gemm(a, w, b) y = Reshape(p, t)"
    model = model_of("(float[n,5,4] x) => (float[n,5,3] y)", gemm, W, B, "int64[2] s = {-1, 4}",
                     "int64[3] t = {-1, 5, 3}")  # fmt: skip
    becomes(model, ["MatMul", "Add"], flatten_products)


def test_another_shape_behind_the_product() -> None:
    body = "a = Reshape(x, s) p = Gemm(a, w, b) y = Reshape(p, t)"
    model = model_of("(float[n,5,4] x) => (float[5,n,3] y)", body, W, B, "int64[2] s = {-1, 4}",
                     "int64[3] t = {5, -1, 3}")  # fmt: skip
    stays(model, "the product has another shape", flatten_products)


def test_scales_move_into_weights() -> None:
    signature = "(float[n,2,4] x) => (float[n,2,2] y)"
    body = "q = MatMul(x, w) t = Transpose<perm=[0, 2, 1]>(x) p = MatMul(q, u) y = Div(p, k)"
    model = model_of(signature, body, weights("w", 4, 4), weights("u", 4, 2), "float k = {2}")
    becomes(model, ["MatMul", "MatMul"], flatten_products)
    front = model_of(CUBE, "a = Mul(x, k) y = MatMul(a, w)", W, "float k = {2}")
    becomes(front, ["MatMul"], flatten_products)
    body = "e = Exp(x) h = Mul(e, k) a = Mul(x, h) y = MatMul(a, w)"
    inside = model_of(CUBE, body, W, "float k = {2}")
    becomes(inside, ["Exp", "Mul", "MatMul"], flatten_products)


def test_large_weights_that_are_shared_stay() -> None:
    signature = "(float[2,4] x, float[2,4] v) => (float[2,?] y, float[2,?] z)"
    body = "a = Mul(x, k) y = MatMul(a, w) z = MatMul(v, w)"
    model = model_of(signature, body, W, "float k = {2}")
    model.graph.value("w").tensor.set(np.ones((4, 70_000), np.float32))
    stays(model, "the weights are used elsewhere", flatten_products)


def test_products_of_one_factor_are_joined() -> None:
    body = """a = MatMul(x, u) b = Add(a, i) c = MatMul(x, v) d = Add(c, j) y = Mul(b, d)"""
    model = model_of(CUBE, body, weights("u", 4, 3), weights("v", 4, 3, scale=0.2), weights("i", 3),
                     weights("j", 3, scale=0.3))  # fmt: skip
    becomes(model, ["MatMul", "Add", "Split", "Mul"], flatten_products)
    plain = model_of(CUBE, "a = MatMul(x, u) c = MatMul(x, v) y = Mul(a, c)", weights("u", 4, 3),
                     weights("v", 4, 3))  # fmt: skip
    stays(plain, "", flatten_products)
