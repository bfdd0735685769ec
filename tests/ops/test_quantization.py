"""Linear quantization."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from sardonyx.dtypes import DataType
from sardonyx.errors import ConversionError, EvaluationError, InferenceError
from sardonyx.ops.convert import convert_opset
from tests.ops.direct import run
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

RANDOM = np.random.default_rng(11)
X = RANDOM.normal(0, 40, (2, 3, 8)).astype(np.float32)
INT4, UINT4 = ml_dtypes.int4, ml_dtypes.uint4
BFLOAT = ml_dtypes.bfloat16
NARROW = ["int8", "uint8", "int16", "uint16"]
GRANULARITIES = [((), 1, 0), ((3,), 1, 0), ((8,), -1, 0), ((2, 3, 2), 2, 4), ((2, 3, 3), 2, 3)]


def scales(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    return RANDOM.uniform(0.2, 2, shape).astype(dtype)


def zeros(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return RANDOM.integers(0, 7, shape).astype(dtype)


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize(("shape", "axis", "block_size"), GRANULARITIES)
@pytest.mark.parametrize("with_zero", [True, False])
def test_quantize_like_onnxruntime(
    dtype: str, shape: tuple[int, ...], axis: int, block_size: int, with_zero: bool
) -> None:
    inputs = {"x": X, "scale": scales(shape)}
    named = {} if with_zero else {"output_dtype": int(DataType[dtype.upper()])}
    if with_zero:
        inputs["zero"] = zeros(shape, dtype)
    content = one_node(
        "QuantizeLinear", inputs, ["y"], 21, axis=axis, block_size=block_size, **named
    )
    (result,) = run_here(content, inputs)
    assert result.dtype == np.dtype(dtype)
    same([result], run_there(content, inputs))
    assert inferred(content) == [f"{dtype}[2,3,8]"]


@pytest.mark.parametrize("dtype", [*NARROW, "int32"])
@pytest.mark.parametrize(("shape", "axis", "block_size"), GRANULARITIES)
@pytest.mark.parametrize("with_zero", [True, False])
def test_dequantize_like_onnxruntime(
    dtype: str, shape: tuple[int, ...], axis: int, block_size: int, with_zero: bool
) -> None:
    inputs = {"x": RANDOM.integers(0, 120, (2, 3, 8)).astype(dtype), "scale": scales(shape)}
    if with_zero:
        inputs["zero"] = np.zeros(shape, dtype) if dtype == "int32" else zeros(shape, dtype)
    content = one_node("DequantizeLinear", inputs, ["y"], 21, axis=axis, block_size=block_size)
    same(run_here(content, inputs), run_there(content, inputs))
    assert inferred(content) == ["float[2,3,8]"]


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [("int4", -8, 7), ("uint4", 0, 15), ("int2", -2, 1), ("uint2", 0, 3), ("int8", -128, 127)],
)
def test_saturation_and_halves(kind: str, low: int, high: int) -> None:
    x = np.float32([-1e30, -np.inf, 1e30, np.inf, 0.5, 1.5, -0.5, np.nan])
    inputs = {"x": x, "scale": np.float32(1)}
    content = one_node(
        "QuantizeLinear", inputs, ["y"], 25, output_dtype=int(DataType[kind.upper()])
    )
    (result,) = run_here(content, inputs)
    expected = [low, low, high, high, 0, min(2, high), 0, low]
    assert result.astype(int).tolist() == expected


FLOATS = [
    DataType.FLOAT8E4M3FN, DataType.FLOAT8E4M3FNUZ, DataType.FLOAT8E5M2, DataType.FLOAT8E5M2FNUZ,
    DataType.FLOAT4E2M1, DataType.FLOAT6E2M3, DataType.FLOAT6E3M2,
]  # fmt: skip


@pytest.mark.parametrize("kind", FLOATS)
def test_narrow_floats(kind: DataType) -> None:
    inputs = {"x": np.float32([0, 1, -2, 1e9]), "scale": np.float32(2)}
    content = one_node("QuantizeLinear", inputs, ["y"], 28, output_dtype=int(kind))
    (result,) = run_here(content, inputs)
    largest = float(ml_dtypes.finfo(kind.numpy).max)
    assert result.dtype == kind.numpy
    assert result.astype(np.float32).tolist() == [0, 0.5, -1, largest]
    back = {"x": result, "scale": np.float32(2)}
    content = one_node("DequantizeLinear", back, ["y"], 28)
    assert run_here(content, back)[0].tolist() == [0, 1, -2, 2 * largest]


@pytest.mark.parametrize("kind", ["int4", "uint4", "int2", "uint2"])
def test_tiny_integers_back(kind: str) -> None:
    dtype = DataType[kind.upper()].numpy
    inputs = {"x": np.array([0, 1, -1, 1]).astype(dtype), "scale": np.float32(0.5),
              "zero": np.array(1).astype(dtype)}  # fmt: skip
    content = one_node("DequantizeLinear", inputs, ["y"], 28)
    expected = (inputs["x"].astype(int) - 1) * 0.5
    assert run_here(content, inputs)[0].tolist() == expected.tolist()


@pytest.mark.parametrize("dtype", [np.float16, BFLOAT])
def test_half_precision(dtype: Any) -> None:
    inputs = {"x": X.astype(dtype), "scale": scales((), dtype), "zero": np.array(3, np.int8)}
    content = one_node("QuantizeLinear", inputs, ["y"], 19)
    (result,) = run_here(content, inputs)
    quotient = (inputs["x"].astype(np.float32) / inputs["scale"].astype(np.float32)).astype(dtype)
    level = np.rint(quotient.astype(np.float32)) + 3
    np.testing.assert_array_equal(result, np.clip(level, -128, 127).astype(np.int8))
    back = {"x": result, "scale": inputs["scale"], "zero": inputs["zero"]}
    (again,) = run_here(one_node("DequantizeLinear", back, ["y"], 19), back)
    assert again.dtype == dtype


def test_precision_of_the_division() -> None:
    x, scale = np.float32([1000.5]), np.array(1, np.float16)
    inputs = {"x": x, "scale": scale, "zero": np.array(0, np.int16)}
    assert run_here(one_node("QuantizeLinear", inputs, ["y"], 23), inputs)[0].tolist() == [1000]
    exact = np.float32([4097])
    inputs["x"] = exact
    assert run_here(one_node("QuantizeLinear", inputs, ["y"], 23), inputs)[0].tolist() == [4096]
    content = one_node("QuantizeLinear", inputs, ["y"], 23, precision=1)
    assert run_here(content, inputs)[0].tolist() == [4097]
    same(run_converted(content, inputs, 22), run_here(content, inputs))


def test_scale_that_is_a_power_of_two() -> None:
    scale = np.float32(4).astype(ml_dtypes.float8_e8m0fnu)
    inputs = {"x": np.float32([8, 12]), "scale": np.asarray(scale), "zero": np.array(1, np.uint8)}
    assert run_here(one_node("QuantizeLinear", inputs, ["y"], 24), inputs)[0].tolist() == [3, 4]
    back = {"x": np.uint8([3, 4]), "scale": np.asarray(scale), "zero": np.array(1, np.uint8)}
    content = one_node("DequantizeLinear", back, ["y"], 24, output_dtype=1)
    assert run_here(content, back)[0].tolist() == [8, 12]
    assert inferred(content) == ["float[2]"]
    with pytest.raises(ConversionError, match=r"float8e8m0.* is not allowed"):
        convert_opset(load(content), 23)


@pytest.mark.parametrize("opset", [10, 13])
def test_integers_quantized_before_opset_19(opset: int) -> None:
    inputs = {"x": np.int32([-100, 7, 8, 900]), "scale": np.float32(2), "zero": np.uint8(5)}
    inputs = {name: np.asarray(item) for name, item in inputs.items()}
    content = one_node("QuantizeLinear", inputs, ["y"], opset)
    assert run_here(content, inputs)[0].tolist() == [0, 9, 9, 255]
    raised = convert_opset(load(content), 21)
    assert raised.graph is not None
    assert [node.op_type for node in raised.graph.nodes] == ["Cast", "QuantizeLinear"]


DOWN = [
    ("int8", (), 1, 0, 10),
    ("int8", (3,), 1, 0, 13),
    ("uint8", (8,), -1, 0, 17),
    ("uint8", (2, 3, 2), 2, 4, 17),
    ("int8", (2, 2, 8), 1, 2, 17),
    ("int16", (), 1, 0, 17),
    ("uint16", (3,), 1, 0, 17),
]


@pytest.mark.parametrize(("dtype", "shape", "axis", "block_size", "opset"), DOWN)
@pytest.mark.parametrize("scale_type", [np.float32, np.float16])
def test_downgrade(
    dtype: str, shape: tuple[int, ...], axis: int, block_size: int, opset: int, scale_type: Any
) -> None:
    both = {"axis": axis, "block_size": block_size}
    inputs = {"x": np.rint(X).astype(scale_type), "scale": (scales(shape) > 1) + scale_type(0.5),
              "zero": zeros(shape, dtype)}  # fmt: skip
    inputs["scale"] = np.asarray(inputs["scale"], scale_type)
    content = one_node("QuantizeLinear", inputs, ["y"], 21, **both)
    (result,) = run_here(content, inputs)
    converted = run_converted(content, inputs, opset)[0]
    assert np.max(np.abs(converted.astype(int) - result.astype(int))) <= (scale_type is np.float16)
    back = {"x": result, "scale": inputs["scale"], "zero": inputs["zero"]}
    content = one_node("DequantizeLinear", back, ["y"], 21, **both)
    same(run_converted(content, back, opset), run_here(content, back), rtol=1e-3)


def test_downgrade_of_a_named_type() -> None:
    inputs = {"x": X, "scale": scales((3,))}
    for kind in (DataType.INT8, DataType.UINT8, DataType.INT16):
        content = one_node("QuantizeLinear", inputs, ["y"], 21, output_dtype=int(kind))
        same(run_converted(content, inputs, 17), run_here(content, inputs))


@pytest.mark.parametrize(
    ("scale_type", "output"), [(np.float16, 1), (np.float32, 10), (np.float16, 16)]
)
def test_downgrade_of_a_named_output(scale_type: Any, output: int) -> None:
    inputs = {"x": np.int8([1, 2, -7]), "scale": np.asarray(0.75, scale_type)}
    content = one_node("DequantizeLinear", inputs, ["y"], 23, output_dtype=output)
    same(run_converted(content, inputs, 17), run_here(content, inputs), rtol=1e-2)


def test_types_that_came_later_block() -> None:
    for kind, opset in ((DataType.INT4, 20), (DataType.FLOAT8E5M2, 18), (DataType.FLOAT4E2M1, 22)):
        inputs = {"x": X, "scale": np.asarray(np.float32(1))}
        content = one_node("QuantizeLinear", inputs, ["y"], 23, output_dtype=int(kind))
        with pytest.raises(ConversionError, match=f"{kind.text} is not allowed"):
            convert_opset(load(content), opset)
    with pytest.raises(ConversionError, match="scale must be a scalar"):
        inputs = {"x": X, "scale": scales((3,))}
        convert_opset(load(one_node("QuantizeLinear", inputs, ["y"], 13)), 12)


def test_contradictions() -> None:
    inputs = {"x": X, "scale": scales(()), "zero": np.array(1, np.int8)}
    content = one_node("QuantizeLinear", inputs, ["y"], 21, output_dtype=int(DataType.UINT8))
    with pytest.raises(InferenceError, match="output_dtype is uint8 and the zero point is int8"):
        inferred(content)
    with pytest.raises(EvaluationError, match="zero point is int8"):
        run_here(content, inputs)
    mixed = {"x": np.int8([1]), "scale": scales(()), "zero": np.array(1, np.uint8)}
    with pytest.raises(InferenceError, match="zero point is uint8"):
        inferred(one_node("DequantizeLinear", mixed, ["y"], 21))
    matrix = {"x": X, "scale": scales((2, 3))}
    with pytest.raises(EvaluationError, match="needs a block_size"):
        run_here(one_node("QuantizeLinear", matrix, ["y"], 21), matrix)


DYNAMIC = [
    np.float32([0, 2, -3, -2.5, 1.34, 0.5]),
    np.float32([[-1, -2.1], [-1.3, -2.5]]),
    np.float32([[1, 2.1, 1.3], [2.5, 3.34, 4]]),
    np.zeros((2, 3), np.float32),
]


@pytest.mark.parametrize("x", DYNAMIC)
def test_dynamic_quantization(x: np.ndarray) -> None:
    content = one_node("DynamicQuantizeLinear", {"x": x}, ["y", "scale", "zero"], 11)
    result = run_here(content, {"x": x})
    same(result, run_there(content, {"x": x}))
    assert inferred(content) == [f"uint8[{','.join(map(str, x.shape))}]", "float[]", "uint8[]"]


@pytest.mark.parametrize("opset", [11, 17, 21])
def test_dynamic_quantization_as_a_function(opset: int) -> None:
    from sardonyx.graph import Graph, Model, Opsets
    from sardonyx.ops.build import Builder
    from sardonyx.ops.quantization import DynamicQuantizeLinear

    graph = Graph("g")
    x = graph.add_input("x")
    assert DynamicQuantizeLinear.function is not None
    for value in DynamicQuantizeLinear.function(Builder(graph, opset), x):
        graph.outputs.append(value)
    model = Model(graph, Opsets({"": opset}))
    for data in DYNAMIC:
        content = one_node("DynamicQuantizeLinear", {"x": data}, ["y", "scale", "zero"], 11)
        same(run_model(model, {"x": data}), run_here(content, {"x": data}))


@pytest.mark.parametrize("kind", [DataType.FLOAT4E2M1, DataType.FLOAT8E4M3FN, DataType.FLOAT8E5M2])
@pytest.mark.parametrize("zero", [None, 0.0, 1.0])
def test_floats_keep_the_sign_of_zero(kind: DataType, zero: float | None) -> None:
    x, offset = np.float32([-0.0, 0.0, -2.0]), None if zero is None else np.asarray(zero)
    given = None if offset is None else offset.astype(kind.numpy)
    result = run("QuantizeLinear", x, np.float32(1), given, output_dtype=int(kind))
    signs = np.signbit(result.astype(np.float32)).tolist()
    assert signs == ([False, False, True] if zero else [True, False, True])
