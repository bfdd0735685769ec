"""Tensors, sparse tensors, sequences, maps and optionals from values."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.compat.onnx._attributes import _to_bytes
from sardonyx.compat.onnx._elements import (
    pack_elements,
    saturate_cast,
    tensor_dtype_to_np_dtype,
    to_float8e8m0,
    tobytes_little_endian,
)
from sardonyx.compat.onnx.onnx_data_pb2 import MapProto, OptionalProto, SequenceProto
from sardonyx.compat.onnx.onnx_ml_pb2 import SparseTensorProto, TensorProto
from sardonyx.dtypes import FLOATS, DataType

_SATURATING = frozenset(
    {
        DataType.FLOAT8E4M3FN,
        DataType.FLOAT8E4M3FNUZ,
        DataType.FLOAT8E5M2,
        DataType.FLOAT8E5M2FNUZ,
    }
)
_STORED_AS: dict[DataType, Any] = {
    DataType.BOOL: np.uint8,
    DataType.COMPLEX64: np.float32,
    DataType.COMPLEX128: np.float64,
    **{kind: np.uint16 for kind in FLOATS if kind.bits == 16},
    **{kind: np.uint8 for kind in FLOATS if kind.bits in (6, 8)},
}

SEQUENCE_FIELDS = {
    SequenceProto.TENSOR: "tensor_values",
    SequenceProto.SPARSE_TENSOR: "sparse_tensor_values",
    SequenceProto.SEQUENCE: "sequence_values",
    SequenceProto.MAP: "map_values",
    SequenceProto.OPTIONAL: "optional_values",
}
OPTIONAL_FIELDS = {
    OptionalProto.TENSOR: "tensor_value",
    OptionalProto.SPARSE_TENSOR: "sparse_tensor_value",
    OptionalProto.SEQUENCE: "sequence_value",
    OptionalProto.MAP: "map_value",
    OptionalProto.OPTIONAL: "optional_value",
}


def make_tensor(
    name: str, data_type: int, dims: Sequence[int], vals: Any, raw: bool = False
) -> Any:
    """A TensorProto; values go to the field of their type, or to `raw_data` if `raw`.

    With `raw`, `vals` is an array or the little-endian bytes themselves. float8 values out of
    range saturate.

    >>> from sardonyx.compat.onnx import TensorProto, helper
    >>> helper.make_tensor("w", TensorProto.FLOAT, [2], [1.5, 2.0]).float_data
    [1.5, 2.0]
    """
    tensor = TensorProto()
    tensor.data_type = data_type
    tensor.name = name
    tensor.dims.extend(dims)
    if raw and data_type == TensorProto.STRING:
        raise TypeError("strings have no raw storage: pass raw=False")
    tensor_dtype_to_np_dtype(data_type)
    kind = DataType(data_type)
    count = math.prod(tensor.dims)
    if raw:
        tensor.raw_data = _raw_bytes(name, kind, count, vals)
        return tensor
    values = _strings(vals) if kind == DataType.STRING else _cast(kind, vals)
    if len(values) != count:
        raise ValueError(
            f"tensor {name!r} of shape {list(tensor.dims)} has {count} elements, "
            f"but {len(values)} values were given"
        )
    getattr(tensor, kind.field).extend(values if isinstance(values, list) else _codes(kind, values))
    return tensor


def _raw_bytes(name: str, kind: DataType, count: int, vals: Any) -> bytes:
    if isinstance(vals, np.ndarray):
        stored = tobytes_little_endian(pack_elements(vals, kind.bits) if kind.bits < 8 else vals)
    elif isinstance(vals, bytes):
        stored = vals
    else:
        raise TypeError(f"raw data is bytes or an array, not a {type(vals).__name__}")
    if len(stored) != kind.raw_size(count):
        raise ValueError(
            f"tensor {name!r} takes {kind.raw_size(count)} bytes of raw data, not {len(stored)}"
        )
    return stored


def _strings(vals: Any) -> list[Any]:
    """The values as UTF-8 bytes, flat; numbers among text become text."""
    flat = np.array(vals).reshape(-1)
    if flat.dtype.kind not in "US":
        return [_to_bytes(value) for value in flat]
    exact = np.array(vals, dtype=object).reshape(-1)
    return [
        _to_bytes(given if isinstance(given, str | bytes) else str(text))
        for given, text in zip(exact, flat, strict=True)
    ]


def _cast(kind: DataType, vals: Any) -> NDArray[Any]:
    """The values as a flat array of the element type's NumPy type."""
    if kind in _SATURATING:
        return saturate_cast(np.asarray(vals), kind.numpy).reshape(-1)
    if kind == DataType.FLOAT8E8M0:
        return to_float8e8m0(np.asarray(vals)).reshape(-1)
    return np.asarray(vals, dtype=kind.numpy).reshape(-1)


def _codes(kind: DataType, values: NDArray[Any]) -> list[Any]:
    """What the typed field stores for `values`."""
    if kind.bits < 6:
        values = pack_elements(values, kind.bits)
    elif kind in _STORED_AS:
        values = np.ascontiguousarray(values).view(_STORED_AS[kind])
    codes: list[Any] = values.tolist()
    return codes


def make_sparse_tensor(values: Any, indices: Any, dims: Sequence[int]) -> Any:
    """A SparseTensorProto of shape `dims` from its non-zero values and where they stand.

    >>> from sardonyx.compat.onnx import TensorProto, helper
    >>> values = helper.make_tensor("v", TensorProto.FLOAT, [1], [5.0])
    >>> places = helper.make_tensor("i", TensorProto.INT64, [1], [7])
    >>> helper.make_sparse_tensor(values, places, [10]).dims
    [10]
    """
    sparse = SparseTensorProto()
    sparse.values.CopyFrom(values)
    sparse.indices.CopyFrom(indices)
    sparse.dims.extend(dims)
    return sparse


def make_sequence(name: str, elem_type: int, values: Sequence[Any]) -> Any:
    """A SequenceProto of messages that all are of the kind `elem_type`.

    >>> from sardonyx.compat.onnx import SequenceProto, TensorProto, helper
    >>> item = helper.make_tensor("t", TensorProto.FLOAT, [], [1.0])
    >>> len(helper.make_sequence("s", SequenceProto.TENSOR, [item, item]).tensor_values)
    2
    """
    sequence = SequenceProto()
    sequence.name = name
    sequence.elem_type = elem_type
    if elem_type == SequenceProto.UNDEFINED:
        return sequence
    if elem_type not in SEQUENCE_FIELDS:
        raise TypeError(f"a sequence cannot hold items of kind {elem_type}")
    getattr(sequence, SEQUENCE_FIELDS[elem_type]).extend(values)
    return sequence


def make_map(name: str, key_type: int, keys: list[Any], values: Any) -> Any:
    """A MapProto from integer or string keys and a SequenceProto with one value for each.

    >>> from sardonyx.compat.onnx import SequenceProto, TensorProto, helper
    >>> item = helper.make_tensor("t", TensorProto.FLOAT, [], [1.0])
    >>> values = helper.make_sequence("s", SequenceProto.TENSOR, [item])
    >>> helper.make_map("m", TensorProto.INT64, [7], values).keys
    [7]
    """
    mapping = MapProto()
    mapping.name = name
    mapping.key_type = key_type
    if key_type == TensorProto.STRING:
        mapping.string_keys.extend(keys)
    elif key_type in MAP_KEY_INTEGERS:
        mapping.keys.extend(keys)
    mapping.values.CopyFrom(values)
    return mapping


MAP_KEY_INTEGERS = frozenset(int(kind) for kind in DataType if kind.is_integer and kind.bits >= 8)
"""The integer element types a map may have as keys."""


def make_optional(name: str, elem_type: int, value: Any | None) -> Any:
    """An OptionalProto that holds `value`, of the kind `elem_type`; UNDEFINED holds nothing.

    >>> from sardonyx.compat.onnx import OptionalProto, TensorProto, helper
    >>> item = helper.make_tensor("t", TensorProto.FLOAT, [], [1.0])
    >>> helper.make_optional("o", OptionalProto.TENSOR, item).HasField("tensor_value")
    True
    """
    optional = OptionalProto()
    optional.name = name
    optional.elem_type = elem_type
    if elem_type == OptionalProto.UNDEFINED:
        return optional
    if elem_type not in OPTIONAL_FIELDS:
        raise TypeError(f"an optional cannot hold a value of kind {elem_type}")
    if value is None:
        raise AssertionError(f"optional {name!r} has a kind but no value: use kind UNDEFINED")
    getattr(optional, OPTIONAL_FIELDS[elem_type]).CopyFrom(value)
    return optional
