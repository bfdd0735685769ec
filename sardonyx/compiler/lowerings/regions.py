"""Regions of images, as routines: a task takes one channel of a region through a grid of cells."""

import math
from collections.abc import Sequence

from sardonyx.compiler.forms import Form, Memories, Room, Routine, results
from sardonyx.compiler.kernels.nest import parallel_kernel
from sardonyx.compiler.lowerings.request import Lowerings, Request
from sardonyx.compiler.lowerings.scattering import from_end
from sardonyx.dims import Size, product, symbol
from sardonyx.dtypes import DataType
from sardonyx.loops.build import constant
from sardonyx.loops.nodes import (
    Binary,
    Buffer,
    Cast,
    Guard,
    Kernel,
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
from sardonyx.ops.regions import MOST_POINTS
from sardonyx.record import record

INT64 = DataType.INT64
REGION, CHANNEL, IMAGE = symbol("%region"), symbol("%channel"), symbol("%image")


@record
class _Line:
    """One axis of a region: which corners it lies between, its cells, its pixels."""

    name: str
    corner: int
    cells: int
    size: Size

    @property
    def cell(self) -> Size:
        return symbol(f"%cell_{self.name}")

    @property
    def point(self) -> Size:
        return symbol(f"%point_{self.name}")

    @property
    def points(self) -> Size:
        return symbol(f"%points_{self.name}")


def roi_align(
    request: Request, x: Form, rois: Form, batch_indices: Form, *,
    coordinate_transformation_mode: str, mode: str, output_height: int, output_width: int,
    sampling_ratio: int, spatial_scale: float,
) -> Form:  # fmt: skip
    """The mean or maximum of points sampled in each cell of a grid laid over each region."""
    regions = request.agree(rois.shape[0], batch_indices.shape[0])
    request.agree(rois.shape[1], 4)
    shape = (regions, x.shape[1], output_height, output_width)
    half = coordinate_transformation_mode.lower() == "half_pixel"
    largest = mode.lower() == "max"
    lines = (
        _Line("y", 1, output_height, x.shape[2]), _Line("x", 0, output_width, x.shape[3]),
    )  # fmt: skip

    def write(memories: Memories) -> Sequence[Kernel]:
        image, corners, batches = memories.arguments
        aligned = _Aligned(image, corners, half, spatial_scale, sampling_ratio, largest)
        report = Store(memories.report, (0,), constant(1, INT64))
        start = [statement for line in lines for statement in aligned.start(line, report)]
        body = aligned.grid(lines, memories.results[0])
        index = from_end(Load(batches, (REGION,)), x.shape[0])
        checked: tuple[Statement, ...] = (
            Let("%image", index),
            Guard(IMAGE, 0, (report,)),
            Guard(x.shape[0] - 1, IMAGE, (report,)),
            *(Guard(line.size, 1, (report,)) for line in lines),
            Guard(-1, IMAGE, (Guard(IMAGE, x.shape[0], _where_there_is_one(
                lines, (*start, *body)
            )),)),
        )  # fmt: skip
        return [parallel_kernel([("%region", regions), ("%channel", x.shape[1])], checked)]

    routine = Routine((x, rois, batch_indices), (Room(shape, x.dtype),), write, product(shape) * 64)
    return results(routine)[0]


def _where_there_is_one(
    lines: tuple[_Line, _Line], body: tuple[Statement, ...]
) -> tuple[Statement, ...]:
    """The body where an image has pixels."""
    rows, columns = lines
    return (Guard(0, rows.size, (Guard(0, columns.size, body),)),)


class _Aligned:
    """Statements that sample points of a region; numbers are in registers, indices in names."""

    def __init__(
        self, image: Buffer, corners: Buffer, half: bool, scale: float, ratio: int, largest: bool
    ) -> None:
        self.image, self.corners = image, corners
        self.half, self.scale, self.ratio, self.largest = half, scale, ratio, largest
        self.dtype = image.dtype

    def number(self, value: float) -> Value:
        return constant(value, self.dtype)

    def read(self, name: str, line: _Line) -> Value:
        return Read(f"{name}_{line.name}", self.dtype)

    def start(self, line: _Line, report: Statement) -> list[Statement]:
        """Where a region begins along an axis, how long a cell is, and how many points it has."""
        places = [
            Binary("sub", Binary("mul", Load(self.corners, (REGION, corner)),
                                 self.number(self.scale)), self.number(0.5 if self.half else 0.0))
            for corner in (line.corner, line.corner + 2)
        ]  # fmt: skip
        extent: Value = Binary("sub", places[1], places[0])
        if not self.half:
            extent = Binary("max", extent, self.number(1.0))
        points: Value = constant(self.ratio, INT64)
        if self.ratio <= 0:
            points = Cast(Unary("ceil", self.read("length", line)), INT64)
        wanted, most = Whole(symbol(f"%wanted_{line.name}")), constant(MOST_POINTS, INT64)
        none = constant(0, INT64)
        names = ("start", "length", "low", "high", "at")
        return [
            *(Register(f"{name}_{line.name}", self.dtype, (), 0.0) for name in names),
            Update(f"start_{line.name}", "set", places[0]),
            Update(f"length_{line.name}", "set",
                   Binary("div", extent, self.number(float(line.cells)))),
            Let(f"%wanted_{line.name}", points),
            Guard(MOST_POINTS, symbol(f"%wanted_{line.name}"), (report,)),
            Let(f"%points_{line.name}",
                Select(Binary("gt", wanted, most), none, Binary("max", wanted, none))),
        ]  # fmt: skip

    def sample(self, line: _Line) -> list[Statement]:
        """The two pixels around a point and their weights; 0 for a point beyond the image."""
        length, at = self.read("length", line), self.read("at", line)
        wide = [Cast(Whole(item), self.dtype) for item in (line.cell, line.point, line.points)]
        inner = Binary("mul", Binary("add", wide[1], self.number(0.5)), length)
        begin = Binary("add", self.read("start", line), Binary("mul", wide[0], length))
        place = Binary("add", begin, Binary("div", inner, wide[2]))
        size = Cast(Whole(line.size), self.dtype)
        inside = Binary("and", Binary("ge", at, self.number(-1.0)), Binary("le", at, size))
        last = Cast(Whole(line.size - 1), self.dtype)
        clipped = Binary("min", Binary("max", at, self.number(0.0)), last)
        low, high = symbol(f"%low_{line.name}"), f"%high_{line.name}"
        first = Binary("min", Cast(clipped, INT64), Whole(line.size - 1))
        share = Binary("sub", at, Cast(Whole(low), self.dtype))
        weight = Binary("sub", self.number(1.0), share)
        return [
            Update(f"at_{line.name}", "set", place),
            Let(f"%inside_{line.name}", Cast(inside, INT64)),
            Update(f"at_{line.name}", "set", clipped),
            Let(f"%low_{line.name}", first),
            Let(high, Binary("min", Whole(low + 1), Whole(line.size - 1))),
            Update(f"low_{line.name}", "set", self.if_inside(line, weight)),
            Update(f"high_{line.name}", "set", self.if_inside(line, share)),
        ]

    def if_inside(self, line: _Line, value: Value) -> Value:
        inside = Binary("gt", Whole(symbol(f"%inside_{line.name}")), constant(0, INT64))
        return Select(inside, value, self.number(0.0))

    def grid(self, lines: tuple[_Line, _Line], result: Buffer) -> tuple[Statement, ...]:
        """Every cell's points taken together."""
        rows, columns = lines
        corners = [
            Binary("mul", Load(self.image, (IMAGE, CHANNEL, symbol(f"%{y}_y"), symbol(f"%{x}_x"))),
                   Binary("mul", self.read(y, rows), self.read(x, columns)))
            for y in ("low", "high") for x in ("low", "high")
        ]  # fmt: skip
        total = corners[0]
        for part in corners[1:]:
            total = Binary("max" if self.largest else "add", total, part)
        combine = "max" if self.largest else "add"
        pixel = (*self.sample(columns), Update("cell", combine, total))
        points = Loop("%point_x", columns.points, pixel)
        row = (*self.sample(rows), points)
        count = Whole(rows.points * columns.points)
        made: Value = Read("cell", self.dtype)
        if not self.largest:
            made = Binary("div", made, Cast(count, self.dtype))
        empty = Binary("lt", count, constant(1, INT64))
        place = (REGION, CHANNEL, rows.cell, columns.cell)
        cell = (
            Register("cell", self.dtype, (), -math.inf if self.largest else 0.0),
            Loop("%point_y", rows.points, row),
            Store(result, place, Select(empty, self.number(0.0), made)),
        )
        return (Loop("%cell_y", rows.cells, (Loop("%cell_x", columns.cells, cell),)),)


LOWERINGS: Lowerings = {("", "RoiAlign"): roi_align}
