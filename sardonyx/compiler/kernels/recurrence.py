"""Recurrent layers: in each step in time, tasks take some units of some rows.

A step is one or two phases: products of a state with weights, in register tiles, then the cell's
functions. All gates of a unit lie in one panel of weights, so a task needs nothing of the others
but the state before; a thread comes back to the same panels, which stay in its cache.
"""

from collections.abc import Sequence

from sardonyx.compiler.forms import Form, Memories
from sardonyx.compiler.kernels.nest import parallel_kernel
from sardonyx.compiler.kernels.reader import inlined
from sardonyx.compiler.kernels.tile import Tile, accumulated, tile_statements
from sardonyx.dims import Size, ceil_divide, maximum, minimum, symbol
from sardonyx.dtypes import DataType
from sardonyx.loops.build import constant, kernel, nest
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
from sardonyx.record import entity

ROWS_IN_TASK = 16
"""Rows of a batch that take a step together, so that weights are read once for all of them."""
ROWS_IN_TILE = 5
"""Rows of a tile at most."""
PANEL_COLUMNS = 64
"""Columns of a panel of weights at most, so that a tile may take all of them and reads weights in
order; units come in whole vectors of every target."""
DIRECTION, ROW, TIME, UNIT, END = "%direction", "%row", "%time", "%unit", "%end"
BLOCK, COUNT, STEP, PANEL, GATE = "%block", "%count", "%step", "%panel", "%gate"
PART, TILE, K, FIRST, HEIGHT = "%part", "%tile", "%k", "%first", "%height"


@entity
class Element(Form):
    """An element of a unit that a cell's functions read or make."""


Stores = tuple[tuple[Element, Form], ...]
"""What is stored to which element, one after another; all see the first state as it was before."""


@entity
class Phase:
    """Products of a state with the weights of some gates, then elements made from them."""

    state: Element
    gates: tuple[Element, ...]
    stores: tuple[Stores, ...]
    """For each direction; once where both do the same."""


@entity
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


@entity
class Layer:
    """A recurrent layer: its cell and its sizes."""

    cell: Cell
    direction: str
    hidden: int
    steps: Size
    batch: Size
    batch_first: bool
    gates_by_row: bool
    """Whether the input's part of gates lies by rows, then by steps."""
    gates_in_panels: bool
    """Whether the input's part of gates lies by panels of units, as `order_in_panels` says."""
    units: int
    """Whose gates lie side by side in a panel of weights."""

    @property
    def directions(self) -> int:
        """How many directions the layer runs in."""
        return 2 if self.direction == "bidirectional" else 1


@entity
class Parts:
    """The memory of a layer's parts; lengths and vectors may be left out, as may initial states."""

    gates: Buffer
    weights: Sequence[Buffer]
    lengths: Buffer | None
    initial: Sequence[Buffer | None]
    vectors: Buffer | None
    output: Buffer
    states: Sequence[Buffer]
    hidden: Buffer
    """The first state, as the step before left it and as this one makes it, in turns."""
    products: Sequence[Buffer]
    kept: Sequence[Buffer]


def units_in_panel(hidden: int, gates: int) -> int:
    """How many units' gates lie side by side in a panel, so that few are padding."""
    choices = range(16, max(PANEL_COLUMNS // gates, 16) + 1, 16)
    return min(choices, key=lambda units: (-(-hidden // units) * units, -units))


def _tiles(count: Size) -> Size:
    """How many tiles take some rows; they differ by a row at most."""
    return maximum(ceil_divide(count, ROWS_IN_TILE), 1)


def _heights(batch: Size) -> set[int]:
    """How many rows the tiles of a batch may have."""
    counts = set(range(1, ROWS_IN_TASK + 1))
    if isinstance(batch, int):
        counts &= {min(batch, ROWS_IN_TASK), batch % ROWS_IN_TASK}
    heights: set[int] = set()
    for count in counts:
        tiles = _tiles(count)
        assert isinstance(tiles, int)
        heights |= {count // tiles, -(-count // tiles)}
    return heights


def order_in_panels(hidden: int, gates: int, units: int) -> list[int]:
    """The columns of gates, all gates of a panel's units behind those of the panel before.

    >>> order_in_panels(3, 2, 2)
    [0, 1, 3, 4, 2, 5]
    """
    return [
        gate * hidden + unit
        for first in range(0, hidden, units)
        for gate in range(gates)
        for unit in range(first, min(first + units, hidden))
    ]


def pack_kernel(source: Buffer, packed: Buffer, first: int, units: int) -> Kernel:
    """Weights [directions, rows, hidden], gates from row `first` on, as panels of units."""
    directions, panels, hidden, width = packed.shape
    assert isinstance(width, int)
    gate, unit = symbol(GATE), symbol(PANEL) * units + symbol(UNIT)
    element = Load(source, (symbol(DIRECTION), first + gate * hidden + unit, symbol(K)))
    place = (symbol(DIRECTION), symbol(PANEL), symbol(K), gate * units + symbol(UNIT))
    body = (Guard(unit, hidden, (Store(packed, place, element),)),)
    inner = (Loop(UNIT, units, body, Kind.VECTOR),)
    loops = nest([(K, hidden), (GATE, width // units)], inner)
    return parallel_kernel([(DIRECTION, directions), (PANEL, panels)], loops)


def layer_kernels(layer: Layer, parts: Parts, memories: Memories) -> list[Kernel]:
    """The kernel that makes the first states, and the one that takes all steps."""
    writer = _Writer(layer, parts, memories)
    return [writer.beginning(), writer.steps()]


def _where_equal(size: Size, number: int, body: tuple[Statement, ...]) -> Guard:
    return Guard(number - 1, size, (Guard(size, number + 1, body),))


class _Writer:
    def __init__(self, layer: Layer, parts: Parts, memories: Memories) -> None:
        self.layer = layer
        self.parts = parts
        self.memories = memories
        self.row = symbol(BLOCK) * ROWS_IN_TASK + symbol(ROW)
        self.end: Size = layer.steps if parts.lengths is None else symbol(END)
        self.zero = constant(0.0, DataType.FLOAT)

    def beginning(self) -> Kernel:
        """States as they are before the first step; lengths of sequences are checked."""
        layer, lengths = self.layer, self.parts.lengths
        place = self.state(symbol(ROW), symbol(UNIT))
        hidden = (0, symbol(DIRECTION), symbol(ROW), symbol(UNIT))
        body: list[Statement] = []
        for state, given in zip(self.parts.states, self.parts.initial, strict=True):
            value = self.zero if given is None else Load(given, place)
            body.append(Store(state, place, value))
        body.append(Store(self.parts.hidden, hidden, Load(self.parts.states[0], place)))
        made: list[Statement] = [Loop(UNIT, layer.hidden, tuple(body), Kind.VECTOR)]
        if lengths is not None:
            length = Cast(Load(lengths, (symbol(ROW),)), DataType.INT64)
            report = (Store(self.memories.report, (0,), constant(1, DataType.INT64)),)
            made += [Let(END, length), Guard(self.end, 0, report)]
            made.append(Guard(layer.steps, self.end, report))
        cleared = tuple(Store(state, place, self.zero) for state in self.parts.states)
        nothing = (Loop(UNIT, layer.hidden, cleared, Kind.VECTOR),)
        made.append(Guard(self.end, 1, nothing))
        return parallel_kernel([(DIRECTION, layer.directions), (ROW, layer.batch)], made)

    def steps(self) -> Kernel:
        """Each phase is a step whose tasks are panels of units, of some rows and a direction."""
        layer, count = self.layer, len(self.layer.cell.phases)
        rows = minimum(ROWS_IN_TASK, layer.batch - symbol(BLOCK) * ROWS_IN_TASK)
        body: list[Statement] = [
            Let(TIME, Whole(symbol(STEP) // count)), Let(COUNT, Whole(rows))
        ]  # fmt: skip
        for number, phase in enumerate(layer.cell.phases):
            made = (*self.products(phase, number), *self.each_row(self.functions(number)))
            at = symbol(STEP) % count
            inner = made if count == 1 else (_where_equal(at, number, made),)
            body += inner
        blocks = ceil_divide(layer.batch, ROWS_IN_TASK)
        panels = self.parts.weights[0].shape[1]
        outer = [(DIRECTION, layer.directions), (PANEL, panels), (BLOCK, blocks)]
        (tasks,) = parallel_kernel(outer, body).body
        return kernel([Loop(STEP, layer.steps * count, (tasks,), Kind.STEPS)])

    def each_row(self, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        """The body for each row, behind the length of its sequence."""
        if self.parts.lengths is not None:
            given = Cast(Load(self.parts.lengths, (self.row,)), DataType.INT64)
            body = (Let(END, Binary("min", given, Whole(self.layer.steps))), *body)
        return (Loop(ROW, symbol(COUNT), body),)

    @property
    def unit(self) -> Size:
        """The unit of a panel's that is taken now."""
        return symbol(PANEL) * self.layer.units + symbol(UNIT)

    @property
    def extent(self) -> Size:
        """How many units a panel has."""
        hidden, units = self.layer.hidden, self.layer.units
        return units if hidden % units == 0 else minimum(units, hidden - symbol(PANEL) * units)

    def units(self, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        """The body for each unit of a panel."""
        return (Loop(UNIT, self.extent, body, Kind.VECTOR),)

    def state(self, row: Size, unit: Size) -> tuple[Size, ...]:
        """Where a state of the layer lies."""
        if self.layer.batch_first:
            return row, symbol(DIRECTION), unit
        return symbol(DIRECTION), row, unit

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
        at: tuple[Size, ...] = (symbol(time), symbol(DIRECTION), self.row, self.unit)
        if self.layer.batch_first:
            at = (at[2], at[0], at[1], at[3])
        return (Store(self.parts.output, at, value),)

    def input_column(self, gate: int) -> Size:
        """Where the input's part of a unit's gate lies among those of all gates."""
        layer, gates = self.layer, len(self.layer.cell.inputs)
        first = symbol(DIRECTION) * gates * layer.hidden
        if not layer.gates_in_panels:
            return first + gate * layer.hidden + self.unit
        return first + gates * layer.units * symbol(PANEL) + gate * self.extent + symbol(UNIT)

    def shown(self, time: Size) -> Load:
        """The first state that a step begins with."""
        return Load(self.parts.hidden, (time % 2, symbol(DIRECTION), self.row, self.unit))

    def elements(self) -> dict[Form, Load]:
        """Where a cell's elements lie for one unit."""
        cell, hidden, parts = self.layer.cell, self.layer.hidden, self.parts
        unit, where = self.unit, (symbol(DIRECTION), self.row)
        found: dict[Form, Load] = {}
        time = symbol("%at")
        gates = (self.row, time) if self.layer.gates_by_row else (time, self.row)
        for number, element in enumerate(cell.inputs):
            found[element] = Load(parts.gates, (*gates, self.input_column(number)))
        found[cell.states[0]] = self.shown(symbol(TIME))
        for element, buffer in zip(cell.states[1:], parts.states[1:], strict=True):
            found[element] = Load(buffer, self.state(self.row, unit))
        for element, buffer in zip(cell.kept, parts.kept, strict=True):
            found[element] = Load(buffer, (*where, unit))
        for number, element in enumerate(cell.vectors):
            assert parts.vectors is not None
            place = (symbol(DIRECTION), number * hidden + unit)
            found[element] = Load(parts.vectors, place)
        for phase, buffer in zip(cell.phases, parts.products, strict=True):
            for number, element in enumerate(phase.gates):
                column = number * self.layer.units + symbol(UNIT)
                found[element] = Load(buffer, (*where, symbol(PANEL), column))
        return found

    def functions(self, number: int) -> tuple[Statement, ...]:
        """A phase's elements of one row, where its sequence has not ended."""
        phase = self.layer.cell.phases[number]
        last = number == len(self.layer.cell.phases) - 1
        elements, made = self.elements(), self.shown(symbol(TIME) + 1)
        places = elements | {self.layer.cell.states[0]: made}
        bodies: list[tuple[Statement, ...]] = []
        for stores in phase.stores:
            body: tuple[Statement, ...] = ()
            for element, form in stores:
                place = places[element]
                body += (Store(place.buffer, place.indices, inlined(form, elements)),)
            if last:
                body += self.output(made, "%at")
            bodies.append(self.units(body))
        inner = bodies[0]
        if len(bodies) > 1:
            which = symbol(DIRECTION)
            inner = (Guard(which, 1, bodies[0]), Guard(0, which, bodies[1]))
        found = [Guard(symbol(TIME), self.end, (Let("%at", Whole(self.time())), *inner))]
        if last:
            left = Store(self.parts.states[0], self.state(self.row, self.unit), made)
            found.append(_where_equal(symbol(TIME) - self.end, -1, self.units((left,))))
        if last and self.parts.lengths is not None:
            rest = self.units(self.output(self.zero, TIME))
            found.append(Guard(self.end - 1, symbol(TIME), rest))
        return tuple(found)

    def products(self, phase: Phase, number: int) -> tuple[Statement, ...]:
        """A state's products with weights, in tiles of a few rows."""
        count, tile, tiles = symbol(COUNT), symbol(TILE), _tiles(symbol(COUNT))
        first, end = tile * count // tiles, (tile + 1) * count // tiles
        body: list[Statement] = [Let(FIRST, Whole(first)), Let(HEIGHT, Whole(end - first))]
        for height in sorted(_heights(self.layer.batch)):
            made = self.panel(phase, number, height)
            body.append(_where_equal(symbol(HEIGHT), height, made))
        return (Loop(TILE, tiles, tuple(body)),)

    def panel(self, phase: Phase, number: int, rows: int) -> tuple[Statement, ...]:
        """The products of a tile's rows with a panel of weights."""
        weights, products = self.parts.weights[number], self.parts.products[number]
        kept = dict(zip(self.layer.cell.kept, self.parts.kept, strict=True))
        width = weights.shape[3]
        assert isinstance(width, int)
        tile = Tile(rows, self.vectors(width, rows), self.memories.lanes)
        direction, first = symbol(DIRECTION), symbol(PART) * tile.nr

        def place(at: Size) -> Size:
            return symbol(BLOCK) * ROWS_IN_TASK + symbol(FIRST) + at

        def state(at: Size) -> Load:
            index = (direction, place(at), symbol(K))
            if phase.state in kept:
                return Load(kept[phase.state], index)
            return Load(self.parts.hidden, (symbol(TIME) % 2, *index))

        def weight(column: Size) -> Load:
            return Load(weights, (direction, symbol(PANEL), symbol(K), first + column))

        def store(at: Size, column: Size) -> tuple[Statement, ...]:
            index = (direction, place(at), symbol(PANEL), first + column)
            return (Store(products, index, accumulated(at, column)),)

        made = tile_statements(tile, [(K, self.layer.hidden)], state, weight, store)
        return (Loop(PART, width // tile.nr, tuple(made)),)

    def vectors(self, width: int, rows: int) -> int:
        """How many vectors of a panel a tile takes, so that it needs no more than registers."""
        lanes = self.memories.lanes
        registers = 32 if lanes == 16 else 16
        most = 8 if rows == 1 else (registers - 1) // (rows + 1)
        return max(count for count in range(1, most + 1) if width // lanes % count == 0)
