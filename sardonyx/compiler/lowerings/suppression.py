"""Boxes without those that overlap a better one, as a routine: a task for each batch and class."""

from collections.abc import Sequence

from sardonyx.compiler.forms import (
    Axis,
    Form,
    Memories,
    Room,
    Routine,
    Trim,
    View,
    reshape,
    results,
)
from sardonyx.compiler.kernels.nest import parallel_kernel
from sardonyx.compiler.kernels.sorting import Order, merge_sort
from sardonyx.compiler.lowerings.request import Lowerings, Request
from sardonyx.dims import Size, minimum, product, symbol
from sardonyx.dtypes import DataType
from sardonyx.loops.build import constant, kernel
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
    Unary,
    Update,
    Value,
    Whole,
)

FLOAT, INT64 = DataType.FLOAT, DataType.INT64
BATCH, CLASS, PLACE, BOX = symbol("%batch"), symbol("%class"), symbol("%place"), symbol("%box")
LOW, HIGH, AREA = (0, 1), (2, 3), 4


def non_max_suppression(
    request: Request, boxes: Form, scores: Form, most: Form | None = None,
    overlap: Form | None = None, least: Form | None = None, *, center_point_box: int,
) -> Trim:  # fmt: skip
    """The best boxes of each class, at most `most`, as rows of batch, class and box."""
    request.agree(boxes.shape[0], scores.shape[0])
    request.agree(boxes.shape[2], 4)
    count = request.agree(boxes.shape[1], scores.shape[2])
    batches, classes = scores.shape[:2]
    given = [most, overlap, least]
    limits = [None if form is None else _first(form) for form in given]
    known = request.known(2) if most is not None else None
    kept: Size = count
    if known is not None:
        kept = minimum(count, max(int(known.reshape(-1)[0]), 0))

    def write(memories: Memories) -> Sequence[Kernel]:
        found = iter(memories.arguments[2:])
        bounds = [None if form is None else next(found) for form in limits]
        return [
            parallel_kernel([("%batch", batches)], _corners(memories, count, center_point_box)),
            parallel_kernel(
                [("%batch", batches), ("%class", classes)],
                _one_class(memories, count, kept, classes, bounds),
            ),
            _joined(memories, batches, classes),
        ]

    rows = product((batches, classes))
    scratch = (
        Room((batches, 5, count), FLOAT), Room((2, rows, count), FLOAT),
        Room((2, rows, count), INT64), Room((rows, 5, kept), FLOAT), Room((rows, kept), INT64),
        Room((rows,), INT64),
    )  # fmt: skip
    rooms = (Room((rows * kept, 3), INT64), Room((1,), INT64))
    arguments = (boxes, scores, *(form for form in limits if form is not None))
    made, total = results(Routine(arguments, rooms, write, product(scores.shape) * 32, scratch))
    return Trim(made, total, 0)


def _first(form: Form) -> Form:
    """The first element, as a list of one."""
    axes = tuple(Axis(None) for _ in form.shape)
    return reshape(View((), form.dtype, form, axes), (1,))


def _corners(memories: Memories, count: Size, centred: int) -> list[Statement]:
    """The lower and higher corner and the area of each box, each number side by side."""
    boxes, (corners, *_) = memories.arguments[0], memories.scratch
    stores: list[Statement] = []
    sides: list[Value] = []
    for axis in range(2):
        first, second = (Load(boxes, (BATCH, BOX, axis + half)) for half in (0, 2))
        low, high = Binary("min", first, second), Binary("max", first, second)
        if centred:
            reach = Binary("mul", second, constant(0.5, FLOAT))
            low, high = Binary("sub", first, reach), Binary("add", first, reach)
        stores.append(Store(corners, (BATCH, LOW[axis], BOX), low))
        stores.append(Store(corners, (BATCH, HIGH[axis], BOX), high))
        sides.append(Binary("sub", high, low))
    stores.append(Store(corners, (BATCH, AREA, BOX), Binary("mul", *sides)))
    return [Loop("%box", count, tuple(stores))]


def _one_class(
    memories: Memories, count: Size, kept: Size, classes: Size, bounds: Sequence[Buffer | None]
) -> list[Statement]:
    """Boxes from the best score on; each is kept unless it overlaps one that is."""
    most, overlap, least = bounds
    scores = memories.arguments[1]
    corners, keys, places, held, chosen, counts = memories.scratch
    row = BATCH * classes + CLASS
    score = Load(scores, (BATCH, CLASS, BOX))
    passes: Value = _whole(1)
    if least is not None:
        passes = Cast(Binary("gt", score, Load(least, (0,))), INT64)
    gather: tuple[Statement, ...] = (
        Let("%at", Read("candidates", INT64)),
        Store(keys, (0, row, symbol("%at")), Unary("neg", score)),
        Store(places, (0, row, symbol("%at")), Whole(BOX)),
        Update("candidates", "add", passes),
    )
    limit: Value = _whole(0) if most is None else Load(most, (0,))
    number = symbol("%kept")
    keep: tuple[Statement, ...] = (
        *(
            Store(held, (row, part, number), Load(corners, (BATCH, part, PLACE)))
            for part in range(5)
        ),
        Store(chosen, (row, number), Whole(PLACE)),
        Update("kept", "add", _whole(1)),
    )
    shares = Select(_overlaps(corners, held, row, overlap), _small(1), _small(0))
    judge: tuple[Statement, ...] = (
        Let("%place", Load(places, (symbol("%sorted"), row, symbol("%rank")))),
        Register("shares", DataType.INT32, (), 0),
        Loop("%other", number, (Update("shares", "add", shares),), Kind.VECTOR),
        Let("%shares", Cast(Read("shares", DataType.INT32), INT64)),
        Guard(symbol("%shares"), 1, keep),
    )
    candidates = symbol("%candidates")
    judged = (Let("%kept", Read("kept", INT64)), Guard(number, symbol("%limit"), judge))
    return [
        Register("candidates", INT64, (), 0),
        Register("kept", INT64, (), 0),
        Let("%limit", Binary("min", limit, Whole(kept))),
        Loop("%box", count, gather),
        Let("%candidates", Read("candidates", INT64)),
        *merge_sort(keys, places, row, candidates, Order(False), ascending=True),
        Loop("%rank", candidates, judged),
        Store(counts, (row,), Read("kept", INT64)),
    ]


def _overlaps(corners: Buffer, held: Buffer, row: Size, overlap: Buffer | None) -> Value:
    """Whether a box shares more of its union with a box that is kept than is allowed."""
    sides: list[Value] = []
    for axis in range(2):
        low, high = (
            (Load(held, (row, part, symbol("%other"))), Load(corners, (BATCH, part, PLACE)))
            for part in (LOW[axis], HIGH[axis])
        )
        side = Binary("sub", Binary("min", *high), Binary("max", *low))
        sides.append(Binary("max", side, constant(0.0, FLOAT)))
    shared = Binary("mul", *sides)
    better = Load(held, (row, AREA, symbol("%other")))
    own = Load(corners, (BATCH, AREA, PLACE))
    union = Binary("sub", Binary("add", better, own), shared)
    threshold = constant(0.0, FLOAT) if overlap is None else Load(overlap, (0,))
    result: Value = Binary("gt", Binary("div", shared, union), threshold)
    for positive in (shared, better, own, union):
        result = Binary("and", result, Binary("gt", positive, constant(0.0, FLOAT)))
    return result


def _joined(memories: Memories, batches: Size, classes: Size) -> Kernel:
    """The boxes of all batches and classes one after another."""
    result, total = memories.results
    *_, chosen, counts = memories.scratch
    row = BATCH * classes + CLASS
    at = symbol("%at")
    parts: tuple[Value, ...] = (Whole(BATCH), Whole(CLASS), Load(chosen, (row, BOX)))
    body: tuple[Statement, ...] = (
        Let("%at", Read("total", INT64)),
        *(Store(result, (at, column), part) for column, part in enumerate(parts)),
        Update("total", "add", _whole(1)),
    )
    inner = (Let("%here", Load(counts, (row,))), Loop("%box", symbol("%here"), body))
    return kernel([
        Register("total", INT64, (), 0),
        Loop("%batch", batches, (Loop("%class", classes, inner),)),
        Store(total, (0,), Read("total", INT64)),
    ])  # fmt: skip


def _whole(number: int) -> Value:
    return constant(number, INT64)


def _small(number: int) -> Value:
    return constant(number, DataType.INT32)


LOWERINGS: Lowerings = {("", "NonMaxSuppression"): non_max_suppression}
