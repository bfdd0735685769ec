# mypy: disable-error-code="misc"
"""Support vector machines of `ai.onnx.ml`."""

from itertools import combinations

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.errors import EvaluationError
from sardonyx.ops.fact import Fact, tensor
from sardonyx.ops.ml_scores import (
    Labels,
    label_fact,
    labels_of,
    logistic,
    row_count,
    rows,
    transform,
    two_columns,
    vector,
)
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array

Floats = tuple[float, ...]
_ROUNDS = 100
"""At most so many rounds are spent on one row's probabilities."""


def _kernel(x: Array, vectors: Array, kind: str, parameters: Floats | None) -> Array:
    """The kernel of every row with every vector: [rows, vectors], in float64.

    Scores are small differences of large sums, and probabilities exponentials of those.
    """
    gamma, shift, degree = (*(parameters or ()), 0.0, 0.0, 0.0)[:3]
    if x.shape[1] != vectors.shape[1]:
        raise EvaluationError(f"{x.shape[1]} features against vectors of {vectors.shape[1]}")
    x, vectors = x.astype(np.float64), vectors.astype(np.float64)
    match kind:
        case "LINEAR":
            result = x @ vectors.T
        case "POLY":
            result = (np.float32(gamma) * (x @ vectors.T) + np.float32(shift)) ** np.float32(degree)
        case "RBF":
            squares = (x * x).sum(1)[:, None] + (vectors * vectors).sum(1)
            distance = np.maximum(squares - 2 * (x @ vectors.T), 0)
            result = np.exp(np.float32(-gamma) * distance)
        case "SIGMOID":
            result = np.tanh(np.float32(gamma) * (x @ vectors.T) + np.float32(shift))
        case _:
            raise EvaluationError(f"kernel_type '{kind}' is none of LINEAR, POLY, RBF, SIGMOID")
    return result


def _single(scores: Array) -> Array:
    with np.errstate(over="ignore"):
        return scores.astype(np.float32)


def _vectors(values: Floats | None, count: int) -> Array:
    flat = vector(values)
    if flat.size % count:
        raise EvaluationError(f"{flat.size} numbers are no {count} support vectors")
    return flat.reshape(count, -1)


def _pairwise(kernels: Array, coefficients: Array, rho: Array, counts: Array) -> Array:
    """The score of each pair of classes; above 0 the first of them wins. [rows, pairs]"""
    stops = np.cumsum(counts)
    spans = [slice(stop - count, stop) for stop, count in zip(stops, counts, strict=True)]
    scores = []
    for pair, (first, second) in enumerate(combinations(range(len(counts)), 2)):
        a, b = spans[first], spans[second]
        score = kernels[:, a] @ coefficients[second - 1, a] + kernels[:, b] @ coefficients[first, b]
        scores.append(score + rho[pair])
    return np.stack(scores, 1)


def _probabilities(scores: Array, a: Array, b: Array, classes: int) -> Array:
    """Class probabilities that agree best with those of all pairs (Wu, Lin and Weng 2004)."""
    pairs = np.zeros((len(scores), classes, classes))
    for index, (i, j) in enumerate(combinations(range(classes), 2)):
        win = np.clip(1 - logistic(scores[:, index] * a[index] + b[index]), 1e-7, 1 - 1e-7)
        pairs[:, i, j], pairs[:, j, i] = win, 1 - win
    q = -pairs.swapaxes(1, 2) * pairs
    diagonal = np.arange(classes)
    q[:, diagonal, diagonal] = (pairs * pairs).sum(1)
    p = np.full((len(scores), classes), 1 / classes)
    for _ in range(_ROUNDS):
        qp = (q @ p[..., None])[..., 0]
        pqp = (p * qp).sum(1)
        active = np.abs(qp - pqp[:, None]).max(1) >= 0.005 / classes
        if not active.any():
            break
        for i in range(classes):
            step = np.where(active, (pqp - qp[:, i]) / q[:, i, i], 0)
            p[:, i] += step
            pqp = (pqp + step * (step * q[:, i, i] + 2 * qp[:, i])) / (1 + step) ** 2
            qp = (qp + step[:, None] * q[:, i]) / (1 + step)[:, None]
            p /= (1 + step)[:, None]
    return p


class SVMClassifier(Operator):
    """Votes of a machine for each pair of classes, or one linear machine for each class."""

    domain = "ai.onnx.ml"
    signatures = (
        "1(X: T1, classlabels_ints?: ints, classlabels_strings?: strings, coefficients?: floats, "
        "kernel_params?: floats, kernel_type: string = 'LINEAR', post_transform: string = 'NONE', "
        "prob_a?: floats, prob_b?: floats, rho?: floats, support_vectors?: floats, "
        "vectors_per_class?: ints) -> (Y: T2, Z: tensor(float)); T1: double float int32 int64; "
        "T2: int64 string",
    )

    def infer(
        x: Fact, *, classlabels_ints: tuple[int, ...] | None,
        classlabels_strings: tuple[str, ...] | None, prob_a: Floats | None,
        vectors_per_class: tuple[int, ...] | None, **_: object,
    ) -> tuple[Fact, Fact]:  # fmt: skip
        labels = (classlabels_ints, classlabels_strings)
        columns = len(labels_of(labels))
        if vectors_per_class and sum(vectors_per_class) and not prob_a and columns > 2:
            columns = columns * (columns - 1) // 2
        return label_fact(labels, x), tensor(DataType.FLOAT, (row_count(x), columns))

    def reference(
        x: Array, *, classlabels_ints: tuple[int, ...] | None,
        classlabels_strings: tuple[str, ...] | None, coefficients: Floats | None,
        kernel_params: Floats | None, kernel_type: str, post_transform: str,
        prob_a: Floats | None, prob_b: Floats | None, rho: Floats | None,
        support_vectors: Floats | None, vectors_per_class: tuple[int, ...] | None,
    ) -> tuple[Array, Array]:  # fmt: skip
        labels: Labels = (classlabels_ints, classlabels_strings)
        table, names = rows(x).astype(np.float32), labels_of(labels)
        counts = np.array(vectors_per_class or (), np.int64)
        if not counts.sum():
            return _linear_machines(table, names, vector(coefficients), vector(rho), post_transform)
        classes, total = len(counts), int(counts.sum())
        kernels = _kernel(table, _vectors(support_vectors, total), kernel_type, kernel_params)
        weights = vector(coefficients).reshape(-1, total)
        scores = _pairwise(kernels, weights, vector(rho), counts)
        votes = np.zeros((len(table), classes), np.int64)
        for pair, (first, second) in enumerate(combinations(range(classes), 2)):
            votes[np.arange(len(table)), np.where(scores[:, pair] > 0, first, second)] += 1
        chosen = names[votes.argmax(1)]
        if prob_a:
            found = _probabilities(scores, vector(prob_a), vector(prob_b), classes)
            return chosen, _single(transform(found, post_transform))
        if classes == 2:
            halves = post_transform != "NONE"
            return chosen, _single(two_columns(scores[:, 0], post_transform, probability=halves))
        return chosen, _single(transform(scores, post_transform))


def _linear_machines(
    x: Array, names: Array, coefficients: Array, rho: Array, post_transform: str
) -> tuple[Array, Array]:
    weights = _vectors(tuple(coefficients), len(names))
    scores = _kernel(x, weights, "LINEAR", None) + rho[0]
    best = scores.argmax(1)
    if len(names) == 2:
        largest = scores.max(1)
        sure = largest >= 0.5 if (coefficients >= 0).all() else largest > 0
        best = np.where(sure, 1, best)
    return names[best], _single(transform(scores, post_transform))


class SVMRegressor(Operator):
    """A weighted sum of kernels with support vectors; 1 or -1 for one-class machines."""

    domain = "ai.onnx.ml"
    signatures = (
        "1(X: T, coefficients?: floats, kernel_params?: floats, kernel_type: string = 'LINEAR', "
        "n_supports: int = 0, one_class: int = 0, post_transform: string = 'NONE', rho?: floats, "
        "support_vectors?: floats) -> Y: tensor(float); T: double float int32 int64",
    )

    def infer(x: Fact, **_: object) -> Fact:
        return tensor(DataType.FLOAT, (row_count(x), 1))

    def reference(
        x: Array, *, coefficients: Floats | None, kernel_params: Floats | None, kernel_type: str,
        n_supports: int, one_class: int, post_transform: str, rho: Floats | None,
        support_vectors: Floats | None,
    ) -> Array:  # fmt: skip
        table, weights = rows(x).astype(np.float32), vector(coefficients)
        if n_supports > 0:
            vectors = _vectors(support_vectors, n_supports)
            scores = _kernel(table, vectors, kernel_type, kernel_params) @ weights
        else:
            scores = _kernel(table, weights[None], "LINEAR", None)[:, 0]
        scores = (scores + vector(rho)[0])[:, None]
        if one_class:
            return np.where(scores > 0, np.float32(1), np.float32(-1))
        return _single(transform(scores, post_transform))
