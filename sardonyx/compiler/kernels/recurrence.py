"""Recurrent layers: each task takes some rows of a batch through all steps in time.

A step is one or two phases: products of a state with weights, in register tiles, then the cell's
functions over the units of each row. Rows do not wait for each other.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sardonyx.compiler.forms import Form, Memories
from sardonyx.compiler.kernels.nest import parallel_kernel
from sardonyx.compiler.kernels.reader import inlined
from sardonyx.compiler.kernels.tile import Tile, accumulated, tile_statements
from sardonyx.dims import Size, minimum, symbol
from sardonyx.dtypes import DataType
from sardonyx.loops.build import constant
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
    Statement,
    Store,
    Value,
    Whole,
)

ROWS_IN_TASK = 16
"""Rows of a batch that go through time together, so that weights are read once for all of them."""
ROWS_IN_TILE = 4
PANEL_WIDTHS = (128, 112, 96, 80, 64, 48, 32, 16)
"""Columns of a panel of weights; each is whole vectors of every target."""
DIRECTION, ROW, TIME, UNIT, END = "%direction", "%row", "%time", "%unit", "%end"
BLOCK, COUNT, TURN, PANEL = "%block", "%count", "%turn", "%panel"
PART, TILE, K = "%part", "%tile", "%k"


@dataclass(frozen=True, eq=False)
class Element(Form):
    """An element of a unit that a cell's functions read or make."""


Stores = tuple[tuple[Element, Form], ...]
"""What is stored to which element, one after another."""


@dataclass(frozen=True, eq=False)
class Phase:
    """Products of a state with the weights of some gates, then elements made from them."""

    state: Element
    gates: tuple[Element, ...]
    stores: tuple[Stores, ...]
    """For each direction; once where both do the same."""


@dataclass(frozen=True, eq=False)
class Cell:
    """One step in time. The first state is the layer's output."""

    inputs: tuple[Element, ...]
    """The input's part of each gate."""
    states: tuple[Element, ...]
    kept: tuple[Element, ...]
    """Elements that a phase leaves for the next one."""
    vectors: tuple[Element, ...]
    """Constants of each unit."""
    phases: tuple[Phase, ...]


@dataclass(frozen=True, eq=False)
class Layer:
    """A recurrent layer: its cell and its sizes."""

    cell: Cell
    direction: str
    hidden: int
    steps: Size
    batch: Size
    batch_first: bool

    @property
    def directions(self) -> int:
        """How many directions the layer runs in."""
        return 2 if self.direction == "bidirectional" else 1


@dataclass(frozen=True, eq=False)
class Parts:
    """The memory of a layer's parts; lengths and vectors may be left out, as may initial states."""

    gates: Buffer
    weights: Sequence[Buffer]
    lengths: Buffer | None
    initial: Sequence[Buffer | None]
    vectors: Buffer | None
    output: Buffer
    states: Sequence[Buffer]
    products: Sequence[Buffer]
    kept: Sequence[Buffer]


def panel_width(columns: int) -> int:
    """The width of panels that pads columns least."""
    return min(PANEL_WIDTHS, key=lambda width: -(-columns // width) * width)


def pack_kernel(source: Buffer, packed: Buffer, first: int, columns: int) -> Kernel:
    """Weights [directions, rows, hidden], some rows from `first` on, as panels of columns."""
    directions, panels, depth, width = packed.shape
    column = symbol(PANEL) * width + symbol(UNIT)
    element = Load(source, (symbol(DIRECTION), first + column, symbol(K)))
    place = (symbol(DIRECTION), symbol(PANEL), symbol(K), symbol(UNIT))
    body = (Guard(column, columns, (Store(packed, place, element),)),)
    loops = (Loop(K, depth, (Loop(UNIT, width, body, Kind.VECTOR),)),)
    return parallel_kernel([(DIRECTION, directions), (PANEL, panels)], loops)


def layer_kernel(layer: Layer, parts: Parts, memories: Memories) -> Kernel:
    """The kernel whose tasks are blocks of rows of each direction."""
    return _Writer(layer, parts, memories).kernel()


class _Writer:
    def __init__(self, layer: Layer, parts: Parts, memories: Memories) -> None:
        self.layer = layer
        self.parts = parts
        self.memories = memories
        self.row = symbol(BLOCK) * ROWS_IN_TASK + symbol(ROW)
        self.end: Size = layer.steps if parts.lengths is None else symbol(END)
        self.zero = constant(0.0, DataType.FLOAT)

    def kernel(self) -> Kernel:
        layer = self.layer
        count = minimum(ROWS_IN_TASK, layer.batch - symbol(BLOCK) * ROWS_IN_TASK)
        step: list[Statement] = []
        for number, phase in enumerate(layer.cell.phases):
            step += self.products(phase, number)
            step += self.each_row(self.functions(number))
        if self.parts.lengths is not None:
            rest = Guard(self.end - 1, symbol(TIME), self.units(self.output(self.zero, TIME)))
            step += self.each_row((rest,))
        body = [
            Let(COUNT, Whole(count)),
            *self.each_row(self.start(), first=True),
            Loop(TIME, layer.steps, tuple(step)),
            *self.each_row((Guard(self.end, 1, self.units(self.cleared())),)),
        ]
        blocks = (layer.batch + (ROWS_IN_TASK - 1)) // ROWS_IN_TASK
        return parallel_kernel([(DIRECTION, layer.directions), (BLOCK, blocks)], body)

    def each_row(self, body: tuple[Statement, ...], first: bool = False) -> tuple[Statement, ...]:
        """The body for each row, behind the length of its sequence; `first`, that is checked."""
        lengths = self.parts.lengths
        if lengths is None:
            return (Loop(ROW, symbol(COUNT), body),)
        given = Cast(Load(lengths, (self.row,)), DataType.INT64)
        length: list[Statement] = []
        if first:
            report = (Store(self.memories.report, (0,), constant(1, DataType.INT64)),)
            wanted = symbol("%given")
            length = [Let("%given", given), Guard(wanted, 0, report)]
            length.append(Guard(self.layer.steps, wanted, report))
        inside = Binary("min", given, Whole(self.layer.steps))
        return (Loop(ROW, symbol(COUNT), (*length, Let(END, inside), *body)),)

    def units(self, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        return (Loop(UNIT, self.layer.hidden, body, Kind.VECTOR),)

    def state(self, row: Size, unit: Size) -> tuple[Size, ...]:
        """Where a state of the layer lies."""
        if self.layer.batch_first:
            return row, symbol(DIRECTION), unit
        return symbol(DIRECTION), row, unit

    def start(self) -> tuple[Statement, ...]:
        place = self.state(self.row, symbol(UNIT))
        return self.units(tuple(
            Store(state, place, self.zero if given is None else Load(given, place))
            for state, given in zip(self.parts.states, self.parts.initial, strict=True)
        ))  # fmt: skip

    def cleared(self) -> tuple[Statement, ...]:
        place = self.state(self.row, symbol(UNIT))
        return tuple(Store(state, place, self.zero) for state in self.parts.states)

    def time(self) -> Size:
        """The step of the input that is taken now."""
        now, backward = symbol(TIME), self.end - 1 - symbol(TIME)
        match self.layer.direction:
            case "forward":
                return now
            case "reverse":
                return backward
        return now + symbol(DIRECTION) * (backward - now)

    def output(self, value: Value, time: str) -> tuple[Statement, ...]:
        at: tuple[Size, ...] = (symbol(time), symbol(DIRECTION), self.row, symbol(UNIT))
        if self.layer.batch_first:
            at = (at[2], at[0], at[1], at[3])
        return (Store(self.parts.output, at, value),)

    def elements(self) -> dict[Form, Load]:
        """Where a cell's elements lie for one unit."""
        cell, hidden, parts = self.layer.cell, self.layer.hidden, self.parts
        unit, where = symbol(UNIT), (symbol(DIRECTION), self.row)
        found: dict[Form, Load] = {}
        time = symbol("%at")
        gates = (self.row, time) if self.layer.batch_first else (time, self.row)
        for number, element in enumerate(cell.inputs):
            column = (symbol(DIRECTION) * len(cell.inputs) + number) * hidden + unit
            found[element] = Load(parts.gates, (*gates, column))
        for element, buffer in zip(cell.states, parts.states, strict=True):
            found[element] = Load(buffer, self.state(self.row, unit))
        for element, buffer in zip(cell.kept, parts.kept, strict=True):
            found[element] = Load(buffer, (*where, unit))
        for number, element in enumerate(cell.vectors):
            assert parts.vectors is not None
            place = (symbol(DIRECTION), number * hidden + unit)
            found[element] = Load(parts.vectors, place)
        for phase, buffer in zip(cell.phases, parts.products, strict=True):
            for number, element in enumerate(phase.gates):
                found[element] = Load(buffer, (*where, number * hidden + unit))
        return found

    def functions(self, number: int) -> tuple[Statement, ...]:
        """A phase's elements of one row, where its sequence has not ended."""
        phase = self.layer.cell.phases[number]
        last = number == len(self.layer.cell.phases) - 1
        elements = self.elements()
        bodies: list[tuple[Statement, ...]] = []
        for stores in phase.stores:
            body: tuple[Statement, ...] = ()
            for element, form in stores:
                place = elements[element]
                body += (Store(place.buffer, place.indices, inlined(form, elements)),)
            if last:
                body += self.output(elements[self.layer.cell.states[0]], "%at")
            bodies.append(self.units(body))
        inner = bodies[0]
        if len(bodies) > 1:
            which = symbol(DIRECTION)
            inner = (Guard(which, 1, bodies[0]), Guard(0, which, bodies[1]))
        return (Guard(symbol(TIME), self.end, (Let("%at", Whole(self.time())), *inner)),)

    def products(self, phase: Phase, number: int) -> tuple[Statement, ...]:
        """A state's products with weights, in tiles of some rows, then of single ones.

        Every other step takes panels from the last to the first: those are still in the cache.
        """
        batch, count = self.layer.batch, symbol(COUNT)
        several = count // ROWS_IN_TILE
        body: list[Statement] = []
        if not isinstance(batch, int) or batch >= ROWS_IN_TILE:
            start = symbol(TILE) * ROWS_IN_TILE
            body += self.tiles(phase, number, ROWS_IN_TILE, several, lambda row: start + row)
        if not isinstance(batch, int) or batch % ROWS_IN_TILE:
            begin, rest = several * ROWS_IN_TILE, count - several * ROWS_IN_TILE
            body += self.tiles(phase, number, 1, rest, lambda row: begin + symbol(TILE) + row)
        panels = self.parts.weights[number].shape[1]
        turn = symbol(TURN)
        back = turn + symbol(TIME) % 2 * (panels - 1 - 2 * turn)
        return (Loop(TURN, panels, (Let(PANEL, Whole(back)), *body)),)

    def tiles(
        self, phase: Phase, number: int, mr: int, extent: Size, row: Callable[[Size], Size]
    ) -> tuple[Statement, ...]:
        weights, products = self.parts.weights[number], self.parts.products[number]
        (left,) = [
            buffer
            for element, buffer in zip(
                (*self.layer.cell.states, *self.layer.cell.kept),
                (*self.parts.states, *self.parts.kept), strict=True,
            )
            if element is phase.state
        ]  # fmt: skip
        width = weights.shape[3]
        assert isinstance(width, int)
        tile = Tile(mr, self.vectors(width, mr), self.memories.lanes)
        direction, first = symbol(DIRECTION), symbol(PART) * tile.nr

        def place(at: Size) -> Size:
            return symbol(BLOCK) * ROWS_IN_TASK + row(at)

        def state(at: Size) -> Load:
            kept = phase.state in self.layer.cell.kept
            index = (direction, place(at), symbol(K)) if kept else self.state(place(at), symbol(K))
            return Load(left, index)

        def weight(column: Size) -> Load:
            return Load(weights, (direction, symbol(PANEL), symbol(K), first + column))

        def store(at: Size, column: Size) -> tuple[Statement, ...]:
            index = (direction, place(at), symbol(PANEL) * width + first + column)
            return (Store(products, index, accumulated(at, column)),)

        made = tile_statements(tile, [(K, self.layer.hidden)], state, weight, store)
        return (Loop(PART, width // tile.nr, (Loop(TILE, extent, tuple(made)),)),)

    def vectors(self, width: int, mr: int) -> int:
        """How many vectors of a panel a tile takes, so that its accumulators are registers."""
        lanes = self.memories.lanes
        most = 8 if mr == 1 else (24 if lanes == 16 else 12) // mr
        return max(count for count in range(1, most + 1) if width // lanes % count == 0)
