"""Conversions between element types."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper, parser

import sardonyx as sx
from sardonyx.dims import symbol
from sardonyx.dtypes import DataType
from sardonyx.errors import ConversionError, EvaluationError, InferenceError
from sardonyx.ops.cast import cast
from sardonyx.ops.catalog import standard
from sardonyx.ops.convert import convert_opset
from sardonyx.ops.fact import Fact
from tests.ops.one_node import inferred, load, one_node, run_converted, run_here, run_there, same
from tests.ops.test_elementwise import kinds, of_kind

ALL = kinds("Cast")
NUMERIC = [kind for kind in ALL if kind != DataType.STRING]
NARROW = {
    DataType.FLOAT8E4M3FN: ml_dtypes.float8_e4m3fn,
    DataType.FLOAT8E4M3FNUZ: ml_dtypes.float8_e4m3fnuz,
    DataType.FLOAT8E5M2: ml_dtypes.float8_e5m2,
    DataType.FLOAT8E5M2FNUZ: ml_dtypes.float8_e5m2fnuz,
}


@pytest.mark.parametrize("source", ALL)
@pytest.mark.parametrize("target", ALL)
def test_every_pair_of_types(source: DataType, target: DataType) -> None:
    x = of_kind(np.array([[1.0, 1.0], [0.0, 1.0]]), source)
    content = one_node("Cast", {"x": x}, ["y"], 28, to=int(target))
    (result,) = run_here(content, {"x": x})
    assert result.dtype == target.numpy
    assert inferred(content) == [f"{target.text}[2,2]"]
    no_zero = DataType.FLOAT8E8M0 in (source, target)
    numbers = result.astype(np.float32 if target != DataType.STRING else float)
    assert numbers[0].tolist() == [1, 1]
    assert numbers[1, 1] == 1
    assert no_zero or numbers[1, 0] == 0


@pytest.mark.parametrize("source", NUMERIC)
def test_scalars_and_nothing(source: DataType) -> None:
    for target in ALL:
        for shape in ((), (0, 2)):
            x = of_kind(np.ones(shape), source)
            result = cast(x, target)
            assert (result.shape, result.dtype) == (shape, target.numpy)


PAIRS = [
    "float32",
    "float64",
    "float16",
    "int8",
    "uint8",
    "int16",
    "int32",
    "int64",
    "uint16",
    "uint32",
]


@pytest.mark.parametrize("source", PAIRS)
@pytest.mark.parametrize("target", [*PAIRS, "uint64", "bool"])
def test_like_onnxruntime(source: str, target: str) -> None:
    x = np.array([0, 1, 3, 100, 127]).astype(source)
    if source.startswith("float"):
        x = np.append(x, x / np.array(7, source))
    elif target[0] in "iu":
        x = np.append(x, np.iinfo(source).max)
    content = one_node("Cast", {"x": x}, ["y"], 19, to=int(DataType[_kind(target)]))
    same(run_here(content, {"x": x}), run_there(content, {"x": x}), rtol=0, atol=0)


def _kind(dtype: str) -> str:
    return {"float32": "FLOAT", "float64": "DOUBLE"}.get(dtype, dtype.upper())


def test_integers_lose_their_higher_bits() -> None:
    x = np.int16([200, -9, 8, 7, -1])
    assert cast(x, DataType.INT8).tolist() == [-56, -9, 8, 7, -1]
    assert cast(x, DataType.INT4).astype(int).tolist() == [-8, 7, -8, 7, -1]
    assert cast(x, DataType.UINT4).astype(int).tolist() == [8, 7, 8, 7, 15]
    assert cast(x, DataType.INT2).astype(int).tolist() == [0, -1, 0, -1, -1]
    assert cast(x, DataType.UINT2).astype(int).tolist() == [0, 3, 0, 3, 3]


def test_floats_to_whole_numbers_and_truth_values() -> None:
    x = np.float32([-1.9, -0.5, 0.99, 1.5])
    assert cast(x, DataType.INT64).tolist() == [-1, 0, 0, 1]
    assert cast(x, DataType.INT4).astype(int).tolist() == [-1, 0, 0, 1]
    assert cast(np.float32([0, -0.0, 0.1, np.nan, np.inf]), DataType.BOOL).tolist() == [
        False, False, True, True, True,
    ]  # fmt: skip


@pytest.mark.parametrize("kind", NARROW)
def test_float8_saturates(kind: DataType) -> None:
    largest = float(ml_dtypes.finfo(NARROW[kind]).max)
    x = np.float32([0, -0.0, np.nan, np.inf, -np.inf, 1e30, -1e30, largest * 1.01, 0.3])
    kept = cast(x, kind).astype(np.float32)
    np.testing.assert_array_equal(
        kept[3:8], np.float32([largest, -largest, largest, -largest, largest])
    )
    assert np.isnan(kept[2]) and kept[8] == np.float32(0.3).astype(NARROW[kind]).astype(np.float32)
    assert bool(np.signbit(kept[1])) is not kind.name.endswith("UZ")
    free = cast(x, kind, saturate=False).astype(np.float32)
    if kind == DataType.FLOAT8E5M2:
        assert free[3:7].tolist() == [np.inf, -np.inf, np.inf, -np.inf]
    else:
        assert np.isnan(free[3:7]).all()


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("up", [1, 2, 2, 4, 4]), ("down", [1, 1, 1, 2, 2]), ("nearest", [1, 1, 2, 2, 4])],
)
def test_powers_of_two(mode: str, expected: list[float]) -> None:
    x = np.float32([1, 1.25, 1.5, 2.5, 3.5])
    assert cast(x, DataType.FLOAT8E8M0, round_mode=mode).astype(np.float32).tolist() == expected


def test_powers_of_two_at_their_ends() -> None:
    x = np.float64([0, np.nan, np.inf, 2.0**200, 2.0**-200, 2.0**-127, 2.0**127, 1.5 * 2.0**127])
    kept = cast(x, DataType.FLOAT8E8M0).astype(np.float64)
    np.testing.assert_array_equal(
        kept, [2.0**-127, np.nan, 2.0**127, 2.0**127, 2.0**-127, 2.0**-127, 2.0**127, 2.0**127]
    )
    free = cast(x, DataType.FLOAT8E8M0, saturate=False, round_mode="nearest").astype(np.float64)
    nan = np.nan
    np.testing.assert_array_equal(free, [nan, nan, nan, nan, nan, 2.0**-127, 2.0**127, nan])
    with pytest.raises(EvaluationError, match="none of up, down, nearest"):
        cast(x, DataType.FLOAT8E8M0, round_mode="sideways")


def test_doubles_are_rounded_once() -> None:
    x = np.float64(
        [1 + 2**-8 + 2**-30, 1 + 2**-8 - 2**-30, -(1 + 2**-8 + 2**-30), np.inf, np.nan, 1e300]
    )
    with np.errstate(over="ignore"):
        result = cast(x, DataType.BFLOAT16).astype(np.float64)
    up = 1 + 2**-7
    np.testing.assert_array_equal(result, [up, 1, -up, np.inf, np.nan, np.inf])


@pytest.mark.parametrize("kind", [DataType.FLOAT4E2M1, DataType.FLOAT6E2M3, DataType.FLOAT6E3M2])
def test_tiny_floats_stay_within_their_range(kind: DataType) -> None:
    largest = float(ml_dtypes.finfo(kind.numpy).max)
    x = np.float32([1e9, -1e9, np.inf, 0.5, largest])
    assert cast(x, kind).astype(np.float32).tolist() == [largest, -largest, largest, 0.5, largest]


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (np.float32([1, 0.1, 3.14159274]), ["1", "0.1", "3.1415927"]),
        (np.float32([np.nan, np.inf, -np.inf]), ["NaN", "INF", "-INF"]),
        (np.float64([np.pi, 1e-300]), ["3.141592653589793", "1e-300"]),
        (np.int64([-5, 2**62]), ["-5", str(2**62)]),
        (np.uint64([2**64 - 1]), [str(2**64 - 1)]),
        (np.array([True, False]), ["1", "0"]),
    ],
)  # fmt: skip
def test_to_text(x: Any, expected: list[str]) -> None:
    result = cast(x, DataType.STRING)
    assert (result.dtype, result.tolist()) == (np.dtype(object), expected)


def test_from_text() -> None:
    x = np.array([["3.14", "1e-5", "1E8"], ["+INF", "-inf", "NaN"]], object)
    result = cast(x, DataType.FLOAT)
    np.testing.assert_array_equal(
        result, np.float32([[3.14, 1e-5, 1e8], [np.inf, -np.inf, np.nan]])
    )
    whole = np.array(["-7", " 12 ", "100.5", "300", str(2**63 - 1)], object)
    assert cast(whole, DataType.INT64).tolist() == [-7, 12, 100, 300, 2**63 - 1]
    assert cast(whole[3:4], DataType.INT8).tolist() == [44]
    assert cast(np.array([b"5"], object), DataType.UINT8).tolist() == [5]
    for target in (DataType.FLOAT, DataType.INT32):
        with pytest.raises(EvaluationError, match="not a number"):
            cast(np.array(["Hello"], object), target)


def test_text_like_onnxruntime() -> None:
    x = np.array(["3.14", "-2", "1e3", "INF"], object)
    content = one_node("Cast", {"x": x}, ["y"], 19, to=int(DataType.FLOAT))
    same(run_here(content, {"x": x}), run_there(content, {"x": x}))


def test_first_opset_named_the_type() -> None:
    x = np.float32([1.5, -2.5])
    (result,) = run_here(one_node("Cast", {"x": x}, ["y"], 1, to="INT32"), {"x": x})
    assert (result.dtype, result.tolist()) == (np.int32, [1, -2])
    content = one_node("Cast", {"x": x}, ["y"], 13, to=int(DataType.INT32))
    lowered = convert_opset(load(content), 5)
    assert lowered.graph is not None
    assert [node.attribute("to") for node in lowered.graph.nodes] == ["INT32"]
    with pytest.raises(ConversionError, match="not an element type"):
        run_here(one_node("Cast", {"x": x}, ["y"], 1, to="NUMBER"), {"x": x})


@pytest.mark.parametrize(
    ("target", "opset"),
    [
        (DataType.FLOAT8E5M2, 18),
        (DataType.INT4, 20),
        (DataType.FLOAT4E2M1, 22),
        (DataType.INT2, 24),
    ],
)
def test_types_that_came_later_block(target: DataType, opset: int) -> None:
    x = np.float32([1])
    content = one_node("Cast", {"x": x}, ["y"], 28, to=int(target))
    with pytest.raises(ConversionError, match=f"{target.text}.*not allowed"):
        convert_opset(load(content), opset)


def test_downgrade_drops_defaults() -> None:
    x = np.float32([1.5])
    content = one_node(
        "Cast", {"x": x}, ["y"], 28, to=int(DataType.INT32), saturate=1, round_mode="up"
    )
    same(run_converted(content, {"x": x}, 9), run_here(content, {"x": x}))


@pytest.mark.parametrize("kind", [DataType.FLOAT16, DataType.BOOL, DataType.INT64, DataType.STRING])
def test_cast_like(kind: DataType) -> None:
    inputs = {"x": np.float32([0, 1, 2]), "like": of_kind(np.zeros((2,)), kind)}
    content = one_node("CastLike", inputs, ["y"], 15)
    (result,) = run_here(content, inputs)
    assert result.dtype == kind.numpy
    assert inferred(content) == [f"{kind.text}[3]"]
    same(run_converted(content, inputs, 14), [result])


def test_cast_like_an_unknown_type() -> None:
    model = load(one_node("CastLike", {"x": np.float32([1]), "like": np.float32([1])}, ["y"], 15))
    assert model.graph is not None
    model.graph.inputs[1].type = None
    with pytest.raises(ConversionError, match="element type of 'like' is not known"):
        convert_opset(model, 14)


@pytest.mark.parametrize(
    ("x", "target", "expected"),
    [
        (np.float32([1, -0.0]), DataType.INT32, [0x3F800000, -(2**31)]),
        (np.uint16([0x3C00, 0x7C00]), DataType.FLOAT16, [1, np.inf]),
        (np.uint16([0x3F80]), DataType.BFLOAT16, [1]),
        (np.float64([1]), DataType.UINT64, [0x3FF0000000000000]),
        (np.complex64([1 + 2j]), DataType.DOUBLE, [np.complex64(1 + 2j).view(np.float64)]),
        (np.array([-1, -8, 7]).astype(ml_dtypes.int4), DataType.UINT4, [15, 8, 7]),
        (np.array([15, 8]).astype(ml_dtypes.uint4), DataType.INT4, [-1, -8]),
        (np.array([15, 2]).astype(ml_dtypes.uint4), DataType.FLOAT4E2M1, [-6, 1]),
        (np.array([-1.0]).astype(ml_dtypes.float4_e2m1fn), DataType.INT4, [-6]),
        (np.array([3, 1]).astype(ml_dtypes.uint2), DataType.INT2, [-1, 1]),
        (np.uint8([127, 128]), DataType.FLOAT8E8M0, [1, 2]),
        (np.array([True, False]), DataType.UINT8, [1, 0]),
        (np.int8([1, 0]), DataType.BOOL, [True, False]),
    ],
)  # fmt: skip
def test_bit_cast(x: Any, target: DataType, expected: list[Any]) -> None:
    content = one_node("BitCast", {"x": x}, ["y"], 26, to=int(target))
    (result,) = run_here(content, {"x": x})
    assert result.dtype == target.numpy
    assert [item.item() if hasattr(item, "item") else float(item) for item in result] == expected
    assert inferred(content) == [f"{target.text}[{len(x)}]"]
    back = one_node(
        "BitCast", {"x": result}, ["y"], 26, to=helper.np_dtype_to_tensor_dtype(x.dtype)
    )
    np.testing.assert_array_equal(run_here(back, {"x": result})[0], x)


@pytest.mark.parametrize("source", kinds("BitCast"))
def test_bit_cast_of_every_type_and_shape(source: DataType) -> None:
    for target in (kind for kind in kinds("BitCast") if kind.bits == source.bits):
        for shape in ((), (0, 2), (2, 3)):
            x = np.ones(shape, np.float32).astype(source.numpy)
            content = one_node("BitCast", {"x": x}, ["y"], 26, to=int(target))
            (result,) = run_here(content, {"x": x})
            assert (result.shape, result.dtype) == (shape, target.numpy)


@pytest.mark.parametrize(
    "pair", [("int8", "uint8"), ("uint64", "int64"), ("bool", "uint8"), ("int16", "int16")]
)
def test_bit_cast_between_integers_before_opset_26(pair: tuple[str, str]) -> None:
    x = np.array([0, 1, -1, 100]).astype(pair[0])
    content = one_node("BitCast", {"x": x}, ["y"], 26, to=int(DataType[pair[1].upper()]))
    same(run_converted(content, {"x": x}, 17), run_here(content, {"x": x}))
    content = one_node("BitCast", {"x": np.float32([1])}, ["y"], 26, to=int(DataType.INT32))
    with pytest.raises(ConversionError, match="bits of floats"):
        convert_opset(load(content), 25)


def test_bit_cast_between_widths() -> None:
    content = one_node("BitCast", {"x": np.float32([1])}, ["y"], 26, to=TensorProto.INT64)
    with pytest.raises(InferenceError, match="float has 32 bits and int64 has 64"):
        inferred(content)
    with pytest.raises(EvaluationError, match="float has 32 bits and int64 has 64"):
        run_here(content, {"x": np.float32([1])})


def test_sizes_are_followed() -> None:
    n = symbol("n")
    fact = Fact(None, DataType.INT64, (3,), np.array([n, 3, None], object))
    infer = standard()["", "Cast"].infer
    assert infer is not None
    for kind in (DataType.FLOAT, DataType.INT32, DataType.INT64):
        found = infer(fact, to=int(kind), saturate=1, round_mode="up")
        assert (found.dtype, list(found.value)) == (kind, [n, 3, None])
    small = infer(fact, to=int(DataType.INT8), saturate=1, round_mode="up").value
    assert list(small) == [None, 3, None]
    plus = fact.with_value(np.array([n + 1, n, 0], object))
    truth = infer(plus, to=int(DataType.BOOL), saturate=1, round_mode="up").value
    assert list(truth) == [True, None, 0]
    like = standard()["", "CastLike"].infer(
        fact, Fact(None, DataType.FLOAT), saturate=1, round_mode="up"
    )
    assert list(like.value) == [n, 3, None]


def test_a_size_through_float_and_back() -> None:
    model = parser.parse_model(
        '<ir_version: 10, opset_import: ["": 21]> g (float[n,8] x, float[1] t) => (y)'
        "<float[2] two = {2.0, 2.0}> { s = Shape(x) f = Cast<to = 1>(s) d = Mul(f, two)"
        " r = Floor(d) i = Cast<to = 7>(r) y = Expand(t, i) }"
    )
    assert inferred(model.SerializeToString()) == ["float[2*n,16]"]


@pytest.mark.parametrize("like", [False, True])
@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16"])
@pytest.mark.parametrize("to", ["FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ"])
def test_a_folded_constant_overflows_as_any_number_does(
    to: str, kind: str, saturate: int, like: bool
) -> None:
    number = int(DataType[to])
    cast = f"y = Cast <to = {number}, saturate = {saturate}> (c)"
    if like:
        cast = f"l = Cast <to = {number}> (x) y = CastLike <saturate = {saturate}> (c, l)"
    model = sx.load_text(f"""<ir_version: 10, opset_import: ["": 23]>
        g (float[1] x) => ({to.lower()}[4] y) {{
            f = Constant <value_floats = [1.0, 60000.0, -300.0, inf]> ()
            c = Cast <to = {int(DataType[kind])}> (f) {cast} }}""")
    feeds = {"x": np.ones(1, np.float32)}
    session = sx.InferenceSession(sx.to_bytes(model), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, feeds)
    (expected,) = sx.evaluate(model, feeds)
    np.testing.assert_array_equal(found.astype(np.float32), expected.astype(np.float32))


@pytest.mark.parametrize("mode", ["up", "down", "nearest"])
def test_a_folded_power_of_two_is_rounded_as_told(mode: str) -> None:
    model = sx.load_text(f"""<ir_version: 10, opset_import: ["": 24]>
        g (float[1] x) => (float[3] y) {{
            c = Constant <value_floats = [1.2, 1.7, 3.0]> ()
            p = Cast <to = {int(DataType.FLOAT8E8M0)}, round_mode = "{mode}"> (c)
            y = Cast <to = 1> (p) }}""")
    feeds = {"x": np.ones(1, np.float32)}
    session = sx.InferenceSession(sx.to_bytes(model), providers=["CPUExecutionProvider"])
    wanted = {"up": [2, 2, 4], "down": [1, 1, 2], "nearest": [1, 2, 4]}[mode]
    assert session.run(None, feeds)[0].tolist() == wanted
