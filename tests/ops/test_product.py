"""MatMul, Gemm and Det against onnxruntime and NumPy, over versions, types and edges."""

import ml_dtypes
import numpy as np
import onnx.reference
import pytest

from sardonyx.dims import symbol
from sardonyx.dtypes import DataType
from sardonyx.errors import InferenceError, SardonyxError
from sardonyx.ops.fact import tensor, unknown
from sardonyx.ops.product import Det, Gemm, MatMul
from tests.ops.one_node import inferred, one_node, run_converted, run_here, run_there, same

GEMM = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0}


def draw(*shape, dtype=np.float32, seed=0):
    return np.asarray(np.random.default_rng(seed).normal(size=shape) * 4, dtype)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((2, 3), (3, 4)),
        ((3,), (3,)),
        ((3,), (3, 4)),
        ((2, 3), (3,)),
        ((5, 1, 2, 3), (4, 3, 2)),
        ((2, 0), (0, 3)),
        ((0, 2, 3), (3, 1)),
    ],
)
def test_matmul_shapes(left, right):
    inputs = {"A": draw(*left), "B": draw(*right, seed=1)}
    content = one_node("MatMul", inputs, ["Y"])
    result = run_here(content, inputs)
    same(result, run_there(content, inputs))
    same(result, [np.asarray(inputs["A"] @ inputs["B"])])
    assert inferred(content) == [f"float[{','.join(map(str, result[0].shape))}]"]


@pytest.mark.parametrize(
    "dtype", [np.int32, np.int64, np.uint32, np.uint64, np.float16, np.float64, ml_dtypes.bfloat16]
)
def test_matmul_types(dtype):
    a, b = draw(3, 4, dtype=np.float32).astype(dtype), draw(4, 2, seed=1).astype(dtype)
    result = MatMul.reference(a, b)
    assert result.dtype == dtype
    exact = a.astype(object) @ b.astype(object)
    if np.dtype(dtype).kind in "iu":
        bits = np.dtype(dtype).itemsize * 8
        np.testing.assert_array_equal(result.astype(object) % 2**bits, exact % 2**bits)
    else:
        np.testing.assert_allclose(
            result.astype(np.float64), exact.astype(np.float64), rtol=2**-7, atol=0.1
        )


def test_matmul_accumulates_half_in_single():
    ones = np.ones((1, 4096), np.float16)
    assert MatMul.reference(ones, ones.T)[0, 0] == 4096


def test_matmul_passes_nan_and_infinity():
    a = np.array([[np.nan, 1], [np.inf, 1]], np.float32)
    result = MatMul.reference(a, np.ones((2, 1), np.float32))
    assert np.isnan(result[0, 0]) and np.isinf(result[1, 0])


def test_matmul_inference():
    n, m = symbol("n"), symbol("m")
    a = tensor(DataType.FLOAT, (n, 1, 4, 3))
    b = tensor(DataType.FLOAT, (5, 3, m))
    assert MatMul.infer(a, b).shape == (n, 5, 4, m)
    assert MatMul.infer(a, unknown(None)).shape is None
    assert MatMul.infer(tensor(None, (n,)), tensor(None, (n,))).shape == ()
    for left, right in [((2, 3), (4, 5)), ((), (3,)), ((2, 2, 3), (3, 3, 4))]:
        with pytest.raises(InferenceError):
            MatMul.infer(tensor(DataType.FLOAT, left), tensor(DataType.FLOAT, right))


@pytest.mark.parametrize("shape", [(), (1,), (4,), (1, 4), (3, 1), (3, 4), None])
@pytest.mark.parametrize(("trans_a", "trans_b"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_gemm(shape, trans_a, trans_b):
    inputs = {
        "A": draw(*((2, 3) if trans_a else (3, 2))),
        "B": draw(*((4, 2) if trans_b else (2, 4)), seed=1),
        "C": None if shape is None else draw(*shape, seed=2),
    }
    content = one_node(
        "Gemm", inputs, ["Y"], opset=13, alpha=0.5, beta=2.0, transA=trans_a, transB=trans_b
    )
    same(run_here(content, inputs), run_there(content, inputs))
    assert inferred(content) == ["float[3,4]"]


@pytest.mark.parametrize("opset", [1, 6])
@pytest.mark.parametrize("shape", [(4,), (1,), (3, 4)])
def test_gemm_of_early_opsets(opset, shape):
    inputs = {"A": draw(3, 2), "B": draw(2, 4, seed=1), "C": draw(*shape, seed=2)}
    content = one_node("Gemm", inputs, ["Y"], opset=opset, broadcast=int(shape != (3, 4)))
    result = run_here(content, inputs)
    same(result, [inputs["A"] @ inputs["B"] + inputs["C"]])
    if opset == 6:
        model = onnx.load_from_string(content)
        same(result, onnx.reference.ReferenceEvaluator(model).run(None, inputs))


@pytest.mark.parametrize("opset", [1, 6, 7, 9, 11])
def test_gemm_downgrades(opset):
    inputs = {"A": draw(3, 2), "B": draw(2, 4, seed=1)}
    content = one_node("Gemm", inputs, ["Y"], opset=22, alpha=0.5)
    same(run_converted(content, inputs, opset), run_here(content, inputs))
    inputs["C"] = draw(4, seed=2)
    content = one_node("Gemm", inputs, ["Y"], opset=22, beta=3.0)
    same(run_converted(content, inputs, opset), run_here(content, inputs))


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64])
def test_gemm_of_integers_wraps(dtype):
    top = np.iinfo(dtype).max
    a, b = np.array([[top, 2]], dtype), np.array([[2], [3]], dtype)
    result = Gemm.reference(a, b, np.array([1], dtype), **GEMM | {"beta": -1.0})
    bits = np.dtype(dtype).itemsize * 8
    assert result.dtype == dtype and int(result[0, 0]) % 2**bits == (top * 2 + 6 - 1) % 2**bits
    halved = Gemm.reference(np.array([[3]], dtype), np.array([[3]], dtype), **GEMM | {"alpha": 0.5})
    assert halved.tolist() == [[4]]


def test_gemm_ignores_c_for_beta_zero():
    a = np.ones((1, 1), np.float32)
    assert Gemm.reference(a, a, a * np.nan, **GEMM | {"beta": 0.0}).tolist() == [[1]]


def test_gemm_inference():
    n = symbol("n")
    result = Gemm.infer(tensor(DataType.FLOAT, (n, 3)), unknown(None), None, **GEMM)
    assert result.shape == (n, None)
    two = tensor(DataType.FLOAT, (2, 3))
    with pytest.raises(InferenceError):
        Gemm.infer(two, two, None, **GEMM)
    with pytest.raises(InferenceError):
        Gemm.infer(two, tensor(DataType.FLOAT, (3,)), None, **GEMM)
    for wrong in [(3,), (1, 1, 4), (5, 4)]:
        with pytest.raises(InferenceError):
            Gemm.infer(two, tensor(None, (3, 4)), tensor(None, wrong), **GEMM)


def test_strict_inference_names_the_node():
    inputs = {"A": draw(2, 3), "B": draw(2, 3)}
    with pytest.raises(SardonyxError, match=r"inner sizes differ.*MatMul"):
        inferred(one_node("MatMul", inputs, ["Y"]))


@pytest.mark.parametrize("shape", [(3, 3), (2, 5, 4, 4), (0, 2, 2), (2, 0, 0)])
def test_det(shape):
    x = draw(*shape)
    result = Det.reference(x)
    np.testing.assert_allclose(result, np.linalg.det(x.astype(np.float64)), rtol=1e-4, atol=1e-4)
    assert (result.dtype, result.shape) == (np.float32, shape[:-2])


@pytest.mark.parametrize("dtype", [np.float16, np.float64, ml_dtypes.bfloat16])
def test_det_types(dtype):
    result = Det.reference(np.eye(3, dtype=dtype) * dtype(2))
    assert isinstance(result, np.ndarray) and result.dtype == dtype
    assert round(float(result), 6) == 8


def test_det_inference():
    n = symbol("n")
    assert Det.infer(tensor(DataType.DOUBLE, (n, 3, None))).shape == (n,)
    for wrong in [(3,), (2, 3)]:
        with pytest.raises(InferenceError):
            Det.infer(tensor(None, wrong))
