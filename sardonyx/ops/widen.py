"""Let a node compute in a wider element type where an older version does not take its own."""

from collections.abc import Callable, Iterable

from sardonyx.dtypes import DataType
from sardonyx.graph import Node, Value
from sardonyx.ops.build import Builder
from sardonyx.ops.catalog import Catalog
from sardonyx.ops.operator import Operator
from sardonyx.ops.replace import replace_node
from sardonyx.ops.signature import Formal, Signature

Types = Callable[[Value], str | None]
"""A value's type string such as `tensor(float)`, or None where it is not known."""

_WIDER = {
    "bfloat16": "float double",
    "float16": "float double",
    "float": "double",
    "float8e4m3fn": "float16 float",
    "float8e4m3fnuz": "float16 float",
    "float8e5m2": "float16 float",
    "float8e5m2fnuz": "float16 float",
    "float4e2m1": "float16 float",
    "int2": "int8 int16 int32 int64",
    "int4": "int8 int16 int32 int64",
    "int8": "int16 int32 int64",
    "int16": "int32 int64",
    "int32": "int64",
    "uint2": "uint8 uint16 uint32 uint64 int8 int16 int32 int64",
    "uint4": "uint8 uint16 uint32 uint64 int8 int16 int32 int64",
    "uint8": "uint16 uint32 uint64 int16 int32 int64",
    "uint16": "uint32 uint64 int32 int64",
    "uint32": "uint64 int64",
    "bool": "uint8 int8 int32 int64",
}
"""Types that hold every value of a type, the nearest first."""

_ELEMENTS = {f"tensor({kind.text})": kind for kind in DataType}


def widen(
    node: Node, operator: type[Operator], older: Signature, build: Builder, types: Types,
    catalog: Catalog,
) -> bool:  # fmt: skip
    """op(x) -> Cast(op(Cast(x))) with types that `older` takes; False where there are none.

    Floats are computed in more bits and rounded once, integers wrap around when they come back.
    """
    if operator.width_matters:
        return False
    places = list(_places(node, older))
    wrong = {formal.type for formal, value in places if _wrong(formal, value, older, types)}
    chosen: dict[str, tuple[DataType, DataType]] = {}
    for name in wrong:
        formals = [(formal, value) for formal, value in places if formal.type == name]
        pair = _pair(formals, older, build, types, catalog)
        if pair is None or not any(value in node.inputs for _, value in formals):
            return False
        chosen[name] = pair
    if not chosen:
        return False
    _replace(node, older, build, chosen)
    return True


def _places(node: Node, version: Signature) -> Iterable[tuple[Formal, Value]]:
    sides = ((version.formal_input, node.inputs), (version.formal_output, node.outputs))
    for formal_at, values in sides:
        for position, value in enumerate(values):
            formal = formal_at(position)
            if formal is not None and value is not None:
                yield formal, value


def _wrong(formal: Formal, value: Value, version: Signature, types: Types) -> bool:
    found = types(value)
    return found is not None and found not in version.types(formal)


def _pair(
    formals: list[tuple[Formal, Value]], version: Signature, build: Builder, types: Types,
    catalog: Catalog,
) -> tuple[DataType, DataType] | None:  # fmt: skip
    """The type that values of one type variable have, and the one to compute in."""
    found = {types(value) for _, value in formals} - {None}
    narrow = _ELEMENTS.get(found.pop() or "") if len(found) == 1 else None
    cast = catalog["", "Cast"].at(build.opset)
    if narrow is None or cast is None or any(formal.each for formal, _ in formals):
        return None
    castable = cast.types(cast.inputs[0])
    if f"tensor({narrow.text})" not in castable:
        return None
    for text in _WIDER.get(narrow.text, "").split():
        wide = f"tensor({text})"
        if wide in castable and all(wide in version.types(formal) for formal, _ in formals):
            return narrow, _ELEMENTS[wide]
    return None


def _replace(
    node: Node, version: Signature, build: Builder, chosen: dict[str, tuple[DataType, DataType]]
) -> None:
    def pair(formal: Formal | None) -> tuple[DataType, DataType] | None:
        return None if formal is None else chosen.get(formal.type)

    inputs: list[Value | None] = []
    for position, value in enumerate(node.inputs):
        types = pair(version.formal_input(position))
        inputs.append(build.Cast(value, to=int(types[1])) if value and types else value)
    attributes = dict(node.attributes)
    made = build.node(node.op_type, tuple(inputs), len(node.outputs), node.domain, attributes)
    results: list[Value] = []
    for position, value in enumerate(made if isinstance(made, tuple) else (made,)):
        types = pair(version.formal_output(position))
        wanted = node.outputs[position].name or node.outputs[position].uses
        results.append(build.Cast(value, to=int(types[0])) if types and wanted else value)
    replace_node(node, results)
