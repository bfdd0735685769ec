"""Orders of elements: insertion into a short list, and a stable merge sort of a row."""

from collections.abc import Callable

from sardonyx.dims import Size, symbol
from sardonyx.dtypes import DataType
from sardonyx.loops.build import constant
from sardonyx.loops.nodes import (
    Binary,
    Buffer,
    Cast,
    Guard,
    Let,
    Load,
    Loop,
    Read,
    Register,
    Select,
    Statement,
    Store,
    Unary,
    Update,
    Value,
    Whole,
    dtype_of,
)

Before = Callable[[Value, Value], Value]
"""Whether the left of two keys must come before the right one; neither must where alike."""
Place = Callable[[Size], tuple[Size, ...]]
"""Where an element of a row lies in its buffer."""
MOST_PASSES = 62


def ascending(left: Value, right: Value) -> Value:
    """The smaller key first, NaN last."""
    return _before("lt", left, right, right, left)


def descending(left: Value, right: Value) -> Value:
    """The larger key first, NaN before everything."""
    return _before("gt", left, right, left, right)


def _before(relation: str, left: Value, right: Value, nan: Value, number: Value) -> Value:
    plain = Binary(relation, left, right)
    if not dtype_of(left).is_float:
        return plain
    apart = Binary("and", Binary("ne", nan, nan), Binary("eq", number, number))
    return Binary("or", plain, apart)


def insert_best(
    keys: Callable[[Size], Value], size: Size, values: Buffer, places: Buffer, at: Place,
    most: Size, before: Before,
) -> list[Statement]:  # fmt: skip
    """The first `most` of `size` keys in order, and where they stood; for short lists.

    A key that comes behind the last one of a full list costs one comparison.
    """
    item, slot, moved = symbol("%item"), symbol("%slot"), symbol("%moved")
    key = keys(item)
    last = Load(values, at(symbol("%worst")))
    here = Binary("lt", Whole(item), Whole(most))
    count = Select(before(key, Load(values, at(slot))), _whole(0), _whole(1))
    target = symbol("%last") - 1 - moved
    insert: tuple[Statement, ...] = (
        Let("%filled", Binary("min", Whole(item), Whole(most))),
        Register("ahead", DataType.INT64, (), 0),
        Loop("%slot", symbol("%filled"), (Update("ahead", "add", count),)),
        Let("%ahead", Read("ahead", DataType.INT64)),
        Let("%last", Binary("min", Whole(item), Whole(most - 1))),
        Loop("%moved", symbol("%last") - symbol("%ahead"), (
            Store(values, at(target + 1), Load(values, at(target))),
            Store(places, at(target + 1), Load(places, at(target))),
        )),
        Store(values, at(symbol("%ahead")), key),
        Store(places, at(symbol("%ahead")), Whole(item)),
    )  # fmt: skip
    body: tuple[Statement, ...] = (
        Let("%worst", Select(here, _whole(0), Whole(most - 1))),
        Let("%better", _number(Binary("or", here, before(key, last)))),
        Guard(0, symbol("%better"), insert),
    )
    start = (Store(values, at(0), keys(0)),)
    return [Guard(0, most, (Guard(0, size, start), Loop("%item", size, body)))]


def merge_sort(
    keys: Buffer, places: Buffer, row: Size, size: Size, before: Before
) -> list[Statement]:
    """Sort a row in place number 0 of [2, rows, elements], stably, with its places.

    The name `%sorted` then says in which of the two places the sorted row lies.
    """
    turn = symbol("%pass") % 2
    at = {side: symbol(f"%{side}") for side in ("left", "right")}
    heads = {side: Load(keys, (turn, row, symbol(f"%at_{side}"))) for side in at}
    ended = Binary("ge", Whole(at["right"]), Whole(symbol("%end")))
    unread = Binary("lt", Whole(at["left"]), Whole(symbol("%middle")))
    first = Binary("or", ended, Unary("not", before(heads["right"], heads["left"])))
    chosen = Select(Binary("and", unread, first), _whole(1), _whole(0))
    taken = symbol("%left_taken")
    place = symbol("%from")
    into = (1 - turn, row, symbol("%begin") + symbol("%step"))
    step: tuple[Statement, ...] = (
        Let("%left", Read("left", DataType.INT64)),
        Let("%right", Whole(symbol("%middle") + symbol("%step") + symbol("%begin") - at["left"])),
        *(Let(f"%at_{side}", Binary("min", Whole(at[side]), Whole(size - 1))) for side in at),
        Let("%left_taken", chosen),
        Let("%from", Whole(at["right"] + taken * (at["left"] - at["right"]))),
        Store(keys, into, Load(keys, (turn, row, place))),
        Store(places, into, Load(places, (turn, row, place))),
        Update("left", "add", Whole(taken)),
    )
    width = symbol("%width")
    run: tuple[Statement, ...] = (
        Let("%begin", Whole(symbol("%run") * 2 * width)),
        Let("%middle", Binary("min", Whole(symbol("%begin") + width), Whole(size))),
        Let("%end", Binary("min", Whole(symbol("%begin") + 2 * width), Whole(size))),
        Register("left", DataType.INT64, (), 0),
        Update("left", "add", Whole(symbol("%begin"))),
        Loop("%step", symbol("%end") - symbol("%begin"), step),
    )
    runs = (Let("%runs", Binary("div", Whole(size - 1 + 2 * width), Whole(2 * width))),)
    once = (*runs, Loop("%run", symbol("%runs"), run), Update("passes", "add", _whole(1)))
    passes: tuple[Statement, ...] = (
        Let("%width", Binary("shl", _whole(1), Whole(symbol("%pass")))),
        Guard(width, size, once),
    )
    return [
        Register("passes", DataType.INT64, (), 0),
        Loop("%pass", MOST_PASSES, passes),
        Let("%done", Read("passes", DataType.INT64)),
        Let("%sorted", Whole(symbol("%done") % 2)),
    ]


def _whole(number: int) -> Value:
    return constant(number, DataType.INT64)


def _number(truth: Value) -> Value:
    return Cast(truth, DataType.INT64)
