"""Recurrent layers: the input's products for all steps at once, then a routine through time."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.compiler.forms import (
    Axis,
    Contraction,
    Form,
    Memories,
    NotLowered,
    Room,
    Routine,
    View,
    binary,
    constant,
    reshape,
    results,
    select,
    transpose,
    unary,
)
from sardonyx.compiler.image import aligned
from sardonyx.compiler.kernels.recurrence import (
    Cell,
    Element,
    Layer,
    Parts,
    Phase,
    Stores,
    layer_kernels,
    order_in_panels,
    pack_kernel,
    units_in_panel,
)
from sardonyx.compiler.kernels.tile import pack_columns
from sardonyx.compiler.lowerings.pointwise import exponential_unit, softplus
from sardonyx.compiler.lowerings.request import Lowerings, Request
from sardonyx.dims import Size, product
from sardonyx.dtypes import DataType
from sardonyx.loops.nodes import Kernel
from sardonyx.ops.recurrent import Choice, Options

Function = Callable[[Form], Form]
_ACTIVATIONS: dict[str, Callable[[Form, float, float], Form]] = {
    "relu": lambda x, alpha, beta: binary("max", x, 0.0),
    "tanh": lambda x, alpha, beta: unary("tanh", x),
    "sigmoid": lambda x, alpha, beta: unary("sigmoid", x),
    "affine": lambda x, alpha, beta: x * alpha + beta,
    "leakyrelu": lambda x, alpha, beta: select(binary("ge", x, 0.0), x, x * alpha),
    "thresholdedrelu": lambda x, alpha, beta: select(binary("ge", x, alpha), x, 0.0),
    "scaledtanh": lambda x, alpha, beta: unary("tanh", x * beta) * alpha,
    "hardsigmoid": lambda x, alpha, beta: _between(x * alpha + beta, 0.0, 1.0),
    "elu": lambda x, alpha, beta: exponential_unit(x, alpha),
    "softsign": lambda x, alpha, beta: x / (1.0 + unary("abs", x)),
    "softplus": lambda x, alpha, beta: softplus(x),
}


def _between(x: Form, low: float, high: float) -> Form:
    return binary("min", binary("max", x, low), high)


def _functions(options: Options, default: tuple[str, ...]) -> list[tuple[Function, ...]]:
    """What is applied to gates, for each direction; once where directions do the same."""
    choices = options.activation_choices(default)
    return [tuple(map(_function, direction)) for direction in dict.fromkeys(choices)]


def _function(choice: Choice) -> Function:
    name, alpha, beta = choice
    return lambda x: _ACTIVATIONS[name](x, alpha, beta)


def _elements(count: int) -> tuple[Element, ...]:
    return tuple(Element((), DataType.FLOAT) for _ in range(count))


def _clip(options: Options, x: Form) -> Form:
    return x if options.clip is None else _between(x, -options.clip, options.clip)


def rnn(
    request: Request, x: Form, w: Form, r: Form, b: Form | None = None,
    lengths: Form | None = None, initial_h: Form | None = None, **attributes: Any,
) -> tuple[Form, ...]:  # fmt: skip
    """H = f(X W' + H R' + biases)."""
    options = Options(**attributes)
    inputs, gates, (h,) = _elements(1), _elements(1), _elements(1)
    stores = tuple(
        ((h, f(_clip(options, inputs[0] + gates[0]))),) for (f,) in _functions(options, ("Tanh",))
    )
    cell = Cell(inputs, (h,), (), (), (Phase(h, gates, stores),))
    return _layer(request, options, cell, x, w, r, b, lengths, [initial_h], True)


def gru(
    request: Request, x: Form, w: Form, r: Form, b: Form | None = None,
    lengths: Form | None = None, initial_h: Form | None = None, *,
    linear_before_reset: int, **attributes: Any,
) -> tuple[Form, ...]:  # fmt: skip
    """H = (1 - z) h + z H, with the reset gate behind the product or before it."""
    options = Options(**attributes)
    inputs, gates, (h, update, rest) = _elements(3), _elements(3), _elements(3)
    biases = _elements(3) if b is not None else ()
    sums: list[Form] = [gate + bias for gate, bias in zip(gates, biases, strict=False)]
    sums = sums or list(gates)
    kept: tuple[Element, ...] = ()
    first: list[Stores] = []
    second: list[Stores] = []
    for f, g in _functions(options, ("Sigmoid", "Tanh")):
        z, reset = (f(_clip(options, inputs[gate] + sums[gate])) for gate in range(2))
        if linear_before_reset:
            made = g(_clip(options, inputs[2] + reset * sums[2]))
            first.append(((h, (1.0 - z) * made + z * h),))
        else:
            made = g(_clip(options, inputs[2] + sums[2]))
            first.append(((update, z), (rest, reset * h)))
            second.append(((h, (1.0 - update) * made + update * h),))
    phases: tuple[Phase, ...] = (Phase(h, gates, tuple(first)),)
    if not linear_before_reset:
        kept = (update, rest)
        phases = Phase(h, gates[:2], tuple(first)), Phase(rest, gates[2:], tuple(second))
    cell = Cell(inputs, (h,), kept, biases, phases)
    return _layer(request, options, cell, x, w, r, b, lengths, [initial_h], False)


def lstm(
    request: Request, x: Form, w: Form, r: Form, b: Form | None = None,
    lengths: Form | None = None, initial_h: Form | None = None, initial_c: Form | None = None,
    p: Form | None = None, *, input_forget: int, **attributes: Any,
) -> tuple[Form, ...]:  # fmt: skip
    """Input, output, forget and cell gates, and a cell state beside the hidden one."""
    options = Options(**attributes)
    inputs, gates, (h, c) = _elements(4), _elements(4), _elements(2)
    peepholes = _elements(3) if p is not None else ()

    def gate(number: int) -> Form:
        """A gate before its function; its peephole shows the cell state as it is by then."""
        total = inputs[number] + gates[number]
        if number < len(peepholes):
            total = total + peepholes[number] * c
        return _clip(options, total)

    stores = []
    for f, g, last in _functions(options, ("Sigmoid", "Tanh", "Tanh")):
        taken = f(gate(0))
        forget = 1.0 - taken if input_forget else f(gate(2))
        cell_state = forget * c + taken * g(gate(3))
        stores.append(((c, cell_state), (h, f(gate(1)) * last(c))))
    cell = Cell(inputs, (h, c), (), peepholes, (Phase(h, gates, tuple(stores)),))
    initial = [initial_h, initial_c]
    return _layer(request, options, cell, x, w, r, b, lengths, initial, True, p)


def _layer(
    request: Request, options: Options, cell: Cell, x: Form, w: Form, r: Form, b: Form | None,
    lengths: Form | None, initial: list[Form | None], both_biases: bool,
    vectors: Form | None = None,
) -> tuple[Form, ...]:  # fmt: skip
    """The routine of a layer; biases of the recurrence are vectors unless the input takes both."""
    hidden = options.hidden_size or r.shape[2]
    if x.dtype is not DataType.FLOAT:
        raise NotLowered(f"a layer of {x.dtype.text} has no native form")
    if not isinstance(hidden, int) or hidden == 0:
        raise NotLowered("the number of hidden units is not known")
    steps, batch = x.shape[:2] if not options.layout else (x.shape[1], x.shape[0])
    units = units_in_panel(hidden, max(len(phase.gates) for phase in cell.phases))
    by_row = bool(options.layout) or _is_turned(x)
    in_panels = request.known(1) is not None and (b is None or request.known(3) is not None)
    layer = Layer(
        cell, options.direction, hidden, steps, batch, bool(options.layout), by_row, in_panels,
        units,
    )  # fmt: skip
    columns, directions = len(cell.inputs) * hidden, layer.directions
    state = (batch, directions, hidden) if layer.batch_first else (directions, batch, hidden)
    _agree(request, w, (directions, columns, x.shape[2]))
    _agree(request, r, (directions, columns, hidden))
    _agree(request, b, (directions, 2 * columns))
    _agree(request, lengths, (batch,))
    _agree(request, vectors, (directions, 3 * hidden))
    for form in initial:
        _agree(request, form, state)
    gates = _input_products(request, layer, columns, x, w, b, both_biases)
    if not both_biases and b is not None:
        vectors = _half(_known(request, 3, b), columns, 1)
    return _routine(request, layer, gates, r, lengths, initial, vectors)


def _agree(request: Request, form: Form | None, shape: tuple[Size, ...]) -> None:
    if form is not None:
        for found, wanted in zip(form.shape, shape, strict=True):
            request.agree(found, wanted)


def _known(request: Request, position: int, form: Form) -> Form:
    """A form as a constant of floats where its elements are known."""
    array = request.known(position)
    return form if array is None else constant(array.astype(np.float32))


def _half(biases: Form, columns: int, number: int) -> Form:
    """The biases of the input or of the recurrence, [directions, columns]."""
    axes = (Axis(0), Axis(1, number * columns))
    return View((biases.shape[0], columns), biases.dtype, biases, axes)


def _is_turned(x: Form) -> bool:
    """Whether steps and rows of an input lie the other way round in memory."""
    match x:
        case View(axes=(Axis(1, 0, 1), Axis(0, 0, 1), Axis(2, 0, 1))):
            return True
    return False


def _input_products(
    request: Request, layer: Layer, columns: int, x: Form, w: Form, b: Form | None, both: bool
) -> Form:
    """The input's part of all gates, directions side by side, for all steps and rows."""
    total = layer.directions * columns
    if layer.gates_by_row and not layer.batch_first:
        assert isinstance(x, View)
        x = x.source
    order: slice | list[int] = slice(None)
    if layer.gates_in_panels:
        order = order_in_panels(layer.hidden, len(layer.cell.inputs), layer.units)
    known = request.known(1)
    if known is not None:
        w = constant(known.astype(np.float32)[:, order])
    weights = transpose(reshape(w, (total, x.shape[2])), (1, 0))
    made: Form = Contraction((*x.shape[:2], total), x.dtype, x, weights, x.shape[2])
    if b is None:
        return made
    array = request.known(3)
    if array is not None:
        halves = array.astype(np.float32).reshape(layer.directions, 2, columns)
        summed = halves.sum(1) if both else halves[:, 0]
        return made + constant(summed[:, order].reshape(total))
    shared = _half(b, columns, 0)
    if both:
        shared = shared + _half(b, columns, 1)
    return made + reshape(shared, (total,))


def _routine(
    request: Request, layer: Layer, gates: Form, r: Form, lengths: Form | None,
    initial: list[Form | None], vectors: Form | None,
) -> tuple[Form, ...]:  # fmt: skip
    cell, hidden, directions, batch = layer.cell, layer.hidden, layer.directions, layer.batch
    counts = [len(phase.gates) for phase in cell.phases]
    widths, panels = [count * layer.units for count in counts], -(-hidden // layer.units)
    known = request.known(2)
    scratch: list[tuple[Size, ...]] = [(2, directions, batch, hidden)]
    scratch += [(directions, batch, panels, width) for width in widths]
    scratch += [(directions, batch, hidden)] * len(cell.kept)
    weights: list[Form] = [r]
    if known is None:
        scratch += [(directions, panels, hidden, width) for width in widths]
    else:
        weights = list(map(constant, _packed(known.astype(np.float32), counts, layer)))
    given = [lengths, *initial, vectors]
    arguments = (gates, *weights, *(form for form in given if form is not None))

    def write(memories: Memories) -> Sequence[Kernel]:
        found = iter(memories.arguments[1 + len(weights) :])
        several = [None if form is None else next(found) for form in given]
        made = list(memories.arguments[1 : 1 + len(weights)])
        kernels: list[Kernel] = []
        kept, packs = 1 + len(counts), 1 + len(counts) + len(cell.kept)
        if known is None:
            source, made = made[0], list(memories.scratch[packs:])
            for number, packed in enumerate(made):
                first = sum(counts[:number]) * hidden
                kernels.append(pack_kernel(source, packed, first, layer.units))
        output, *states = memories.results
        parts = Parts(
            memories.arguments[0], made, several[0], several[1:-1], several[-1], output, states,
            memories.scratch[0], memories.scratch[1:kept], memories.scratch[kept:packs],
        )  # fmt: skip
        return [*kernels, *layer_kernels(layer, parts, memories)]

    outer = (batch, layer.steps) if layer.batch_first else (layer.steps,)
    y = (*outer, directions, hidden) if layer.batch_first else (*outer, directions, batch, hidden)
    last = (batch, directions, hidden) if layer.batch_first else (directions, batch, hidden)
    rooms = (Room(y, gates.dtype), *(Room(last, gates.dtype) for _ in cell.states))
    work = product(last) * hidden * sum(counts)
    floats = tuple(Room(shape, DataType.FLOAT) for shape in scratch)
    return results(Routine(arguments, rooms, write, work, floats))


def _packed(
    r: NDArray[np.float32], counts: Sequence[int], layer: Layer
) -> Iterator[NDArray[np.float32]]:
    """Weights of each phase's gates, all of a unit's in one panel."""
    directions, hidden, units = layer.directions, layer.hidden, layer.units
    parts = np.split(r.reshape(directions, -1, hidden, hidden), np.cumsum(counts)[:-1], axis=1)
    for part, count in zip(parts, counts, strict=True):
        panels = pack_columns(part.transpose(0, 1, 3, 2), units).transpose(0, 2, 3, 1, 4)
        yield aligned(panels.reshape(directions, -1, hidden, count * units))


LOWERINGS: Lowerings = {("", "RNN"): rnn, ("", "GRU"): gru, ("", "LSTM"): lstm}
