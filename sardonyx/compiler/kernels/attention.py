"""Attention without its scores in memory: blocks of queries by blocks of keys.

Many queries lie across lanes, so that neither keys nor values are packed and a row's largest score
and sum are lanes of registers; a few are taken one by one, with vectors along the head. Either way
a block of keys is scored, the sums so far are scaled down where its largest score is larger, and
its values are added.
"""

import math
from itertools import pairwise

from sardonyx.compiler.attend import Attention
from sardonyx.compiler.fuse import Fusion, Group
from sardonyx.compiler.kernels.nest import parallel_kernel
from sardonyx.compiler.kernels.reader import Call, Index, Reader, broadcast_index
from sardonyx.compiler.kernels.tile import (
    ACCUMULATORS,
    LANE,
    ROW,
    VECTOR,
    Tile,
    accumulated,
    over_tile,
)
from sardonyx.compiler.targets import Target
from sardonyx.dims import Size, ceil_divide, minimum, product, symbol
from sardonyx.dtypes import DataType
from sardonyx.loops.build import constant, dense
from sardonyx.loops.nodes import (
    Binary,
    Buffer,
    Guard,
    Kind,
    Let,
    Load,
    Local,
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
)
from sardonyx.loops.rewrite import offset, step
from sardonyx.record import entity

KEYS_AT_ONCE = 64
"""Keys of a block for many queries: its scores stay in the first cache."""
KEYS_IN_A_ROW = 256
"""Keys of a block for one query."""
VECTORS = 2
"""Vectors of queries that share the loads of keys and values."""
BLOCK, SMALL, QUERY, PART, FIRST, KEY, TILE, DEPTH = (
    "%block", "%small", "%query", "%part", "%first", "%key", "%tile", "%depth",
)  # fmt: skip
BEST, PEAK, SHIFT, FACTOR, TOTAL, SUM = "best", "peak", "shift", "factor", "total", "sum"
FLOAT = DataType.FLOAT
ZERO, LOWEST = constant(0.0), constant(-math.inf)


def attention_calls(
    fusion: Fusion, group: Group, attention: Attention, target: Target
) -> list[Call]:
    """One kernel: a task for each head and block of queries."""
    reader = Reader(fusion, group)
    problem = _Problem(attention, reader, reader.buffer(group.root), target)
    across = VECTORS * target.lanes
    blocks = ceil_divide(problem.queries, across)
    made = parallel_kernel([*problem.batch, (BLOCK, blocks)], _variants(problem))
    heads = problem.head + problem.width
    return [Call(made, reader.places(made), product(attention.scores.shape) * heads)]


def _variants(problem: "_Problem") -> list[Statement]:
    """Statements for any number of queries; those that a known number never needs are left out."""
    queries, lanes = problem.queries, problem.target.lanes
    few, some, many = _Few(problem), _Many(problem, 1, small=True), _Many(problem, VECTORS)
    variants: tuple[_Few | _Many, ...] = (few, some, many)
    limits: tuple[Size, ...] = (0, max(lanes // 4, 2), many.across, queries + 1)
    memory: dict[str, Local] = {}
    body: list[Statement] = []
    for variant, (least, most) in zip(variants, pairwise(limits), strict=True):
        known = isinstance(queries, int) and isinstance(least, int) and isinstance(most, int)
        if known and not least <= queries < most:  # type: ignore[operator]
            continue
        memory |= {item.memory: item for item in variant.memory()}
        body.append(Guard(least - 1, queries, (Guard(queries, most, variant.blocks()),)))
    return [*memory.values(), *body]


@entity
class _Problem:
    """Elements of queries, keys, values, scores and results at indices within one head."""

    attention: Attention
    reader: Reader
    result: Buffer
    target: Target

    @property
    def batch(self) -> list[tuple[str, Size]]:
        sizes = self.attention.result.shape[:-2]
        return [(f"%b{axis}", size) for axis, size in enumerate(sizes)]

    @property
    def queries(self) -> Size:
        return self.attention.scores.shape[-2]

    @property
    def keys(self) -> Size:
        return self.attention.scores.shape[-1]

    @property
    def head(self) -> int:
        size = self.attention.product.depth
        assert isinstance(size, int)
        return size

    @property
    def width(self) -> int:
        size = self.attention.result.shape[-1]
        assert isinstance(size, int)
        return size

    @property
    def rows(self) -> int:
        """Keys, or elements of a head, of a register tile."""
        return self.target.registers // 4

    def at(self, *last: Size) -> Index:
        return (*(symbol(name) for name, _ in self.batch), *last)

    def query(self, query: Size, depth: Size) -> Value:
        shape = (*self.attention.result.shape[:-2], self.queries, self.head)
        form = self.attention.query
        return self.reader.value(form, broadcast_index(form, self.at(query, depth), shape))

    def key(self, key: Size, depth: Size) -> Value:
        shape = (*self.attention.result.shape[:-2], self.head, self.keys)
        form = self.attention.key
        return self.reader.value(form, broadcast_index(form, self.at(depth, key), shape))

    def value(self, key: Size, depth: Size) -> Value:
        shape = (*self.attention.result.shape[:-2], self.keys, self.width)
        form = self.attention.result.right
        return self.reader.value(form, broadcast_index(form, self.at(key, depth), shape))

    def score(self, query: Size, key: Size, found: Value) -> Value:
        """The score of a query and key whose product is found."""
        for factor, inverse in self.attention.factors:
            number = self.reader.value(factor, (0,) * len(factor.shape))
            found = Binary("div" if inverse else "mul", found, number)
        made = found
        self.reader.forget()
        self.reader.computed[self.attention.product] = lambda _: made
        return self.reader.value(self.attention.scores, self.at(query, key))

    def weighed(self, query: Size, mixed: Value, total: Value) -> Value:
        """A mixture of values, once the sum of its weights is known."""
        attention = self.attention
        self.reader.forget()
        self.reader.computed[attention.total] = lambda _: total
        index = broadcast_index(attention.scale, self.at(query, 0), attention.total.shape)
        scale = self.reader.value(attention.scale, index)
        made: Value = Binary("div" if attention.divided else "mul", mixed, scale)
        if attention.cleaned:
            some = Binary("gt", total, ZERO)
            made = Select(some, made, ZERO)
        if not isinstance(self.keys, int) or self.keys == 0:
            none = Binary("eq", Whole(self.keys), constant(0, DataType.INT64))
            made = Select(none, ZERO, made)
        return made


def _running(at: tuple[Size, ...]) -> tuple[Statement, ...]:
    """What a block of keys does to the largest score: the sums so far get a factor.

    A row that saw no key but such of the score -inf is not shifted, which would make it NaN.
    """
    best, peak = Read(BEST, FLOAT, at), Read(PEAK, FLOAT, at)
    found = Binary("max", best, peak)
    nothing = Binary("eq", found, LOWEST)
    shift = Read(SHIFT, FLOAT, at)
    return (
        Update(SHIFT, "set", Select(nothing, ZERO, found), at),
        Update(FACTOR, "set", Unary("exp", Binary("sub", best, shift)), at),
        Update(BEST, "max", peak, at),
    )


class _Many:
    """Queries across lanes: of queries, scores and mixtures a task keeps a transposed block."""

    def __init__(self, problem: _Problem, vectors: int, *, small: bool = False) -> None:
        self.problem = problem
        self.vectors = vectors
        self.small = small
        self.across = across = vectors * problem.target.lanes
        self.packed = dense("packed", FLOAT, (problem.head, across))
        self.powers = dense("powers", FLOAT, (KEYS_AT_ONCE, across))
        self.mixed = dense("mixed", FLOAT, (problem.width, across))
        self.lanes = problem.target.lanes
        self.column = symbol(VECTOR) * self.lanes + symbol(LANE)
        self.here = minimum(KEYS_AT_ONCE, problem.keys - symbol(FIRST))

    def memory(self) -> list[Local]:
        return [
            Local("packed", FLOAT, (self.problem.head, self.across)),
            Local("powers", FLOAT, (KEYS_AT_ONCE, self.across)),
            Local("mixed", FLOAT, (self.problem.width, self.across)),
        ]

    def over(self, rows: int, *body: Statement) -> tuple[Statement, ...]:
        return over_tile(Tile(rows, self.vectors, self.lanes), body)

    def register(self, name: str, initial: float = 0.0, rows: int = 0) -> Register:
        shape = (rows, self.across) if rows else (self.across,)
        return Register(name, FLOAT, shape, initial, lanes=True)

    def blocks(self) -> tuple[Statement, ...]:
        """The block of a task, where the last one lies over the one before; or all `small` ones."""
        queries, name = self.problem.queries, SMALL if self.small else BLOCK
        start = symbol(name) * self.across
        if self.small:
            body = (Let(QUERY, Whole(start)), *self.block())
            return (Loop(SMALL, ceil_divide(queries, self.across), body),)
        return (Let(QUERY, Whole(minimum(start, queries - self.across))), *self.block())

    def there(self, *body: Statement) -> tuple[Statement, ...]:
        """The body where there is a query in a lane."""
        if not self.small:
            return body
        return (Guard(symbol(QUERY) + self.column, self.problem.queries, body),)

    def block(self) -> list[Statement]:
        """All keys for a block of queries."""
        problem = self.problem
        clear = self.over(1, Store(self.mixed, (symbol(DEPTH), self.column), ZERO))
        blocks = ceil_divide(problem.keys, KEYS_AT_ONCE)
        return [
            *self.pack(),
            Loop(DEPTH, problem.width, clear),
            self.register(BEST, -math.inf),
            self.register(TOTAL),
            Loop(PART, blocks, (Let(FIRST, Whole(symbol(PART) * KEYS_AT_ONCE)), *self.part())),
            *self.finish(),
        ]

    def pack(self) -> tuple[Statement, ...]:
        """The block of queries, turned."""
        problem, lanes = self.problem, self.lanes
        value = problem.query(symbol(QUERY) + self.column, symbol(DEPTH))
        if not isinstance(value, Load) or problem.head % lanes or self.small:
            store = Store(self.packed, (symbol(DEPTH), self.column), value)
            return (Loop(DEPTH, problem.head, self.over(1, *self.there(store))),)
        depth = symbol(TILE) * lanes + symbol(LANE)
        query = symbol(VECTOR) * lanes + symbol(ROW)
        value = problem.query(symbol(QUERY) + query, depth)
        return self.turned(problem.head, Store(self.packed, (depth, query), value))

    def turned(self, size: int, store: Store) -> tuple[Statement, ...]:
        """Squares of elements, which are loaded along lanes and stored along rows."""
        square = Loop(LANE, self.lanes, (store,), Kind.VECTOR)
        rows = Loop(ROW, self.lanes, (square,), Kind.TURN)
        vectors = Loop(VECTOR, self.vectors, (rows,), Kind.UNROLL)
        return (Loop(TILE, size // self.lanes, (vectors,)),)

    def part(self) -> list[Statement]:
        """A block of keys: their scores, powers, and values."""
        here, at = self.here, (self.column,)
        place = (symbol(KEY), self.column)
        power = Read("power", FLOAT, at)
        shifted = Binary("sub", Load(self.powers, place), Read(SHIFT, FLOAT, at))
        raised = (
            Update("power", "set", Unary("exp", shifted), at),
            Store(self.powers, place, power),
            Update(SUM, "add", power, at),
        )
        total = Binary("mul", Read(TOTAL, FLOAT, at), Read(FACTOR, FLOAT, at))
        sums = Update(TOTAL, "set", Binary("add", total, Read(SUM, FLOAT, at)), at)
        return [
            self.register(PEAK, -math.inf),
            *self.score_tiles(),
            self.register(SHIFT),
            self.register(FACTOR),
            self.register(SUM),
            self.register("power"),
            *self.over(1, *_running(at)),
            Loop(KEY, here, self.over(1, *raised)),
            *self.over(1, sums),
            *self.value_tiles(),
        ]

    def score_tiles(self) -> list[Statement]:
        problem, rows = self.problem, self.problem.rows
        row, place = symbol(ROW), symbol(TILE) * rows + symbol(ROW)
        key = symbol(FIRST) + place
        last = minimum(key, problem.keys - 1)
        element = Load(self.packed, (symbol(DEPTH), self.column))
        product_ = Binary("mul", problem.key(last, symbol(DEPTH)), element)
        found = accumulated(row, self.column)
        score = problem.score(symbol(QUERY) + self.column, key, found)
        keep = (
            Update(ACCUMULATORS, "set", score, (row, self.column)),
            Store(self.powers, (place, self.column), found),
            Update(PEAK, "max", found, (self.column,)),
        )
        add = Update(ACCUMULATORS, "add", product_, (row, self.column))
        tile = (
            self.register(ACCUMULATORS, rows=rows),
            Loop(DEPTH, problem.head, self.over(rows, add)),
            *self.over(rows, Guard(key, problem.keys, self.there(*keep))),
        )
        return [Loop(TILE, ceil_divide(self.here, rows), tile)]

    def value_tiles(self) -> list[Statement]:
        """The mixtures so far times their factor, plus those of this block."""
        width, rows = self.problem.width, self.problem.rows
        whole = width // rows
        tiles: list[Statement] = []
        if whole:
            tiles.append(Loop(TILE, whole, self.value_tile(rows, symbol(TILE) * rows)))
        if width % rows:
            tiles += self.value_tile(width % rows, whole * rows)
        return tiles

    def value_tile(self, rows: int, start: Size) -> tuple[Statement, ...]:
        depth = start + symbol(ROW)
        value = self.problem.value(symbol(FIRST) + symbol(KEY), depth)
        power = Load(self.powers, (symbol(KEY), self.column))
        at = (symbol(ROW), self.column)
        add = Update(ACCUMULATORS, "add", Binary("mul", value, power), at)
        place = (depth, self.column)
        before = Binary("mul", Load(self.mixed, place), Read(FACTOR, FLOAT, (self.column,)))
        store = Store(self.mixed, place, Binary("add", before, accumulated(*at)))
        return (
            self.register(ACCUMULATORS, rows=rows),
            Loop(KEY, self.here, self.over(rows, add)),
            *self.over(rows, store),
        )

    def finish(self) -> list[Statement]:
        """The mixtures, weighed and turned back."""
        problem, lanes = self.problem, self.lanes
        depth, query = symbol(DEPTH), symbol(QUERY) + self.column
        place = (depth, self.column)
        total = Read(TOTAL, FLOAT, (self.column,))
        made = problem.weighed(query, Load(self.mixed, place), total)
        if problem.width % lanes or self.small:
            store = Store(problem.result, problem.at(query, depth), made)
            return [Loop(DEPTH, problem.width, self.over(1, *self.there(store)))]
        scale = Loop(DEPTH, problem.width, self.over(1, Store(self.mixed, place, made)))
        turned = symbol(TILE) * lanes + symbol(ROW)
        value = Load(self.mixed, (turned, self.column))
        store = Store(problem.result, problem.at(query, turned), value)
        return [scale, *self.turned(problem.width, store)]


class _Few:
    """Queries one by one, with vectors along the head."""

    def __init__(self, problem: _Problem) -> None:
        self.problem = problem
        self.powers = dense("row", FLOAT, (KEYS_IN_A_ROW,))
        self.lanes = problem.target.lanes
        self.vectors = -(-problem.width // self.lanes)
        self.column = symbol(VECTOR) * self.lanes + symbol(LANE)
        self.here = minimum(KEYS_IN_A_ROW, problem.keys - symbol(FIRST))

    def memory(self) -> list[Local]:
        return [Local("row", FLOAT, (KEYS_IN_A_ROW,))]

    def blocks(self) -> tuple[Statement, ...]:
        """All queries."""
        return (Loop(QUERY, self.problem.queries, tuple(self.row())),)

    def row(self) -> list[Statement]:
        """All keys for one query."""
        problem = self.problem
        total = Read(TOTAL, FLOAT)
        made = problem.weighed(symbol(QUERY), Read("mixture", FLOAT, (self.column,)), total)
        store = Store(problem.result, problem.at(symbol(QUERY), self.column), made)
        blocks = ceil_divide(problem.keys, KEYS_IN_A_ROW)
        return [
            Register(BEST, FLOAT, (), -math.inf),
            Register(TOTAL, FLOAT, (), 0.0),
            self.register("mixture"),
            Loop(PART, blocks, (Let(FIRST, Whole(symbol(PART) * KEYS_IN_A_ROW)), *self.part())),
            *self.over(store),
        ]

    def register(self, name: str) -> Register:
        return Register(name, FLOAT, (self.vectors * self.lanes,), 0.0, lanes=True)

    def over(self, *body: Statement) -> tuple[Statement, ...]:
        """The body for every element of a value."""
        if self.problem.width % self.lanes:
            body = (Guard(self.column, self.problem.width, body),)
        return over_tile(Tile(1, self.vectors, self.lanes), body)

    def part(self) -> list[Statement]:
        """A block of keys: their scores, powers, and values."""
        at = (symbol(KEY),)
        element = Load(self.powers, at)
        power = Unary("exp", Binary("sub", element, Read(SHIFT, FLOAT)))
        column = (self.column,)
        mixture = Binary("mul", Read("mixture", FLOAT, column), Read(FACTOR, FLOAT))
        value = self.problem.value(symbol(FIRST) + symbol(KEY), self.column)
        add = Update("addend", "add", Binary("mul", element, value), column)
        more = Binary("add", mixture, Read("addend", FLOAT, column))
        total = Binary("mul", Read(TOTAL, FLOAT), Read(FACTOR, FLOAT))
        return [
            *self.scores(),
            Register(PEAK, FLOAT, (), -math.inf),
            Loop(KEY, self.here, (Update(PEAK, "max", element),), Kind.VECTOR),
            Register(SHIFT, FLOAT, (), 0.0),
            Register(FACTOR, FLOAT, (), 0.0),
            *_running(()),
            Register(SUM, FLOAT, (), 0.0),
            Loop(
                KEY,
                self.here,
                (Store(self.powers, at, power), Update(SUM, "add", element)),
                Kind.VECTOR,
            ),
            Update(TOTAL, "set", Binary("add", total, Read(SUM, FLOAT))),
            self.register("addend"),
            Loop(KEY, self.here, self.over(add)),
            *self.over(Update("mixture", "set", more, column)),
        ]

    def scores(self) -> list[Statement]:
        """Products along the head; or across keys, where those lie side by side."""
        problem = self.problem
        query, key, depth = symbol(QUERY), symbol(FIRST) + symbol(KEY), symbol(DEPTH)
        element = problem.key(key, depth)
        product_ = Binary("mul", problem.query(query, depth), element)
        side = isinstance(element, Load) and step(offset(element.buffer, element.indices), KEY) == 1
        if side and problem.head > 1:
            add = Store(
                self.powers,
                (symbol(KEY),),
                Binary("add", Load(self.powers, (symbol(KEY),)), product_),
            )
            found: Value = Load(self.powers, (symbol(KEY),))
            score = Store(self.powers, (symbol(KEY),), problem.score(query, key, found))
            clear = Store(self.powers, (symbol(KEY),), ZERO)
            return [
                Loop(KEY, self.here, (clear,), Kind.VECTOR),
                Loop(DEPTH, problem.head, (Loop(KEY, self.here, (add,), Kind.VECTOR),)),
                Loop(KEY, self.here, (score,), Kind.VECTOR),
            ]
        found = Read("dot", FLOAT)
        score = Store(self.powers, (symbol(KEY),), problem.score(query, key, found))
        dot = Loop(DEPTH, problem.head, (Update("dot", "add", product_),), Kind.VECTOR)
        return [Loop(KEY, self.here, (Register("dot", FLOAT, (), 0.0), dot, score))]
