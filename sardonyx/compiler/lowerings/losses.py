"""Losses of classification: the score of each label's class, taken and averaged."""

from sardonyx.compiler.forms import (
    Form,
    NotLowered,
    binary,
    cast,
    expand,
    fold,
    iota,
    number,
    select,
    squeeze,
    take,
)
from sardonyx.compiler.lowerings.reduction import log_softmax
from sardonyx.compiler.lowerings.request import Lowerings, Request
from sardonyx.dtypes import DataType


def negative_log_likelihood(
    request: Request, scores: Form, labels: Form, weight: Form | None = None, *,
    ignore_index: int | None, reduction: str,
) -> Form:  # fmt: skip
    """What each label's score is, negated and weighted; ignored labels count for nothing."""
    chosen, ignored = cast(labels, DataType.INT64), None
    if ignore_index is not None:
        ignored = binary("eq", chosen, number(ignore_index, DataType.INT64))
        chosen = select(ignored, 0, chosen)
    first, *rest = (iota(labels.shape, axis) for axis in range(len(labels.shape)))
    losses = -take(scores, [first, chosen, *rest], checked=True)
    weights: Form = number(1.0, scores.dtype)
    if weight is not None:
        weights = take(weight, [chosen], checked=True)
        losses = losses * weights
    if ignored is not None:
        weights, losses = (select(ignored, 0.0, item) for item in (weights, losses))
    return _reduced(losses, expand(weights, labels.shape), reduction)


def _reduced(losses: Form, weights: Form, reduction: str) -> Form:
    axes = range(len(losses.shape))
    match reduction:
        case "none":
            return losses
        case "sum" | "mean":
            total = squeeze(fold("add", losses, axes, 0), axes)
            whole = squeeze(fold("add", weights, axes, 0), axes)
            return total if reduction == "sum" else total / whole
    raise NotLowered(f"reduction '{reduction}' has no native form")


def softmax_cross_entropy(
    request: Request, scores: Form, labels: Form, weight: Form | None = None, *,
    ignore_index: int | None, reduction: str,
) -> tuple[Form, Form]:  # fmt: skip
    """The loss of the softmax of scores, and that softmax's logarithm."""
    logs = log_softmax(request, scores, 1)
    loss = negative_log_likelihood(
        request, logs, labels, weight, ignore_index=ignore_index, reduction=reduction
    )
    return loss, logs


LOWERINGS: Lowerings = {
    ("", "NegativeLogLikelihoodLoss"): negative_log_likelihood,
    ("", "SoftmaxCrossEntropyLoss"): softmax_cross_entropy,
}
