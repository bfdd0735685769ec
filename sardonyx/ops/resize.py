# mypy: disable-error-code="misc, no-any-return"
"""Images and other tensors resampled to other sizes."""

import math
from fractions import Fraction
from typing import Any

import numpy as np

from sardonyx.dims import Size, floor_divide
from sardonyx.dtypes import from_numpy
from sardonyx.errors import ConversionError, EvaluationError, InferenceError
from sardonyx.graph import Node, Tensor, Value
from sardonyx.ops.build import Builder
from sardonyx.ops.early_opsets import known_rank
from sardonyx.ops.element_type import element_type
from sardonyx.ops.fact import Fact, Sizes, axis_of, tensor
from sardonyx.ops.interpolate import COORDINATE_MODES, MODES, NEAREST_MODES, Line, Method, resample
from sardonyx.ops.operator import Operator, attribute_values
from sardonyx.ops.parameters import drop_unused, to_input
from sardonyx.ops.precision import Array
from sardonyx.ops.resize_function import Resampler

_POLICIES = ("stretch", "not_larger", "not_smaller")


class Resize(Operator):
    """A tensor resampled to given sizes, or by given factors."""

    signatures = (
        "10(X: T, scales: tensor(float), mode: string = 'nearest') -> Y: T; T: all15",
        "11(X: T1, roi: T2, scales: tensor(float), sizes?: tensor(int64), "
        "coordinate_transformation_mode: string = 'half_pixel', cubic_coeff_a: float = -0.75, "
        "exclude_outside: int = 0, extrapolation_value: float = 0.0, mode: string = 'nearest', "
        "nearest_mode: string = 'round_prefer_floor') -> Y: T1; T1: all15; T2: floats3",
        "13(X: T1, roi?: T2, scales?: tensor(float), sizes?: tensor(int64), "
        "coordinate_transformation_mode: string = 'half_pixel', cubic_coeff_a: float = -0.75, "
        "exclude_outside: int = 0, extrapolation_value: float = 0.0, mode: string = 'nearest', "
        "nearest_mode: string = 'round_prefer_floor') -> Y: T1; T1: all; T2: floats3",
        "18(X: T1, roi?: T2, scales?: tensor(float), sizes?: tensor(int64), antialias: int = 0, "
        "axes?: ints, coordinate_transformation_mode: string = 'half_pixel', cubic_coeff_a: float "
        "= -0.75, exclude_outside: int = 0, extrapolation_value: float = 0.0, "
        "keep_aspect_ratio_policy: string = 'stretch', mode: string = 'nearest', nearest_mode: "
        "string = 'round_prefer_floor') -> Y: T1; T1: all; T2: floats3",
        "19(X: T1, roi?: T2, scales?: tensor(float), sizes?: tensor(int64), antialias: int = 0, "
        "axes?: ints, coordinate_transformation_mode: string = 'half_pixel', cubic_coeff_a: float "
        "= -0.75, exclude_outside: int = 0, extrapolation_value: float = 0.0, "
        "keep_aspect_ratio_policy: string = 'stretch', mode: string = 'nearest', nearest_mode: "
        "string = 'round_prefer_floor') -> Y: T1; T1: all; T2: floats3",
    )

    def infer(
        x: Fact, roi: Fact | None = None, scales: Fact | None = None, sizes: Fact | None = None,
        *, axes: tuple[int, ...] | None, coordinate_transformation_mode: str,
        keep_aspect_ratio_policy: str, mode: str, **how: Any,
    ) -> Fact:  # fmt: skip
        for given, known in (
            (mode, MODES),
            (coordinate_transformation_mode, COORDINATE_MODES),
            (keep_aspect_ratio_policy, _POLICIES),
            (how["nearest_mode"] if mode == "nearest" else NEAREST_MODES[0], NEAREST_MODES),
        ):
            if given not in known:
                raise InferenceError(f"'{given}' is not one of {', '.join(known)}")
        crop = roi if coordinate_transformation_mode == "tf_crop_and_resize" else None
        return tensor(x.dtype, _resized(x, crop, scales, sizes, axes, keep_aspect_ratio_policy))

    def reference(
        x: Array, roi: Array | None = None, scales: Array | None = None, sizes: Array | None = None,
        **how: Any,
    ) -> Array:  # fmt: skip
        method, axes = resize_method(how), how["axes"]
        along = list(range(x.ndim)) if axes is None else [axis_of(axis, x.ndim) for axis in axes]
        crop = roi if method.coordinates == "tf_crop_and_resize" else None
        shape = [x.shape[axis] for axis in along]
        result = x if method.mode == "nearest" else _wide(x)
        lines = resize_lines(shape, crop, scales, sizes, how["keep_aspect_ratio_policy"])
        for axis, line in zip(along, lines, strict=True):
            if not line.unchanged:
                result = resample(result, axis, line, method)
        return _narrow(result, x.dtype)

    def upgrade_10(node: Node, build: Builder) -> None:
        x, scales = node.inputs
        node.set_inputs([x, build.constant(np.zeros(0, np.float32)), scales])
        node.set_attribute("coordinate_transformation_mode", "asymmetric")
        node.set_attribute("nearest_mode", "floor")

    def upgrade_11(node: Node, build: Builder) -> None:
        """Positions half a pixel further on, which only opset 11 knew, by another rounding."""
        if node.attribute("coordinate_transformation_mode") == "tf_half_pixel_for_nn":
            rounding = node.attribute("nearest_mode", "round_prefer_floor")
            same = {"floor": "round_prefer_ceil", "round_prefer_floor": "ceil"}.get(rounding)
            if same is None or node.attribute("mode", "nearest") != "nearest":
                raise ConversionError(f"'tf_half_pixel_for_nn' with '{rounding}' has no successor")
            node.set_attribute("coordinate_transformation_mode", "half_pixel")
            node.set_attribute("nearest_mode", same)

    def downgrade_19(node: Node, build: Builder) -> Value | None:
        if node.attribute("coordinate_transformation_mode") == "half_pixel_symmetric":
            return spelled_out(node, build, "'half_pixel_symmetric' begins with opset 19")
        return None

    def downgrade_18(node: Node, build: Builder) -> Value | None:
        """Factors, sizes and regions for some dimensions become such for all."""
        if node.attribute("antialias", 0) and node.attribute("mode") != "nearest":
            return spelled_out(node, build, "'antialias' begins with opset 18")
        if node.attribute("keep_aspect_ratio_policy", "stretch") != "stretch":
            return spelled_out(node, build, "'keep_aspect_ratio_policy' begins with opset 18")
        axes = node.attribute("axes")
        node.attributes.pop("axes", None)
        if axes is None:
            return None
        x, roi, scales, sizes = [*node.inputs, None, None, None][:4]
        shape = build.Shape(x)
        if scales is not None and (known := build.known(scales)) is not None and not known.size:
            scales = None
        if scales is not None:
            ones = build.ConstantOfShape(build.Shape(shape), value=Tensor(np.ones(1, np.float32)))
            scales = build.ScatterElements(ones, list(axes), scales)
        if sizes is not None:
            sizes = build.ScatterElements(shape, list(axes), sizes)
        node.set_inputs([x, _whole_region(build, roi, shape, axes), scales, sizes])
        return None

    def downgrade_13(node: Node, build: Builder) -> None:
        inputs = [*node.inputs, None, None][: max(3, len(node.inputs))]
        missing = build.constant(np.zeros(0, np.float32))
        node.set_inputs(
            [missing if item is None and index < 3 else item for index, item in enumerate(inputs)]
        )

    def downgrade_11(node: Node, build: Builder) -> None:
        mode = node.attribute("mode", "nearest")
        wanted = {"coordinate_transformation_mode": "asymmetric"}
        if mode == "nearest":
            wanted["nearest_mode"] = "floor"
        if (
            mode == "cubic"
            or len(node.inputs) > 3
            or any(node.attribute(name) != value for name, value in wanted.items())
        ):
            raise ConversionError("before opset 11 only 'asymmetric' and 'floor' were known")
        node.attributes.clear()
        node.set_attribute("mode", mode)
        node.set_inputs([node.inputs[0], node.inputs[2]])

    def downgrade_10(node: Node, build: Builder) -> None:
        node.op_type = "Upsample"


def _whole_region(
    build: Builder, roi: Value | None, shape: Value, axes: tuple[int, ...]
) -> Value | None:
    """A region of some dimensions as one of all: the others are taken whole."""
    kind = element_type(roi)
    if roi is None or kind is None or getattr(roi.type, "shape", None) == (0,):
        return None
    rank = build.Shape(shape)
    halves = []
    for fill, half in zip((0, 1), build.Split(roi, outputs=2), strict=True):
        rest = build.ConstantOfShape(rank, value=Tensor(np.full(1, fill, kind.numpy)))
        halves.append(build.ScatterElements(rest, list(axes), half))
    return build.Concat(*halves, axis=0)


def spelled_out(node: Node, build: Builder, reason: str) -> Value:
    """The same result out of products and gathering."""
    x, roi, scales, sizes = [*node.inputs, None, None, None][:4]
    rank, kind, how = known_rank(x), element_type(x), attribute_values(node, Resize.newest())
    method = resize_method(how)
    if x is None or rank is None:
        raise ConversionError(f"{reason}, and the rank is not known")
    if method.mode != "nearest" and (kind is None or not kind.is_float):
        raise ConversionError(f"{reason}, and products of whole numbers would round otherwise")
    axes = range(rank) if how["axes"] is None else [axis_of(axis, rank) for axis in how["axes"]]
    sizes = None if _is_empty(sizes) else sizes
    policy = how["keep_aspect_ratio_policy"]
    resampler = Resampler(build, x, roi, scales, sizes, list(axes), method, policy)
    result = build.Identity(x)
    for place, axis in enumerate(axes):
        if not _keeps(build, x, axis, place, scales, sizes, policy) or resampler.roi is not None:
            result = resampler.along(result, place, rank)
    return result


def _is_empty(value: Value | None) -> bool:
    return value is None or getattr(value.type, "shape", None) == (0,)


def _keeps(
    build: Builder, x: Value, axis: int, place: int, scales: Value | None, sizes: Value | None,
    policy: str,
) -> bool:  # fmt: skip
    """Whether a dimension is known to stay as it is."""
    if sizes is None:
        factors = build.known(scales)
        return factors is not None and factors[place] == 1
    wanted, shape = build.known(sizes), getattr(x.type, "shape", None)
    if wanted is None or shape is None or policy != "stretch":
        return False
    return bool(wanted[place] == shape[axis])


def resize_method(how: dict[str, Any]) -> Method:
    return Method(
        how["mode"], how["coordinate_transformation_mode"], how["nearest_mode"],
        how["cubic_coeff_a"], bool(how["antialias"]), bool(how["exclude_outside"]),
        how["extrapolation_value"],
    )  # fmt: skip


def resize_lines(
    shape: list[int], roi: Array | None, scales: Array | None, sizes: Array | None, policy: str
) -> list[Line]:
    """What happens to each dimension, from sizes or from factors."""
    count = len(shape)
    regions = [(0.0, 1.0)] * count
    if roi is not None and roi.size:
        _require_length(roi.size, 2 * count, "region")
        regions = [(float(roi[axis]), float(roi[axis + count])) for axis in range(count)]
    if sizes is not None and sizes.size:
        _require_length(sizes.size, count, "sizes")
        if np.any(sizes < 0):
            raise EvaluationError(f"sizes cannot be negative: {sizes.tolist()}")
        lines = _to_sizes(shape, sizes.tolist(), policy)
    elif scales is not None and scales.size:
        _require_length(scales.size, count, "scales")
        if not np.all(scales > 0):
            raise EvaluationError(f"factors must be above zero: {scales.tolist()}")
        lines = []
        for size, scale, (start, end) in zip(shape, scales, regions, strict=True):
            wanted = _scaled_size(size, scale, np.float32(end - start))
            lines.append((wanted, float(scale), float(scale) * size))
    else:
        raise EvaluationError("neither sizes nor scales are given")
    pairs = zip(shape, lines, regions, strict=True)
    return [Line(size, *line, region) for size, line, region in pairs]


def _require_length(found: int, wanted: int, what: str) -> None:
    if found != wanted:
        raise EvaluationError(f"the {what} are {found} numbers, where {wanted} are needed")


def _to_sizes(shape: list[int], sizes: list[int], policy: str) -> list[tuple[int, float, float]]:
    ratios = [wanted / size if size else 1.0 for wanted, size in zip(sizes, shape, strict=True)]
    if policy == "stretch":
        pairs = zip(sizes, ratios, strict=True)
        return [(size, ratio, float(size)) for size, ratio in pairs]
    if policy not in _POLICIES:
        raise EvaluationError(f"'{policy}' is not one of {', '.join(_POLICIES)}")
    scale = min(ratios) if policy == "not_larger" else max(ratios)
    return [(int(scale * size + 0.5), scale, scale * size) for size in shape]


def _resized(
    x: Fact, roi: Fact | None, scales: Fact | None, sizes: Fact | None,
    axes: tuple[int, ...] | None, policy: str,
) -> Sizes | None:  # fmt: skip
    """The shape after resampling."""
    by_size = sizes is not None and sizes.shape != (0,)
    given = sizes if by_size else scales
    count = given.shape[0] if given is not None and given.rank == 1 and given.shape else None
    if x.shape is None:
        return (None,) * count if axes is None and isinstance(count, int) else None
    rank = len(x.shape)
    along = range(rank) if axes is None else [axis_of(axis, rank) for axis in axes]
    if isinstance(count, int) and count != len(along):
        raise InferenceError(f"{count} sizes or factors do not fit {len(along)} dimensions of {x}")
    before = [x.shape[axis] for axis in along]
    if sizes is not None and by_size:
        after = _by_sizes(before, sizes.sizes(), policy)
    else:
        after = _by_factors(before, scales, roi)
    shape = list(x.shape)
    for axis, size in zip(along, after, strict=True):
        shape[axis] = size
    return tuple(shape)


def _by_sizes(before: list[Size | None], wanted: Sizes | None, policy: str) -> Sizes:
    if wanted is None:
        return (None,) * len(before)
    if policy == "stretch":
        return wanted
    known = [size for size in before if isinstance(size, int)]
    limits = [size for size in wanted if isinstance(size, int)]
    if len(known) < len(before) or len(limits) < len(wanted):
        return (None,) * len(before)
    return tuple(size for size, *_ in _to_sizes(known, limits, policy))


def _by_factors(before: list[Size | None], scales: Fact | None, roi: Fact | None) -> Sizes:
    factors = None if scales is None else scales.constant
    region = None if roi is None else roi.constant
    if factors is None or (roi is not None and region is None):
        return (None,) * len(before)
    count = len(before)
    if not np.all(factors > 0):
        raise InferenceError(f"factors must be above zero: {factors.tolist()}")
    # The specification: output_dimension = floor(input_dimension * (roi_end - roi_start) * scale).
    # onnx's reference and onnxruntime leave the region out; its words are plain, and count.
    extents = np.ones(count, np.float32)
    if region is not None and region.size == 2 * count:
        extents = (region[count:] - region[:count]).astype(np.float32)
    return tuple(map(_scaled, before, factors.tolist(), extents))


def _scaled(size: Size | None, factor: float, extent: np.float32) -> Size | None:
    """A size times a factor, rounded down; known for symbolic sizes and simple fractions too."""
    if size is None:
        return None
    if isinstance(size, int):
        return _scaled_size(size, factor, extent)
    ratio = Fraction(factor) * Fraction(float(extent))
    if ratio.denominator > _SIMPLE:
        return None
    return floor_divide(size * ratio.numerator, ratio.denominator)


_SIMPLE = 1024
_WHOLE_IN_FLOAT32 = 2**24


def _scaled_size(size: int, factor: float, extent: np.float32) -> int:
    """A size times a factor, rounded down: in float32, as runtimes do, where that holds sizes."""
    near = np.float32(size) * extent * np.float32(factor)
    if size <= _WHOLE_IN_FLOAT32 and near <= _WHOLE_IN_FLOAT32:
        return int(np.floor(near))
    return math.floor(size * Fraction(float(extent)) * Fraction(float(np.float32(factor))))


def _wide(x: Array) -> Array:
    if x.dtype == object:
        raise EvaluationError("strings cannot be interpolated")
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def _narrow(x: Array, dtype: np.dtype[Any]) -> Array:
    """Interpolated values in their own type: whole numbers rounded, and kept within bounds."""
    if x.dtype != dtype and from_numpy(dtype).is_integer:
        bounds = np.iinfo(dtype)
        return np.clip(np.round(x), bounds.min, bounds.max).astype(dtype)
    return x.astype(dtype)


class Upsample(Operator):
    """A tensor resampled by factors; what Resize was called before opset 10."""

    signatures = (
        "1(X: T, height_scale: float, mode: string = 'nearest', width_scale: float) -> Y: T; T: "
        "floats3 bool int32 int64",
        "7(X: T, mode: string = 'nearest', scales: floats) -> Y: T; T: all15",
        "9(X: T, scales: tensor(float), mode: string = 'nearest') -> Y: T; T: all15",
        "10(X: T, scales: tensor(float), mode: string = 'nearest') -> Y: T; T: all15 deprecated",
    )

    def infer(x: Fact, scales: Fact, mode: str) -> Fact:
        return tensor(x.dtype, _resized(x, None, scales, None, None, "stretch"))

    def reference(x: Array, scales: Array, mode: str) -> Array:
        method = Method(mode, "asymmetric", "floor", -0.75, False, False, 0.0)
        result = x if mode == "nearest" else _wide(x)
        for axis, line in enumerate(resize_lines(list(x.shape), None, scales, None, "stretch")):
            if not line.unchanged:
                result = resample(result, axis, line, method)
        return _narrow(result, x.dtype)

    def upgrade_1(node: Node, build: Builder) -> None:
        factors = [node.attributes.pop(f"{side}_scale").value for side in ("height", "width")]
        node.set_attribute("scales", [1.0, 1.0, *factors])
        if node.attribute("mode") == "bilinear":
            node.set_attribute("mode", "linear")

    def upgrade_7(node: Node, build: Builder) -> None:
        to_input(node, build, "scales", 1, np.float32)

    def upgrade_9(node: Node, build: Builder) -> None:
        node.op_type = "Resize"

    def downgrade_9(node: Node, build: Builder) -> None:
        factors = build.known(node.inputs[1])
        if factors is None:
            raise ConversionError("the factors are computed, and must be constant before opset 9")
        x, scales = node.inputs
        node.set_inputs([x])
        drop_unused(scales)
        node.set_attribute("scales", factors.tolist())

    def downgrade_7(node: Node, build: Builder) -> None:
        factors = node.attribute("scales", ())
        if len(factors) != 4 or factors[:2] != (1.0, 1.0):
            raise ConversionError("before opset 7 only height and width can be scaled")
        del node.attributes["scales"]
        node.set_attribute("height_scale", factors[2])
        node.set_attribute("width_scale", factors[3])
        if node.attribute("mode") == "linear":
            node.set_attribute("mode", "bilinear")
