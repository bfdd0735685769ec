"""Element types while a model is being converted, when nothing has been inferred for it."""

from typing import Any

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.errors import ConversionError, UnlistedTypeError
from sardonyx.graph import Attribute, AttributeType, Node, TensorType, Value
from sardonyx.ops.build import Builder
from sardonyx.ops.catalog import canonical_domain, standard

_BY_TEXT = {f"tensor({kind.text})": kind for kind in DataType}
_ANYTIME = 15
"""From this opset on, `CastLike` makes a constant of any value's type."""


def element_type(value: Value | None) -> DataType | None:
    """A value's element type, by declarations and operators' signatures; None where unknown.

    >>> x = Value("x", TensorType(DataType.FLOAT16, None))
    >>> element_type(Node("Relu", [Node("Neg", [x]).output]).output)
    <DataType.FLOAT16: 10>
    """
    waiting, seen = [value], {value}
    while waiting:
        current = waiting.pop()
        if current is None:
            continue
        found = _declared(current) or (current.producer and _made(current.producer, current.index))
        if isinstance(found, DataType):
            return found
        for source in found or ():
            if source not in seen:
                seen.add(source)
                waiting.append(source)
    return None


def _declared(value: Value) -> DataType | None:
    kind = value.type
    if isinstance(kind, TensorType) and isinstance(kind.element, DataType) and kind.element:
        return kind.element
    return None


def _made(node: Node, index: int) -> Any:
    """The type of a node's output, or the inputs that have the same type."""
    operator = standard().get((canonical_domain(node.domain), node.op_type))
    version = None if operator is None else operator.newest()
    formal = None if version is None else version.formal_output(index)
    if version is not None and formal is not None:
        types = version.types(formal)
        if len(types) == 1 or not any(text.startswith("tensor(") for text in types):
            return _BY_TEXT.get(types[0])
    for name in ("to", "dtype", "output_dtype"):
        number = node.attribute(name)
        if isinstance(number, int) and number in _NUMBERS:
            return DataType(number)
    held = node.attributes.get("value")
    if held is not None and held.type == AttributeType.TENSOR:
        return held.value.dtype
    if version is None or formal is None:
        return None
    formals = [version.formal_input(position) for position in range(len(node.inputs))]
    return [
        value
        for value, wanted in zip(node.inputs, formals, strict=True)
        if wanted is not None and wanted.type == formal.type and not wanted.each
    ]


_NUMBERS = frozenset(DataType) - {DataType.UNDEFINED}


def constant_like(build: Builder, number: float | Attribute, like: Value) -> Any:
    """A scalar constant in another value's element type."""
    if isinstance(number, Attribute):
        return cast_like(build, build.constant(number), like)
    kind = element_type(like)
    if kind is not None:
        return build.constant(np.asarray(number).astype(kind.numpy))
    if build.opset >= _ANYTIME:
        return build.CastLike(np.float32(number), like)
    raise ConversionError(f"the element type of '{like.name}' must be known, and is not declared")


def cast_like(build: Builder, value: Value, like: Value) -> Any:
    """A value in another value's element type, at any opset."""
    if build.opset >= _ANYTIME:
        return build.CastLike(value, like)
    kind = element_type(like)
    if kind is None:
        raise ConversionError(
            f"the element type of '{like.name}' must be known, and is not declared"
        )
    return build.Cast(value, to=int(kind))


def refuse(node: Node, build: Builder, *kinds: DataType) -> None:
    """Raise where a node's input or output has one of these element types, unless they are kept."""
    for value in (*node.inputs, *node.outputs):
        kind = element_type(value)
        if kind in kinds and not build.keep_types:
            raise UnlistedTypeError(f"{kind.text} is not allowed before this opset")


def constant_value(value: Value | None) -> Any:
    """The array a value always holds, or None where it is not a constant."""
    if value is None:
        return None
    if value.tensor is not None:
        return value.tensor.numpy()
    maker = value.producer
    if maker is None or maker.op_type != "Constant" or maker.domain not in ("", "ai.onnx"):
        return None
    for name, kind in (("value", None), ("value_int", np.int64), ("value_ints", np.int64),
                       ("value_float", np.float32), ("value_floats", np.float32)):  # fmt: skip
        if name in maker.attributes:
            held = maker.attributes[name].value
            return held.numpy() if kind is None else np.asarray(held, kind)
    return None
