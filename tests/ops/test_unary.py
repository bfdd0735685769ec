"""Functions of one tensor."""

import math

import ml_dtypes
import numpy as np
import pytest
from onnx import parser

from sardonyx.dims import symbol
from sardonyx.dtypes import DataType
from sardonyx.ops.catalog import standard
from sardonyx.ops.fact import Fact, tensor
from sardonyx.ops.special import erf
from tests.ops.one_node import load, one_node, run_converted, run_here, run_model, run_there, same

WITH_ONNXRUNTIME = [
    "Abs",
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "Ceil",
    "Cos",
    "Cosh",
    "Erf",
    "Exp",
    "Floor",
    "IsInf",
    "IsNaN",
    "Log",
    "Neg",
    "Reciprocal",
    "Round",
    "Sigmoid",
    "Sign",
    "Sin",
    "Sinh",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Tan",
    "Tanh",
]
SINCE_1 = ["Abs", "Ceil", "Exp", "Floor", "Log", "Neg", "Reciprocal", "Sigmoid", "Sqrt", "Tanh"]


@pytest.mark.parametrize("operator", WITH_ONNXRUNTIME)
def test_like_onnxruntime(operator: str) -> None:
    x = np.float32([-np.inf, -30, -2.5, -1.5, -1, -0.5, -0.0, 0, 0.3, 0.5, 1, 2.5, 3.5, 20, np.inf])
    x = np.append(x, np.float32(np.nan))
    content = one_node(operator, {"x": x}, ["y"], 21)
    same(run_here(content, {"x": x}), run_there(content, {"x": x}), rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("operator", SINCE_1)
def test_first_opset_had_consumed_inputs(operator: str) -> None:
    x = np.float32([[0.5, 1.5], [2.25, 3.5]])
    old = one_node(operator, {"x": x}, ["y"], 1, consumed_inputs=[0])
    same(run_here(old, {"x": x}), run_here(one_node(operator, {"x": x}, ["y"], 22), {"x": x}))


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_integers_wrap_around(dtype: type) -> None:
    least = np.iinfo(dtype).min
    x = np.array([least, -3, 0, 5], dtype)
    assert run_here(one_node("Neg", {"x": x}, ["y"]), {"x": x})[0].tolist() == [least, 3, 0, -5]
    assert run_here(one_node("Abs", {"x": x}, ["y"]), {"x": x})[0].tolist() == [least, 3, 0, 5]
    assert run_here(one_node("Sign", {"x": x}, ["y"]), {"x": x})[0].tolist() == [-1, -1, 0, 1]


def test_erf_to_the_last_digits() -> None:
    x = np.linspace(-7, 7, 20001)
    exact = np.array([math.erf(item) for item in x])
    assert np.max(np.abs(erf(x) - exact)) < 4e-16
    small = np.array([1e-300, -1e-20, 1e-9, 0.0, -0.0])
    np.testing.assert_allclose(erf(small), [math.erf(item) for item in small], rtol=1e-15)
    assert np.isnan(erf(np.array([np.nan])))[0] and erf(np.array([-np.inf]))[0] == -1


def test_erf_of_integers_before_opset_13() -> None:
    x = np.int32([-5, -1, 0, 1, 7])
    (result,) = run_here(one_node("Erf", {"x": x}, ["y"], 9), {"x": x})
    assert result.dtype == np.int32
    assert result.tolist() == [int(math.erf(item)) for item in x]


def test_sigmoid_keeps_small_results() -> None:
    x = np.float32([-100, -90, 90, 100])
    (result,) = run_here(one_node("Sigmoid", {"x": x}, ["y"]), {"x": x})
    np.testing.assert_allclose(result, 1 / (1 + np.exp(-x.astype(np.float64))), rtol=5e-2)
    assert result[0] > 0


@pytest.mark.parametrize(
    "dtype", [ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn, np.float16, ml_dtypes.bfloat16]
)
@pytest.mark.parametrize("opset", [28, 19])
def test_tests_of_narrow_floats(dtype: type, opset: int) -> None:
    x = np.float32([np.inf, -np.inf, np.nan, 1]).astype(dtype)
    infinite = np.isinf(x.astype(np.float32))
    content = one_node("IsInf", {"x": x}, ["y"], 20)
    run = run_here(content, {"x": x}) if opset == 28 else run_converted(content, {"x": x}, opset)
    assert run[0].tolist() == infinite.tolist()
    content = one_node("IsNaN", {"x": x}, ["y"], 20)
    run = run_here(content, {"x": x}) if opset == 28 else run_converted(content, {"x": x}, opset)
    assert run[0].tolist() == np.isnan(x.astype(np.float32)).tolist()


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [({"detect_negative": 0}, [True, False]), ({"detect_positive": 0}, [False, True])],
)
def test_infinities_of_one_sign(attributes: dict[str, int], expected: list[bool]) -> None:
    x = np.float64([np.inf, -np.inf])
    assert (
        run_here(one_node("IsInf", {"x": x}, ["y"], **attributes), {"x": x})[0].tolist() == expected
    )


@pytest.mark.parametrize("operator", ["Softplus", "Softsign"])
def test_function_for_a_type_that_came_later(operator: str) -> None:
    x = np.float32([-30, -1, 0, 0.5, 40]).astype(ml_dtypes.bfloat16)
    content = one_node(operator, {"x": x}, ["y"], 22)
    same(run_converted(content, {"x": x}, 21), run_here(content, {"x": x}), rtol=2e-2, atol=1e-12)


def test_infer_follows_sizes() -> None:
    n = symbol("n")
    sizes = Fact(None, DataType.FLOAT, (2,), np.array([n, 3], object))
    for operator in ("Floor", "Ceil", "Round", "Abs"):
        assert list(standard()["", operator].infer(sizes).value) == [n, 3]
    assert list(standard()["", "Neg"].infer(sizes).value) == [-n, -3]
    apart = sizes.with_value(np.array([n - 5, -3], object))
    assert list(standard()["", "Abs"].infer(apart).value) == [None, 3]
    halves = tensor(DataType.FLOAT, (2,)).with_value(np.float32([0.5, 2.5]))
    assert standard()["", "Floor"].infer(halves).value.tolist() == [0, 2]
    assert standard()["", "Round"].infer(halves).value.tolist() == [0, 2]


def test_upgrade_chain_in_one_model() -> None:
    model = parser.parse_model(
        '<ir_version: 3, opset_import: ["": 5]> g (float[3] x) => (float[3] y)'
        "{ a = Abs<consumed_inputs = [0]>(x) b = Sqrt<consumed_inputs = [0]>(a) y = Neg(b) }"
    )
    x = np.float32([4, -9, 16])
    assert run_model(load(model.SerializeToString()), {"x": x})[0].tolist() == [-2, -3, -4]
