"""Orders of elements: the first few in registers, the first of many by a heap, a merge sort."""

from collections.abc import Callable

from sardonyx.dims import Size, ceil_divide, minimum, symbol
from sardonyx.dtypes import DataType
from sardonyx.loops.build import constant
from sardonyx.loops.nodes import (
    Binary,
    Buffer,
    Cast,
    Guard,
    Kind,
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
from sardonyx.record import record

MOST_PASSES = 62
CHUNK = 32
"""Keys of a row that are compared with the last one kept before each is looked at."""
Keys = Callable[[Size], Value]
"""The key at a place of a row."""


@record
class Item:
    """A key and where it stood."""

    key: Value
    place: Value


@record
class Order:
    """The smaller key first and NaN last, or all the other way; of keys alike the earlier one."""

    largest: bool

    def precedes(self, left: Item, right: Item) -> Value:
        """Whether an item comes before another one."""
        alike = Unary("not", self.less(right.key, left.key))
        earlier = Binary("and", alike, Binary("lt", left.place, right.place))
        return Binary("or", self.less(left.key, right.key), earlier)

    def less(self, left: Value, right: Value) -> Value:
        """Whether a key comes before another one that is not alike."""
        if self.largest:
            return _apart(Binary("gt", left, right), left, right)
        return _apart(Binary("lt", left, right), right, left)


def _apart(plain: Value, nan: Value, number: Value) -> Value:
    if not dtype_of(nan).is_float:
        return plain
    only_one = Binary("and", Binary("ne", nan, nan), Binary("eq", number, number))
    return Binary("or", plain, only_one)


@record
class Row:
    """Keys to be ordered; `adjacent` ones lie side by side in memory."""

    keys: Keys
    dtype: DataType
    size: Size
    adjacent: bool


def keep_first(
    row: Row, count: int, order: Order, store: Callable[[int, Item], tuple[Statement, ...]]
) -> list[Statement]:
    """The first `count` items in order, kept in registers; for few of them."""
    held = [
        Item(Read("keys", row.dtype, (slot,)), Read("places", DataType.INT64, (slot,)))
        for slot in range(count)
    ]
    moving = Item(Read("key", row.dtype), Read("place", DataType.INT64))
    body: list[Statement] = [
        Update("key", "set", row.keys(symbol("%item"))),
        Update("place", "set", Whole(symbol("%item"))),
    ]
    for slot, item in enumerate(held):
        empty = Binary("lt", item.place, _whole(0))
        first = _number(Binary("or", empty, order.less(moving.key, item.key)))
        body += [
            Let("%first", Binary("max", Whole(symbol("%first")), first) if slot else first),
            Let("%here", item.place),
            Update("key_here", "set", item.key),
            Update("keys", "set", _either(moving.key, item.key), (slot,)),
            Update("places", "set", _either(moving.place, item.place), (slot,)),
            Update("key", "set", _either(Read("key_here", row.dtype), moving.key)),
            Update("place", "set", _either(Whole(symbol("%here")), moving.place)),
        ]
    last = held[-1]
    empty = Binary("lt", last.place, _whole(0))

    def passes(key: Value) -> Value:
        return Binary("or", empty, order.less(key, last.key))

    return [
        Register("keys", row.dtype, (count,), 0),
        Register("places", DataType.INT64, (count,), -1),
        *(Register(name, row.dtype, (), 0) for name in ("key", "key_here")),
        Register("place", DataType.INT64, (), 0),
        *_passing(row, 0, passes, tuple(body)),
        *(statement for slot, item in enumerate(held) for statement in store(slot, item)),
    ]


def _either(then: Value, other: Value) -> Value:
    return Select(Binary("gt", Whole(symbol("%first")), _whole(0)), then, other)


def _passing(
    row: Row, begin: Size, passes: Callable[[Value], Value], body: tuple[Statement, ...]
) -> tuple[Statement, ...]:
    """The body for each `%item` from `begin` on whose key passes, which the body may change."""
    single = (Let("%passes", _number(passes(row.keys(symbol("%item"))))),)
    each = (*single, Guard(0, symbol("%passes"), body))
    if not row.adjacent:
        item = Let("%item", Whole(begin + symbol("%number")))
        return (Loop("%number", row.size - begin, (item, *each)),)
    start = begin + symbol("%chunk") * CHUNK
    here = minimum(CHUNK, row.size - start)
    some = Select(passes(row.keys(start + symbol("%lane"))), _small(1), _small(0))
    return (
        Loop("%chunk", ceil_divide(row.size - begin, CHUNK), (
            Register("some", DataType.INT32, (), 0),
            Loop("%lane", here, (Update("some", "add", some),), Kind.VECTOR),
            Let("%some", Cast(Read("some", DataType.INT32), DataType.INT64)),
            Guard(0, symbol("%some"), (
                Loop("%number", here, (Let("%item", Whole(start + symbol("%number"))), *each)),
            )),
        )),
    )  # fmt: skip


def heap_select(
    row: Row, count: int, order: Order, keys: Buffer, places: Buffer, at: Size
) -> list[Statement]:
    """The first `count` items in some order, in place number 0 of [2, rows, count], row `at`.

    They are a heap with the last item on top, which an item that comes before it replaces.
    """

    def held(slot: Size) -> Item:
        return Item(Load(keys, (0, at, slot)), Load(places, (0, at, slot)))

    def put(slot: Size, item: Item) -> tuple[Statement, ...]:
        return Store(keys, (0, at, slot), item.key), Store(places, (0, at, slot), item.place)

    moving = Item(Read("key", row.dtype), Read("place", DataType.INT64))
    child, other, chosen = symbol("%child"), symbol("%other"), symbol("%chosen")
    sink: tuple[Statement, ...] = (
        Let("%slot", Read("slot", DataType.INT64)),
        Let("%child", Whole(symbol("%slot") * 2 + 1)),
        Guard(child, count, (
            Let("%other", Binary("min", Whole(child + 1), Whole(count - 1))),
            Let("%chosen", Select(order.precedes(held(child), held(other)), Whole(other),
                                  Whole(child))),
            Let("%sinks", _number(order.precedes(moving, held(chosen)))),
            Guard(0, symbol("%sinks"), (
                *put(symbol("%slot"), held(chosen)), Update("slot", "set", Whole(chosen)),
            )),
        )),
    )  # fmt: skip
    settle: tuple[Statement, ...] = (
        Loop("%level", count.bit_length(), sink),
        Let("%slot", Read("slot", DataType.INT64)),
        *put(symbol("%slot"), moving),
    )
    back = count // 2 - 1 - symbol("%built")
    build = (
        Update("key", "set", held(back).key),
        Update("place", "set", held(back).place),
        Update("slot", "set", Whole(back)),
        *settle,
    )
    item = symbol("%item")
    replace = (
        Update("key", "set", row.keys(item)),
        Update("place", "set", Whole(item)),
        Update("slot", "set", _whole(0)),
        *settle,
    )
    first = symbol("%filled")
    return [
        Register("key", row.dtype, (), 0),
        Register("place", DataType.INT64, (), 0),
        Register("slot", DataType.INT64, (), 0),
        Loop("%filled", count, put(first, Item(row.keys(first), Whole(first)))),
        Loop("%built", count // 2, build),
        *_passing(row, count, lambda key: order.less(key, held(0).key), replace),
    ]


def merge_sort(
    keys: Buffer, places: Buffer, row: Size, size: Size, order: Order, *, ascending: bool
) -> list[Statement]:
    """Sort a row in place number 0 of [2, rows, size], with its items' places.

    Where those are `ascending` before, only keys are compared. The name `%sorted` then says in
    which of the two places the sorted row lies.
    """
    turn, left, right = symbol("%pass") % 2, symbol("%left"), symbol("%right")
    begin, middle, end = symbol("%begin"), symbol("%middle"), symbol("%end")

    def head(name: str) -> Item:
        place = (turn, row, symbol(name))
        return Item(Load(keys, place), Load(places, place))

    ended = Binary("ge", Whole(right), Whole(end))
    heads = head("%at_left"), head("%at_right")
    stays = Unary("not", order.less(heads[1].key, heads[0].key))
    first = Binary("or", ended, stays if ascending else order.precedes(*heads))
    chosen = Binary("and", Binary("lt", Whole(left), Whole(middle)), first)
    into = (1 - turn, row, begin + symbol("%step"))
    step: tuple[Statement, ...] = (
        Let("%left", Read("left", DataType.INT64)),
        Let("%right", Whole(middle + symbol("%step") + begin - left)),
        Let("%at_left", Binary("min", Whole(left), Whole(size - 1))),
        Let("%at_right", Binary("min", Whole(right), Whole(size - 1))),
        Let("%taken", _number(chosen)),
        Let("%from", Whole(right + symbol("%taken") * (left - right))),
        Store(keys, into, head("%from").key),
        Store(places, into, head("%from").place),
        Update("left", "add", Whole(symbol("%taken"))),
    )
    width = symbol("%width")
    run: tuple[Statement, ...] = (
        Let("%begin", Whole(symbol("%run") * 2 * width)),
        Let("%middle", Binary("min", Whole(begin + width), Whole(size))),
        Let("%end", Binary("min", Whole(begin + 2 * width), Whole(size))),
        Register("left", DataType.INT64, (), 0),
        Update("left", "set", Whole(begin)),
        Loop("%step", end - begin, step),
    )
    once = (
        Let("%runs", Binary("div", Whole(size - 1 + 2 * width), Whole(2 * width))),
        Loop("%run", symbol("%runs"), run),
        Update("passes", "add", _whole(1)),
    )
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


def _small(number: int) -> Value:
    return constant(number, DataType.INT32)


def _number(truth: Value) -> Value:
    return Cast(truth, DataType.INT64)
