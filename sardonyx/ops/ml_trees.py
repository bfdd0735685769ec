# mypy: disable-error-code="misc"
"""Ensembles of decision trees of `ai.onnx.ml`."""

from typing import Any

import numpy as np

from sardonyx.dtypes import DataType, from_numpy
from sardonyx.errors import ConversionError, EvaluationError, InferenceError
from sardonyx.graph import Node, Value
from sardonyx.ops.build import Builder
from sardonyx.ops.fact import Fact, tensor
from sardonyx.ops.ml_forest import (
    AGGREGATES,
    base_values,
    forest_of_nodes,
    forest_of_splits,
    nodes_of_splits,
)
from sardonyx.ops.ml_scores import (
    Labels,
    label_fact,
    labels_of,
    one_label,
    row_count,
    through_numbers,
    transform,
    two_columns,
)
from sardonyx.ops.operator import Operator, attribute_values
from sardonyx.ops.precision import Array

_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


def _drop_tensors(node: Node, build: Builder) -> None:
    """Tensors of float32 said as lists of floats, which is all that version 1 has."""
    for name in [name for name in node.attributes if name.endswith("_as_tensor")]:
        array = node.attributes.pop(name).value.numpy()
        if array.dtype != np.float32:
            raise ConversionError(f"{array.dtype} in '{name}' begins with version 3")
        node.set_attribute(name.removesuffix("_as_tensor"), array.reshape(-1).tolist())


def _precision(x: Array) -> np.dtype[Any]:
    """Scores are added up in double precision for doubles, else in single."""
    return np.dtype(np.float64 if x.dtype == np.float64 else np.float32)


class TreeEnsembleClassifier(Operator):
    """Leaves' weights added up for each class, and the class with the largest sum."""

    domain = "ai.onnx.ml"
    signatures = (
        "1(X: T1, base_values?: floats, class_ids?: ints, class_nodeids?: ints, "
        "class_treeids?: ints, class_weights?: floats, classlabels_int64s?: ints, "
        "classlabels_strings?: strings, nodes_falsenodeids?: ints, nodes_featureids?: ints, "
        "nodes_hitrates?: floats, nodes_missing_value_tracks_true?: ints, nodes_modes?: strings, "
        "nodes_nodeids?: ints, nodes_treeids?: ints, nodes_truenodeids?: ints, "
        "nodes_values?: floats, post_transform: string = 'NONE') -> (Y: T2, Z: tensor(float)); "
        "T1: double float int32 int64; T2: int64 string",
        "3(X: T1, base_values?: floats, base_values_as_tensor?: tensor, class_ids?: ints, "
        "class_nodeids?: ints, class_treeids?: ints, class_weights?: floats, "
        "class_weights_as_tensor?: tensor, classlabels_int64s?: ints, "
        "classlabels_strings?: strings, nodes_falsenodeids?: ints, nodes_featureids?: ints, "
        "nodes_hitrates?: floats, nodes_hitrates_as_tensor?: tensor, "
        "nodes_missing_value_tracks_true?: ints, nodes_modes?: strings, nodes_nodeids?: ints, "
        "nodes_treeids?: ints, nodes_truenodeids?: ints, nodes_values?: floats, "
        "nodes_values_as_tensor?: tensor, post_transform: string = 'NONE') "
        "-> (Y: T2, Z: tensor(float)); T1: double float int32 int64; T2: int64 string",
        "5(X: T1, base_values?: floats, base_values_as_tensor?: tensor, class_ids?: ints, "
        "class_nodeids?: ints, class_treeids?: ints, class_weights?: floats, "
        "class_weights_as_tensor?: tensor, classlabels_int64s?: ints, "
        "classlabels_strings?: strings, nodes_falsenodeids?: ints, nodes_featureids?: ints, "
        "nodes_hitrates?: floats, nodes_hitrates_as_tensor?: tensor, "
        "nodes_missing_value_tracks_true?: ints, nodes_modes?: strings, nodes_nodeids?: ints, "
        "nodes_treeids?: ints, nodes_truenodeids?: ints, nodes_values?: floats, "
        "nodes_values_as_tensor?: tensor, post_transform: string = 'NONE') "
        "-> (Y: T2, Z: tensor(float)); T1: double float int32 int64; T2: int64 string deprecated",
    )

    def infer(
        x: Fact, *, classlabels_int64s: tuple[int, ...] | None,
        classlabels_strings: tuple[str, ...] | None, **_: Any,
    ) -> tuple[Fact, Fact]:  # fmt: skip
        labels = (classlabels_int64s, classlabels_strings)
        scores = tensor(DataType.FLOAT, (row_count(x), len(labels_of(labels)) or None))
        return label_fact(labels, x), scores

    def reference(
        x: Array, *, classlabels_int64s: tuple[int, ...] | None,
        classlabels_strings: tuple[str, ...] | None, post_transform: str, **trees: Any,
    ) -> tuple[Array, Array]:  # fmt: skip
        labels: Labels = (classlabels_int64s, classlabels_strings)
        names, dtype = labels_of(labels), _precision(x)
        base = base_values(trees, dtype)
        if len(base) not in (0, 1, len(names)) or (len(base) == 1 and len(names) > 2):
            raise EvaluationError(f"{len(base)} base values for {len(names)} classes")
        forest = forest_of_nodes(trees, "class", len(names), dtype)
        scores, present = forest.aggregate(x, "SUM")
        distinct = np.unique(trees["class_ids"] or ())
        if len(names) < 2 or (len(names) == 2 and len(distinct) == 1 and len(base) < 2):
            column = int(distinct[0]) if len(distinct) else 0
            score = scores[:, column] + (base[0] if len(base) else 0)
            positive = not (forest.weights < 0).any()
            return _decide(score.astype(np.float32), column, positive, labels, post_transform)
        if len(base) == len(names):
            scores, present = scores + base, np.ones_like(present)
        elif len(base) == 1:
            scores[:, 0] += base[0]
        best = np.where(present, scores, -np.inf).argmax(1)
        return names[best], transform(scores.astype(np.float32), post_transform)

    def function(build: Builder, x: Value, **given: Any) -> Any:
        return through_numbers(build, "TreeEnsembleClassifier", x, given)

    downgrade_3 = _drop_tensors


def _decide(
    score: Array, column: int, positive: bool, labels: Labels, name: str
) -> tuple[Array, Array]:
    """Label and scores where trees speak of one class only: its score is the second label's.

    Weights without a negative one are taken for probabilities.
    """
    two = len(labels_of(labels)) == 2
    chosen = one_label(score > (0.5 if positive and two else 0), labels)
    if not two:
        return chosen, transform(score[:, None], name)
    if column == 1:
        return chosen, transform(np.stack([np.zeros_like(score), score], 1), name)
    return chosen, two_columns(score, name, probability=positive)


class TreeEnsembleRegressor(Operator):
    """Leaves' weights added up, averaged, or the least or greatest taken, for each target."""

    domain = "ai.onnx.ml"
    signatures = (
        "1(X: T, aggregate_function: string = 'SUM', base_values?: floats, n_targets?: int, "
        "nodes_falsenodeids?: ints, nodes_featureids?: ints, nodes_hitrates?: floats, "
        "nodes_missing_value_tracks_true?: ints, nodes_modes?: strings, nodes_nodeids?: ints, "
        "nodes_treeids?: ints, nodes_truenodeids?: ints, nodes_values?: floats, "
        "post_transform: string = 'NONE', target_ids?: ints, target_nodeids?: ints, "
        "target_treeids?: ints, target_weights?: floats) -> Y: tensor(float); "
        "T: double float int32 int64",
        "3(X: T, aggregate_function: string = 'SUM', base_values?: floats, "
        "base_values_as_tensor?: tensor, n_targets?: int, nodes_falsenodeids?: ints, "
        "nodes_featureids?: ints, nodes_hitrates?: floats, nodes_hitrates_as_tensor?: tensor, "
        "nodes_missing_value_tracks_true?: ints, nodes_modes?: strings, nodes_nodeids?: ints, "
        "nodes_treeids?: ints, nodes_truenodeids?: ints, nodes_values?: floats, "
        "nodes_values_as_tensor?: tensor, post_transform: string = 'NONE', target_ids?: ints, "
        "target_nodeids?: ints, target_treeids?: ints, target_weights?: floats, "
        "target_weights_as_tensor?: tensor) -> Y: tensor(float); T: double float int32 int64",
        "5(X: T, aggregate_function: string = 'SUM', base_values?: floats, "
        "base_values_as_tensor?: tensor, n_targets?: int, nodes_falsenodeids?: ints, "
        "nodes_featureids?: ints, nodes_hitrates?: floats, nodes_hitrates_as_tensor?: tensor, "
        "nodes_missing_value_tracks_true?: ints, nodes_modes?: strings, nodes_nodeids?: ints, "
        "nodes_treeids?: ints, nodes_truenodeids?: ints, nodes_values?: floats, "
        "nodes_values_as_tensor?: tensor, post_transform: string = 'NONE', target_ids?: ints, "
        "target_nodeids?: ints, target_treeids?: ints, target_weights?: floats, "
        "target_weights_as_tensor?: tensor) -> Y: tensor(float); T: double float int32 int64 "
        "deprecated",
    )

    def infer(x: Fact, *, n_targets: int | None, **trees: Any) -> Fact:
        return tensor(DataType.FLOAT, (row_count(x), _targets(n_targets, trees["target_ids"])))

    def reference(
        x: Array,
        *,
        aggregate_function: str,
        n_targets: int | None,
        post_transform: str,
        **trees: Any,
    ) -> Array:
        count = _targets(n_targets, trees["target_ids"])
        base = base_values(trees, _precision(x))
        if len(base) not in (0, 1, count):
            raise EvaluationError(f"{len(base)} base values for {count} targets")
        forest = forest_of_nodes(trees, "target", count, _precision(x))
        scores, _ = forest.aggregate(x, aggregate_function)
        scores = scores + base if len(base) else scores
        return transform(scores.astype(np.float32), post_transform)

    downgrade_3 = _drop_tensors


class TreeEnsemble(Operator):
    """Trees of inner nodes and leaves, whose weights are combined for each target."""

    domain = "ai.onnx.ml"
    signatures = (
        "5(X: T, aggregate_function: int = 1, leaf_targetids: ints, leaf_weights: tensor, "
        "membership_values?: tensor, n_targets?: int, nodes_falseleafs: ints, "
        "nodes_falsenodeids: ints, nodes_featureids: ints, nodes_hitrates?: tensor, "
        "nodes_missing_value_tracks_true?: ints, nodes_modes: tensor, nodes_splits: tensor, "
        "nodes_trueleafs: ints, nodes_truenodeids: ints, post_transform: int = 0, "
        "tree_roots: ints) -> Y: T; T: floats3",
    )

    def infer(
        x: Fact, *, aggregate_function: int, leaf_targetids: tuple[int, ...],
        n_targets: int | None, post_transform: int, **_: Any,
    ) -> Fact:  # fmt: skip
        if not 0 <= aggregate_function < len(AGGREGATES):
            raise InferenceError(f"aggregate_function {aggregate_function} is not in 0 to 3")
        if not 0 <= post_transform < len(_TRANSFORMS):
            raise InferenceError(f"post_transform {post_transform} is not in 0 to 4")
        return tensor(x.dtype, (row_count(x), _targets(n_targets, leaf_targetids)))

    def reference(
        x: Array,
        *,
        aggregate_function: int,
        n_targets: int | None,
        post_transform: int,
        **trees: Any,
    ) -> Array:
        forest = forest_of_splits(trees, _targets(n_targets, trees["leaf_targetids"]))
        scores, _ = forest.aggregate(x, AGGREGATES[aggregate_function])
        return transform(scores, _TRANSFORMS[post_transform]).astype(x.dtype)

    def downgrade_5(node: Node, build: Builder) -> Value:
        given = attribute_values(node, TreeEnsemble.newest())
        (x,) = node.inputs
        element = from_numpy(given["leaf_weights"].dtype)
        if element == DataType.DOUBLE:
            raise ConversionError("scores in double precision begin with version 5")
        wide = x if element == DataType.FLOAT else build.Cast(x, to=int(DataType.FLOAT))
        scores: Value = build.TreeEnsembleRegressor(
            wide, domain="ai.onnx.ml", aggregate_function=AGGREGATES[given["aggregate_function"]],
            n_targets=_targets(given["n_targets"], given["leaf_targetids"]),
            post_transform=_TRANSFORMS[given["post_transform"]], **nodes_of_splits(given),
        )  # fmt: skip
        return scores if element == DataType.FLOAT else build.Cast(scores, to=int(element))


def _targets(given: int | None, ids: tuple[int, ...] | None) -> int:
    return given if given is not None else max(ids or (0,)) + 1
