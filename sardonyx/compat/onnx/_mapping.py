"""Element types: how each is seen by NumPy and stored in a tensor message."""

from typing import Any, NamedTuple

import numpy as np

from sardonyx.dtypes import DataType


class TensorDtypeMap(NamedTuple):
    """One element type's NumPy type, the type of its storage field, and its printed name."""

    np_dtype: np.dtype[Any]
    storage_dtype: int
    name: str


FIELD_OF_STORAGE = {
    int(DataType.FLOAT): "float_data",
    int(DataType.INT32): "int32_data",
    int(DataType.INT64): "int64_data",
    int(DataType.DOUBLE): "double_data",
    int(DataType.UINT32): "uint64_data",
    int(DataType.UINT64): "uint64_data",
    int(DataType.STRING): "string_data",
}
"""The tensor field that holds values of a storage type."""

_STORAGE_OF_FIELD = {field: storage for storage, field in FIELD_OF_STORAGE.items()}

TENSOR_TYPE_MAP = {
    int(kind): TensorDtypeMap(kind.numpy, _STORAGE_OF_FIELD[kind.field], f"TensorProto.{kind.name}")
    for kind in DataType
    if kind != DataType.UNDEFINED
}
"""Every element type by number."""

TYPE_OF_NUMPY = {row.np_dtype: number for number, row in TENSOR_TYPE_MAP.items()}
"""The element type of a NumPy type."""
