"""Arrays, lists, dictionaries and optionals to and from messages, beside the real onnx."""

import math
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx as real
import pytest

from sardonyx.compat import onnx as ours
from sardonyx.dtypes import DataType
from tests.compat.differential import Call, assert_same

KINDS = [kind for kind in DataType if kind not in (DataType.UNDEFINED, DataType.STRING)]
NARROW = [kind for kind in KINDS if kind.bits < 8]


def codes(kind: DataType, count: int) -> np.ndarray:
    """An array of `count` elements with many different bit patterns."""
    size = kind.numpy.itemsize
    raw = (np.arange(count * size, dtype=np.uint32) * 37 % 256).astype(np.uint8)
    if kind == DataType.BOOL:
        raw &= 1
    if kind.bits < 8:
        raw &= (1 << kind.bits) - 1
    if kind.name in ("INT4", "INT2"):
        return raw.view(np.int8).astype(kind.numpy)
    return raw.view(kind.numpy)


def round_trip(array: Any, name: str | None = "t") -> Call:
    def call(onnx: Any, folder: Path) -> Any:
        tensor = onnx.numpy_helper.from_array(array, name)
        return tensor, onnx.numpy_helper.to_array(tensor)

    return call


def read(**fields: Any) -> Call:
    """The array of a tensor with the given fields."""
    return lambda onnx, folder: onnx.numpy_helper.to_array(onnx.TensorProto(**fields))


CASES: dict[str, Call] = {}
for _kind in KINDS:
    _many = codes(_kind, 24)
    CASES[f"{_kind.name} vector"] = round_trip(_many)
    CASES[f"{_kind.name} odd"] = round_trip(_many[:7])
    CASES[f"{_kind.name} matrix"] = round_trip(_many.reshape(2, 3, 4))
    CASES[f"{_kind.name} scalar"] = round_trip(_many[:1].reshape(()))
    CASES[f"{_kind.name} empty"] = round_trip(_many[:0].reshape(2, 0))
    CASES[f"{_kind.name} strided"] = round_trip(_many[::3])
    CASES[f"{_kind.name} transposed"] = round_trip(_many.reshape(4, 6).T)
    CASES[f"{_kind.name} reversed"] = round_trip(_many[::-1])
    CASES[f"{_kind.name} raw too short"] = read(data_type=int(_kind), dims=[100], raw_data=b"abc")
    CASES[f"{_kind.name} raw misaligned"] = read(data_type=int(_kind), dims=[1], raw_data=b"a" * 17)
    CASES[f"{_kind.name} field empty"] = read(data_type=int(_kind), dims=[2])
    CASES[f"{_kind.name} field wrong count"] = read(
        data_type=int(_kind), dims=[9], **{_kind.field: [1, 2, 3]}
    )
    CASES[f"{_kind.name} field"] = read(
        data_type=int(_kind),
        dims=[2],
        **{_kind.field: [3, 1, 2, 0][: 4 if _kind in (14, 15) else 2]},
    )
    if _kind.field == "int32_data":
        CASES[f"{_kind.name} field out of range"] = read(
            data_type=int(_kind), dims=[4], int32_data=[-1, 70000, 255, -(2**31)]
        )
for _kind in NARROW:
    CASES[f"{_kind.name} raw too long"] = read(data_type=int(_kind), dims=[3], raw_data=b"abcdef")
    CASES[f"{_kind.name} raw scalar"] = read(data_type=int(_kind), dims=[], raw_data=b"\xff")

CASES |= {
    "not finite": round_trip(np.array([math.nan, math.inf, -math.inf], np.float32)),
    "NumPy scalar": round_trip(np.float32(1.5)),
    "int4 scalar": round_trip(ml_dtypes.int4(3)),
    "without name": round_trip(np.zeros(2), None),
    "empty name": round_trip(np.zeros(2), ""),
    "name bytes": round_trip(np.zeros(2), b"n"),
    "name int": round_trip(np.zeros(2), 3),
    "text": round_trip(np.array(["a", "b\u00e9"])),
    "text matrix": round_trip(np.array([["a", "b"], ["c", "d"]])),
    "objects": round_trip(np.array(["a", b"b"], dtype=object)),
    "objects of bytes not UTF-8": round_trip(np.array([b"\xff"], dtype=object)),
    "objects with numbers": round_trip(np.array(["a", 1], dtype=object)),
    "objects with None": round_trip(np.array([None], dtype=object)),
    "objects empty": round_trip(np.array([], dtype=object)),
    "object scalar": round_trip(np.array("abc", dtype=object)),
    "bytes array": round_trip(np.array([b"a", b"b"])),
    "datetime": round_trip(np.array(["2020-01-01"], "datetime64[D]")),
    "long double": round_trip(np.zeros(2, np.longdouble)),
    "structured": round_trip(np.zeros(2, [("a", np.float32)])),
    "list": round_trip([1, 2]),
    "number": round_trip(3),
    "None": round_trip(None),
    "read-only": round_trip(np.broadcast_to(np.float32(1), (3, 2))),
    "Fortran order": round_trip(np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3))),
    "type undefined": read(dims=[1], raw_data=b"a"),
    "type unknown": read(data_type=99, dims=[1], raw_data=b"a"),
    "segment": lambda onnx, folder: onnx.numpy_helper.to_array(
        onnx.TensorProto(
            data_type=1,
            dims=[1],
            raw_data=b"abcd",
            segment=onnx.TensorProto.Segment(begin=0, end=1),
        )
    ),
    "strings": read(data_type=8, dims=[2], string_data=[b"a", b"\xc3\xa9"]),
    "strings not UTF-8": read(data_type=8, dims=[1], string_data=[b"\xff"]),
    "strings wrong count": read(data_type=8, dims=[3], string_data=[b"a"]),
    "strings empty": read(data_type=8, dims=[0]),
    "strings scalar": read(data_type=8, dims=[], string_data=[b"a"]),
    "strings in raw data": read(data_type=8, dims=[1], raw_data=b"a"),
    "unknown dimension": read(data_type=1, dims=[-1], raw_data=b"abcdefgh"),
    "two unknown dimensions": read(data_type=1, dims=[-1, -1], raw_data=b"abcdefgh"),
    "int4 unknown dimension": read(data_type=22, dims=[-1], raw_data=b"ab"),
    "int2 unknown dimension": read(data_type=26, dims=[-1], raw_data=b"ab"),
    "huge dimension": read(data_type=1, dims=[2**62], raw_data=b"abcd"),
    "huge dimensions of nothing": read(data_type=1, dims=[2**62, 0], raw_data=b""),
    "raw before field": read(data_type=1, dims=[1], raw_data=b"abcd", float_data=[5.0]),
    "empty raw before field": read(data_type=1, dims=[1], raw_data=b"", float_data=[5.0]),
    "not a tensor": lambda onnx, folder: onnx.numpy_helper.to_array(onnx.ModelProto()),
    "array as tensor": lambda onnx, folder: onnx.numpy_helper.to_array(np.zeros(2)),
    "external without file": read(data_type=1, dims=[1], data_location=1),
    "external": lambda onnx, folder: read_external(onnx, folder, "w.bin", b"abcdefgh", offset=4),
    "external int4": lambda onnx, folder: read_external(
        onnx, folder, "w.bin", b"ab", kind=22, dims=[3]
    ),
    "external too short": lambda onnx, folder: read_external(onnx, folder, "w.bin", b"ab"),
    "external outside": lambda onnx, folder: read_external(onnx, folder, "../w.bin", b"abcd"),
}


def read_external(
    onnx: Any,
    folder: Path,
    location: str,
    content: bytes,
    kind: int = 1,
    dims: Any = (1,),
    **entries: Any,
) -> Any:
    (folder / location).write_bytes(content)
    tensor = onnx.TensorProto(data_type=kind, dims=dims, raw_data=b"")
    onnx.external_data_helper.set_external_data(tensor, location, **entries)
    tensor.ClearField("raw_data")
    before = tensor.SerializeToString()
    array = onnx.numpy_helper.to_array(tensor, str(folder))
    return array, tensor.SerializeToString() == before


@pytest.mark.parametrize("name", CASES)
def test_arrays_same_as_onnx(name: str, tmp_path: Path) -> None:
    assert_same(CASES[name], tmp_path)


A, B = np.array([1.5, 2.5], np.float32), np.array([[1, 2]], np.int64)


def both_ways(kind: str, value: Any, *arguments: Any) -> Call:
    """Convert with `from_<kind>`, and back."""

    def call(onnx: Any, folder: Path) -> Any:
        message = getattr(onnx.numpy_helper, f"from_{kind}")(value, *arguments)
        return message, getattr(onnx.numpy_helper, f"to_{kind}")(message)

    return call


def back(kind: str, message: str, **fields: Any) -> Call:
    return lambda onnx, folder: getattr(onnx.numpy_helper, f"to_{kind}")(
        getattr(onnx, message)(**fields)
    )


CONTAINERS: dict[str, Call] = {
    "list of arrays": both_ways("list", [A, A + 1]),
    "list of mixed arrays": both_ways("list", [A, B]),
    "list of numbers": both_ways("list", [1, 2]),
    "list of floats": both_ways("list", [1.5]),
    "list of text": both_ways("list", ["a", "b"]),
    "list of numbers and text": both_ways("list", [1, "a"]),
    "list of int and bool": both_ways("list", [1, True]),
    "list of bool and int": both_ways("list", [True, 1]),
    "list of lists": both_ways("list", [[A], [A, B], []]),
    "list of maps": both_ways("list", [{1: A}, {2: A}]),
    "list of None": both_ways("list", [None]),
    "list empty": both_ways("list", []),
    "list named": both_ways("list", [A], "s"),
    "list empty of maps": both_ways("list", [], "s", 4),
    "list empty undefined": both_ways("list", [], "s", 0),
    "list empty sparse": both_ways("list", [], "s", 2),
    "list empty of optionals": both_ways("list", [], "s", 5),
    "list of unknown kind": both_ways("list", [], "s", 9),
    "list with wrong kind": both_ways("list", [A], "s", 4),
    "list with kind sequence": both_ways("list", [A], "s", 3),
    "list of tuples": both_ways("list", [(1, 2), (3, 4)]),
    "list is a tuple": both_ways("list", (A, A)),
    "list is None": both_ways("list", None),
    "list is an array": both_ways("list", B),
    "to_list undefined": back("list", "SequenceProto"),
    "to_list of optionals": back("list", "SequenceProto", elem_type=5),
    "to_list of None": lambda onnx, folder: onnx.numpy_helper.to_list(None),
    "map of int keys": both_ways("dict", {1: A, -2: A}),
    "map of numbers": both_ways("dict", {1: 5, 2: 6}),
    "map of floats": both_ways("dict", {1: 5.5}),
    "map of int and float": both_ways("dict", {1: 5, 2: 5.5}),
    "map of NumPy keys": both_ways("dict", {np.int8(1): A, np.int8(2): A}),
    "map of uint64 keys": both_ways("dict", {np.uint64(2**63): A}),
    "map of mixed keys": both_ways("dict", {1: A, np.int8(2): A}),
    "map of float keys": both_ways("dict", {1.5: A}),
    "map of bool keys": both_ways("dict", {True: A}),
    "map of mixed values": both_ways("dict", {1: A, 2: B}),
    "map named": both_ways("dict", {1: A}, "m"),
    "map empty": both_ways("dict", {}),
    "map is None": both_ways("dict", None),
    "map is a list": both_ways("dict", [1]),
    "map of None": both_ways("dict", {1: None}),
    "to_dict of text keys": lambda onnx, folder: onnx.numpy_helper.to_dict(
        onnx.helper.make_map("m", 8, [b"a"], onnx.numpy_helper.from_list([A]))
    ),
    "to_dict of unequal lengths": lambda onnx, folder: onnx.numpy_helper.to_dict(
        onnx.helper.make_map("m", 7, [1, 2], onnx.numpy_helper.from_list([A]))
    ),
    "to_dict empty": back("dict", "MapProto"),
    "optional array": both_ways("optional", A, "o"),
    "optional list": both_ways("optional", [A, A]),
    "optional map": both_ways("optional", {1: A}),
    "optional None": both_ways("optional", None),
    "optional None of a kind": both_ways("optional", None, "o", 3),
    "optional None of a bad kind": both_ways("optional", None, "o", 9),
    "optional of a bad kind": both_ways("optional", A, "o", 9),
    "optional of kind optional": both_ways("optional", A, "o", 5),
    "optional of kind undefined": both_ways("optional", A, "o", 0),
    "optional of wrong kind": both_ways("optional", A, "o", 4),
    "optional number": both_ways("optional", 3),
    "optional text": both_ways("optional", "a"),
    "optional scalar": both_ways("optional", np.float32(3)),
    "to_optional nested": lambda onnx, folder: onnx.numpy_helper.to_optional(
        onnx.helper.make_optional("o", 5, onnx.numpy_helper.from_optional(A))
    ),
    "to_optional tensor without value": back("optional", "OptionalProto", elem_type=1),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_containers_same_as_onnx(name: str, tmp_path: Path) -> None:
    assert_same(CONTAINERS[name], tmp_path)


FLOATS = np.array(
    [
        *(0.0, -0.0, 1.0, 1.5, 1.25, 1.75, 3.0, -3.0, 1e-45, 1e-38, 2.0**-127, 3e38, 1.7e38),
        *(math.nan, math.inf, -math.inf, 2.0**-126, 2.0**127, 1.5 * 2.0**127, 1.25 * 2.0**127),
    ],
    np.float32,
)

NUMBERS: dict[str, Call] = {
    f"float8e8m0 {mode} {saturate}": lambda onnx, folder, mode=mode, saturate=saturate: (
        onnx.numpy_helper.to_float8e8m0(FLOATS, saturate, mode)
    )
    for mode in ("up", "down", "nearest", "sideways", None)
    for saturate in (True, False)
}
NUMBERS |= {
    "float8e8m0 default": lambda onnx, folder: onnx.numpy_helper.to_float8e8m0(FLOATS),
    "float8e8m0 of doubles": lambda onnx, folder: onnx.numpy_helper.to_float8e8m0([0.1, 1e300]),
    "float8e8m0 matrix": lambda onnx, folder: onnx.numpy_helper.to_float8e8m0(
        FLOATS.reshape(4, 5).T
    ),
    "float8e8m0 empty": lambda onnx, folder: onnx.numpy_helper.to_float8e8m0(FLOATS[:0]),
    "float8e8m0 of text": lambda onnx, folder: onnx.numpy_helper.to_float8e8m0(["a"]),
    "float8e8m0 every exponent": lambda onnx, folder: onnx.numpy_helper.to_float8e8m0(
        np.arange(0, 2**32, 2**20 + 1, dtype=np.int64).astype(np.uint32).view(np.float32),
        True,
        "nearest",
    ),
}
for _text in ("<i2", ">i2", "<f4", ">f4", "|i1", ">c8", "S3", "bool", "<U2", ">U2"):
    NUMBERS[f"bytes of {_text}"] = lambda onnx, folder, text=_text: (
        onnx.numpy_helper.tobytes_little_endian(np.array([1, 0, 3]).astype(text))
    )
for _kind in KINDS:
    NUMBERS[f"saturate to {_kind.name}"] = lambda onnx, folder, kind=_kind: (
        onnx.numpy_helper.saturate_cast(FLOATS[np.isfinite(FLOATS)], kind.numpy)
    )
    NUMBERS[f"saturate halves to {_kind.name}"] = lambda onnx, folder, kind=_kind: (
        onnx.numpy_helper.saturate_cast(np.array([0.5, 1.5, -0.5, 300.5, -1e9]), kind.numpy)
    )
    NUMBERS[f"random {_kind.name}"] = lambda onnx, folder, kind=_kind: (
        onnx.numpy_helper.create_random_int((2, 3), kind.numpy)
    )
NUMBERS |= {
    "saturate to a class": lambda onnx, folder: onnx.numpy_helper.saturate_cast(
        FLOATS[:8], np.uint8
    ),
    "saturate to text": lambda onnx, folder: onnx.numpy_helper.saturate_cast(
        FLOATS, np.dtype("U3")
    ),
    "saturate a number": lambda onnx, folder: onnx.numpy_helper.saturate_cast(
        300.7, np.dtype(np.int8)
    ),
    "random by class": lambda onnx, folder: onnx.numpy_helper.create_random_int((3,), np.int16, 5),
    "random by seed": lambda onnx, folder: onnx.numpy_helper.create_random_int(
        (3,), np.uint8, seed=7
    ),
    "random of bad seed": lambda onnx, folder: onnx.numpy_helper.create_random_int(
        (3,), np.uint8, -1
    ),
    "random of bad shape": lambda onnx, folder: onnx.numpy_helper.create_random_int(
        (-3,), np.uint8
    ),
    "random of nothing": lambda onnx, folder: onnx.numpy_helper.create_random_int((0,), np.uint8),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_same_as_onnx(name: str, tmp_path: Path) -> None:
    assert_same(NUMBERS[name], tmp_path)


def test_random_numbers_leave_the_global_generator_alone() -> None:
    """onnx seeds NumPy's global generator."""
    np.random.seed(3)
    expected = np.random.rand()
    np.random.seed(3)
    ours.numpy_helper.create_random_int((3,), np.dtype(np.uint8))
    assert np.random.rand() == expected


def test_scalars_become_float8e8m0() -> None:
    """onnx fails when it is to saturate a scalar."""
    assert float(ours.numpy_helper.to_float8e8m0(np.float32(3.0))) == 4.0
    with pytest.raises(TypeError):
        real.numpy_helper.to_float8e8m0(np.float32(3.0))


def test_big_endian_arrays_are_stored() -> None:
    """onnx finds no element type for them."""
    array = np.array([1.5, 2.5], ">f4")
    tensor = ours.numpy_helper.from_array(array)
    assert tensor == ours.numpy_helper.from_array(array.astype("<f4"))
    with pytest.raises(ValueError):
        real.numpy_helper.from_array(array)


@pytest.mark.parametrize("mapping", [{"a": A, "hello": A}, {b"a": A}, {"I": A}], ids=repr)
def test_maps_have_text_keys(mapping: dict[Any, Any]) -> None:
    """onnx takes the keys for names of NumPy types."""
    message = ours.numpy_helper.from_dict(mapping)
    keys = [key.encode() if isinstance(key, str) else key for key in mapping]
    assert message.key_type == ours.TensorProto.STRING
    assert list(ours.numpy_helper.to_dict(message)) == keys
    try:
        theirs = real.numpy_helper.from_dict(mapping).key_type
    except (TypeError, ValueError):
        theirs = None
    assert theirs != real.TensorProto.STRING


def test_maps_hold_lists_maps_and_text() -> None:
    """onnx takes such values for descriptions of NumPy types."""
    for mapping in ({1: [A]}, {1: {2: A}}, {1: "hello"}):
        message = ours.numpy_helper.from_dict(mapping)
        assert list(ours.numpy_helper.to_dict(message)) == [1]
        with pytest.raises((TypeError, ValueError)):
            real.numpy_helper.from_dict(mapping)


def test_float6_needs_known_dimensions() -> None:
    """onnx returns an empty array."""
    fields = {"data_type": 27, "dims": [-1], "raw_data": b"abc"}
    with pytest.raises(ValueError):
        ours.numpy_helper.to_array(ours.TensorProto(**fields))
    assert real.numpy_helper.to_array(real.TensorProto(**fields)).size == 0


def test_strings_keep_trailing_zeros() -> None:
    """onnx loses them on the way through NumPy's fixed-width text."""
    fields = {"data_type": 8, "dims": [1], "string_data": [b"a\0"]}
    assert ours.numpy_helper.to_array(ours.TensorProto(**fields)).tolist() == ["a\0"]
    assert real.numpy_helper.to_array(real.TensorProto(**fields)).tolist() == ["a"]


def test_raw_storage_is_not_copied() -> None:
    tensor = ours.numpy_helper.from_array(np.zeros(100_000, np.float32))
    array = ours.numpy_helper.to_array(tensor)
    assert not array.flags.owndata
    assert not array.flags.writeable
