"""Rules about declared types of inputs and outputs."""

from sardonyx.checker.context import Context
from sardonyx.checker.findings import Place
from sardonyx.dtypes import DataType
from sardonyx.graph import (
    MapType,
    OpaqueType,
    OptionalType,
    SequenceType,
    TensorType,
    Type,
)

_KEYS = frozenset(
    kind for kind in DataType if kind == DataType.STRING or (kind.is_integer and kind.bits >= 8)
)


def check_interface_type(context: Context, type_: Type | None, place: Place) -> None:
    """Rules about the type of a main graph's input or output, which must be complete."""
    report = context.report
    match type_:
        case None:
            report.add("type-missing", place, "no type is declared")
        case TensorType():
            if type_.element is None:
                report.add("element-missing", place, "the tensor's element type is not declared")
            if type_.shape is None:
                report.add("shape-missing", place, "the tensor's shape is not declared")
            check_type(context, type_, place)
        case SequenceType() | OptionalType() if type_.element is None:
            what = f"the type {type_} does not say what it holds"
            report.add("container-element-missing", place, what)
        case MapType() if type_.key is None or type_.value is None:
            what = f"the type {type_} does not say what it holds"
            report.add("container-element-missing", place, what)
        case OpaqueType() if not type_.name:
            report.add("opaque-name-missing", place, "the opaque type has no name")
        case SequenceType() | OptionalType() | MapType() | OpaqueType():
            check_type(context, type_, place)
        case _:
            report.add("type-unset", place, "the declared type is empty")


def check_type(context: Context, type_: Type | None, place: Place) -> None:
    """Rules about any type, as far as it is stated."""
    outermost = type_
    while type_ is not None:
        match type_:
            case TensorType():
                if type_.element is None and type_ is not outermost:
                    what = "the element type of the tensors inside is not declared"
                    context.report.add("inner-element-missing", place, what)
                _check_element(context, type_.element, place)
                _check_shape(context, type_, place)
                return
            case SequenceType() | OptionalType():
                type_ = type_.element
            case MapType():
                if type_.key is not None and type_.key not in _KEYS:
                    what = f"the type {type_} has keys that are neither integers nor strings"
                    context.report.add("map-key-type", place, what)
                type_ = type_.value
            case _:
                return


def _check_element(context: Context, element: DataType | int | None, place: Place) -> None:
    if element == DataType.UNDEFINED:
        context.report.add("element-undefined", place, "the element type is UNDEFINED")
    elif element is not None and not isinstance(element, DataType):
        what = f"the element type {element} does not exist"
        context.report.add("element-unknown", place, what)


def _check_shape(context: Context, type_: TensorType, place: Place) -> None:
    if any(isinstance(size, int) and size < 0 for size in type_.shape or ()):
        what = f"the type {type_} has a negative size"
        context.report.add("dimension-negative", place, what)
