"""Names that onnx had in older releases: conversions are judged by ml_dtypes."""

import math
import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from sardonyx.compat.onnx import SequenceProto, TensorProto, helper, mapping, numpy_helper, subbyte

NUMBERS = np.concatenate(
    [
        np.random.RandomState(0).randn(500) * np.exp(np.random.RandomState(1).randn(500) * 5),
        [0.0, -0.0, 1.0, 448.0, 464.0, 465.0, 480.0, 240.0, 248.0, 57344.0, 61440.0, 65536.0],
        2.0 ** np.arange(-20, 17),
        1.5 * 2.0 ** np.arange(-20, 17),
        [3e38, -3e38, 1e-44],
    ]
).astype(np.float32)

FLOAT8: list[tuple[Any, dict[str, bool], Any, int]] = [
    (helper.float32_to_float8e4m3, {}, ml_dtypes.float8_e4m3fn, 0x7F),
    (helper.float32_to_float8e4m3, {"uz": True}, ml_dtypes.float8_e4m3fnuz, 0x80),
    (helper.float32_to_float8e5m2, {}, ml_dtypes.float8_e5m2, 0x7F),
    (helper.float32_to_float8e5m2, {"fn": True, "uz": True}, ml_dtypes.float8_e5m2fnuz, 0x80),
]


@pytest.mark.parametrize(("convert", "options", "dtype", "nan"), FLOAT8)
def test_float8_patterns(convert: Any, options: dict[str, bool], dtype: Any, nan: int) -> None:
    largest = float(ml_dtypes.finfo(dtype).max)
    for number in NUMBERS:
        expected = np.clip(number, -largest, largest).astype(dtype)
        assert convert(float(number), **options) == int(expected.view(np.uint8))
        loose = number.astype(dtype)
        code = convert(float(number), saturate=False, **options)
        assert np.array(code, np.uint8).view(dtype).tobytes() == loose.tobytes() or (
            np.isnan(loose) and code & 0x7F in (nan, nan & 0x7F)
        )


@pytest.mark.parametrize(("convert", "options", "dtype", "nan"), FLOAT8)
def test_float8_special_values(
    convert: Any, options: dict[str, bool], dtype: Any, nan: int
) -> None:
    assert convert(math.nan, **options) == nan
    assert convert(-math.nan, **options) == nan | 0x80
    largest = int(np.array(ml_dtypes.finfo(dtype).max).view(np.uint8))
    assert convert(math.inf, **options) == largest
    assert convert(-math.inf, **options) == largest | 0x80
    beyond = convert(math.inf, saturate=False, **options)
    assert not np.isfinite(np.array(beyond, np.uint8).view(dtype))
    assert convert(6.0, 3.0, **options) == convert(2.0, **options)


@pytest.mark.parametrize(
    ("convert", "options"),
    [
        (helper.float32_to_float8e4m3, {"fn": False}),
        (helper.float32_to_float8e5m2, {"fn": True}),
        (helper.float32_to_float8e5m2, {"uz": True}),
        (numpy_helper.float8e4m3_to_float32, {"fn": False}),
        (numpy_helper.float8e5m2_to_float32, {"uz": True}),
    ],
)
def test_float8_kinds_that_do_not_exist(convert: Any, options: dict[str, bool]) -> None:
    with pytest.raises(NotImplementedError):
        convert(1, **options)


@pytest.mark.parametrize(
    ("convert", "options", "dtype"),
    [
        (numpy_helper.float8e4m3_to_float32, {}, ml_dtypes.float8_e4m3fn),
        (numpy_helper.float8e4m3_to_float32, {"uz": True}, ml_dtypes.float8_e4m3fnuz),
        (numpy_helper.float8e5m2_to_float32, {}, ml_dtypes.float8_e5m2),
        (numpy_helper.float8e5m2_to_float32, {"fn": True, "uz": True}, ml_dtypes.float8_e5m2fnuz),
    ],
)
def test_float8_values(convert: Any, options: dict[str, bool], dtype: Any) -> None:
    codes = np.arange(256, dtype=np.int32)
    expected = codes.astype(np.uint8).view(dtype).astype(np.float32)
    np.testing.assert_array_equal(convert(codes, **options), expected)
    np.testing.assert_array_equal(convert(codes, [16, 16], **options), expected.reshape(16, 16))
    assert float(convert(np.int32(0x38), **options)) == float(expected[0x38])
    with pytest.raises(ValueError):
        convert(np.array([256]), **options)


def test_bfloat16_patterns() -> None:
    for number in NUMBERS:
        expected = number.astype(ml_dtypes.bfloat16).view(np.uint16)
        assert helper.float32_to_bfloat16(float(number)) == int(expected)
        cut = int(np.float32(number).view(np.uint32)) >> 16
        assert helper.float32_to_bfloat16(float(number), truncate=True) == cut
    assert helper.float32_to_bfloat16(math.nan) == 0x7FC0
    assert helper.float32_to_bfloat16(-math.inf) == 0xFF80


def test_bfloat16_values() -> None:
    codes = np.arange(65536, dtype=np.int32)
    expected = codes.astype(np.uint16).view(ml_dtypes.bfloat16).astype(np.float32)
    np.testing.assert_array_equal(numpy_helper.bfloat16_to_float32(codes), expected)
    assert numpy_helper.bfloat16_to_float32(codes[:6], [2, 3]).shape == (2, 3)
    assert float(numpy_helper.bfloat16_to_float32(np.int32(0x3F80))) == 1.0


@pytest.mark.parametrize(("signed", "dtype"), [(True, ml_dtypes.int4), (False, ml_dtypes.uint4)])
@pytest.mark.parametrize("count", [0, 1, 2, 7, 100])
def test_int4_round_trip(signed: bool, dtype: Any, count: int) -> None:
    limits = ml_dtypes.iinfo(dtype)
    numbers = NUMBERS[:count]
    expected = np.rint(np.clip(numbers, limits.min, limits.max))
    packed = helper.pack_float32_to_4bit(numbers, signed)
    assert packed.dtype == np.uint8
    assert packed.size == (count + 1) // 2
    np.testing.assert_array_equal(numpy_helper.unpack_int4(packed, [count], signed), expected)
    np.testing.assert_array_equal(
        packed, numpy_helper._pack_4bitx2(expected.astype(np.int8 if signed else np.uint8))
    )
    low, high = subbyte.unpack_single_4bitx2(packed, signed)
    np.testing.assert_array_equal(np.stack([low, high], 1).reshape(-1)[:count], expected)


def test_int4_of_lists_and_shapes() -> None:
    assert helper.pack_float32_to_4bit([[1, 2], [3, 4]], False).tolist() == [0x21, 0x43]
    packed = np.array([0x21, 0x43], np.uint8)
    assert numpy_helper.unpack_int4(packed, (2, 2), False).tolist() == [[1, 2], [3, 4]]
    assert numpy_helper.unpack_int4(packed, 3, False).tolist() == [1, 2, 3]
    for dims in ([5], [2], [-1]):
        with pytest.raises(ValueError):
            numpy_helper.unpack_int4(packed, dims, False)


@pytest.mark.parametrize("count", [0, 1, 2, 7, 100])
def test_float4_round_trip(count: int) -> None:
    numbers = NUMBERS[:count]
    expected = np.clip(numbers, -6, 6).astype(ml_dtypes.float4_e2m1fn).astype(np.float32)
    packed = helper.pack_float32_to_float4e2m1(numbers)
    np.testing.assert_array_equal(numpy_helper.unpack_float4e2m1(packed, [count]), expected)
    codes = subbyte.float32_to_float4e2m1_unpacked(numbers)
    np.testing.assert_array_equal(numpy_helper.unpacked_float4e2m1_to_float32(codes), expected)
    np.testing.assert_array_equal(subbyte.unpack_4bitx2(packed, [count]), codes)


def test_float4_special_values() -> None:
    codes = subbyte.float32_to_float4e2m1_unpacked(np.array([math.nan, math.inf, -math.inf, -0.0]))
    assert codes.tolist() == [7, 7, 15, 8]
    assert int(subbyte.float32x2_to_float4e2m1x2(1.0, -6.0)) == 0xF2
    assert int(subbyte.float32x2_to_4bitx2(1.0, -1.0, signed=True)) & 0xFF == 0xF1


def test_limits() -> None:
    limits = subbyte.INT4_MIN, subbyte.INT4_MAX, subbyte.UINT4_MIN, subbyte.UINT4_MAX
    assert limits == (-8, 7, 0, 15)


def test_complex_pairs() -> None:
    numbers = [1 + 2j, -3.5j, 4 + 0j]
    pairs = helper.split_complex_to_pairs(numbers)
    assert pairs == [1.0, 2.0, -0.0, -3.5, 4.0, 0.0]
    assert numpy_helper.combine_pairs_to_complex(pairs) == numbers


def test_mapping_of_types_numpy_has() -> None:
    for kind, dtype in mapping.TENSOR_TYPE_TO_NP_TYPE.items():
        current = helper.tensor_dtype_to_np_dtype(kind)
        if current.type.__module__ == "numpy":
            assert dtype == current
            assert mapping.NP_TYPE_TO_TENSOR_TYPE[dtype] == kind
        assert mapping.TENSOR_TYPE_MAP[kind].name == helper.tensor_dtype_to_string(kind)
    assert len(mapping.NP_TYPE_TO_TENSOR_TYPE) == 15


def test_mapping_of_types_numpy_lacks() -> None:
    expected = {
        TensorProto.BFLOAT16: (np.float32, TensorProto.UINT16),
        TensorProto.FLOAT8E4M3FN: (np.float32, TensorProto.UINT8),
        TensorProto.FLOAT4E2M1: (np.float32, TensorProto.UINT8),
        TensorProto.INT4: (np.int8, TensorProto.INT32),
        TensorProto.UINT4: (np.uint8, TensorProto.INT32),
    }
    for kind, (dtype, storage) in expected.items():
        assert mapping.TENSOR_TYPE_TO_NP_TYPE[kind] == np.dtype(dtype)
        assert mapping.TENSOR_TYPE_TO_STORAGE_TENSOR_TYPE[kind] == storage


def test_mapping_names_fields_that_exist() -> None:
    fields = set(TensorProto.DESCRIPTOR.fields_by_name)
    for kind, storage in mapping.TENSOR_TYPE_TO_STORAGE_TENSOR_TYPE.items():
        field = mapping.STORAGE_TENSOR_TYPE_TO_FIELD[storage]
        assert field == helper.tensor_dtype_to_field(kind)
        assert field in fields
    containers = set(SequenceProto.DESCRIPTOR.fields_by_name)
    assert set(mapping.STORAGE_ELEMENT_TYPE_TO_FIELD.values()) <= containers
    assert mapping.OPTIONAL_ELEMENT_TYPE_TO_FIELD[1] == "tensor_value"


def test_version_module() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from sardonyx.compat.onnx import __version__, version
    assert version.version == __version__ == "1.23.2"
    assert version.git_version == ""


def test_version_map_can_be_rebuilt() -> None:
    assert helper.create_op_set_id_version_map(helper.VERSION_TABLE) == helper.OP_SET_ID_VERSION_MAP
