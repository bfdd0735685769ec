"""What differs between two models: structure, weights, and what they compute."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from sardonyx.boundary import public
from sardonyx.errors import SardonyxError
from sardonyx.graph import Model, Tensor
from sardonyx.ops.evaluate import Evaluator
from sardonyx.passes.verify_result import random_feeds


@dataclass(frozen=True, slots=True)
class Difference:
    """One line of a comparison: `left` and `right` are None where a side has no such thing."""

    kind: str
    name: str
    left: Any
    right: Any


@dataclass(frozen=True, slots=True)
class ModelDiff:
    """The result of `diff`: empty, and false, where nothing differs."""

    structure: tuple[Difference, ...]
    weights: tuple[Difference, ...]
    numerics: tuple[Difference, ...]

    def __bool__(self) -> bool:
        return bool(self.structure or self.weights or self.numerics)

    def __str__(self) -> str:
        rows = [
            (item.kind, item.name, _cell(item.left), _cell(item.right))
            for item in (*self.structure, *self.weights, *self.numerics)
        ]
        if not rows:
            return "no difference"
        table = [("what", "name", "left", "right"), *rows]
        widths = [max(len(row[column]) for row in table) for column in range(4)]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in table
        )


@public("comparing the models")
def diff(left: Model, right: Model, *, runs: int = 1) -> ModelDiff:
    """Compare two models: their operators and interfaces, their weights, and their results.

    `runs` random inputs are tried; the numbers given are the largest differences found, absolute.
    A model that does not run on them, or an interface that differs, is said so instead.

    >>> import sardonyx as sx
    >>> head = '<ir_version: 10, opset_import: ["": 21]> g (float[2] x) => (float[2] y)'
    >>> a, b = sx.load_text(head + "{ y = Neg(x) }"), sx.load_text(head + "{ y = Abs(x) }")
    >>> [(item.name, item.left, item.right) for item in diff(a, b, runs=0).structure]
    [('Abs', 0, 1), ('Neg', 1, 0)]
    >>> bool(diff(a, a))
    False
    """
    return ModelDiff(
        tuple(_structure(left, right)),
        tuple(_weights(left, right)),
        tuple(_numerics(left, right, runs)),
    )


def _cell(item: Any) -> str:
    return "-" if item is None else f"{item:.3g}" if isinstance(item, float) else str(item)


def _structure(left: Model, right: Model) -> list[Difference]:
    found = _different("IR version", {"": left.ir_version}, {"": right.ir_version})
    found += _different("opset", dict(left.opsets), dict(right.opsets))
    for kind in ("inputs", "outputs"):
        sides = [
            {} if model.graph is None
            else {value.name: str(value.type) for value in getattr(model.graph, kind)}
            for model in (left, right)
        ]  # fmt: skip
        found += _different(kind.removesuffix("s"), *sides)
    counts = [Counter(node.op_type for graph in model.graphs() for node in graph.nodes)
              for model in (left, right)]  # fmt: skip
    names = sorted(counts[0].keys() | counts[1].keys())
    return found + [
        Difference("operator", name, counts[0][name], counts[1][name])
        for name in names
        if counts[0][name] != counts[1][name]
    ]


def _different(kind: str, left: dict[str, Any], right: dict[str, Any]) -> list[Difference]:
    return [
        Difference(kind, name, left.get(name), right.get(name))
        for name in dict.fromkeys((*left, *right))
        if left.get(name) != right.get(name)
    ]


def _weights(left: Model, right: Model) -> list[Difference]:
    sides = [_constants(model) for model in (left, right)]
    found = []
    for name in dict.fromkeys((*sides[0], *sides[1])):
        a, b = sides[0].get(name), sides[1].get(name)
        if a is None or b is None or a.type != b.type:
            found.append(Difference("weight", name, a and str(a.type), b and str(b.type)))
        elif a.data is not b.data and a.numpy().tobytes() != b.numpy().tobytes():
            gap = largest_gap(a.numpy(), b.numpy())
            found.append(Difference("weight", name, "equal shape", f"differs by {gap:.3g}"))
    return found


def _constants(model: Model) -> dict[str, Tensor]:
    graph = model.graph
    values = [] if graph is None else graph.initializers
    return {value.name: value.tensor for value in values if isinstance(value.tensor, Tensor)}


def _numerics(left: Model, right: Model, runs: int) -> list[Difference]:
    gaps: dict[str, float] = {}
    try:
        evaluators = [Evaluator(model, seed=0) for model in (left, right)] if runs else []
        for seed in range(runs):
            feeds = random_feeds(left, seed)
            first, second = (evaluator.run(None, feeds) for evaluator in evaluators)
            names = [value.name for value in evaluators[0].graph.outputs]
            for name, a, b in zip(names, first, second, strict=False):
                gaps[name] = max(gaps.get(name, 0.0), largest_gap(a, b))
    except SardonyxError as error:
        return [Difference("result", "", None, f"not compared: {error.what}")]
    return [Difference("result", name, 0.0, gap) for name, gap in gaps.items() if gap]


def largest_gap(left: Any, right: Any) -> float:
    """The largest absolute difference; infinite where shapes, types or places of NaN differ.

    >>> largest_gap(np.array([1.0, 2.0]), np.array([1.0, 2.5]))
    0.5
    """
    a, b = np.asarray(left), np.asarray(right)
    if a.shape != b.shape or a.dtype != b.dtype:
        return float("inf")
    if a.dtype.kind in "OSUb":
        return 0.0 if (a == b).all() else float("inf")
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    first, second = a.astype(wide), b.astype(wide)
    missing = np.isnan(first)
    if (missing != np.isnan(second)).any():
        return float("inf")
    apart = ~missing & (first != second)
    gaps = np.abs(first[apart] - second[apart])
    return float(gaps.max()) if gaps.size else 0.0
