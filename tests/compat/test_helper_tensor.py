"""`helper.make_tensor` and the containers of tensors, beside the real onnx."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import onnx as real
import pytest

from sardonyx.compat import onnx as ours
from sardonyx.dtypes import DataType
from tests.compat.differential import Call, assert_same

TYPES = [kind.name for kind in DataType if kind != DataType.UNDEFINED]
NUMBERS = [0, 1, 2, 3, 1, 0, 3]
FRACTIONS = [0.3, -1.7, 100.0, -0.0, 1e-3, 448.0, 6.5, 1e30, -1e30]


def typed(name: str, values: Any, dims: list[int]) -> Call:
    """Make a tensor of type `name` outside raw storage, and read it back."""

    def call(onnx: Any, folder: Path) -> Any:
        tensor = onnx.helper.make_tensor("t", getattr(onnx.TensorProto, name), dims, values)
        return tensor, onnx.numpy_helper.to_array(tensor)

    return call


def raw(name: str, count: int) -> Call:
    """Make a tensor of type `name` from raw bytes, and read it back."""

    def call(onnx: Any, folder: Path) -> Any:
        kind = getattr(onnx.TensorProto, name)
        content = bytes(range(1, 1 + DataType[name].raw_size(count)))
        tensor = onnx.helper.make_tensor("t", kind, [count], content, raw=True)
        return tensor, onnx.numpy_helper.to_array(tensor)

    return call


def raw_array(name: str, count: int) -> Call:
    """Make a tensor of type `name` from an array given as raw data."""

    def call(onnx: Any, folder: Path) -> Any:
        kind = getattr(onnx.TensorProto, name)
        array = (np.arange(count) % 2).astype(onnx.helper.tensor_dtype_to_np_dtype(kind))
        return onnx.helper.make_tensor("t", kind, [count], array, raw=True)

    return call


def make(*arguments: Any, **options: Any) -> Call:
    """Call `make_tensor`; a string names an element type."""

    def call(onnx: Any, folder: Path) -> Any:
        name, kind, *rest = arguments
        if isinstance(kind, str):
            kind = getattr(onnx.TensorProto, kind)
        return onnx.helper.make_tensor(name, kind, *rest, **options)

    return call


CASES: dict[str, Call] = {}
for _name in TYPES:
    CASES[f"{_name} typed"] = typed(_name, NUMBERS, [7])
    CASES[f"{_name} matrix"] = typed(_name, [[1, 0], [2, 3]], [2, 2])
    CASES[f"{_name} empty"] = typed(_name, [], [0])
    CASES[f"{_name} scalar"] = typed(_name, [1], [])
    CASES[f"{_name} raw"] = raw(_name, 5)
    CASES[f"{_name} raw array"] = raw_array(_name, 5)
    CASES[f"{_name} too few"] = typed(_name, [1, 2], [3])
    CASES[f"{_name} raw too short"] = make("t", _name, [400], b"ab", raw=True)
    CASES[f"{_name} raw list"] = make("t", _name, [2], [1, 2], raw=True)
    if _name != "FLOAT8E8M0":  # there onnx cannot convert any scalar
        CASES[f"{_name} None"] = make("t", _name, [2], None)
    CASES[f"{_name} fractions"] = typed(_name, FRACTIONS, [9])
for _name in ("FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16", "COMPLEX64", "COMPLEX128"):
    CASES[f"{_name} not finite"] = typed(_name, [math.nan, math.inf, -math.inf], [3])
for _name in [name for name in TYPES if name.startswith("FLOAT8") and name != "FLOAT8E8M0"]:
    CASES[f"{_name} not finite"] = typed(_name, [math.nan, math.inf, -math.inf, 1e9], [4])
for _name in [name for name in TYPES if "INT" in name]:
    CASES[f"{_name} overflow"] = typed(_name, [2**70], [1])
    CASES[f"{_name} out of range"] = typed(_name, [2**63], [1])
    CASES[f"{_name} negative"] = typed(_name, [-1, -2], [2])
    CASES[f"{_name} NaN"] = typed(_name, np.array([math.nan, 1.0]), [2])

CASES |= {
    "float8e8m0 values": typed("FLOAT8E8M0", [1.0, 3.0, 0.0, -4.0, math.inf, math.nan, 1e38], [7]),
    "strings": typed("STRING", ["a", "b\u00e9", ""], [3]),
    "bytes": typed("STRING", [b"a", b"\xc3\xa9"], [2]),
    "bytes that are not UTF-8": make("t", "STRING", [1], [b"\xff"]),
    "strings and bytes": typed("STRING", ["a", b"b"], [2]),
    "strings and bytes not ASCII": typed("STRING", ["a", b"\xc3"], [2]),
    "strings and numbers": typed("STRING", ["a", 1], [2]),
    "object array of strings": typed("STRING", np.array(["a", "bc"], dtype=object), [2]),
    "nested strings": typed("STRING", [["a", "b"], ["c", "d"]], [2, 2]),
    "one string": typed("STRING", "abc", []),
    "numbers as strings": typed("STRING", [1, 2], [2]),
    "ragged": typed("FLOAT", [[1], [2, 3]], [3]),
    "ragged strings": typed("STRING", [["a"], ["b", "c"]], [3]),
    "raw strings": make("t", "STRING", [1], b"a", raw=True),
    "strings too many": typed("STRING", ["a", "b"], [1]),
    "text as numbers": typed("FLOAT", ["1.5", "2"], [2]),
    "text that is no number": typed("FLOAT", ["x"], [1]),
    "text as bool": typed("BOOL", ["False", ""], [2]),
    "bytes as numbers": typed("FLOAT", b"ab", [2]),
    "generator of values": make("t", "FLOAT", [3], (x for x in [])),
    "range": typed("INT64", range(4), [4]),
    "tuple": typed("INT64", (1, 2), [2]),
    "complex into float": typed("FLOAT", [1 + 2j], [1]),
    "complex values": typed("COMPLEX64", [1 + 2j, 3], [2]),
    "complex128 array": typed("COMPLEX128", np.array([1 + 2j, 3]), [2]),
    "strided array": typed("FLOAT", np.arange(12, dtype=np.float32)[::2], [6]),
    "transposed array": typed("INT32", np.arange(6).reshape(2, 3).T, [3, 2]),
    "big-endian array": typed("FLOAT", np.array([1.5, 2.5], ">f4"), [2]),
    "raw big-endian array": make("t", "FLOAT", [2], np.array([1.5, 2.5], ">f4"), raw=True),
    "raw strided array": make("t", "FLOAT", [3], np.arange(6, dtype=np.float32)[::2], raw=True),
    "raw transposed": make(
        "t", "INT4", [3, 2], np.arange(6, dtype=np.int8).reshape(2, 3).T, raw=True
    ),
    "raw float64 array as float": make("t", "FLOAT", [2], np.array([1.0, 2.0]), raw=True),
    "raw int8 array as int4": make("t", "INT4", [3], np.array([-8, 7, -1], np.int8), raw=True),
    "raw int8 array as uint2": make("t", "UINT2", [5], np.arange(5, dtype=np.uint8), raw=True),
    "raw uint8 array as float6": make(
        "t", "FLOAT6E2M3", [5], np.arange(5, dtype=np.uint8), raw=True
    ),
    "raw wide even array as int4": make("t", "INT4", [2], np.array([1, 2], np.int32), raw=True),
    "raw 0-d array": make("t", "FLOAT", [], np.array(1.5, np.float32), raw=True),
    "raw scalar": make("t", "FLOAT", [], np.float32(1.5), raw=True),
    "raw bytearray": make("t", "UINT8", [2], bytearray(b"ab"), raw=True),
    "raw text": make("t", "UINT8", [2], "ab", raw=True),
    "raw empty": make("t", "FLOAT", [0], b"", raw=True),
    "raw one byte too many": make("t", "INT4", [3], b"abc", raw=True),
    "shape with zero": make("t", "FLOAT", [2, 0, 3], []),
    "negative dimension": make("t", "FLOAT", [-1], [1.0]),
    "two negative dimensions": make("t", "FLOAT", [-1, -2], [1.0, 2.0]),
    "NumPy dimensions": make("t", "FLOAT", [np.int64(2)], [1.0, 2.0]),
    "array as shape": make("t", "FLOAT", np.array([2, 1]), [1.0, 2.0]),
    "float dimension": make("t", "FLOAT", [2.0], [1.0, 2.0]),
    "text dimension": make("t", "FLOAT", ["n"], [1.0]),
    "shape None": make("t", "FLOAT", None, [1.0]),
    "shape a number": make("t", "FLOAT", 2, [1.0, 2.0]),
    "dimension beyond 64 bits": make("t", "FLOAT", [2**64], [1.0]),
    "name None": make(None, "FLOAT", [1], [1.0]),
    "name bytes": make(b"t", "FLOAT", [1], [1.0]),
    "name a number": make(3, "FLOAT", [1], [1.0]),
    "type undefined": make("t", 0, [1], [1.0]),
    "type unknown": make("t", 99, [1], [1.0]),
    "type negative": make("t", -1, [1], [1.0]),
    "type None": make("t", None, [1], [1.0]),
    "type a float": make("t", 1.5, [1], [1.0]),
    "type beyond 32 bits": make("t", 2**40, [1], [1.0]),
    "values scalar": typed("FLOAT", 1.5, []),
    "values a NumPy scalar": typed("FLOAT", np.float64(1.5), []),
    "dictionary as values": typed("FLOAT", {1: 2}, [1]),
    "set as values": typed("FLOAT", {1}, [1]),
    "bool from numbers": typed("BOOL", [2, 0, -1], [3]),
    "float overflow": typed("FLOAT", [1e300], [1]),
    "half overflow": typed("FLOAT16", [1e6], [1]),
    "double denormal": typed("DOUBLE", [5e-324], [1]),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_same_as_onnx(name: str, tmp_path: Path) -> None:
    assert_same(CASES[name], tmp_path)


def _tensor(onnx: Any, value: float = 1.0) -> Any:
    return onnx.helper.make_tensor("v", onnx.TensorProto.FLOAT, [1], [value])


def _sequence(onnx: Any) -> Any:
    return onnx.helper.make_sequence("s", onnx.SequenceProto.TENSOR, [_tensor(onnx)])


def _map(onnx: Any) -> Any:
    return onnx.helper.make_map("m", onnx.TensorProto.INT64, [3], _sequence(onnx))


def _sparse(onnx: Any) -> Any:
    places = onnx.helper.make_tensor("i", onnx.TensorProto.INT64, [1], [2])
    return onnx.helper.make_sparse_tensor(_tensor(onnx), places, [4])


def _optional(onnx: Any) -> Any:
    return onnx.helper.make_optional("o", onnx.OptionalProto.TENSOR, _tensor(onnx))


CONTAINERS: dict[str, Call] = {
    "sparse": lambda onnx, folder: _sparse(onnx),
    "sparse of None": lambda onnx, folder: onnx.helper.make_sparse_tensor(None, None, [4]),
    "sparse bad shape": lambda onnx, folder: onnx.helper.make_sparse_tensor(
        _tensor(onnx), _tensor(onnx), ["a"]
    ),
    "sequence of tensors": lambda onnx, folder: _sequence(onnx),
    "sequence of sparse": lambda onnx, folder: onnx.helper.make_sequence("s", 2, [_sparse(onnx)]),
    "sequence of sequences": lambda onnx, folder: onnx.helper.make_sequence(
        "s", 3, [_sequence(onnx)]
    ),
    "sequence of maps": lambda onnx, folder: onnx.helper.make_sequence("s", 4, [_map(onnx)]),
    "sequence of optionals": lambda onnx, folder: onnx.helper.make_sequence(
        "s", 5, [_optional(onnx)]
    ),
    "sequence undefined": lambda onnx, folder: onnx.helper.make_sequence("s", 0, [1, 2]),
    "sequence unknown kind": lambda onnx, folder: onnx.helper.make_sequence("s", 9, []),
    "sequence wrong items": lambda onnx, folder: onnx.helper.make_sequence("s", 1, [_map(onnx)]),
    "sequence of numbers": lambda onnx, folder: onnx.helper.make_sequence("s", 1, [1]),
    "sequence of None": lambda onnx, folder: onnx.helper.make_sequence("s", 1, None),
    "sequence empty": lambda onnx, folder: onnx.helper.make_sequence("s", 1, []),
    "map of integers": lambda onnx, folder: _map(onnx),
    "map of text": lambda onnx, folder: onnx.helper.make_map("m", 8, [b"a"], _sequence(onnx)),
    "map of str": lambda onnx, folder: onnx.helper.make_map("m", 8, ["a"], _sequence(onnx)),
    "map of floats": lambda onnx, folder: onnx.helper.make_map("m", 1, [1.0], _sequence(onnx)),
    "map text for integers": lambda onnx, folder: onnx.helper.make_map(
        "m", 7, ["a"], _sequence(onnx)
    ),
    "map of int4": lambda onnx, folder: onnx.helper.make_map("m", 22, [1], _sequence(onnx)),
    "map bad values": lambda onnx, folder: onnx.helper.make_map("m", 7, [1], [_tensor(onnx)]),
    "map key too large": lambda onnx, folder: onnx.helper.make_map(
        "m", 13, [2**63], _sequence(onnx)
    ),
    "optional tensor": lambda onnx, folder: _optional(onnx),
    "optional sparse": lambda onnx, folder: onnx.helper.make_optional("o", 2, _sparse(onnx)),
    "optional sequence": lambda onnx, folder: onnx.helper.make_optional("o", 3, _sequence(onnx)),
    "optional map": lambda onnx, folder: onnx.helper.make_optional("o", 4, _map(onnx)),
    "optional optional": lambda onnx, folder: onnx.helper.make_optional("o", 5, _optional(onnx)),
    "optional undefined": lambda onnx, folder: onnx.helper.make_optional("o", 0, None),
    "optional undefined value": lambda onnx, folder: onnx.helper.make_optional(
        "o", 0, _tensor(onnx)
    ),
    "optional without value": lambda onnx, folder: onnx.helper.make_optional("o", 1, None),
    "optional unknown kind": lambda onnx, folder: onnx.helper.make_optional("o", 6, _tensor(onnx)),
    "optional wrong value": lambda onnx, folder: onnx.helper.make_optional("o", 3, _tensor(onnx)),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_containers_same_as_onnx(name: str, tmp_path: Path) -> None:
    assert_same(CONTAINERS[name], tmp_path)


def test_trailing_zeros_of_strings_are_kept() -> None:
    """onnx loses them, because NumPy's fixed-width text does."""
    tensor = ours.helper.make_tensor("t", ours.TensorProto.STRING, [2], ["a\0", b"b\0"])
    assert list(tensor.string_data) == [b"a\0", b"b\0"]
    assert ours.numpy_helper.to_array(tensor).tolist() == ["a\0", "b\0"]
    lost = real.helper.make_tensor("t", real.TensorProto.STRING, [2], ["a\0", b"b\0"])
    assert list(lost.string_data) == [b"a", b"b"]


def test_shape_may_be_a_generator() -> None:
    """onnx reads it twice, and the second time it is empty."""
    dims = [2, 3]
    tensor = ours.helper.make_tensor("t", ours.TensorProto.FLOAT, (d for d in dims), [0.0] * 6)
    assert list(tensor.dims) == dims
    with pytest.raises(ValueError):
        real.helper.make_tensor("t", real.TensorProto.FLOAT, (d for d in dims), [0.0] * 6)


def test_wide_arrays_are_not_packed_silently() -> None:
    """onnx keeps only the first bytes of an odd number of wide elements."""
    wide = np.array([1, 2, 3], np.int32)
    with pytest.raises(ValueError, match="one a byte"):
        ours.helper.make_tensor("t", ours.TensorProto.INT4, [3], wide, raw=True)
    garbled = real.helper.make_tensor("t", real.TensorProto.INT4, [3], wide, raw=True)
    assert real.numpy_helper.to_array(garbled).tolist() != [1, 2, 3]


def test_none_is_no_string() -> None:
    """onnx stores the text `None`."""
    values = np.array(["a", None], dtype=object)
    with pytest.raises(TypeError):
        ours.helper.make_tensor("t", ours.TensorProto.STRING, [2], values)
    tensor = real.helper.make_tensor("t", real.TensorProto.STRING, [2], values)
    assert list(tensor.string_data) == [b"a", b"None"]
