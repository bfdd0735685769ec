"""Attention with a state: a routine whose tasks take a head's matrix through all positions."""

from collections.abc import Sequence

from sardonyx.compiler.forms import Form, Memories, NotLowered, Room, Routine, results
from sardonyx.compiler.kernels.nest import parallel_kernel
from sardonyx.compiler.lowerings.request import Lowerings, Request
from sardonyx.dims import Size, symbol
from sardonyx.dtypes import DataType
from sardonyx.loops.build import constant
from sardonyx.loops.nodes import (
    Binary,
    Buffer,
    Kernel,
    Kind,
    Load,
    Loop,
    Statement,
    Store,
    Unary,
    Value,
)

FLOAT = DataType.FLOAT
BATCH, HEAD, TIME, ROW, COLUMN, QUERY = (
    symbol(f"%{name}") for name in ("batch", "head", "time", "row", "column", "query")
)


def linear_attention(
    request: Request, query: Form, key: Form, value: Form, past: Form | None = None,
    decay: Form | None = None, beta: Form | None = None, *, chunk_size: int, kv_num_heads: int,
    q_num_heads: int, scale: float, update_rule: str,
) -> tuple[Form, ...]:  # fmt: skip
    """o = scale q'S, where S decays and takes in the outer product of each key and value."""
    batch, steps, _ = query.shape
    depth, width = _size(key, kv_num_heads), _size(value, kv_num_heads)
    if q_num_heads % kv_num_heads:
        raise NotLowered(f"{q_num_heads} query heads are no multiple of {kv_num_heads} key heads")
    for form in (key, value, decay, beta):
        if form is not None:
            request.agree(batch, form.shape[0])
            request.agree(steps, form.shape[1])
    request.agree(query.shape[2], q_num_heads * depth)
    state = (batch, kv_num_heads, depth, width)
    if past is not None:
        for found, wanted in zip(past.shape, state, strict=True):
            request.agree(found, wanted)
    each = 0 if decay is None else _size(decay, kv_num_heads)
    if each not in (0, 1, depth) or (beta is not None and beta.shape[2] not in (1, kv_num_heads)):
        raise NotLowered("gates that are for neither heads nor rows have no native form")
    given = [past, decay, beta]
    factor, group = scale or depth**-0.5, q_num_heads // kv_num_heads

    def write(memories: Memories) -> Sequence[Kernel]:
        found = iter(memories.arguments[3:])
        parts = [None if form is None else next(found) for form in given]
        head = _Head(memories, parts, depth, width, each, group, factor)
        outer = [("%batch", batch), ("%head", kv_num_heads)]
        return [parallel_kernel(outer, head.statements(steps))]

    arguments = (query, key, value, *(form for form in given if form is not None))
    rooms = (Room((batch, steps, q_num_heads * width), FLOAT), Room(state, FLOAT))
    work = batch * steps * (q_num_heads * depth * width)
    scratch = (Room((batch, kv_num_heads, width), FLOAT),)
    return results(Routine(arguments, rooms, write, work, scratch))


def _size(form: Form, heads: int) -> int:
    size = form.shape[2]
    if not isinstance(size, int) or heads < 1 or size % heads:
        raise NotLowered("the size of heads is not known")
    return size // heads


class _Head:
    """One head's statements; its state is the routine's second result."""

    def __init__(
        self, memories: Memories, parts: Sequence[Buffer | None], depth: int, width: int,
        each: int, group: int, factor: float,
    ) -> None:  # fmt: skip
        self.query, self.key, self.value = memories.arguments[:3]
        self.past, self.decay, self.beta = parts
        self.output, state = memories.results
        (update,) = memories.scratch
        self.depth, self.width, self.each, self.group = depth, width, each, group
        self.factor = constant(factor, FLOAT)
        self.state = Load(state, (BATCH, HEAD, ROW, COLUMN))
        self.update = Load(update, (BATCH, HEAD, COLUMN))

    def statements(self, steps: Size) -> list[Statement]:
        """The state from its beginning through all positions."""
        start: Value = constant(0.0, FLOAT)
        if self.past is not None:
            start = Load(self.past, self.state.indices)
        step = [*self.updates(), *self.outputs()]
        first = self.rows(self.columns(self.state, start))
        return [*first, Loop("%time", steps, tuple(step))]

    def rows(self, body: Sequence[Statement]) -> tuple[Statement, ...]:
        return (Loop("%row", self.depth, tuple(body)),)

    def columns(self, place: Load, value: Value) -> tuple[Statement, ...]:
        store = Store(place.buffer, place.indices, value)
        return (Loop("%column", self.width, (store,), Kind.VECTOR),)

    def updates(self) -> list[Statement]:
        """The state decays, then takes in a key's product with what is new of a value."""
        key = Load(self.key, (BATCH, TIME, HEAD * self.depth + ROW))
        value: Value = Load(self.value, (BATCH, TIME, HEAD * self.width + COLUMN))
        made: list[Statement] = []
        if self.decay is not None:
            gate = HEAD * self.each + (ROW if self.each > 1 else 0)
            kept = Unary("exp", Load(self.decay, (BATCH, TIME, gate)))
            made += self.rows(self.columns(self.state, Binary("mul", self.state, kept)))
        if self.beta is not None:
            made += self.columns(self.update, value)
            taken = Binary("sub", self.update, Binary("mul", key, self.state))
            made += self.rows(self.columns(self.update, taken))
            heads = self.beta.shape[2]
            rate = Load(self.beta, (BATCH, TIME, 0 if heads == 1 else HEAD))
            made += self.columns(self.update, Binary("mul", self.update, rate))
            value = self.update
        outer = Binary("add", self.state, Binary("mul", key, value))
        return [*made, *self.rows(self.columns(self.state, outer))]

    def outputs(self) -> tuple[Statement, ...]:
        head = HEAD * self.group + QUERY
        place = Load(self.output, (BATCH, TIME, head * self.width + COLUMN))
        query = Load(self.query, (BATCH, TIME, head * self.depth + ROW))
        term = Binary("mul", Binary("mul", query, self.factor), self.state)
        body = (
            *self.columns(place, constant(0.0, FLOAT)),
            *self.rows(self.columns(place, Binary("add", place, term))),
        )
        return (Loop("%query", self.group, body),)


LOWERINGS: Lowerings = {("", "LinearAttention"): linear_attention}
