"""Comparisons and logic."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from sardonyx.dims import symbol
from sardonyx.dtypes import DataType
from sardonyx.ops.catalog import standard
from sardonyx.ops.fact import Fact
from tests.ops.one_node import one_node, run_converted, run_here, run_there, same

ORDER = ("Greater", "GreaterOrEqual", "Less", "LessOrEqual")
SPECIAL = np.float32([-np.inf, -1, -0.0, 0, 1, np.inf, np.nan])


@pytest.mark.parametrize("operator", [*ORDER, "Equal"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_like_onnxruntime(operator: str, dtype: str) -> None:
    values = SPECIAL.astype(dtype) if dtype.startswith("float") else np.array([-3, 0, 7], dtype)
    inputs = {"a": values[:, None].copy(), "b": values}
    content = one_node(operator, inputs, ["y"], 21)
    same(run_here(content, inputs), run_there(content, inputs))


@pytest.mark.parametrize("operator", ["And", "Or", "Xor"])
def test_logic(operator: str) -> None:
    inputs = {"a": np.array([[True], [False]]), "b": np.array([True, False])}
    content = one_node(operator, inputs, ["y"], 21)
    same(run_here(content, inputs), run_there(content, inputs))


def test_large_integers_are_not_rounded() -> None:
    inputs = {"a": np.uint64([2**63, 2**64 - 1]), "b": np.uint64([2**63 + 1, 2**64 - 1])}
    assert run_here(one_node("Less", inputs, ["y"]), inputs)[0].tolist() == [True, False]
    assert run_here(one_node("Equal", inputs, ["y"]), inputs)[0].tolist() == [False, True]


def test_strings() -> None:
    inputs = {"a": np.array([["x"], ["yes"]], object), "b": np.array(["yes", "", "x"], object)}
    (result,) = run_here(one_node("Equal", inputs, ["y"]), inputs)
    assert result.dtype == np.bool_
    assert result.tolist() == [[False, False, True], [True, False, False]]


@pytest.mark.parametrize("operator", ["GreaterOrEqual", "LessOrEqual"])
@pytest.mark.parametrize(
    ("opset", "dtype"), [(11, np.float32), (15, ml_dtypes.bfloat16), (11, np.int64)]
)
def test_functions(operator: str, opset: int, dtype: Any) -> None:
    values = np.array([-2, 0, 3]).astype(dtype) if dtype is np.int64 else SPECIAL.astype(dtype)
    inputs = {"a": values[:, None].copy(), "b": values}
    content = one_node(operator, inputs, ["y"], 16)
    same(run_converted(content, inputs, opset), run_here(content, inputs))


A = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("operator", ["Greater", "Less", "Equal", "And", "Or", "Xor"])
@pytest.mark.parametrize(("axis", "size"), [(0, 2), (1, 3), (None, 3)])
def test_broadcasting_before_opset_7(operator: str, axis: int | None, size: int) -> None:
    a, b = A, np.arange(size, dtype=np.float32) + 1
    if operator == "Equal":
        a, b = a.astype(np.int32), b.astype(np.int32)
    if operator in ("And", "Or", "Xor"):
        a, b = a > 2, b > 1
    attributes = {"broadcast": 1} | ({} if axis is None else {"axis": axis})
    content = one_node(operator, {"a": a, "b": b}, ["y"], 6, **attributes)
    aligned = b[:, None] if axis == 0 else b
    modern = one_node(operator, {"a": a, "b": aligned}, ["y"], 13)
    same(run_here(content, {"a": a, "b": b}), run_here(modern, {"a": a, "b": aligned}))


def _value(operator: str, left: Any, right: Any) -> Any:
    facts = [
        Fact(None, DataType.INT64, (len(value),), np.array(value, object))
        for value in (left, right)
    ]
    return standard()["", operator].infer(*facts).value.tolist()


def test_truths_about_sizes() -> None:
    n = symbol("n")
    assert _value("Equal", [n, n, n, n], [n, n + 1, -1, 1]) == [True, False, False, None]
    assert _value("Less", [n, n, n], [n + 1, 0, 3]) == [True, False, None]
    assert _value("Greater", [n, n + 1], [-1, n]) == [True, True]
    assert _value("GreaterOrEqual", [n, 0], [0, n + 1]) == [True, False]
    assert _value("LessOrEqual", [n, n], [n, -1]) == [True, False]
