"""What classifiers and regressors of `ai.onnx.ml` share: feature rows, score transforms, labels."""

import math
from typing import Any

from numpy.typing import NDArray

from sardonyx.compiler.forms import (
    Axis,
    Form,
    Join,
    NotLowered,
    View,
    binary,
    cast,
    constant,
    fold,
    reshape,
    select,
    squeeze,
    take,
    unary,
)
from sardonyx.compiler.lowerings.reduction import extreme_place
from sardonyx.dtypes import DataType


def feature_rows(x: Form) -> Form:
    """Rows of features, float32 or float64; a vector is one row."""
    return wide(reshape(x, (1, x.shape[0])) if len(x.shape) == 1 else x)


def wide(x: Form) -> Form:
    """Features as they are computed with: float64 stays, all others become float32."""
    return x if x.dtype is DataType.DOUBLE else cast(x, DataType.FLOAT)


def arg_max(scores: Form) -> Form:
    """The first column with the largest score, for each row."""
    return squeeze(extreme_place("max", scores, 1), [1])


def labelled(places: Form, names: NDArray[Any]) -> Form:
    """The label at each place; of a truth value, the first label is for false."""
    if places.shape[1:]:
        places = squeeze(places, [1])
    return take(constant(names), [cast(places, DataType.INT64)])


def one_column(scores: Form, column: int) -> Form:
    """A column of scores, as a table of one."""
    axes = (Axis(0), Axis(None, column))
    return View((scores.shape[0], 1), scores.dtype, scores, axes)


def _logistic(x: Form) -> Form:
    value = unary("sigmoid", unary("abs", x))
    return select(binary("lt", x, 0.0), 1.0 - value, value)


def _softmax(x: Form) -> Form:
    powers = unary("exp", x - fold("max", x, [1], -math.inf))
    return powers / fold("add", powers, [1], 0)


def _softmax_without_zeros(x: Form) -> Form:
    present = binary("gt", unary("abs", x), 1e-7)
    powers = select(present, unary("exp", x - fold("max", x, [1], -math.inf)), 0.0)
    total = fold("add", powers, [1], 0)
    return powers / select(binary("eq", total, 0.0), 1.0, total)


def transform(scores: Form, name: str) -> Form:
    """Scores, a row for each example, after a `post_transform`."""
    if name == "NONE" or scores.shape[1] == 1:
        if name == "PROBIT":
            raise NotLowered("PROBIT has no native form")
        return scores
    match name:
        case "LOGISTIC":
            return _logistic(scores)
        case "SOFTMAX":
            return _softmax(scores)
        case "SOFTMAX_ZERO":
            return _softmax_without_zeros(scores)
    raise NotLowered(f"{name} has no native form")


def decided(
    score: Form,
    probability: bool,
    names: NDArray[Any],
    name: str,
    *,
    threshold: float | None = None,
) -> tuple[Form, Form]:
    """Label and both columns where one score decides: its own is the second label's."""
    limit = threshold if threshold is not None else (0.5 if probability else 0.0)
    chosen = labelled(binary("gt", score, limit), names)
    if name == "PROBIT":
        raise NotLowered("PROBIT has no native form")
    if name == "LOGISTIC":
        both: tuple[Form, Form] = (_logistic(-score), _logistic(score))
    else:
        both = (1.0 - score if probability else -score, score)
    return chosen, Join((score.shape[0], 2), DataType.FLOAT, both, 1)
