"""Arithmetic on tensors that broadcast."""

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import parser

from sardonyx.dims import symbol
from sardonyx.dtypes import DataType
from sardonyx.errors import ConversionError, InferenceError
from sardonyx.ops.catalog import standard
from sardonyx.ops.convert import convert_opset
from sardonyx.ops.fact import Fact, tensor
from tests.ops.direct import text_model
from tests.ops.one_node import (
    inferred,
    load,
    one_node,
    run_converted,
    run_here,
    run_model,
    run_there,
    same,
)

BINARY = ("Add", "Sub", "Mul", "Div")
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
SPECIAL = np.float32([-np.inf, -3.5, -1, -0.0, 0, 0.5, 2, 7.25, np.inf, np.nan])


def here(operator: str, *arrays: Any, **attributes: Any) -> Any:
    inputs = {f"x{place}": array for place, array in enumerate(arrays)}
    return run_here(one_node(operator, inputs, ["y"], 28, **attributes), inputs)[0]


@pytest.mark.parametrize("operator", [*BINARY, "Pow", "Max", "Min", "Mean", "Sum"])
def test_like_onnxruntime(operator: str) -> None:
    inputs = {"a": SPECIAL[:, None].copy(), "b": SPECIAL}
    content = one_node(operator, inputs, ["y"], 21)
    same(run_here(content, inputs), run_there(content, inputs), rtol=1e-6)


@pytest.mark.parametrize("fmod", [0, 1])
def test_mod_like_onnxruntime(fmod: int) -> None:
    values = np.int32([-7, -6, -1, 1, 3, 5, 7])
    inputs = {"a": values[:, None].copy(), "b": values}
    content = one_node("Mod", inputs, ["y"], 21, fmod=fmod)
    same(run_here(content, inputs), run_there(content, inputs))


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("operator", BINARY)
def test_integers_are_exact_and_wrap_around(operator: str, dtype: str) -> None:
    limits = np.iinfo(dtype)
    picked = [limits.min, limits.min + 1, limits.max // 2, limits.max, 1, 2, 7]
    a = np.array(picked, dtype)[:, None]
    b = np.array([item for item in picked if item], dtype)
    exact = {
        "Add": lambda x, y: x + y,
        "Sub": lambda x, y: x - y,
        "Mul": lambda x, y: x * y,
        "Div": lambda x, y: abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1),
    }[operator]
    expected = [[_wrapped(exact(int(x), int(y)), limits) for y in b] for x in a[:, 0]]
    result = here(operator, a, b)
    assert result.dtype == np.dtype(dtype)
    assert result.tolist() == expected


def _wrapped(number: int, limits: Any) -> int:
    return (number - limits.min) % (limits.max - limits.min + 1) + limits.min


def test_division_of_integers_is_toward_zero() -> None:
    assert here("Div", np.int64([-7, 7, -7, 7]), np.int64([2, -2, -2, 2])).tolist() == [
        -3,
        -3,
        3,
        3,
    ]
    assert here("Div", np.int32([5]), np.int32([0])).tolist() == [0]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_floats_are_rounded_once(dtype: Any) -> None:
    a, b, c = (np.float32([item]).astype(dtype) for item in (1, 2**-8, 2**-12))
    total = np.float32(1 + 2**-8 + 2**-12).astype(dtype)
    assert here("Sum", a, b, c)[0] == total
    assert here("Mean", a, b, c)[0] == np.float32((1 + 2**-8 + 2**-12) / 3).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_mod_of_floats_at_its_limits(dtype: type) -> None:
    x = np.array([0, -0.0, np.inf, 1, 5, -5, 5.5, -5.5, np.nan], dtype)
    y = np.array([3, -3, 3, 0, np.inf, np.inf, 2, 2, 1], dtype)
    floor = here("Mod", x, y)
    np.testing.assert_array_equal(
        floor, np.array([0, -0.0, np.nan, np.nan, 5, np.inf, 1.5, 0.5, np.nan])
    )
    assert np.signbit(floor[1])
    toward_zero = here("Mod", x, y, fmod=1)
    np.testing.assert_array_equal(
        toward_zero, np.array([0, 0, np.nan, np.nan, 5, -5, 1.5, -1.5, np.nan])
    )


def test_mod_of_floats_before_opset_28() -> None:
    inputs = {"a": np.float32([[5.5], [-5.5], [4], [0]]), "b": np.float32([2, -2, 3.25])}
    content = one_node("Mod", inputs, ["y"], 28)
    same(run_converted(content, inputs, 27), run_here(content, inputs))
    integers = {name: item.astype(np.int64) for name, item in inputs.items()}
    content = one_node("Mod", integers, ["y"], 28)
    same(run_converted(content, integers, 13), run_here(content, integers))


@pytest.mark.parametrize(
    ("kind", "fmod", "expected"),
    [("float32", 0, 1), ("float32", 1, 1), ("float16", 0, 1), ("int32", 0, 0), ("int32", 1, 1)],
)
def test_floats_say_fmod_before_opset_28(kind: str, fmod: int, expected: int) -> None:
    inputs = {"a": np.array([5, -5], kind), "b": np.array([3, 3], kind)}
    lower = convert_opset(load(one_node("Mod", inputs, ["y"], 28, fmod=fmod)), 27)
    assert lower.graph is not None
    (found,) = [node for node in lower.graph.nodes if node.op_type == "Mod"]
    assert found.attribute("fmod", 0) == expected
    assert (len(lower.graph.nodes) > 1) == (kind != "int32" and not fmod)


def test_a_remainder_of_an_unknown_type_is_not_converted() -> None:
    with pytest.raises(ConversionError, match="the type is not known"):
        convert_opset(text_model("g (a, b) => (y) { y = Mod(a, b) }", 28), 27)
    lower = convert_opset(text_model("g (a, b) => (y) { y = Mod<fmod=1>(a, b) }", 28), 27)
    assert lower.graph is not None and len(lower.graph.nodes) == 1


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_remainders_of_every_sign(dtype: str) -> None:
    a, b = np.array([7, -7, 7, -7, 6, -6, 0], dtype), np.array([3, 3, -3, -3, 3, -3, -3], dtype)
    assert here("Mod", a, b).tolist() == [1, 2, -2, -1, 0, 0, 0]
    assert here("Mod", a, b, fmod=1).tolist() == [1, -1, 1, -1, 0, 0, 0]


@pytest.mark.parametrize("base", ["int32", "int64", "float32", "float64", "float16"])
@pytest.mark.parametrize("exponent", ["int8", "int32", "int64", "uint8", "float32", "float64"])
def test_pow_has_the_type_of_its_base(base: str, exponent: str) -> None:
    x, y = np.array([-3, -1, 1, 2, 5]).astype(base), np.array([0, 1, 2, 3, 4]).astype(exponent)
    result = here("Pow", x, y)
    assert result.dtype == np.dtype(base)
    assert result.tolist() == [1, -1, 1, 8, 625]


def test_pow_of_integers_wraps_and_takes_negative_exponents() -> None:
    assert here("Pow", np.int64([3]), np.int64([41]))[0] == (3**41 + 2**63) % 2**64 - 2**63
    x, y = np.int32([2, 1, -1, -1, -7]), np.int32([-1, -5, -3, -4, -2])
    assert here("Pow", x, y).tolist() == [0, 1, -1, 1, 0]


@pytest.mark.parametrize("operator", ["Max", "Min"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_extremes_of_integers(operator: str, dtype: str) -> None:
    limits = np.iinfo(dtype)
    a = np.array([limits.min, 5, limits.max], dtype)
    b = np.array([[3], [7]], dtype)
    result = here(operator, a, b, a)
    assert result.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(result, (np.maximum if operator == "Max" else np.minimum)(a, b))


def test_variadic_with_one_input() -> None:
    x = np.float32([1, 2])
    for operator in ("Max", "Min", "Sum", "Mean"):
        assert here(operator, x).tolist() == [1, 2]


A = np.arange(24, dtype=np.float32).reshape(2, 3, 4) + 1
LEGACY = [
    ({"broadcast": 1}, (3, 4), lambda b: b),
    ({"broadcast": 1}, (4,), lambda b: b),
    ({"broadcast": 1}, (1,), lambda b: b),
    ({"broadcast": 1, "axis": 0}, (2,), lambda b: b[:, None, None]),
    ({"broadcast": 1, "axis": 1}, (3,), lambda b: b[:, None]),
    ({"broadcast": 1, "axis": 0}, (2, 3), lambda b: b[:, :, None]),
    ({"broadcast": 1, "axis": 1}, (3, 4), lambda b: b),
    ({"broadcast": 1, "axis": -2}, (3,), lambda b: b[:, None]),
    ({}, (2, 3, 4), lambda b: b),
]


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(("attributes", "shape", "aligned"), LEGACY)
@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul", "Div", "Pow"])
def test_broadcasting_before_opset_7(
    operator: str, attributes: dict[str, int], shape: tuple[int, ...], aligned: Any, known: bool
) -> None:
    b = (np.arange(np.prod(shape), dtype=np.float32).reshape(shape) % 3) + 1
    compute = {
        "Add": np.add,
        "Sub": np.subtract,
        "Mul": np.multiply,
        "Div": np.divide,
        "Pow": np.power,
    }
    shapes = {} if known else {"a": None} | ({} if attributes.get("axis", 0) < 0 else {"b": None})
    content = one_node(operator, {"a": A, "b": b}, ["y"], 6, shapes=shapes, **attributes)
    (result,) = run_here(_without_shapes(content, shapes), {"a": A, "b": b})
    np.testing.assert_allclose(result, compute[operator](A, aligned(b)), rtol=1e-6)


def _without_shapes(content: bytes, shapes: dict[str, None]) -> bytes:
    model = onnx.load_from_string(content)
    for value in model.graph.input:
        if value.name in shapes:
            value.type.tensor_type.ClearField("shape")
    return model.SerializeToString()


def test_first_opset_had_consumed_inputs() -> None:
    inputs = {"a": A, "b": np.float32([1, 2, 3])}
    content = one_node("Add", inputs, ["y"], 1, broadcast=1, axis=1, consumed_inputs=[0, 0])
    np.testing.assert_array_equal(run_here(content, inputs)[0], A + inputs["b"][:, None])
    for operator in ("Max", "Min", "Sum", "Mean"):
        content = one_node(operator, {"a": A, "b": A}, ["y"], 1, consumed_inputs=[0, 0])
        assert run_here(content, {"a": A, "b": A})[0].shape == A.shape


def test_broadcasting_said_in_opset_6() -> None:
    inputs = {"a": A, "b": A[0]}
    content = one_node("Mul", inputs, ["y"], 13)
    converted = convert_opset(load(content), 6)
    assert [node.attribute("broadcast") for node in converted.graph.nodes] == [1]
    same(run_model(converted, inputs), run_here(content, inputs))
    both = {"a": A[:1], "b": A[:, :1]}
    with pytest.raises(ConversionError, match="end of the first"):
        convert_opset(load(one_node("Mul", both, ["y"], 13)), 6)


@pytest.mark.parametrize("operator", ["Max", "Min", "Sum", "Mean"])
def test_inputs_of_one_shape_before_opset_8(operator: str) -> None:
    inputs = {"a": A, "b": A * 2}
    content = one_node(operator, inputs, ["y"], 13)
    same(run_model(convert_opset(load(content), 6), inputs), run_here(content, inputs))
    with pytest.raises(ConversionError, match="one shape"):
        convert_opset(load(one_node(operator, {"a": A, "b": A[0]}, ["y"], 13)), 7)


@pytest.mark.parametrize("base", [np.int32, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("exponent", [np.int32, np.float32, np.float64])
def test_pow_before_opset_12_has_one_type(base: Any, exponent: Any) -> None:
    inputs = {"a": np.array([-3, 2, 5], base), "b": np.array([3, 0, 2], exponent)}
    content = one_node("Pow", inputs, ["y"], 13)
    same(run_converted(content, inputs, 11), run_here(content, inputs))


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("float[n,3]", "float[1,3]", "float[n,3]"),
        ("float[n,1]", "float[m]", "float[n,m]"),
        ("float[n]", "float[n]", "float[n]"),
        ("float[2,n]", "float[3,1,1]", "float[3,2,n]"),
        ("float", "float[3]", "float[3]"),
        ("float[]", "float[3]", "float"),
    ],
)
def test_shapes(left: str, right: str, expected: str) -> None:
    model = parser.parse_model(
        '<ir_version: 10, opset_import: ["": 21]>'
        f"g ({left} a, {right} b) => (y) {{ y = Add(a, b) }}"
    )
    assert inferred(model.SerializeToString()) == [expected]


@pytest.mark.parametrize("operator", [*BINARY, "Pow", "Max", "Min", "Mean", "Sum", "Mod"])
def test_contradictions(operator: str) -> None:
    inputs = {"a": np.float32([1, 2]), "b": np.float32([1, 2, 3])}
    content = one_node(operator, inputs, ["y"], 21)
    with pytest.raises(InferenceError, match="broadcast"):
        inferred(content)
    if operator != "Pow":
        mixed = {"a": np.float32([1, 2]), "b": np.int64([1, 2])}
        with pytest.raises(InferenceError, match="one element type"):
            inferred(one_node(operator, mixed, ["y"], 21))


def _value(operator: str, *values: Any, dtype: DataType = DataType.INT64, **attributes: Any) -> Any:
    facts = [
        Fact(None, dtype, np.shape(value), np.array(value, object)) for value in values
    ]  # fmt: skip
    return standard()["", operator].infer(*facts, **attributes).value.tolist()


def test_sizes_are_followed() -> None:
    n = symbol("n")
    assert _value("Add", [n, 2], [1, 3]) == [n + 1, 5]
    assert _value("Sub", [n, None], [n, 3]) == [0, None]
    assert _value("Mul", [n, 2], [n, 3]) == [n * n, 6]
    assert _value("Div", [n * 4, n, 7], [2, 3, 2]) == [n * 2, n // 3, 3]
    assert _value("Mod", [n * 4, n], [2, 3], fmod=0) == [0, n % 3]
    assert _value("Pow", [n], [2]) == [n * n]
    assert _value("Max", [n, n], [n + 1, 3], [0, 0])[0] == n + 1
    assert _value("Min", [n, 4], [n + 1, 3])[0] == n
    floats = DataType.FLOAT
    assert _value("Div", [n * 4, n], [2.0, 3.0], dtype=floats) == [n * 2, None]
    assert _value("Mul", [n, n], [2.0, 0.5], dtype=floats) == [n * 2, None]


def test_constants_are_folded_in_their_type() -> None:
    a = tensor(DataType.INT32, (2,)).with_value(np.int64([-7, 2**31 - 1]))
    b = tensor(DataType.INT32, ()).with_value(np.array(2))
    result = standard()["", "Div"].infer(a, b).value
    assert (result.dtype, result.tolist()) == (np.int32, [-3, 2**30 - 1])
    assert standard()["", "Mul"].infer(a, b).value.tolist() == [-14, -2]


def test_large_results_are_not_followed() -> None:
    column = tensor(DataType.INT64, (600, 1)).with_value(np.zeros((600, 1), np.int64))
    row = tensor(DataType.INT64, (600,)).with_value(np.zeros(600, np.int64))
    assert standard()["", "Add"].infer(column, row).value is None
