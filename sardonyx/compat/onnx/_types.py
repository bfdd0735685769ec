"""Types of values, and named values with a type."""

from collections.abc import Sequence
from typing import Any

from sardonyx.compat.onnx.onnx_ml_pb2 import TypeProto, ValueInfoProto

Shape = Sequence[str | int | None] | None


def _named(name: str, doc_string: str) -> Any:
    value = ValueInfoProto()
    value.name = name
    if doc_string:
        value.doc_string = doc_string
    return value


def _fill_tensor_type(
    target: Any, elem_type: int, shape: Shape, denotations: list[str] | None
) -> None:
    """Set element type and dimensions of a dense or sparse tensor type."""
    target.elem_type = elem_type
    if shape is None:
        return
    target.shape.SetInParent()
    if denotations and len(denotations) != len(shape):
        raise ValueError(f"{len(denotations)} denotations do not fit {len(shape)} dimensions")
    for index, size in enumerate(shape):
        dimension = target.shape.dim.add()
        if isinstance(size, int):
            dimension.dim_value = size
        elif isinstance(size, str):
            dimension.dim_param = size
        elif size is not None:
            raise ValueError(
                f"dimension {index} is a {type(size).__name__} ({size!r}): "
                "give an int, a name, or None if unknown"
            )
        if denotations:
            dimension.denotation = denotations[index]


def make_tensor_type_proto(
    elem_type: int, shape: Shape, shape_denotation: list[str] | None = None
) -> Any:
    """The TypeProto of a tensor; `shape` mixes sizes, names and None, or is None if unknown.

    >>> from sardonyx.compat.onnx import TensorProto, helper
    >>> kind = helper.make_tensor_type_proto(TensorProto.FLOAT, ["batch", 3, None])
    >>> len(kind.tensor_type.shape.dim)
    3
    """
    kind = TypeProto()
    _fill_tensor_type(kind.tensor_type, elem_type, shape, shape_denotation)
    return kind


def make_sparse_tensor_type_proto(
    elem_type: int, shape: Shape, shape_denotation: list[str] | None = None
) -> Any:
    """The TypeProto of a sparse tensor.

    >>> from sardonyx.compat.onnx import TensorProto, helper
    >>> kind = helper.make_sparse_tensor_type_proto(TensorProto.FLOAT, [100, 100])
    >>> kind.WhichOneof("value")
    'sparse_tensor_type'
    """
    kind = TypeProto()
    _fill_tensor_type(kind.sparse_tensor_type, elem_type, shape, shape_denotation)
    return kind


def make_sequence_type_proto(inner_type_proto: Any) -> Any:
    """The TypeProto of a sequence whose items have the given type.

    >>> from sardonyx.compat.onnx import TensorProto, helper
    >>> item = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    >>> helper.make_sequence_type_proto(item).sequence_type.elem_type == item
    True
    """
    kind = TypeProto()
    kind.sequence_type.elem_type.CopyFrom(inner_type_proto)
    return kind


def make_optional_type_proto(inner_type_proto: Any) -> Any:
    """The TypeProto of a value of the given type that may be absent.

    >>> from sardonyx.compat.onnx import TensorProto, helper
    >>> inner = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
    >>> helper.make_optional_type_proto(inner).WhichOneof("value")
    'optional_type'
    """
    kind = TypeProto()
    kind.optional_type.elem_type.CopyFrom(inner_type_proto)
    return kind


def make_map_type_proto(key_type: int, value_type: Any) -> Any:
    """The TypeProto of a map from keys of an element type to values of a type.

    >>> from sardonyx.compat.onnx import TensorProto, helper
    >>> value = helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    >>> helper.make_map_type_proto(TensorProto.INT64, value).map_type.key_type
    7
    """
    kind = TypeProto()
    kind.map_type.key_type = key_type
    kind.map_type.value_type.CopyFrom(value_type)
    return kind


def make_value_info(name: str, type_proto: Any, doc_string: str = "") -> Any:
    """A ValueInfoProto: a name with a type.

    >>> from sardonyx.compat.onnx import TensorProto, helper
    >>> helper.make_value_info("x", helper.make_tensor_type_proto(TensorProto.FLOAT, [2])).name
    'x'
    """
    value = _named(name, doc_string)
    value.type.CopyFrom(type_proto)
    return value


def make_empty_tensor_value_info(name: str) -> Any:
    """A ValueInfoProto with a name and no type.

    >>> from sardonyx.compat.onnx import helper
    >>> helper.make_empty_tensor_value_info("x").HasField("type")
    False
    """
    return _named(name, "")


def make_tensor_value_info(
    name: str,
    elem_type: int,
    shape: Shape,
    doc_string: str = "",
    shape_denotation: list[str] | None = None,
) -> Any:
    """A named tensor: the usual way to declare a graph's inputs and outputs.

    >>> from sardonyx.compat.onnx import TensorProto, helper
    >>> value = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3])
    >>> helper.printable_value_info(value)
    '%x[FLOAT, batchx3]'
    """
    value = _named(name, doc_string)
    _fill_tensor_type(value.type.tensor_type, elem_type, shape, shape_denotation)
    return value


def make_sparse_tensor_value_info(
    name: str,
    elem_type: int,
    shape: Shape,
    doc_string: str = "",
    shape_denotation: list[str] | None = None,
) -> Any:
    """A named sparse tensor.

    >>> from sardonyx.compat.onnx import TensorProto, helper
    >>> value = helper.make_sparse_tensor_value_info("x", TensorProto.FLOAT, [100, 100])
    >>> value.type.sparse_tensor_type.elem_type
    1
    """
    value = _named(name, doc_string)
    _fill_tensor_type(value.type.sparse_tensor_type, elem_type, shape, shape_denotation)
    return value


def make_tensor_sequence_value_info(
    name: str,
    elem_type: int,
    shape: Shape,
    doc_string: str = "",
    elem_shape_denotation: list[str] | None = None,
) -> Any:
    """A named sequence of tensors that all have this element type and shape.

    >>> from sardonyx.compat.onnx import TensorProto, helper
    >>> value = helper.make_tensor_sequence_value_info("xs", TensorProto.FLOAT, None)
    >>> value.type.sequence_type.elem_type.tensor_type.elem_type
    1
    """
    value = _named(name, doc_string)
    inner = value.type.sequence_type.elem_type.tensor_type
    _fill_tensor_type(inner, elem_type, shape, elem_shape_denotation)
    return value
