"""Ensembles of decision trees as arrays, walked for all rows and trees at once."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sardonyx.errors import EvaluationError
from sardonyx.ops.ml_scores import rows
from sardonyx.ops.precision import Array, widen
from sardonyx.record import record

LEAF, MEMBER = -1, 6
_COMPARISONS = (np.less_equal, np.less, np.greater_equal, np.greater, np.equal, np.not_equal)
"""What a branch asks of its feature and threshold, in the order of TreeEnsemble's modes."""
MODES = {
    "BRANCH_LEQ": 0,
    "BRANCH_LT": 1,
    "BRANCH_GTE": 2,
    "BRANCH_GT": 3,
    "BRANCH_EQ": 4,
    "BRANCH_NEQ": 5,
    "LEAF": LEAF,
}
AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_BLOCK = 1 << 21
"""Rows are taken so many at a time that rows * trees * targets stays about this."""


@record
class Forest:
    """All nodes of all trees. `yes` and `no` are the next node's index; a leaf's are its own.

    `members` holds, for nodes that ask whether a feature is in a set, that set. `weights` has a
    row for each node, with NaN where a leaf says nothing of a target.
    """

    feature: Array
    threshold: Array
    mode: Array
    yes: Array
    no: Array
    missing: Array
    roots: Array
    weights: Array
    members: dict[int, Array]

    def aggregate(self, x: Array, function: str) -> tuple[Array, Array]:
        """Sum, mean, least or greatest of the leaves [rows, targets], and where there is one."""
        table = widen(rows(x))
        if table.dtype.kind != "f":
            table = table.astype(np.float32)
        branches = self.mode != LEAF
        if branches.any() and self.feature[branches].max() >= table.shape[1]:
            raise EvaluationError(
                f"a node asks for feature {self.feature[branches].max()} of {table.shape[1]}"
            )
        targets = self.weights.shape[1]
        step = max(_BLOCK // max(len(self.roots) * targets, 1), 1)
        scores = np.zeros((len(table), targets), self.weights.dtype)
        present = np.zeros((len(table), targets), bool)
        for start in range(0, len(table), step):
            leaves = self.weights[self.leaves(table[start : start + step])]
            scores[start : start + step] = self._combine(leaves, function)
            present[start : start + step] = ~np.isnan(leaves).all(1)
        return scores, present

    def _combine(self, leaves: Array, function: str) -> Array:
        """[rows, trees, targets] -> [rows, targets]."""
        said = ~np.isnan(leaves)
        if function in ("SUM", "AVERAGE"):
            total: Array = np.where(said, leaves, 0).sum(1, dtype=leaves.dtype)
            return total / leaves.dtype.type(len(self.roots)) if function == "AVERAGE" else total
        choose = {"MIN": np.fmin, "MAX": np.fmax}.get(function)
        if choose is None:
            raise EvaluationError(f"aggregate_function '{function}' is none of {AGGREGATES}")
        chosen = choose.reduce(leaves, 1) if leaves.shape[1] else leaves.sum(1)
        return np.where(said.any(1), chosen, 0)

    def leaves(self, table: Array) -> Array:
        """The leaf each row reaches in each tree: [rows, trees]."""
        current = np.broadcast_to(self.roots, (len(table), len(self.roots)))
        row = np.arange(len(table))[:, None]
        modes = np.unique(self.mode[self.mode != LEAF]).tolist()
        for _ in range(len(self.mode) + 1):
            if (self.mode[current] == LEAF).all():
                return current
            value = table[row, np.where(self.mode[current] == LEAF, 0, self.feature[current])]
            taken = self._answers(current, value, modes)
            taken |= self.missing[current] & np.isnan(value)
            current = np.where(taken, self.yes[current], self.no[current])
        raise EvaluationError("the nodes of a tree form a circle")

    def _answers(self, current: Array, value: Array, modes: Sequence[int]) -> Array:
        threshold, mode = self.threshold[current], self.mode[current]
        answer = np.zeros(current.shape, bool)
        for kind in modes:
            if kind != MEMBER:
                here = _COMPARISONS[kind](value, threshold)
                answer = here if len(modes) == 1 else np.where(mode == kind, here, answer)
        for node, members in self.members.items():
            at = current == node
            answer[at] = np.isin(value[at], members)
        return answer


def forest_of_nodes(given: dict[str, Any], part: str, targets: int, dtype: np.dtype[Any]) -> Forest:
    """From the attributes of TreeEnsembleClassifier (`part` is class) or -Regressor (target)."""
    sides = [given[f"nodes_{name}"] or () for name in ("truenodeids", "falsenodeids")]
    places = [_integers(given["nodes_treeids"]), _integers(given["nodes_nodeids"])]
    if len({len(item) for item in (*places, *sides)}) != 1:
        raise EvaluationError("attributes of the trees' nodes differ in length")
    ids = np.stack(places, 1)
    count = len(ids)
    order = {(tree, node): index for index, (tree, node) in enumerate(ids.tolist())}
    if len(order) != count:
        raise EvaluationError("a tree has two nodes of one number")
    mode = np.array([MODES.get(name, LEAF - 1) for name in given["nodes_modes"] or ()], np.int64)
    feature = _integers(given["nodes_featureids"])
    threshold = _numbers(given, "nodes_values", dtype)
    lengths = {count, len(mode), len(feature), len(threshold)}
    if len(lengths) != 1 or (mode < LEAF).any():
        raise EvaluationError("attributes of the trees' nodes differ in length, or name no mode")
    own = np.arange(count)
    yes, no = (
        np.array(
            [order.get(key, -1) for key in zip(ids[:, 0].tolist(), other, strict=True)], np.int64
        )
        for other in sides
    )
    branches = mode != LEAF
    if ((yes < 0) | (no < 0))[branches].any():
        raise EvaluationError("a node leads to a node that its tree does not have")
    missing = np.zeros(count, bool)
    tracks = _integers(given["nodes_missing_value_tracks_true"])
    missing[: len(tracks)] = tracks[:count] == 1
    _, roots = np.unique(ids[:, 0], return_index=True)
    weights = _weights(given, part, order, targets, dtype)
    weights[branches] = np.nan
    return Forest(
        feature, threshold, mode, np.where(branches, yes, own), np.where(branches, no, own),
        missing, np.sort(roots), weights, {},
    )  # fmt: skip


def _weights(
    given: dict[str, Any], part: str, order: dict[tuple[int, int], int], targets: int,
    dtype: np.dtype[Any],
) -> Array:  # fmt: skip
    """What each node says of each target; NaN for nothing."""
    values = _numbers(given, f"{part}_weights", dtype)
    trees, nodes = given[f"{part}_treeids"] or (), given[f"{part}_nodeids"] or ()
    target = _integers(given[f"{part}_ids"])
    places = np.array([order.get(key, -1) for key in zip(trees, nodes, strict=False)], np.int64)
    lengths = {len(item) for item in (trees, nodes, values, target)}
    if len(lengths) != 1 or (places < 0).any():
        raise EvaluationError(f"'{part}_' attributes differ in length, or name no node")
    if target.size and not 0 <= target.min() <= target.max() < targets:
        raise EvaluationError(f"'{part}_ids' are not in [0, {targets})")
    said = np.zeros((len(order), targets), bool)
    said[places, target] = True
    weights = np.zeros((len(order), targets), dtype)
    np.add.at(weights, (places, target), values)
    return np.where(said, weights, np.nan).astype(dtype)


def _integers(values: Sequence[int] | None) -> Array:
    return np.array(values if values is not None else (), np.int64)


def _numbers(given: dict[str, Any], name: str, dtype: np.dtype[Any]) -> Array:
    """A list of floats, or the tensor that stands for it."""
    tensor = given.get(f"{name}_as_tensor")
    values = given[name] if tensor is None else tensor
    return np.array(values if values is not None else (), dtype).reshape(-1)


def base_values(given: dict[str, Any], dtype: np.dtype[Any]) -> Array:
    """What is added to the scores; empty where there is nothing."""
    return _numbers(given, "base_values", dtype)


def forest_of_splits(given: dict[str, Any], targets: int) -> Forest:
    """From the attributes of TreeEnsemble: inner nodes first, leaves behind them."""
    splits, mode = widen(given["nodes_splits"].reshape(-1)), given["nodes_modes"].reshape(-1)
    leaf_weights = widen(given["leaf_weights"].reshape(-1))
    count, leaves = len(splits), len(leaf_weights)
    own = np.arange(count, count + leaves)
    names = ("truenodeids", "trueleafs", "falsenodeids", "falseleafs", "featureids")
    yes, yes_leaf, no, no_leaf, feature = (_integers(given[f"nodes_{name}"]) for name in names)
    target = _integers(given["leaf_targetids"])
    if {len(item) for item in (yes, yes_leaf, no, no_leaf, feature, mode)} != {count}:
        raise EvaluationError("attributes of the trees' nodes differ in length")
    if len(target) != leaves or (leaves and not 0 <= target.min() <= target.max() < targets):
        raise EvaluationError(f"'leaf_targetids' are not {leaves} numbers in [0, {targets})")
    for ids, leaf in ((yes, yes_leaf), (no, no_leaf)):
        if ((ids < 0) | (ids >= np.where(leaf == 1, leaves, count))).any():
            raise EvaluationError("a node leads to a node or leaf that is not there")
    if mode.size and mode.max() > MEMBER:
        raise EvaluationError(f"mode {mode.max()} of a node is not known")
    roots = _integers(given["tree_roots"])
    if ((roots < 0) | (roots >= count + leaves)).any():
        raise EvaluationError(f"'tree_roots' are not in [0, {count + leaves})")
    missing = np.zeros(count + leaves, bool)
    tracks = _integers(given["nodes_missing_value_tracks_true"])[:count]
    missing[: len(tracks)] = tracks == 1
    weights = np.full((count + leaves, targets), np.nan, leaf_weights.dtype)
    weights[own, target] = leaf_weights
    filler = np.zeros(leaves, np.int64)
    return Forest(
        np.concatenate([feature, filler]), np.concatenate([splits, np.zeros(leaves, splits.dtype)]),
        np.concatenate([mode.astype(np.int64), filler + LEAF]),
        np.concatenate([yes + count * (yes_leaf == 1), own]),
        np.concatenate([no + count * (no_leaf == 1), own]),
        missing, roots, weights,
        _member_sets(given["membership_values"], np.flatnonzero(mode == MEMBER)),
    )  # fmt: skip


def _member_sets(values: Array | None, nodes: Array) -> dict[int, Array]:
    """The sets of nodes that test membership: values up to each NaN, in the order of nodes."""
    flat = widen(np.zeros(0, np.float32) if values is None else values.reshape(-1))
    sets = np.split(flat, np.flatnonzero(np.isnan(flat)) + 1)
    if sets and not len(sets[-1]):
        sets = sets[:-1]
    if len(sets) != len(nodes):
        raise EvaluationError(f"{len(sets)} sets of membership_values for {len(nodes)} nodes")
    return {
        int(node): members[~np.isnan(members)] for node, members in zip(nodes, sets, strict=True)
    }


def nodes_of_splits(given: dict[str, Any]) -> dict[str, list[Any]]:
    """The trees of TreeEnsemble as attributes of TreeEnsembleRegressor.

    A test of membership becomes a chain of tests for equality with each member.
    """
    forest = forest_of_splits(given, max(given["leaf_targetids"] or (0,)) + 1)
    names = {kind: name for name, kind in MODES.items()}
    made: dict[str, list[Any]] = {f"nodes_{name}": [] for name in _NODE_LISTS}
    made |= {f"target_{name}": [] for name in _LEAF_LISTS}
    for tree, root in enumerate(forest.roots.tolist()):
        reached = _numbered(forest, root)
        for index, (number, members) in reached.items():
            mode = int(forest.mode[index])
            name = names[MODES["BRANCH_EQ"] if mode == MEMBER else mode]
            yes, no = (reached[int(side[index])][0] for side in (forest.yes, forest.no))
            feature, missing = int(forest.feature[index]), int(forest.missing[index])
            for step, value in enumerate(members):
                following = no if step == len(members) - 1 else number + step + 1
                row = (tree, number + step, feature, value, name, yes, following, missing)
                for key, item in zip(_NODE_LISTS, row, strict=True):
                    made[f"nodes_{key}"].append(item)
            for target in np.flatnonzero(~np.isnan(forest.weights[index])).tolist():
                entry = (tree, number, target, float(forest.weights[index, target]))
                for key, item in zip(_LEAF_LISTS, entry, strict=True):
                    made[f"target_{key}"].append(item)
    return made


_LEAF_LISTS = ("treeids", "nodeids", "ids", "weights")
_NODE_LISTS = (
    "treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids",
    "missing_value_tracks_true",
)  # fmt: skip


def _numbered(forest: Forest, root: int) -> dict[int, tuple[int, list[float]]]:
    """The nodes under a root in order: the first number each gets, and what it compares with."""
    reached: dict[int, tuple[int, list[float]]] = {}
    waiting, count = [root], 0
    for index in waiting:
        if index in reached:
            continue
        members = [float(forest.threshold[index])]
        if index in forest.members:
            members = forest.members[index].tolist() or [float("nan")]
        reached[index] = (count, members)
        count += len(members)
        if forest.mode[index] != LEAF:
            waiting += [int(forest.yes[index]), int(forest.no[index])]
    return reached
