"""Ensembles of trees as a routine: several trees at once go down a step at a time.

A node is four numbers side by side: threshold, feature, and the nodes for yes and no. A leaf leads
to itself, so trees of one group take as many steps as their deepest.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.compiler.forms import (
    Form,
    Join,
    Memories,
    NotLowered,
    Room,
    Routine,
    binary,
    cast,
    constant,
    results,
)
from sardonyx.compiler.lowerings.request import Lowerings, Request
from sardonyx.compiler.lowerings.scores import (
    arg_max,
    decided,
    feature_rows,
    labelled,
    one_column,
    transform,
)
from sardonyx.dims import Size, ceil_divide, minimum, symbol
from sardonyx.dtypes import DataType
from sardonyx.loops.build import kernel
from sardonyx.loops.nodes import (
    Binary,
    Buffer,
    Cast,
    Constant,
    Kernel,
    Kind,
    Let,
    Load,
    Loop,
    Read,
    Register,
    Select,
    Statement,
    Store,
    Update,
    Value,
)
from sardonyx.ops.ml_forest import (
    AGGREGATES,
    LEAF,
    Forest,
    base_values,
    forest_of_nodes,
    nodes_of_splits,
)

TOGETHER = 8
"""Trees that go down at once, so that the processor has something to do while one waits."""
ROWS_EACH = 32
"""Rows that a task takes through a group of trees while those are in the cache."""
_RELATIONS = ("le", "lt", "ge", "gt", "eq", "ne")


def _depths(forest: Forest) -> NDArray[np.int64]:
    """How many steps each tree takes at most."""
    depths = np.zeros(len(forest.roots), np.int64)
    current = [np.array([root]) for root in forest.roots]
    for number, nodes in enumerate(current):
        steps = 0
        while (forest.mode[nodes] != LEAF).any():
            steps += 1
            if steps > len(forest.mode):
                raise NotLowered("the nodes of a tree form a circle")
            nodes = np.unique(np.concatenate([forest.yes[nodes], forest.no[nodes]]))  # noqa: PLW2901
        depths[number] = steps
    return depths


def _tables(forest: Forest) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Nodes as four numbers each, and trees in groups of like depth: their roots and depth."""
    whole = np.int32 if forest.threshold.dtype == np.float32 else np.int64
    depths = _depths(forest)
    order = np.argsort(depths, kind="stable")
    groups = -(-len(order) // TOGETHER)
    nothing = len(forest.mode)
    nodes = np.zeros((nothing + 1, 4), whole)
    nodes[:-1, 0] = forest.threshold.view(whole)
    nodes[:-1, 1] = np.where(forest.mode == LEAF, 0, forest.feature)
    nodes[:-1, 2], nodes[:-1, 3] = forest.yes, forest.no
    nodes[-1] = (0, 0, nothing, nothing)
    plan = np.full((groups, TOGETHER + 1), nothing, np.int64)
    plan[:, -1] = 0
    for place, tree in enumerate(order):
        group, seat = divmod(place, TOGETHER)
        plan[group, seat] = forest.roots[tree]
        plan[group, -1] = max(plan[group, -1], depths[tree])
    return nodes, plan


def tree_scores(request: Request, x: Form, forest: Forest, function: str) -> Form:
    """What the leaves say of each target, combined over trees: [rows, targets]."""
    if function not in ("SUM", "AVERAGE"):
        raise NotLowered(f"trees combined by {function} have no native form")
    if forest.members or {forest.threshold.dtype, forest.weights.dtype} != {x.dtype.numpy}:
        raise NotLowered("only trees of one precision, without sets, have a native form")
    branches = forest.mode != LEAF
    modes = sorted(set(forest.mode[branches].tolist()))
    features = forest.feature[branches]
    request.fit(int(features.max(initial=-1)) + 1, x.shape[1])
    if int(features.min(initial=0)) < 0:
        raise NotLowered(f"a node asks for feature {int(features.min())}")
    nodes, plan = _tables(forest)
    weights = np.zeros((len(nodes), forest.weights.shape[1]), forest.weights.dtype)
    weights[:-1] = np.nan_to_num(forest.weights, nan=0.0)
    if function == "AVERAGE":
        weights /= weights.dtype.type(max(len(forest.roots), 1))
    flags = np.zeros(len(nodes), np.int32)
    flags[:-1] = np.where(branches, forest.mode, 0) + 8 * forest.missing
    arguments = (x, constant(nodes), constant(plan), constant(weights), constant(flags))
    asks = _Question(tuple(modes), bool((forest.missing & branches).any()))
    room = Room((x.shape[0], weights.shape[1]), x.dtype)
    steps = int(plan[:, -1].sum()) * TOGETHER * 4
    routine = Routine(arguments, (room,), asks.write, x.shape[0] * steps)
    return results(routine)[0]


class _Question:
    """How nodes ask: by which relations, and whether NaN may mean yes."""

    def __init__(self, modes: tuple[int, ...], missing: bool) -> None:
        self.modes, self.missing = modes, missing

    def write(self, memories: Memories) -> Sequence[Kernel]:
        """Blocks of rows in parallel; for each group of trees, each row of the block."""
        plan = memories.arguments[2]
        (scores,) = memories.results
        count, targets = scores.shape
        block, row, target = symbol("%block"), symbol("%row"), symbol("%target")
        first = block * ROWS_EACH
        here = minimum(ROWS_EACH, count - first)
        zero = Store(scores, (first + row, target), Constant(0.0, scores.dtype))
        clear = Loop("%row", here, (Loop("%target", targets, (zero,), Kind.VECTOR),))
        each = Loop("%row", here, self.one(memories, first + row))
        body = (clear, Loop("%group", plan.shape[0], (each,)))
        return [kernel([Loop("%block", ceil_divide(count, ROWS_EACH), body, Kind.PARALLEL)])]

    def one(self, memories: Memories, row: Size) -> tuple[Statement, ...]:
        """One row through one group of trees."""
        _, _, plan, weights, _ = memories.arguments
        (scores,) = memories.results
        group, seat, target = (symbol(f"%{name}") for name in ("group", "seat", "target"))
        at = Read("at", DataType.INT64, (seat,))
        start = Update("at", "set", Load(plan, (group, seat)), (seat,))
        place = (row, target)
        total = Binary("add", Load(scores, place), Load(weights, (symbol("%leaf"), target)))
        add = Loop("%target", scores.shape[1], (Store(scores, place, total),), Kind.VECTOR)
        step = Loop("%seat", TOGETHER, self.step(memories, at, row, seat), Kind.UNROLL)
        return (
            Register("at", DataType.INT64, (TOGETHER,), 0),
            Loop("%seat", TOGETHER, (start,), Kind.UNROLL),
            Let("%depth", Load(plan, (group, TOGETHER))),
            Loop("%step", symbol("%depth"), (step,)),
            Loop("%seat", TOGETHER, (Let("%leaf", at), add), Kind.UNROLL),
        )

    def step(self, memories: Memories, at: Value, row: Size, seat: Size) -> tuple[Statement, ...]:
        """From a node to the one behind it."""
        table, nodes, _, _, flags = memories.arguments
        floats = Buffer(nodes.memory, table.dtype, nodes.shape, nodes.strides)
        node, column = symbol("%node"), symbol("%column")
        value: Value = Load(table, (row, column))
        mode = Load(flags, (node,))
        answer = self.answer(value, Load(floats, (node, 0)), mode)
        if self.missing:
            marked = Binary("ge", mode, Constant(8, DataType.INT32))
            answer = Binary("or", answer, Binary("and", marked, Binary("ne", value, value)))
        following = Select(answer, Load(nodes, (node, 2)), Load(nodes, (node, 3)))
        return (
            Let("%node", at),
            Let("%column", Cast(Load(nodes, (node, 1)), DataType.INT64)),
            Update("at", "set", Cast(following, DataType.INT64), (seat,)),
        )

    def answer(self, value: Value, threshold: Value, mode: Value) -> Value:
        """Whether a node says yes."""
        known = self.modes or (0,)
        answer: Value = Binary(_RELATIONS[known[0]], value, threshold)
        kind = Binary("and", mode, Constant(7, DataType.INT32))
        for other in known[1:]:
            same = Binary("eq", kind, Constant(other, DataType.INT32))
            answer = Select(same, Binary(_RELATIONS[other], value, threshold), answer)
        return answer


def regressor(
    request: Request, x: Form, *, aggregate_function: str, n_targets: int | None,
    post_transform: str, **trees: Any,
) -> Form:  # fmt: skip
    """Leaves' weights added up or averaged for each target."""
    count = n_targets if n_targets is not None else max(trees["target_ids"] or (0,)) + 1
    table = feature_rows(x)
    forest = forest_of_nodes(trees, "target", count, table.dtype.numpy)
    scores = tree_scores(request, table, forest, aggregate_function)
    base = base_values(trees, table.dtype.numpy)
    if len(base):
        scores = scores + constant(base)
    return transform(cast(scores, DataType.FLOAT), post_transform)


def classifier(
    request: Request, x: Form, *, classlabels_int64s: tuple[int, ...] | None,
    classlabels_strings: tuple[str, ...] | None, post_transform: str, **trees: Any,
) -> tuple[Form, Form]:  # fmt: skip
    """Leaves' weights added up for each class, and the class with the largest sum."""
    names = np.array(classlabels_int64s or (), np.int64)
    table = feature_rows(x)
    forest = forest_of_nodes(trees, "class", len(names), table.dtype.numpy)
    base = base_values(trees, table.dtype.numpy)
    scores = tree_scores(request, table, forest, "SUM")
    distinct = np.unique(trees["class_ids"] or ())
    if len(names) == 2 and len(distinct) == 1 and len(base) < 2:
        positive = not (forest.weights < 0).any()
        offset = float(base[0]) if len(base) else 0.0
        column = int(distinct[0])
        score = cast(one_column(scores, column) + offset, DataType.FLOAT)
        if column == 1:
            chosen = labelled(binary("gt", score, 0.5 if positive else 0.0), names)
            both = Join((score.shape[0], 2), DataType.FLOAT, (score * 0.0, score), 1)
            return chosen, transform(both, post_transform)
        return decided(score, positive, names, post_transform)
    if len(names) < 2 or len(base) == 1:
        raise NotLowered("with these labels and base values it has no native form")
    if len(base) == len(names):
        scores = scores + constant(base)
    elif np.isnan(forest.weights[forest.mode == LEAF]).all(1).any() or len(distinct) < len(names):
        raise NotLowered("classes that no leaf may speak of have no native form")
    return labelled(arg_max(scores), names), transform(cast(scores, DataType.FLOAT), post_transform)


def ensemble(
    request: Request, x: Form, *, aggregate_function: int, n_targets: int | None,
    post_transform: int, **trees: Any,
) -> Form:  # fmt: skip
    """Trees of inner nodes and leaves, whose weights are combined for each target."""
    count = n_targets if n_targets is not None else max(trees["leaf_targetids"] or (0,)) + 1
    given: dict[str, Any] = dict.fromkeys(("nodes_missing_value_tracks_true",))
    given |= nodes_of_splits(trees)
    forest = forest_of_nodes(given, "target", count, trees["leaf_weights"].dtype)
    names = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
    scores = tree_scores(request, feature_rows(x), forest, AGGREGATES[aggregate_function])
    return transform(scores, names[post_transform])


LOWERINGS: Lowerings = {
    ("ai.onnx.ml", "TreeEnsembleClassifier"): classifier,
    ("ai.onnx.ml", "TreeEnsembleRegressor"): regressor,
    ("ai.onnx.ml", "TreeEnsemble"): ensemble,
}
