"""Check that values are, when a model runs, what the model declares them to be."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sardonyx.compat.onnx.helper import tensor_dtype_to_np_dtype


class ShapeAnnotationError(RuntimeError):
    """A value is of another shape or element type than the model declares."""


class SymbolBindings:
    """What number each symbolic size stands for in one run: the first that was met.

    >>> from sardonyx.compat.onnx import TensorShapeProto
    >>> bindings = SymbolBindings()
    >>> bindings.check_and_bind(TensorShapeProto.Dimension(dim_param="N"), 3, context="x")
    >>> try:
    ...     bindings.check_and_bind(TensorShapeProto.Dimension(dim_param="N"), 4, context="y")
    ... except ShapeAnnotationError as error:
    ...     print(error)
    y: symbolic dimension 'N' is 4, was 3
    """

    def __init__(self) -> None:
        self._bindings: dict[str, int] = {}

    def check_and_bind(self, dim: Any, actual: int, *, context: str) -> None:
        """Raise ShapeAnnotationError unless a Dimension allows a size; a symbol is bound to it."""
        match dim.WhichOneof("value"):
            case "dim_value" if dim.dim_value != actual:
                raise ShapeAnnotationError(
                    f"{context}: size {actual} is not the declared dimension value {dim.dim_value}"
                )
            case "dim_param":
                bound = self._bindings.setdefault(dim.dim_param, actual)
                if bound != actual:
                    raise ShapeAnnotationError(
                        f"{context}: symbolic dimension {dim.dim_param!r} is {actual}, was {bound}"
                    )


def check_shape(
    shape_proto: Any, actual_shape: Sequence[int], bindings: SymbolBindings, name: str
) -> None:
    """Raise ShapeAnnotationError unless a declared TensorShapeProto allows a shape."""
    if shape_proto is None:
        return
    if len(shape_proto.dim) != len(actual_shape):
        raise ShapeAnnotationError(
            f"value {name!r}: rank {len(actual_shape)} where {len(shape_proto.dim)} is declared"
        )
    for axis, (dim, actual) in enumerate(zip(shape_proto.dim, actual_shape, strict=True)):
        bindings.check_and_bind(dim, int(actual), context=f"value {name!r}, axis {axis}")


def check_value_against_type(
    type_proto: Any, value: Any, bindings: SymbolBindings, name: str
) -> None:
    """Raise ShapeAnnotationError unless a tensor is of a declared TypeProto; pass others by."""
    if type_proto is None or not type_proto.HasField("tensor_type"):
        return
    shape = getattr(value, "shape", None)
    if shape is None:
        return
    declared = type_proto.tensor_type
    found = getattr(value, "dtype", None)
    if declared.elem_type and found is not None:
        wanted = _numpy_type(declared.elem_type)
        text = wanted == np.dtype(object) and found.kind == "U"
        if wanted is not None and wanted != found and not text:
            raise ShapeAnnotationError(
                f"value {name!r}: {found} is not the declared element type {wanted}"
            )
    check_shape(declared.shape if declared.HasField("shape") else None, shape, bindings, name)


def _numpy_type(element: int) -> Any:
    try:
        return tensor_dtype_to_np_dtype(element)
    except KeyError:
        return None
