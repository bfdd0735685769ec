"""Messages to and from NumPy arrays, lists, dictionaries and optional values."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.compat.onnx._elements import (
    array_from_bytes,
    array_from_field,
    np_dtype_to_tensor_dtype,
    pack_elements,
    saturate_cast,
    tensor_dtype_to_field,
    to_float8e8m0,
    tobytes_little_endian,
)
from sardonyx.compat.onnx._narrow import (
    bfloat16_to_float32,
    combine_pairs_to_complex,
    float8e4m3_to_float32,
    float8e5m2_to_float32,
    unpack_float4e2m1,
    unpack_int4,
    unpacked_float4e2m1_to_float32,
)
from sardonyx.compat.onnx._tensors import MAP_KEY_INTEGERS
from sardonyx.compat.onnx.external_data_helper import _read_external_data_bytes, uses_external_data
from sardonyx.compat.onnx.onnx_data_pb2 import MapProto, OptionalProto, SequenceProto
from sardonyx.compat.onnx.onnx_ml_pb2 import TensorProto
from sardonyx.dtypes import DataType

__all__ = [
    "bfloat16_to_float32",
    "combine_pairs_to_complex",
    "create_random_int",
    "float8e4m3_to_float32",
    "float8e5m2_to_float32",
    "from_array",
    "from_dict",
    "from_list",
    "from_optional",
    "saturate_cast",
    "to_array",
    "to_dict",
    "to_float8e8m0",
    "to_list",
    "to_optional",
    "tobytes_little_endian",
    "unpack_float4e2m1",
    "unpack_int4",
    "unpacked_float4e2m1_to_float32",
]


def _pack_4bitx2(array: NDArray[Any]) -> NDArray[np.uint8]:
    return pack_elements(array, 4)


def _pack_2bitx4(array: NDArray[Any]) -> NDArray[np.uint8]:
    return pack_elements(array, 2)


def _pack_6bit(values: NDArray[Any]) -> NDArray[np.uint8]:
    return pack_elements(values, 6)


def to_array(tensor: Any, base_dir: str = "") -> NDArray[Any]:
    """The array a tensor holds; external data is read from `base_dir` and not kept.

    Raw storage is not copied where its type has whole bytes: such arrays are read-only.

    >>> from sardonyx.compat.onnx import TensorProto, helper, numpy_helper
    >>> numpy_helper.to_array(helper.make_tensor("x", TensorProto.INT4, [3], [1, -2, 3]))
    array([1, -2, 3], dtype=int4)
    """
    if tensor.HasField("segment"):
        raise ValueError(f"tensor {tensor.name!r} is one segment of a larger one: not supported")
    if tensor.data_type == TensorProto.UNDEFINED:
        raise TypeError(f"tensor {tensor.name!r} has no element type")
    field = tensor_dtype_to_field(tensor.data_type)
    kind = DataType(tensor.data_type)
    if kind == DataType.STRING:
        strings = np.empty(len(tensor.string_data), object)
        strings[:] = [text.decode("utf-8") for text in tensor.string_data]
        return strings.reshape(tensor.dims)
    if uses_external_data(tensor):
        return array_from_bytes(_read_external_data_bytes(tensor, base_dir), kind, tensor.dims)
    if tensor.HasField("raw_data"):
        return array_from_bytes(tensor.raw_data, kind, tensor.dims)
    return array_from_field(getattr(tensor, field), kind, tensor.dims)


def from_array(array: NDArray[Any], /, name: str | None = None) -> Any:
    """A tensor with an array's elements in raw storage; text and objects become strings.

    >>> import numpy as np
    >>> from sardonyx.compat.onnx import numpy_helper
    >>> numpy_helper.from_array(np.array([1, 2], np.int16), "x").raw_data
    b'\\x01\\x00\\x02\\x00'
    """
    tensor = TensorProto()
    tensor.dims.extend(array.shape)
    if name:
        tensor.name = name
    if array.dtype == object or np.issubdtype(array.dtype, np.str_):
        tensor.data_type = TensorProto.STRING
        tensor.string_data.extend(_encode(text) for text in array.flatten())
        return tensor
    kind = DataType(np_dtype_to_tensor_dtype(_native_order(array.dtype)))
    tensor.data_type = int(kind)
    stored = pack_elements(array, kind.bits) if kind.bits < 8 else array
    tensor.raw_data = tobytes_little_endian(stored)
    return tensor


def _native_order(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype.newbyteorder("=") if dtype.byteorder in "<>" else dtype


def _encode(text: object) -> bytes:
    if isinstance(text, str):
        return text.encode("utf-8")
    if isinstance(text, bytes):
        return text
    raise NotImplementedError(f"an array of objects may hold text or bytes, not {type(text)}")


def to_list(sequence: Any) -> list[Any]:
    """The items of a sequence as arrays, lists or dictionaries.

    >>> import numpy as np
    >>> from sardonyx.compat.onnx import numpy_helper
    >>> numpy_helper.to_list(numpy_helper.from_list([np.array([1, 2]), np.array([3])]))
    [array([1, 2]), array([3])]
    """
    match sequence.elem_type:
        case SequenceProto.TENSOR:
            return [to_array(item) for item in sequence.tensor_values]
        case SequenceProto.SPARSE_TENSOR:
            return [to_array(item) for item in sequence.sparse_tensor_values]
        case SequenceProto.SEQUENCE:
            return [to_list(item) for item in sequence.sequence_values]
        case SequenceProto.MAP:
            return [to_dict(item) for item in sequence.map_values]
    raise TypeError(f"sequence {sequence.name!r} has items of kind {sequence.elem_type}")


def from_list(lst: list[Any], name: str | None = None, dtype: int | None = None) -> Any:
    """A sequence of a list's items, which must all be arrays, lists or dictionaries.

    `dtype` says of which kind they are; an empty list is taken as one of tensors.

    >>> import numpy as np
    >>> from sardonyx.compat.onnx import numpy_helper
    >>> len(numpy_helper.from_list([np.array([1, 2]), np.array([3])]).tensor_values)
    2
    """
    sequence = SequenceProto()
    if name:
        sequence.name = name
    sequence.elem_type = _kind_of(lst[0] if len(lst) else None) if dtype is None else dtype
    if not all(isinstance(item, type(lst[0])) for item in lst):
        raise TypeError("the items of a sequence must all be of one type")
    match sequence.elem_type:
        case SequenceProto.TENSOR:
            sequence.tensor_values.extend(from_array(np.asarray(item)) for item in lst)
        case SequenceProto.SEQUENCE:
            sequence.sequence_values.extend(from_list(item) for item in lst)
        case SequenceProto.MAP:
            sequence.map_values.extend(from_dict(item) for item in lst)
        case other:
            raise TypeError(f"a sequence of kind {other} cannot be made from a list")
    return sequence


def _kind_of(item: Any) -> int:
    """The kind of container item a Python value becomes."""
    kind: int = SequenceProto.TENSOR
    if isinstance(item, dict):
        kind = SequenceProto.MAP
    elif isinstance(item, list):
        kind = SequenceProto.SEQUENCE
    return kind


def to_dict(map_proto: Any) -> dict[Any, Any]:
    """A map as a dictionary; string keys come as bytes.

    >>> import numpy as np
    >>> from sardonyx.compat.onnx import numpy_helper
    >>> numpy_helper.to_dict(numpy_helper.from_dict({7: np.array([1, 2])}))
    {7: array([1, 2])}
    """
    is_text = map_proto.key_type == TensorProto.STRING
    keys = list(map_proto.string_keys if is_text else map_proto.keys)
    values = to_list(map_proto.values)
    if len(keys) != len(values):
        raise IndexError(f"map {map_proto.name!r} has {len(keys)} keys and {len(values)} values")
    return dict(zip(keys, values, strict=True))


def _value_type(value: Any) -> Any:
    """What must be equal for all keys, and for all values, of a map."""
    if isinstance(value, str | bytes):
        return np.dtype(np.str_)
    return type(value) if isinstance(value, list | dict) else np.result_type(value)


def from_dict(dict_: dict[Any, Any], name: str | None = None) -> Any:
    """A map of a dictionary whose keys are all text or all integers, and values all of one type.

    >>> import numpy as np
    >>> from sardonyx.compat.onnx import numpy_helper
    >>> numpy_helper.from_dict({"a": np.array([1.0]), "b": np.array([2.0])}).string_keys
    [b'a', b'b']
    """
    mapping = MapProto()
    if name:
        mapping.name = name
    if not dict_:
        raise ValueError("an empty dictionary has no key type: a map needs one entry at least")
    keys, values = list(dict_), list(dict_.values())
    for what, items in (("keys", keys), ("values", values)):
        if any(_value_type(item) != _value_type(items[0]) for item in items):
            raise TypeError(f"the {what} of a map must all be of one type")
    mapping.key_type = np_dtype_to_tensor_dtype(_value_type(keys[0]))
    mapping.values.CopyFrom(from_list(values))
    if mapping.key_type == TensorProto.STRING:
        mapping.string_keys.extend(_encode(key) for key in keys)
    elif mapping.key_type in MAP_KEY_INTEGERS:
        mapping.keys.extend(keys)
    else:
        raise TypeError(f"the keys of a map are text or integers, not {_value_type(keys[0])}")
    return mapping


def to_optional(optional: Any) -> Any | None:
    """The value of an optional; None if it has none.

    >>> from sardonyx.compat.onnx import numpy_helper
    >>> numpy_helper.to_optional(numpy_helper.from_optional(None)) is None
    True
    """
    match optional.elem_type:
        case OptionalProto.UNDEFINED:
            return None
        case OptionalProto.TENSOR:
            return to_array(optional.tensor_value)
        case OptionalProto.SPARSE_TENSOR:
            return to_array(optional.sparse_tensor_value)
        case OptionalProto.SEQUENCE:
            return to_list(optional.sequence_value)
        case OptionalProto.MAP:
            return to_dict(optional.map_value)
        case OptionalProto.OPTIONAL:
            return to_optional(optional.optional_value)
    raise TypeError(f"optional {optional.name!r} has a value of kind {optional.elem_type}")


def from_optional(opt: Any | None, name: str | None = None, dtype: int | None = None) -> Any:
    """An optional that holds an array, list or dictionary, or nothing if `opt` is None.

    >>> import numpy as np
    >>> from sardonyx.compat.onnx import numpy_helper
    >>> numpy_helper.from_optional(np.array([1, 2])).HasField("tensor_value")
    True
    """
    optional = OptionalProto()
    if name:
        optional.name = name
    if dtype is not None and dtype not in OptionalProto.DataType.values():
        raise TypeError(f"{dtype} is not the kind of an optional")
    inferred = OptionalProto.UNDEFINED if opt is None else _kind_of(opt)
    optional.elem_type = inferred if dtype is None else dtype
    if opt is None:
        return optional
    match optional.elem_type:
        case OptionalProto.TENSOR:
            optional.tensor_value.CopyFrom(from_array(opt))
        case OptionalProto.SEQUENCE:
            optional.sequence_value.CopyFrom(from_list(opt))
        case OptionalProto.MAP:
            optional.map_value.CopyFrom(from_dict(opt))
        case other:
            raise TypeError(f"an optional of kind {other} cannot be made from a {type(opt)}")
    return optional


def create_random_int(input_shape: tuple[int], dtype: np.dtype[Any], seed: int = 1) -> NDArray[Any]:
    """Random integers over the type's range, cut to that of int32; the same for equal seeds.

    >>> import numpy as np
    >>> from sardonyx.compat.onnx import numpy_helper
    >>> numpy_helper.create_random_int((3,), np.int8)
    array([-91, 107,  12], dtype=int8)
    """
    kinds = ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"]
    if not any(dtype == np.dtype(kind) for kind in kinds):
        raise TypeError(f"{dtype} is not an integer type of whole bytes")
    own, wide = np.iinfo(dtype), np.iinfo(np.int32)
    generator = np.random.RandomState(seed)
    numbers = generator.randint(max(own.min, wide.min), min(own.max, wide.max), size=input_shape)
    return numbers.astype(dtype)
