"""Tables of element types, as onnx offered them until 1.18; `helper` has functions for them.

Types that NumPy lacks appear as the wider NumPy type they were then loaded as.

>>> from sardonyx.compat.onnx import TensorProto, mapping
>>> mapping.TENSOR_TYPE_TO_NP_TYPE[TensorProto.FLOAT16]
dtype('float16')
"""

from typing import Any

import numpy as np

from sardonyx.compat.onnx._mapping import TENSOR_TYPE_MAP as _CURRENT
from sardonyx.compat.onnx._mapping import TensorDtypeMap
from sardonyx.compat.onnx._tensors import OPTIONAL_FIELDS, SEQUENCE_FIELDS
from sardonyx.dtypes import DataType

__all__ = [
    "NP_TYPE_TO_TENSOR_TYPE",
    "OPTIONAL_ELEMENT_TYPE_TO_FIELD",
    "STORAGE_ELEMENT_TYPE_TO_FIELD",
    "STORAGE_TENSOR_TYPE_TO_FIELD",
    "TENSOR_TYPE_MAP",
    "TENSOR_TYPE_TO_NP_TYPE",
    "TENSOR_TYPE_TO_STORAGE_TENSOR_TYPE",
    "TensorDtypeMap",
]


def _native(kind: DataType) -> bool:
    return kind.numpy.type.__module__ == "numpy"


def _former_numpy(kind: DataType) -> np.dtype[Any]:
    if _native(kind):
        return kind.numpy
    if kind.is_float:
        return np.dtype(np.float32)
    return np.dtype(np.uint8 if kind.name.startswith("UINT") else np.int8)


def _former_storage(kind: DataType) -> int:
    if kind in (DataType.UINT32, DataType.UINT64):
        return int(kind)
    if kind.is_float and kind.bits == 16:
        return int(DataType.UINT16)
    if kind.is_float and kind.bits < 16:
        return int(DataType.UINT8)
    return _CURRENT[int(kind)].storage_dtype


TENSOR_TYPE_MAP = {
    number: TensorDtypeMap(
        _former_numpy(DataType(number)), _former_storage(DataType(number)), row.name
    )
    for number, row in _CURRENT.items()
}
TENSOR_TYPE_TO_NP_TYPE = {number: row.np_dtype for number, row in TENSOR_TYPE_MAP.items()}
TENSOR_TYPE_TO_STORAGE_TENSOR_TYPE = {
    number: row.storage_dtype for number, row in TENSOR_TYPE_MAP.items()
}
NP_TYPE_TO_TENSOR_TYPE = {
    row.np_dtype: number for number, row in TENSOR_TYPE_MAP.items() if _native(DataType(number))
}
STORAGE_TENSOR_TYPE_TO_FIELD = {
    int(kind): kind.field
    for kind in (
        DataType.FLOAT,
        DataType.INT32,
        DataType.INT64,
        DataType.UINT8,
        DataType.UINT16,
        DataType.DOUBLE,
        DataType.COMPLEX64,
        DataType.COMPLEX128,
        DataType.UINT32,
        DataType.UINT64,
        DataType.STRING,
        DataType.BOOL,
    )
}
STORAGE_ELEMENT_TYPE_TO_FIELD = dict(SEQUENCE_FIELDS)
OPTIONAL_ELEMENT_TYPE_TO_FIELD = dict(OPTIONAL_FIELDS)
