"""Losses of classification."""

from typing import Any

import numpy as np

from sardonyx.errors import EvaluationError, InferenceError
from sardonyx.graph import Value
from sardonyx.ops.build import Builder
from sardonyx.ops.element_type import constant_like
from sardonyx.ops.fact import Fact, merge, tensor
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array, widen
from sardonyx.ops.softmax import LogSoftmax, log_softmax

_REDUCTIONS = ("none", "sum", "mean")


def _loss_fact(scores: Fact, labels: Fact, weight: Fact | None, reduction: str) -> Fact:
    """One loss for each label, or one for all."""
    if reduction not in _REDUCTIONS:
        raise InferenceError(f"reduction '{reduction}' is none of {', '.join(_REDUCTIONS)}")
    shape = labels.shape
    if scores.shape is not None:
        if len(scores.shape) < 2:
            raise InferenceError(f"scores {scores} must have at least two axes")
        one_each = tensor(None, (scores.shape[0], *scores.shape[2:]))
        shape = merge(one_each, tensor(None, labels.shape)).shape
        if weight is not None:
            merge(tensor(None, weight.shape), tensor(None, scores.shape[1:2]))
    return tensor(scores.dtype, shape if reduction == "none" else ())


def _negative_log_likelihood(
    scores: Array, labels: Array, weight: Array | None, ignore_index: int | None, reduction: str
) -> Array:
    """What each label's score is, negated and weighted; ignored labels count for nothing."""
    ignored = np.zeros(labels.shape, bool) if ignore_index is None else labels == ignore_index
    kept = np.where(ignored, 0, labels)
    if kept.size and not (kept.min() >= 0 and kept.max() < scores.shape[1]):
        raise EvaluationError(f"a label is not one of {scores.shape[1]} classes")
    picked = np.take_along_axis(scores, np.expand_dims(kept, 1), 1).squeeze(1)
    weights = np.where(ignored, 0, 1 if weight is None else weight[kept]).astype(scores.dtype)
    losses = np.where(ignored, 0, -picked * weights).astype(scores.dtype)
    match reduction:
        case "none":
            return losses
        case "sum":
            return np.asarray(losses.sum())
        case "mean":
            return np.asarray(losses.sum() / weights.sum())
    raise EvaluationError(f"reduction '{reduction}' is none of {', '.join(_REDUCTIONS)}")


def _spelled_out(
    build: Builder, scores: Value, labels: Value, weight: Value | None,
    ignore_index: int | None, reduction: str,
) -> Any:  # fmt: skip
    zero, ignored, kept = constant_like(build, 0, scores), None, labels
    if ignore_index is not None:
        ignored = build.Equal(labels, constant_like(build, ignore_index, labels))
        kept = build.Where(ignored, constant_like(build, 0, labels), labels)
    losses = build.Neg(_pick(build, scores, kept))
    weights = None if weight is None else build.Gather(weight, kept, axis=0)
    if ignored is not None:
        one = constant_like(build, 1, scores)
        weights = build.Where(ignored, zero, one if weights is None else weights)
    if weights is not None:
        losses = build.Mul(losses, weights)
    if ignored is not None:
        losses = build.Where(ignored, zero, losses)
    if reduction == "none":
        return losses
    if reduction == "mean" and weights is None:
        return build.ReduceMean(losses, keepdims=0)
    total = build.ReduceSum(losses, keepdims=0)
    return total if reduction == "sum" else build.Div(total, build.ReduceSum(weights, keepdims=0))


def _pick(build: Builder, scores: Value, labels: Value) -> Any:
    """The score of each label's class."""
    if build.opset < 13:
        places = build.Unsqueeze(labels, axes=[1])
        return build.Squeeze(build.GatherElements(scores, places, axis=1), axes=[1])
    places = build.Unsqueeze(labels, [1])
    return build.Squeeze(build.GatherElements(scores, places, axis=1), [1])


class NegativeLogLikelihoodLoss(Operator):
    """The negated log-probability of each label's class, weighted, and summed or averaged."""

    signatures = (
        "12(input: T, target: Tind, weight?: T, ignore_index?: int, reduction: string = 'mean')"
        " -> loss: T; T: floats3; Tind: int32 int64",
        "13(input: T, target: Tind, weight?: T, ignore_index?: int, reduction: string = 'mean')"
        " -> loss: T; T: floats3; Tind: int32 int64",
        "22(input: T, target: Tind, weight?: T, ignore_index?: int, reduction: string = 'mean')"
        " -> loss: T; T: floats; Tind: int32 int64",
    )

    def infer(
        scores: Fact, labels: Fact, weight: Fact | None = None, *, ignore_index: int | None,
        reduction: str,
    ) -> Fact:  # fmt: skip
        return _loss_fact(scores, labels, weight, reduction)

    def reference(
        scores: Array, labels: Array, weight: Array | None = None, *, ignore_index: int | None,
        reduction: str,
    ) -> Array:  # fmt: skip
        wide = None if weight is None else widen(weight)
        loss = _negative_log_likelihood(widen(scores), labels, wide, ignore_index, reduction)
        return loss.astype(scores.dtype, copy=False)

    def function(
        build: Builder, scores: Value, labels: Value, weight: Value | None = None, *,
        ignore_index: int | None, reduction: str,
    ) -> Any:  # fmt: skip
        return _spelled_out(build, scores, labels, weight, ignore_index, reduction)


class SoftmaxCrossEntropyLoss(Operator):
    """The negative log-likelihood loss of the softmax of scores, and that softmax's logarithm."""

    signatures = (
        "12(scores: T, labels: Tind, weights?: T, ignore_index?: int, reduction: string = 'mean')"
        " -> (output: T, log_prob?: T); T: floats3; Tind: int32 int64",
        "13(scores: T, labels: Tind, weights?: T, ignore_index?: int, reduction: string = 'mean')"
        " -> (output: T, log_prob?: T); T: floats; Tind: int32 int64",
    )

    def infer(
        scores: Fact, labels: Fact, weights: Fact | None = None, *, ignore_index: int | None,
        reduction: str,
    ) -> tuple[Fact, Fact]:  # fmt: skip
        return _loss_fact(scores, labels, weights, reduction), tensor(scores.dtype, scores.shape)

    def reference(
        scores: Array, labels: Array, weights: Array | None = None, *, ignore_index: int | None,
        reduction: str,
    ) -> tuple[Array, Array]:  # fmt: skip
        logs = log_softmax(widen(scores), 1)
        wide = None if weights is None else widen(weights)
        loss = _negative_log_likelihood(logs, labels, wide, ignore_index, reduction)
        return loss.astype(scores.dtype, copy=False), logs.astype(scores.dtype, copy=False)

    def function(
        build: Builder, scores: Value, labels: Value, weights: Value | None = None, *,
        ignore_index: int | None, reduction: str,
    ) -> Any:  # fmt: skip
        assert LogSoftmax.function is not None
        flattens = build.opset < 13
        logs = (
            LogSoftmax.function(build, scores, 1) if flattens else build.LogSoftmax(scores, axis=1)
        )
        return _spelled_out(build, logs, labels, weights, ignore_index, reduction), logs
