# mypy: disable-error-code="misc"
"""Cast(Cast(x, int64), float) -> Cast(x, float), where the way between loses nothing."""

from typing import Any

from sardonyx.dtypes import DataType
from sardonyx.graph import Node
from sardonyx.passes.operand import Operand
from sardonyx.passes.rules import Rule, apply_rules, because
from sardonyx.passes.unit import Unit

_HOLDS = {
    DataType.BOOL: "BOOL INT8 INT16 INT32 INT64 UINT8 UINT16 UINT32 UINT64 FLOAT16 FLOAT DOUBLE",
    DataType.INT8: "INT8 INT16 INT32 INT64 FLOAT16 FLOAT DOUBLE",
    DataType.UINT8: "UINT8 INT16 UINT16 INT32 UINT32 INT64 UINT64 FLOAT16 FLOAT DOUBLE",
    DataType.INT16: "INT16 INT32 INT64 FLOAT DOUBLE",
    DataType.UINT16: "UINT16 INT32 UINT32 INT64 UINT64 FLOAT DOUBLE",
    DataType.INT32: "INT32 INT64 DOUBLE",
    DataType.UINT32: "UINT32 INT64 UINT64 DOUBLE",
    DataType.INT64: "INT64",
    DataType.UINT64: "UINT64",
    DataType.FLOAT16: "FLOAT16 FLOAT DOUBLE",
    DataType.BFLOAT16: "BFLOAT16 FLOAT DOUBLE",
    DataType.FLOAT: "FLOAT DOUBLE",
    DataType.DOUBLE: "DOUBLE",
}
"""By element type: those that hold every value of it."""


class MergeCasts(Rule):
    """Cast(Cast(x, wide), y) -> Cast(x, y)."""

    shared = True
    since = 6

    def pattern(op: Any, x: Any) -> Any:
        return op.Cast(op.Cast(x).named("inner")).named("outer")

    def check(x: Operand, inner: Node, outer: Node) -> Any:
        if set(inner.attributes) | set(outer.attributes) != {"to"}:
            return because("a cast says how to round")
        if x.dtype is None:
            return because("the type is not known")
        between = DataType(inner.attribute("to"))
        return between.name in _HOLDS.get(x.dtype, "").split() or because("the first cast loses")

    def replace(op: Any, x: Operand, outer: Node) -> Any:
        return x if x.dtype == outer.attribute("to") else op.Cast(x, to=outer.attribute("to"))


def merge_casts(unit: Unit) -> bool:
    """Join casts that follow one another."""
    return bool(apply_rules(unit, MergeCasts))
