"""Reading types, tensors, value declarations and lists of names."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.dtypes import DataType
from sardonyx.format.protos import proto_class
from sardonyx.format.text_fields_parse import Annotation, FieldParser
from sardonyx.format.text_numbers import DECIMAL_LIST, INTEGER_LIST, read_floats
from sardonyx.format.text_tensors import (
    TYPE_NAMES,
    TYPE_NUMBERS,
    listed_type,
    number_limits,
    raw_of_numbers,
)

CONTAINER_TYPES = ("seq", "map", "optional", "sparse_tensor", "opaque")
RESERVED = frozenset([*TYPE_NUMBERS, *CONTAINER_TYPES])
"""Identifiers that start a type where a type may come next."""

_EXTERNAL = 1
_TYPE_HINT = (
    "types are float, int64, string, ... with dimensions as in float[N, 3], seq(...), map(...)"
)
_INT32 = (-(2**31), 2**31 - 1)


class ValueParser(FieldParser):
    """The part of the grammar below attributes."""

    def names(self, target: Any) -> None:
        """Names separated by commas into a repeated field; a comma after nothing: an empty name."""
        name, found = self._optional_name()
        if not found:
            return
        target.append(name)
        while self.take(","):
            name, found = self._optional_name()
            if not found:
                return
            target.append(name)

    def _optional_name(self) -> tuple[str, bool]:
        if self.peek() == '"':
            return self.literal().text, True
        name = self.identifier()
        return name, bool(name) or self.peek() == ","

    def pairs(self, target: Any, what: str) -> None:
        """One or more `"key": "value"` into a repeated field of entries."""
        while True:
            entry = target.add()
            entry.key = self.string(f"the key of {what}")
            self.expect(":", f'{what} is written "key": "value"')
            entry.value = self.string(f"the value of {what}")
            if not self.take(","):
                return

    def next_is_type(self) -> bool:
        """True before a type."""
        return self.peek_identifier() in RESERVED or (not self.standard and self.peek() == "?")

    def type(self, target: Any, depth: int) -> None:
        """A type into a TypeProto; `?` stands for an element type that is not given."""
        self.check_depth(depth)
        target.SetInParent()
        self.peek()
        start = self.position
        if not self.standard and self.take("?"):
            if self.peek() == "[":
                self._shape_of(target.tensor_type, depth + 1)
            self.annotate(target, depth)
            return
        name = self.expect_identifier("a type")
        number = TYPE_NUMBERS.get(name)
        if number is not None:
            target.tensor_type.elem_type = number
            self._shape_of(target.tensor_type, depth + 1)
        elif name in CONTAINER_TYPES:
            self._container_type(target, name, depth)
        else:
            self.fail("a type", _TYPE_HINT, start)
        self.annotate(target, depth)

    def _shape_of(self, target: Any, depth: int) -> None:
        """`[dimensions]`, `[]` for unknown rank, or nothing for a scalar."""
        self.check_depth(depth)
        target.SetInParent()
        if not self.take("["):
            self.check_depth(depth + 1)
            target.shape.SetInParent()
        elif not self.take("]"):
            self._dimensions(target.shape, depth + 1)
            self.expect("]", "dimensions are separated by commas and closed by ]")

    def _dimensions(self, shape: Any, depth: int) -> None:
        self.check_depth(depth + 1)
        while True:
            if self.take("?"):
                dimension = shape.dim.add()
            elif self.peek() == '"':
                name = self.literal().text
                dimension = shape.dim.add()
                dimension.dim_param = name
            elif name := self.identifier():
                dimension = shape.dim.add()
                dimension.dim_param = name
            else:
                size = self.integer("a dimension: a number, a name or ?")
                dimension = shape.dim.add()
                dimension.dim_value = size
            self.annotate(dimension, depth + 1)
            if not self.take(","):
                return

    def _container_type(self, target: Any, name: str, depth: int) -> None:
        closing = f"a {name} type is closed by )"
        self.expect("(", f"a {name} type has its parts in parentheses")
        match name:
            case "seq":
                target.sequence_type.SetInParent()
                self.type(target.sequence_type.elem_type, depth + 2)
            case "optional":
                target.optional_type.SetInParent()
                self.type(target.optional_type.elem_type, depth + 2)
            case "map":
                target.map_type.SetInParent()
                target.map_type.key_type = self._element_type("the type of the keys")
                self.expect(",", "a map type is written map(key type, value type)")
                self.type(target.map_type.value_type, depth + 2)
            case "sparse_tensor":
                number = self._element_type("the element type of a sparse tensor")
                target.sparse_tensor_type.elem_type = number
                self._shape_of(target.sparse_tensor_type, depth + 1)
            case _:
                self._opaque_type(target.opaque_type)
                return
        self.expect(")", closing)

    def _element_type(self, what: str) -> int:
        self.peek()
        start = self.position
        name = self.expect_identifier(what)
        if name not in TYPE_NUMBERS:
            self.fail(what, "write an element type such as float, int64 or string", start)
        return TYPE_NUMBERS[name]

    def _opaque_type(self, target: Any) -> None:
        target.SetInParent()
        if self.take(")"):
            return
        name = self.expect_identifier("the name or domain of an opaque type")
        while self.take("."):
            name += "." + self.expect_identifier("the rest of a dotted name")
        if self.take(","):
            target.domain = name
            name = self.expect_identifier("the name of an opaque type")
        target.name = name
        self.expect(")", "an opaque type is written opaque(domain, name)")

    def value_info(self, target: Any, depth: int) -> None:
        """`type name`, or a name alone, into a ValueInfoProto."""
        if self.next_is_type():
            self.type(target.type, depth + 1)
        target.name = self.name("the name of a value")
        self.annotate(target, depth)

    def tensor_of(self, target: Any, kind: Any, depth: int) -> None:
        """The values of a tensor whose type was read into the TypeProto `kind`."""
        self.peek()
        element = self._element_of(kind)
        if element:
            target.data_type = element
        if kind.HasField("tensor_type") and not kind.tensor_type.HasField("shape"):
            self.fail("a tensor type with known rank", "write the dimensions, as in float[2, 3]")
        for dimension in kind.tensor_type.shape.dim:
            if not dimension.HasField("dim_value"):
                hint = "a tensor with values has numbers as dimensions"
                self.fail("values of a tensor with known dimensions", hint)
            target.dims.append(dimension.dim_value)
        values: Any = []
        start = self.position
        if self.take("{"):
            if not self.take("}"):
                values = self._values(target, element)
                self.expect("}", "values are separated by commas and closed by }")
        elif self.take("["):
            target.data_location = _EXTERNAL
            self.pairs(target.external_data, "external data")
            self.expect("]", 'external data is written ["location": "...", ...]')
        annotation = self.annotation(target, depth)
        self._store(target, values, element, annotation, start)

    def _element_of(self, kind: Any) -> DataType:
        """The element type of a tensor's type; UNDEFINED where `?` was written."""
        given = kind.WhichOneof("value")
        number = kind.tensor_type.elem_type
        if given is None and not self.standard:
            return DataType.UNDEFINED
        if given != "tensor_type" or (number and number not in TYPE_NAMES):
            self.fail("a value that fits the type", "only tensors can have values in a text")
        return DataType(number)

    def refuse_annotations(self, before: int) -> None:
        """Fail if an annotation was read since `before`, in a place that is not kept."""
        if self.annotations != before:
            self.fail("no annotation before the values", "a tensor's @{...} follows its values")

    def _values(self, target: Any, kind: DataType) -> Any:
        """Listed elements; standard syntax keeps those before an error, so they go straight in."""
        if kind == DataType.UNDEFINED:
            self.fail("no values", "elements need a type: write one instead of ?")
        if self.standard:
            held = getattr(target, kind.field)
            if (bulk := self._bulk_values(kind)) is not None:
                held.extend(bulk.tolist() if isinstance(bulk, np.ndarray) else bulk)
                return []
            while True:
                held.append(self._value(kind))
                if not self.take(","):
                    return []
        if (bulk := self._bulk_values(kind)) is not None:
            return bulk
        values = [self._value(kind)]
        while self.take(","):
            values.append(self._value(kind))
        return values

    def _value(self, kind: DataType) -> Any:
        match kind.field:
            case "int32_data":
                self.peek()
                start = self.position
                value = self.integer("an integer element")
                if not _INT32[0] <= value <= _INT32[1]:
                    self.fail("an integer of 32 bits", f"{kind.text} elements are smaller", start)
                return value
            case "int64_data":
                return self.integer("an integer element")
            case "uint64_data":
                return self.unsigned("an unsigned integer element")
            case "float_data":
                return self.floating("a number", single=True)
            case "double_data":
                return self.floating("a number", single=False)
        return self.string("a string element").encode()

    def _bulk_values(self, kind: DataType) -> Any:
        """All elements at once when they are plain numbers that fit; None leaves it to `_value`."""
        form = listed_type(kind)
        if form is None:
            return None
        if form.kind == "f":
            return self.plain_floats("}", single=form.itemsize == 4)
        match kind.field:
            case "int32_data":
                return self.plain_integers("}", *_INT32)
            case "uint64_data":
                return self.plain_integers("}", 0, 2**64 - 1)
        return self.plain_integers("}")

    def plain_integers(
        self, closing: str, low: int = -(2**63), high: int = 2**63 - 1
    ) -> list[int] | None:
        """Integers up to `closing`, all at once; None, and nothing read, when that does not fit."""
        found = INTEGER_LIST.match(self.text, self.position)
        if found is None or not self.text.startswith(closing, found.end()):
            return None
        values = list(map(int, found.group().split(",")))
        if min(values) < low or max(values) > high:
            return None
        self.position = found.end()
        return values

    def plain_floats(self, closing: str, single: bool) -> NDArray[Any] | None:
        """Numbers up to `closing`, all at once; None, and nothing read, when that does not fit."""
        found = DECIMAL_LIST.match(self.text, self.position)
        if found is None or not self.text.startswith(closing, found.end()):
            return None
        values = read_floats(found.group().split(","), single)
        if values is not None:
            self.position = found.end()
        return values

    def _store(
        self, target: Any, values: Any, kind: DataType, annotation: Annotation | None, start: int
    ) -> None:
        """Put listed values where they belong: raw bytes if the annotation says so."""
        if annotation is not None and annotation.raw:
            target.raw_data = self._raw(values, kind, start)
        elif len(values):
            held = getattr(target, kind.field)
            held.extend(values.tolist() if isinstance(values, np.ndarray) else values)
        if annotation is not None:
            annotation.remove_from(target)

    def _raw(self, values: Any, kind: DataType, start: int) -> bytes:
        form = listed_type(kind)
        if form is None:
            self.fail("numbers", "only numbers of a known type can be kept in raw_data", start)
        if form.kind != "f" and len(values):
            low, high = number_limits(kind)
            if min(values) < low or max(values) > high:
                hint = f"raw {kind.text} elements are listed as {low} to {high}"
                self.fail("elements that fit", hint, start)
        return raw_of_numbers(values, kind)

    def tensor(self, target: Any, depth: int) -> None:
        """A whole tensor: its type, perhaps a name and `=`, and its values."""
        kind = proto_class("TypeProto")()
        before = self.annotations
        self.type(kind, depth)
        self.refuse_annotations(before)
        if self.peek() == '"' or self.peek_identifier():
            target.name = self.name("the name of a tensor")
        self.take("=")
        self.tensor_of(target, kind, depth)
