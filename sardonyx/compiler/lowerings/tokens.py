"""Counts of runs of tokens, as a routine: each run is looked for in sorted tables."""

from collections.abc import Sequence

import numpy as np

from sardonyx.compiler.forms import (
    Form,
    Memories,
    NotLowered,
    Room,
    Routine,
    binary,
    cast,
    constant,
    reshape,
    results,
)
from sardonyx.compiler.kernels.nest import parallel_kernel
from sardonyx.compiler.lowerings.request import Lowerings, Request
from sardonyx.dims import Size, floor_divide, maximum, minimum, product, symbol
from sardonyx.dtypes import DataType
from sardonyx.loops.build import constant as number
from sardonyx.loops.nodes import (
    Binary,
    Buffer,
    Cast,
    Guard,
    Kernel,
    Kind,
    Let,
    Load,
    Loop,
    Read,
    Register,
    Select,
    Statement,
    Store,
    Update,
    Value,
    Whole,
)
from sardonyx.ops.strings import pool_grams
from sardonyx.record import record

INT64, FLOAT = DataType.INT64, DataType.FLOAT
Ints = tuple[int, ...]
FEW_SKIPS = 64
"""With more skips than this, those that no row has room for are left out."""
ROW, STEP, FIRST, AT, NEAR = (symbol(f"%{name}") for name in ("row", "step", "first", "at", "near"))
"""A row, how far apart a run's tokens lie (less 1), where it begins, and places in a table."""


@record
class _Search:
    """A table of runs in order, [count, length], and what each of them counts for."""

    table: Buffer
    places: Buffer
    tokens: Buffer

    @property
    def length(self) -> int:
        """Tokens of a run."""
        size = self.table.shape[1]
        assert isinstance(size, int)
        return size

    def pairs(self, place: Size) -> list[tuple[Value, Value]]:
        """The tokens of a run in the table, each with the one it is compared with."""
        return [
            (Load(self.table, (place, item)), Load(self.tokens, (ROW, FIRST + (STEP + 1) * item)))
            for item in range(self.length)
        ]

    def statements(self, counts: Buffer, skips: int) -> tuple[Statement, ...]:
        """Every run of this length is looked for by halving."""
        count, width = self.table.shape[0], self.tokens.shape[1]
        assert isinstance(count, int)
        body: list[Statement] = [Update("at", "set", number(0, INT64))]
        for power in reversed(range((count - 1).bit_length())):
            body += self._halve(1 << power, count)
        same: Value = number(True, DataType.BOOL)
        for left, right in self.pairs(AT):
            same = Binary("and", same, Binary("eq", left, right))
        spot = (ROW, symbol("%place"))
        more = Binary("add", Load(counts, spot), number(1.0, FLOAT))
        found = (Let("%place", Load(self.places, (AT,))), Store(counts, spot, more))
        body += [
            Let("%at", Read("at", INT64)),
            Let("%found", Cast(same, INT64)),
            Guard(0, symbol("%found"), found),
        ]
        runs = Loop("%first", width - (STEP + 1) * (self.length - 1), tuple(body))
        steps: Size = skips + 1 if self.length > 1 else 1
        if skips > FEW_SKIPS:
            most = maximum(floor_divide(width - 1, max(self.length - 1, 1)), 0)
            steps = minimum(steps, most) if self.length > 1 else 1
        return Register("at", INT64, (), 0), Loop("%step", steps, (runs,))

    def _halve(self, step: int, count: int) -> list[Statement]:
        """Go on by a step where the run there does not come behind the one that is looked for."""
        further = Binary("add", Read("at", INT64), number(step, INT64))
        within: Value | None = None
        for left, right in reversed(self.pairs(NEAR)):
            if within is None:
                within = Binary("le", left, right)
            else:
                tied = Binary("and", Binary("eq", left, right), within)
                within = Binary("or", Binary("lt", left, right), tied)
        assert within is not None
        return [
            Let("%near", Binary("min", further, number(count - 1, INT64))),
            Update("at", "set", Select(within, Whole(NEAR), Read("at", INT64))),
        ]


def token_counts(
    request: Request, x: Form, *, max_gram_length: int, max_skip_count: int, min_gram_length: int,
    mode: str, ngram_counts: Ints, ngram_indexes: Ints, pool_int64s: Ints | None,
    pool_strings: tuple[str, ...] | None, weights: tuple[float, ...] | None,
) -> Form:  # fmt: skip
    """How often runs of tokens from a pool stand in rows of numbers."""
    if not x.shape or min(ngram_indexes, default=-1) < 0:
        raise NotLowered("one token, or a pool without places, has no native form")
    runs = dict(zip(pool_grams(pool_int64s or (), ngram_counts), ngram_indexes, strict=False))
    size, width = x.shape[-1], max(ngram_indexes) + 1
    tables: list[Form] = []
    by_length: dict[int, list[Ints]] = {}
    for run in sorted(runs):
        by_length.setdefault(len(run), []).append(run)
    for length, chosen in sorted(by_length.items()):
        if min_gram_length <= length <= max_gram_length:
            tables.append(constant(np.array(chosen, np.int64)))
            tables.append(constant(np.array([runs[run] for run in chosen], np.int64)))

    def write(memories: Memories) -> Sequence[Kernel]:
        (tokens, *given), (counts,) = memories.arguments, memories.results
        clear = Store(counts, (ROW, symbol("%item")), number(0.0, FLOAT))
        body: list[Statement] = [Loop("%item", width, (clear,), Kind.VECTOR)]
        for table, places in zip(given[::2], given[1::2], strict=True):
            body += _Search(table, places, tokens).statements(counts, max_skip_count)
        return [parallel_kernel([("%row", tokens.shape[0])], body)]

    rows = reshape(cast(x, INT64), (product(x.shape[:-1]), size))
    room = Room((rows.shape[0], width), FLOAT)
    work = product(x.shape) * 64
    (made,) = results(Routine((rows, *tables), (room,), write, work))
    return reshape(_weighted(made, mode, weights, width), (*x.shape[:-1], width))


def _weighted(counts: Form, mode: str, weights: tuple[float, ...] | None, width: int) -> Form:
    """Counts, or only whether there are any; times weights."""
    if mode == "IDF":
        counts = binary("min", counts, 1.0)
    if mode == "TF" or not weights:
        return counts
    if len(weights) < width:
        raise NotLowered(f"{len(weights)} weights for {width} counts")
    return counts * constant(np.array(weights[:width], np.float32))


LOWERINGS: Lowerings = {("", "TfIdfVectorizer"): token_counts}
