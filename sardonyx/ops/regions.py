"""Regions of images: pooled to one size, and chosen among overlapping ones."""

from typing import Any

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.errors import ConversionError, EvaluationError, InferenceError
from sardonyx.graph import Node
from sardonyx.ops.bfloat16 import through_float
from sardonyx.ops.build import Builder
from sardonyx.ops.fact import Fact, same_size, tensor
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array, compute_type, narrow, widen


def _pooled_regions(x: Fact, rois: Fact, columns: int, height: int, width: int) -> Fact:
    if x.shape is not None and len(x.shape) != 4:
        raise InferenceError(f"the image must have four axes, not {x}")
    if rois.shape is not None:
        if len(rois.shape) != 2:
            raise InferenceError(f"regions must be a matrix, not {rois}")
        same_size(rois.shape[1], columns, f"regions {rois} need {columns} columns")
    count = None if rois.shape is None else rois.shape[0]
    channels = None if x.shape is None else x.shape[1]
    return tensor(x.dtype or rois.dtype, (count, channels, height, width))


class MaxRoiPool(Operator):
    """The largest element in each cell of a grid laid over each region."""

    signatures = (
        "1(X: T, rois: T, pooled_shape: ints, spatial_scale: float = 1.0) -> Y: T; T: floats3",
        "22(X: T, rois: T, pooled_shape: ints, spatial_scale: float = 1.0) -> Y: T; T: floats",
    )
    downgrade_22 = through_float

    def infer(x: Fact, rois: Fact, pooled_shape: tuple[int, int], spatial_scale: float) -> Fact:
        return _pooled_regions(x, rois, 5, *pooled_shape)

    def reference(
        x: Array, rois: Array, pooled_shape: tuple[int, int], spatial_scale: float
    ) -> Array:
        wide, corners = widen(x), widen(rois)
        result = np.zeros((len(rois), x.shape[1], *pooled_shape), wide.dtype)
        scaled = corners[:, 1:] * corners.dtype.type(spatial_scale)
        edges = np.trunc(scaled + np.copysign(0.5, scaled)).astype(np.int64)
        for region, (left, top, right, bottom) in enumerate(edges):
            image = wide[int(corners[region, 0])]
            rows = _cells(top, bottom, pooled_shape[0], x.shape[2])
            columns = _cells(left, right, pooled_shape[1], x.shape[3])
            for i, row in enumerate(rows):
                for j, column in enumerate(columns):
                    cell = image[:, row, column]
                    if cell.size:
                        result[region, :, i, j] = cell.max(axis=(1, 2))
        return narrow(result, x.dtype)


def _cells(first: int, last: int, count: int, size: int) -> list[slice]:
    """The range [first, last] of an axis cut into cells, which may overlap by one element."""
    step = np.float32(max(last - first + 1, 1)) / np.float32(count)
    numbers = np.arange(count, dtype=np.float32)
    starts = np.floor(numbers * step).astype(np.int64) + first
    ends = np.ceil((numbers + 1) * step).astype(np.int64) + first
    return list(map(slice, starts.clip(0, size), ends.clip(0, size)))


class RoiAlign(Operator):
    """The mean or maximum of points sampled in each cell of a grid laid over each region."""

    signatures = (
        "10(X: T1, rois: T1, batch_indices: T2, mode: string = 'avg', output_height: int = 1,"
        " output_width: int = 1, sampling_ratio: int = 0, spatial_scale: float = 1.0) -> Y: T1;"
        " T1: floats3; T2: int64",
        "16(X: T1, rois: T1, batch_indices: T2,"
        " coordinate_transformation_mode: string = 'half_pixel', mode: string = 'avg',"
        " output_height: int = 1, output_width: int = 1, sampling_ratio: int = 0,"
        " spatial_scale: float = 1.0) -> Y: T1; T1: floats3; T2: int64",
        "22(X: T1, rois: T1, batch_indices: T2,"
        " coordinate_transformation_mode: string = 'half_pixel', mode: string = 'avg',"
        " output_height: int = 1, output_width: int = 1, sampling_ratio: int = 0,"
        " spatial_scale: float = 1.0) -> Y: T1; T1: floats; T2: int64",
    )
    downgrade_22 = through_float

    def infer(
        x: Fact, rois: Fact, batch_indices: Fact, *,
        output_height: int, output_width: int, **attributes: Any,
    ) -> Fact:  # fmt: skip
        result = _pooled_regions(x, rois, 4, output_height, output_width)
        if batch_indices.shape is None or result.shape is None:
            return result
        what = f"regions {rois} and batch_indices {batch_indices} differ in number"
        count = same_size(result.shape[0], batch_indices.shape[0], what)
        return tensor(result.dtype, (count, *result.shape[1:]))

    def reference(
        x: Array, rois: Array, batch_indices: Array, *, coordinate_transformation_mode: str,
        mode: str, output_height: int, output_width: int, sampling_ratio: int,
        spatial_scale: float,
    ) -> Array:  # fmt: skip
        wide = widen(x)
        dtype = compute_type(rois.dtype)
        half = coordinate_transformation_mode.lower() == "half_pixel"
        corners = widen(rois) * dtype.type(spatial_scale) - dtype.type(0.5 if half else 0)
        shape = (len(rois), x.shape[1], output_height, output_width)
        result = np.zeros(shape, wide.dtype)
        for region, (left, top, right, bottom) in enumerate(corners):
            height, width = bottom - top, right - left
            if not half:
                height, width = max(height, dtype.type(1)), max(width, dtype.type(1))
            image = wide[batch_indices[region]]
            rows = _Samples(top, height, output_height, sampling_ratio, x.shape[2])
            columns = _Samples(left, width, output_width, sampling_ratio, x.shape[3])
            if rows.per_cell > 0 and columns.per_cell > 0:
                pool = _largest if mode.lower() == "max" else _mean
                result[region] = pool(image, rows, columns)
        return narrow(result, x.dtype)

    def upgrade_10(node: Node, build: Builder) -> None:
        node.set_attribute("coordinate_transformation_mode", "output_half_pixel")

    def downgrade_16(node: Node, build: Builder) -> None:
        mode = node.attribute("coordinate_transformation_mode", "half_pixel")
        if mode != "output_half_pixel":
            raise ConversionError(f"coordinate_transformation_mode '{mode}' begins with opset 16")
        node.attributes.pop("coordinate_transformation_mode", None)


MOST_POINTS = 1 << 16
"""Points of a cell along an axis beyond which a region is refused."""


class _Samples:
    """Points along one axis of a region: two pixels and their weights for each.

    Points beyond the image, by more than one pixel before it, weigh nothing.
    """

    def __init__(self, start: Any, extent: Any, cells: int, ratio: int, size: int) -> None:
        cell = extent / cells
        self.cells, self.size = cells, size
        wanted = ratio if ratio > 0 else np.ceil(cell)
        if wanted > MOST_POINTS:
            raise EvaluationError(
                f"{wanted} points of a cell are too many", hint="check regions and sampling_ratio"
            )
        self.per_cell = 0 if np.isnan(wanted) else max(int(max(wanted, -1)), 0)
        inner = (np.arange(self.per_cell, dtype=cell.dtype) + 0.5) * cell / max(self.per_cell, 1)
        at = (start + np.arange(cells, dtype=cell.dtype)[:, None] * cell + inner).reshape(-1)
        inside = (at >= -1) & (at <= size)
        at = np.where(np.isnan(at), 0, at).clip(0, size - 1)
        low = np.minimum(at.astype(np.int64), size - 1)
        share = at - low
        self.pixels = (low, np.minimum(low + 1, size - 1))
        self.weights = (np.where(inside, 1 - share, 0), np.where(inside, share, 0))


def _parts(image: Array, rows: _Samples, columns: _Samples) -> list[Array]:
    """The four weighted pixels around each point."""
    return [
        image[:, row[:, None], column] * (weight[:, None] * share).astype(image.dtype)
        for row, weight in zip(rows.pixels, rows.weights, strict=True)
        for column, share in zip(columns.pixels, columns.weights, strict=True)
    ]


def _by_cell(points: Array, rows: _Samples, columns: _Samples) -> Array:
    shape = (len(points), rows.cells, rows.per_cell, columns.cells, columns.per_cell)
    return points.reshape(shape)


def _mean(image: Array, rows: _Samples, columns: _Samples) -> Array:
    points = _by_cell(sum(_parts(image, rows, columns)), rows, columns)  # type: ignore[arg-type]
    return np.asarray(points.mean(axis=(2, 4), dtype=image.dtype))


def _largest(image: Array, rows: _Samples, columns: _Samples) -> Array:
    """The maximum over points of the largest of the four weighted pixels around each."""
    points: Array = np.maximum.reduce(_parts(image, rows, columns))
    return np.asarray(_by_cell(points, rows, columns).max(axis=(2, 4)))


class NonMaxSuppression(Operator):
    """The best boxes of each class, without those that overlap a better one too much."""

    signatures = (
        "10(boxes: tensor(float), scores: tensor(float),"
        " max_output_boxes_per_class?: tensor(int64), iou_threshold?: tensor(float),"
        " score_threshold?: tensor(float), center_point_box: int = 0)"
        " -> selected_indices: tensor(int64)",
        "11(boxes: tensor(float), scores: tensor(float),"
        " max_output_boxes_per_class?: tensor(int64), iou_threshold?: tensor(float),"
        " score_threshold?: tensor(float), center_point_box: int = 0)"
        " -> selected_indices: tensor(int64)",
    )

    def infer(boxes: Fact, scores: Fact, *limits: Fact | None, center_point_box: int) -> Fact:
        for name, fact in (("boxes", boxes), ("scores", scores)):
            if fact.shape is not None and len(fact.shape) != 3:
                raise InferenceError(f"{name} must have three axes, not {fact}")
        if boxes.shape is not None and scores.shape is not None:
            same_size(boxes.shape[0], scores.shape[0], f"batches of {boxes} and {scores} differ")
            same_size(boxes.shape[1], scores.shape[2], f"{boxes} and {scores} differ in number")
        return tensor(DataType.INT64, (None, 3))

    def reference(
        boxes: Array, scores: Array, most: Array | None = None, overlap: Array | None = None,
        least: Array | None = None, *, center_point_box: int,
    ) -> Array:  # fmt: skip
        limit = 0 if most is None else int(_first(most))
        threshold = np.float32(0) if overlap is None else _first(overlap)
        corners = _corners(boxes, center_point_box)
        chosen: list[tuple[int, int, int]] = []
        for batch, kind in np.ndindex(*scores.shape[:2]):
            order = np.argsort(-scores[batch, kind], kind="stable")
            if least is not None:
                order = order[scores[batch, kind][order] > _first(least)]
            for box in _suppress(corners[batch], order, limit, threshold):
                chosen.append((batch, kind, box))
        return np.asarray(chosen, np.int64).reshape(-1, 3)


def _first(limit: Array) -> Any:
    if not limit.size:
        raise EvaluationError("a limit of the boxes is an empty tensor", hint="leave it out")
    return limit.reshape(-1)[0]


def _corners(boxes: Array, centred: int) -> Array:
    """Boxes as [low, low, high, high]."""
    first, second = boxes[..., :2], boxes[..., 2:]
    if centred:
        first, second = first - second / 2, first + second / 2
        return np.concatenate([first, second], axis=-1)
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)], axis=-1)


def _suppress(boxes: Array, order: Array, limit: int, threshold: Any) -> list[int]:
    areas = (boxes[:, 2:] - boxes[:, :2]).prod(axis=-1)
    kept: list[int] = []
    while order.size and len(kept) < limit:
        best, order = int(order[0]), order[1:]
        kept.append(best)
        low = np.maximum(boxes[best, :2], boxes[order, :2])
        high = np.minimum(boxes[best, 2:], boxes[order, 2:])
        shared = (high - low).clip(min=0).prod(axis=-1)
        union = areas[best] + areas[order] - shared
        valid = (shared > 0) & (areas[best] > 0) & (areas[order] > 0) & (union > 0)
        order = order[~(valid & (shared / np.where(valid, union, 1) > threshold))]
    return kept
