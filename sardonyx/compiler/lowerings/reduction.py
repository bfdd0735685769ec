"""Reductions and normalisations, as folds among maps."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from sardonyx.compiler.forms import (
    Form,
    NotLowered,
    binary,
    cast,
    count,
    fold,
    iota,
    number,
    reshape,
    select,
    squeeze,
    take,
    unary,
)
from sardonyx.compiler.lowerings.request import Lowering, Lowerings, Request
from sardonyx.dtypes import DataType
from sardonyx.loops.nodes import STORED
from sardonyx.ops.fact import axis_of
from sardonyx.ops.normalization import near_channels

Axes = Sequence[int]
MOST_NEAR = 64
"""Channels around one that its window is written out for."""


def _sum(x: Form, axes: Axes) -> Form:
    return fold("add", x, axes, 0)


def _mean(x: Form, axes: Axes) -> Form:
    return _sum(x, axes) / count(x, axes)


def _max(x: Form, axes: Axes) -> Form:
    return _extreme("max", x, axes)


def _min(x: Form, axes: Axes) -> Form:
    return _extreme("min", x, axes)


def _extreme(name: str, x: Form, axes: Axes) -> Form:
    """The largest or smallest element; of none, what every other one passes."""
    if x.dtype is DataType.BOOL:
        return cast(_extreme(name, cast(x, DataType.UINT8), axes), DataType.BOOL)
    if x.dtype.is_float:
        return fold(name, x, axes, -math.inf if name == "max" else math.inf)
    limits = np.iinfo(x.dtype.numpy)
    return fold(name, x, axes, int(limits.min if name == "max" else limits.max))


def extreme_place(name: str, x: Form, axis: int, *, last: bool = False) -> Form:
    """Where the largest or smallest element along an axis stands, the first of equal ones; a NaN
    comes before all others."""
    hit = binary("eq", x, _extreme(name, x, [axis]))
    if x.dtype.is_float:
        hit = binary("or", hit, binary("ne", x, x))
    if last:
        return fold("max", select(hit, iota(x.shape, axis), -1), [axis], -1)
    none = int(np.iinfo(np.int64).max)
    return fold("min", select(hit, iota(x.shape, axis), none), [axis], none)


def _arg_extreme(name: str) -> Lowering:
    def lower(
        request: Request, x: Form, *, axis: int, keepdims: int, select_last_index: int
    ) -> Form:
        request.fit(1, x.shape[axis_of(axis, len(x.shape))])
        found = extreme_place(name, x, axis, last=bool(select_last_index))
        return found if keepdims else squeeze(found, [axis])

    return lower


def _log_sum_exp(x: Form, axes: Axes) -> Form:
    """log(sum(exp(x))), without overflow."""
    best = _max(x, axes)
    finite = select(binary("lt", unary("abs", best), math.inf), best, 0.0)
    return unary("log", _sum(unary("exp", x - finite), axes)) + finite


def lp_normalization(request: Request, x: Form, axis: int, p: int) -> Form:
    """Elements divided by the length of their row; a row of zeros stays."""
    total = _sum(unary("abs", x), [axis]) if p == 1 else unary("sqrt", _sum(x * x, [axis]))
    return x / select(binary("eq", total, 0.0), 1.0, total)


def hardmax(request: Request, x: Form, axis: int) -> Form:
    """1 at the first largest element along an axis, else 0."""
    return cast(binary("eq", iota(x.shape, axis), extreme_place("max", x, axis)), x.dtype)


def _reducing(compute: Callable[[Form, Axes], Form], *, floats: bool = False) -> Lowering:
    def lower(
        request: Request, x: Form, axes: Form | None = None, *,
        keepdims: int, noop_with_empty_axes: int,
    ) -> Form:  # fmt: skip
        if floats and not x.dtype.is_float:
            raise NotLowered(f"of {x.dtype.text} it has no native form")
        given = [] if axes is None else request.integers(1, "the list of axes")
        chosen = [axis_of(axis, len(x.shape)) for axis in given]
        if not given and not noop_with_empty_axes:
            chosen = list(range(len(x.shape)))
        result = compute(x, chosen)
        return result if keepdims else squeeze(result, chosen)

    return lower


def softmax(request: Request, x: Form, axis: int) -> Form:
    """exp(x - max) / sum along one axis; a narrow float is rounded after every step."""
    kind = request.outputs[0].dtype
    if kind in STORED:
        shifted = _rounded(x - _max(x, [axis]), kind)
        steps = _rounded(unary("exp", shifted), kind)
        return steps / _rounded(_sum(steps, [axis]), kind)
    powers = unary("exp", x - _max(x, [axis]))
    return powers * unary("reciprocal", _sum(powers, [axis]))


def _rounded(x: Form, dtype: DataType) -> Form:
    return cast(cast(x, dtype), x.dtype)


def log_softmax(request: Request, x: Form, axis: int) -> Form:
    """x - max - log(sum(exp(x - max)))."""
    shifted = x - _max(x, [axis])
    return shifted - unary("log", _sum(unary("exp", shifted), [axis]))


def _standardized(x: Form, axes: Axes, epsilon: float) -> Form:
    centred = x - _mean(x, axes)
    return centred * unary("rsqrt", _mean(centred * centred, axes) + epsilon)


def layer_normalization(
    request: Request, x: Form, scale: Form, bias: Form | None = None, *,
    axis: int, epsilon: float, stash_type: int,
) -> Form:  # fmt: skip
    """Mean 0 and deviation 1 over the last axes, then scale and bias."""
    if len(request.outputs) > 1 or stash_type != x.dtype:
        raise NotLowered("only its first output in its input's own precision has a native form")
    axes = range(axis_of(axis, len(x.shape)), len(x.shape))
    result = _standardized(x, axes, epsilon) * scale
    return result if bias is None else result + bias


def rms_normalization(
    request: Request, x: Form, scale: Form, *, axis: int, epsilon: float, stash_type: int
) -> Form:
    """Root mean square 1 over the last axes, then scale."""
    if stash_type != x.dtype:
        raise NotLowered("only its input's own precision has a native form")
    axes = range(axis_of(axis, len(x.shape)), len(x.shape))
    return x * unary("rsqrt", _mean(x * x, axes) + epsilon) * scale


def global_average_pool(request: Request, x: Form) -> Form:
    """The mean over all spatial axes."""
    return _mean(x, range(2, len(x.shape)))


def global_max_pool(request: Request, x: Form) -> Form:
    """The largest element over all spatial axes."""
    return _max(x, range(2, len(x.shape)))


def instance_normalization(
    request: Request, x: Form, scale: Form, bias: Form, *, epsilon: float
) -> Form:
    """Mean 0 and deviation 1 over all spatial axes, then scale and bias for each channel."""
    shape = [1] * (len(x.shape) - 2)
    factor, shift = (reshape(item, (item.shape[0], *shape)) for item in (scale, bias))
    return _standardized(x, range(2, len(x.shape)), epsilon) * factor + shift


def batch_normalization(
    request: Request, x: Form, scale: Form, bias: Form, mean: Form, variance: Form, *,
    epsilon: float, momentum: float, training_mode: int,
) -> tuple[Form, ...]:  # fmt: skip
    """A scale and an offset for each channel, by given statistics or by those of the batch."""
    if len({item.dtype for item in (x, scale, bias, mean, variance)}) > 1:
        raise NotLowered("mixed precision has no native form")
    shape = (scale.shape[0], *[1] * (len(x.shape) - 2))
    factor, offset, middle, spread = (
        reshape(item, shape) for item in (scale, bias, mean, variance)
    )
    running = mean, variance
    if training_mode:
        if len(x.shape) < 2:
            raise NotLowered("training without channels has no native form")
        axes = [axis for axis in range(len(x.shape)) if axis != 1]
        middle = _mean(x, axes)
        spread = _mean((x - middle) * (x - middle), axes)
        running = (
            _moved(mean, middle, momentum), _moved(variance, spread, momentum),
        )  # fmt: skip
    slope = factor * unary("rsqrt", spread + number(epsilon, x.dtype))
    return (x - middle) * slope + offset, *running


def _moved(before: Form, found: Form, momentum: float) -> Form:
    """A statistic on its way from what it was to what a batch says."""
    return before * momentum + reshape(found, before.shape) * (1 - momentum)


def local_response(
    request: Request, x: Form, alpha: float, beta: float, bias: float, size: int
) -> Form:
    """Each element over a power of the squares summed over neighbouring channels."""
    places = [iota(x.shape, axis) for axis in range(len(x.shape))]
    channels = x.shape[1]
    before, after = near_channels(size, channels if isinstance(channels, int) else size)
    if before + after > MOST_NEAR:
        raise NotLowered(f"a window over {before + after + 1} channels has no native form")
    total: Form | None = None
    for offset in range(-before, after + 1):
        near = take(x, [places[0], places[1] + offset, *places[2:]])
        total = near * near if total is None else total + near * near
    assert total is not None
    return x / binary("pow", total * (alpha / size) + bias, number(beta, x.dtype))


LOWERINGS: Lowerings = {
    ("", "LRN"): local_response,
    ("", "ReduceSum"): _reducing(_sum),
    ("", "ReduceMean"): _reducing(_mean, floats=True),
    ("", "ReduceMax"): _reducing(_max),
    ("", "ReduceMin"): _reducing(_min),
    ("", "ReduceLogSumExp"): _reducing(_log_sum_exp, floats=True),
    ("", "ArgMax"): _arg_extreme("max"),
    ("", "ArgMin"): _arg_extreme("min"),
    ("", "Hardmax"): hardmax,
    ("", "LpNormalization"): lp_normalization,
    ("", "ReduceProd"): _reducing(lambda x, axes: fold("mul", x, axes, 1)),
    ("", "ReduceSumSquare"): _reducing(lambda x, axes: _sum(x * x, axes)),
    ("", "ReduceL1"): _reducing(lambda x, axes: _sum(unary("abs", x), axes)),
    ("", "ReduceL2"): _reducing(lambda x, axes: unary("sqrt", _sum(x * x, axes)), floats=True),
    ("", "ReduceLogSum"): _reducing(lambda x, axes: unary("log", _sum(x, axes)), floats=True),
    ("", "Softmax"): softmax,
    ("", "LogSoftmax"): log_softmax,
    ("", "LayerNormalization"): layer_normalization,
    ("", "RMSNormalization"): rms_normalization,
    ("", "GlobalAveragePool"): global_average_pool,
    ("", "GlobalMaxPool"): global_max_pool,
    ("", "InstanceNormalization"): instance_normalization,
    ("", "BatchNormalization"): batch_normalization,
}
