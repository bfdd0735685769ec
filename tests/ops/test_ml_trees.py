"""Ensembles of trees against onnxruntime: random forests, options, versions, wrong models."""

import numpy as np
import onnx
import pytest

from sardonyx.errors import ConversionError, SardonyxError
from sardonyx.ops.convert import convert_opset
from sardonyx.ops.fact import unknown
from sardonyx.ops.ml_trees import TreeEnsemble
from tests.ops.one_node import inferred, load, one_node, run_converted, run_here, run_there, same

FEATURES = 5
MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
TRANSFORMS = ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"]


def grow(draw, part, targets, *, trees=7, depth=4, modes=("BRANCH_LEQ",), low=-1.0, ids=None):
    """Attributes of a random forest; leaves speak of some of the targets, `ids` limits which."""
    given = {f"nodes_{name}": [] for name in (
        "treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids",
        "missing_value_tracks_true",
    )}  # fmt: skip
    given |= {f"{part}_{name}": [] for name in ("treeids", "nodeids", "ids", "weights")}
    for tree in range(trees):
        waiting, count = [(0, 0)], 1
        while waiting:
            node, level = waiting.pop(0)
            leaf = level == depth or (level > 0 and draw.random() < 0.3)
            given["nodes_treeids"].append(tree)
            given["nodes_nodeids"].append(node)
            given["nodes_featureids"].append(0 if leaf else int(draw.integers(FEATURES)))
            given["nodes_values"].append(0.0 if leaf else float(np.round(draw.normal(), 1)))
            given["nodes_modes"].append("LEAF" if leaf else str(draw.choice(modes)))
            given["nodes_truenodeids"].append(0 if leaf else count)
            given["nodes_falsenodeids"].append(0 if leaf else count + 1)
            given["nodes_missing_value_tracks_true"].append(int(draw.integers(2)))
            if not leaf:
                waiting += [(count, level + 1), (count + 1, level + 1)]
                count += 2
                continue
            chosen = [
                target for target in (range(targets) if ids is None else ids) if draw.random() < 0.8
            ]
            for target in chosen or [0 if ids is None else ids[0]]:
                given[f"{part}_treeids"].append(tree)
                given[f"{part}_nodeids"].append(node)
                given[f"{part}_ids"].append(target)
                given[f"{part}_weights"].append(float(draw.uniform(low, 1)) / trees)
    return given


def table(draw, rows=40, dtype=np.float32, *, missing=False):
    x = np.round(draw.normal(size=(rows, FEATURES)), 1)
    if missing:
        x[draw.random(x.shape) < 0.2] = np.nan
    return x.astype(dtype)


def model(op_type, x, outputs, version=3, **attributes):
    return one_node(
        op_type, {"X": x}, outputs, 17, domain="ai.onnx.ml", version=version, **attributes
    )


def agree(op_type, x, outputs, **attributes):
    content = model(op_type, x, outputs, **attributes)
    same(run_here(content, {"X": x}), run_there(content, {"X": x}), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("post_transform", TRANSFORMS[:4])
@pytest.mark.parametrize("classes", [3, 5])
def test_many_classes(classes, post_transform):
    for seed in range(4):
        draw = np.random.default_rng(seed)
        given = grow(draw, "class", classes, low=0.0 if seed % 2 else -1.0)
        labels = {"classlabels_int64s": list(range(10, 10 + classes))}
        if seed > 1:
            given["base_values"] = draw.normal(size=classes).tolist()
            labels = {"classlabels_strings": [f"class {i}" for i in range(classes)]}
        agree("TreeEnsembleClassifier", table(draw), ["Y", "Z"], post_transform=post_transform,
              **labels, **given)  # fmt: skip


@pytest.mark.parametrize("column", [0, 1])
@pytest.mark.parametrize("low", [0.0, -1.0])
@pytest.mark.parametrize("post_transform", TRANSFORMS[:4])
def test_two_classes_with_one_column_of_weights(post_transform, low, column):
    for seed in range(3):
        draw = np.random.default_rng(seed)
        given = grow(draw, "class", 2, low=low, ids=[column])
        if seed == 2 and column == 0:
            given["base_values"] = [0.1]
        agree("TreeEnsembleClassifier", table(draw), ["Y", "Z"], post_transform=post_transform,
              classlabels_int64s=[7, 9], **given)  # fmt: skip


def test_two_classes_with_two_columns_take_the_larger():
    draw = np.random.default_rng(0)
    given = grow(draw, "class", 2, low=0.0)
    x = table(draw)
    three = model("TreeEnsembleClassifier", x, ["Y", "Z"], classlabels_int64s=[7, 9, 11],
                  base_values=[0.0, 0.0, -9.0], **given)  # fmt: skip
    label, scores = run_there(three, {"X": x})
    two = model("TreeEnsembleClassifier", x, ["Y", "Z"], classlabels_int64s=[7, 9],
                base_values=[0.0, 0.0], **given)  # fmt: skip
    same(run_here(two, {"X": x}), [label, scores[:, :2]])


@pytest.mark.parametrize("post_transform", ["NONE", "LOGISTIC"])
def test_one_label(post_transform):
    draw = np.random.default_rng(0)
    given = grow(draw, "class", 1)
    agree("TreeEnsembleClassifier", table(draw), ["Y", "Z"], classlabels_int64s=[1],
          post_transform=post_transform, **given)  # fmt: skip


def test_probit_of_both_classes():
    draw = np.random.default_rng(0)
    given = grow(draw, "class", 2, low=0.1, ids=[0])
    x = table(draw)
    content = model("TreeEnsembleClassifier", x, ["Y", "Z"], classlabels_int64s=[0, 1],
                    post_transform="PROBIT", **given)  # fmt: skip
    _, scores = run_here(content, {"X": x})
    np.testing.assert_allclose(scores[:, 0], -scores[:, 1], rtol=1e-3, atol=1e-5)
    assert run_there(content, {"X": x})[1][:, 0] == pytest.approx(scores[:, 1], abs=3e-4)


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("targets", [1, 3])
def test_regressor(targets, aggregate):
    for seed, post_transform in enumerate(TRANSFORMS):
        draw = np.random.default_rng(seed)
        given = grow(draw, "target", targets, low=0.1, ids=None if targets == 1 else range(targets))
        if seed % 2 and targets == 1:
            given["base_values"] = [0.25]
        agree("TreeEnsembleRegressor", table(draw), ["Y"], aggregate_function=aggregate,
              n_targets=targets, post_transform=post_transform, **given)  # fmt: skip


def test_base_values_count_for_targets_no_leaf_speaks_of():
    """onnxruntime leaves 0 there."""
    draw = np.random.default_rng(0)
    given = grow(draw, "target", 2, ids=[0])
    x = table(draw)
    content = model("TreeEnsembleRegressor", x, ["Y"], n_targets=2, base_values=[1.0, 5.0], **given)
    plain = model("TreeEnsembleRegressor", x, ["Y"], n_targets=2, **given)
    same(run_here(content, {"X": x}), [run_there(plain, {"X": x})[0] + np.float32([1, 5])])


@pytest.mark.parametrize("mode", [*MODES, "all"])
def test_modes_and_missing_values(mode):
    draw = np.random.default_rng(len(mode))
    given = grow(draw, "target", 2, modes=MODES if mode == "all" else [mode], depth=6)
    agree("TreeEnsembleRegressor", table(draw, 60, missing=True), ["Y"], n_targets=2, **given)


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.int64])
def test_input_types(dtype):
    draw = np.random.default_rng(5)
    x = (table(draw).astype(np.float64) * 2).astype(dtype)
    given = grow(draw, "class", 3)
    agree("TreeEnsembleClassifier", x, ["Y", "Z"], classlabels_int64s=[1, 2, 3], **given)
    given = grow(draw, "target", 2)
    there = x if dtype == np.float64 else x.astype(np.float32)
    expected = run_there(
        model("TreeEnsembleRegressor", there, ["Y"], n_targets=2, **given), {"X": there}
    )
    content = model("TreeEnsembleRegressor", x, ["Y"], n_targets=2, **given)
    same(run_here(content, {"X": x}), expected)


def test_thresholds_in_double_precision():
    draw = np.random.default_rng(5)
    given = grow(draw, "target", 1)
    x = draw.normal(size=(30, FEATURES))
    splits = draw.choice(x.ravel(), len(given["nodes_values"]))
    given["nodes_values_as_tensor"] = onnx.numpy_helper.from_array(splits, "splits")
    given["target_weights_as_tensor"] = onnx.numpy_helper.from_array(
        np.array(given.pop("target_weights")), "weights"
    )
    del given["nodes_values"]
    agree("TreeEnsembleRegressor", x, ["Y"], n_targets=1, **given)
    content = model("TreeEnsembleRegressor", x, ["Y"], n_targets=1, **given)
    with pytest.raises(ConversionError, match="begins with version 3"):
        convert_opset(load(content), 2, "ai.onnx.ml")


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_versions(version):
    draw = np.random.default_rng(1)
    given = grow(draw, "class", 3)
    x = table(draw)
    old = model("TreeEnsembleClassifier", x, ["Y", "Z"], version=version,
                classlabels_int64s=[1, 2, 3], **given)  # fmt: skip
    expected = run_there(model("TreeEnsembleClassifier", x, ["Y", "Z"],
                               classlabels_int64s=[1, 2, 3], **given), {"X": x})  # fmt: skip
    same(run_here(old, {"X": x}), expected)


def test_downgrade_says_tensors_as_lists():
    draw = np.random.default_rng(1)
    given = grow(draw, "target", 2)
    x = table(draw)
    for name in ("nodes_values", "target_weights"):
        values = np.array(given.pop(name), np.float32)
        given[f"{name}_as_tensor"] = onnx.numpy_helper.from_array(values, name)
    content = model("TreeEnsembleRegressor", x, ["Y"], n_targets=2, **given)
    expected = run_here(content, {"X": x})
    same(run_converted(content, {"X": x}, 1, "ai.onnx.ml"), expected)


def split_forest(draw, targets, dtype, *, members=False, trees=6, inner=5):
    """Attributes of TreeEnsemble: random trees of `inner` nodes each."""
    names = ("featureids", "splits", "modes", "truenodeids", "falsenodeids", "trueleafs",
             "falseleafs", "missing_value_tracks_true")  # fmt: skip
    nodes = {name: [] for name in names}
    roots, leaves, sets = [], [], []
    for _ in range(trees):
        start = len(nodes["modes"])
        roots.append(start)
        following = iter(range(start + 1, start + inner))
        for _ in range(inner):
            mode = int(draw.integers(7 if members else 6))
            nodes["modes"].append(mode)
            nodes["featureids"].append(int(draw.integers(FEATURES)))
            nodes["splits"].append(float(np.round(draw.normal(), 1)))
            nodes["missing_value_tracks_true"].append(int(draw.integers(2)))
            if mode == 6:
                sets += [*draw.integers(-3, 4, 3).astype(float).tolist(), float("nan")]
            for side in ("true", "false"):
                child = next(following, None)
                nodes[f"{side}leafs"].append(int(child is None))
                nodes[f"{side}nodeids"].append(len(leaves) if child is None else child)
                if child is None:
                    leaves.append(int(draw.integers(targets)))
    weights = np.round(draw.uniform(0.1, 1, len(leaves)), 3)
    made = {f"nodes_{name}": value for name, value in nodes.items()}
    made["nodes_splits"] = onnx.numpy_helper.from_array(np.array(nodes["splits"], dtype), "splits")
    made["nodes_modes"] = onnx.numpy_helper.from_array(np.array(nodes["modes"], np.uint8), "modes")
    made["leaf_weights"] = onnx.numpy_helper.from_array(weights.astype(dtype), "weights")
    made |= {"leaf_targetids": leaves, "tree_roots": roots, "n_targets": targets}
    if sets:
        made["membership_values"] = onnx.numpy_helper.from_array(np.array(sets, dtype), "sets")
    return made


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("aggregate", range(4))
def test_tree_ensemble(aggregate, dtype):
    for targets in (1, 3):
        draw = np.random.default_rng(aggregate)
        given = split_forest(draw, targets, dtype)
        x = table(draw, dtype=dtype, missing=True)
        agree("TreeEnsemble", x, ["Y"], version=5, aggregate_function=aggregate, **given)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_tree_ensemble_with_sets(dtype):
    draw = np.random.default_rng(3)
    given = split_forest(draw, 2, dtype, members=True)
    x = np.round(table(draw).astype(np.float64) * 2).astype(dtype)
    content = model("TreeEnsemble", x, ["Y"], version=5, **given)
    (actual,) = run_here(content, {"X": x})
    assert actual.dtype == dtype
    for name in ("nodes_splits", "leaf_weights", "membership_values"):
        values = onnx.numpy_helper.to_array(given[name]).astype(np.float64)
        given[name] = onnx.numpy_helper.from_array(values, name)
    double = model("TreeEnsemble", x.astype(np.float64), ["Y"], version=5, **given)
    (expected,) = run_there(double, {"X": x.astype(np.float64)})
    np.testing.assert_allclose(actual.astype(np.float64), expected, rtol=np.finfo(dtype).eps * 4)


def test_tree_ensemble_transforms_follow_the_specification():
    """1 is SOFTMAX and 2 is LOGISTIC; onnxruntime has them the other way round."""
    draw = np.random.default_rng(3)
    given = split_forest(draw, 3, np.float32)
    x = table(draw)
    for ours, theirs in ((0, 0), (1, 2), (2, 1), (3, 3), (4, 4)):
        mine = model("TreeEnsemble", x, ["Y"], version=5, post_transform=ours,
                     aggregate_function=0, **given)  # fmt: skip
        other = model("TreeEnsemble", x, ["Y"], version=5, post_transform=theirs,
                      aggregate_function=0, **given)  # fmt: skip
        same(run_here(mine, {"X": x}), run_there(other, {"X": x}), rtol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_tree_ensemble_as_regressor(dtype):
    draw = np.random.default_rng(4)
    given = split_forest(draw, 3, dtype, members=True)
    given["membership_values"] = onnx.numpy_helper.from_array(
        np.concatenate([
            onnx.numpy_helper.to_array(given["membership_values"]), np.array([np.nan], dtype),
        ])
    )  # fmt: skip
    modes = onnx.numpy_helper.to_array(given["nodes_modes"]).copy()
    modes[np.flatnonzero(modes != 6)[-1]] = 6
    given["nodes_modes"] = onnx.numpy_helper.from_array(modes)
    x = np.round(table(draw).astype(np.float64) * 2).astype(dtype)
    content = model("TreeEnsemble", x, ["Y"], version=5, post_transform=1, **given)
    expected = run_here(content, {"X": x})
    lower = convert_opset(load(content), 4, "ai.onnx.ml")
    casts = [] if dtype == np.float32 else ["Cast"]
    names = [node.op_type for node in lower.graph.nodes if node.op_type != "Constant"]
    assert names == [*casts, "TreeEnsembleRegressor", *casts]
    for version in (4, 2):
        same(run_converted(content, {"X": x}, version, "ai.onnx.ml"), expected)
    double = model("TreeEnsemble", x.astype(np.float64), ["Y"], version=5,
                   **split_forest(draw, 3, np.float64))  # fmt: skip
    with pytest.raises(ConversionError, match="double precision"):
        convert_opset(load(double), 4, "ai.onnx.ml")


def test_many_rows_are_taken_in_blocks():
    draw = np.random.default_rng(2)
    given = grow(draw, "target", 40, trees=20, depth=3)
    x = table(draw, 6000)
    agree("TreeEnsembleRegressor", x, ["Y"], n_targets=40, **given)


def test_one_row_no_rows_and_vectors():
    draw = np.random.default_rng(2)
    given = grow(draw, "target", 2)
    for x in (table(draw, 1), table(draw, 0), table(draw, 1)[0]):
        content = model("TreeEnsembleRegressor", x, ["Y"], n_targets=2, **given)
        (y,) = run_here(content, {"X": x})
        assert (y.shape, y.dtype) == ((0 if x.shape[0] == 0 else 1, 2), np.float32)


def test_inference():
    draw = np.random.default_rng(2)
    x = table(draw)
    shapes = {"X": ["n", FEATURES]}
    given = grow(draw, "class", 3)
    given["classlabels_strings"] = ["a", "b", "c"]
    content = one_node("TreeEnsembleClassifier", {"X": x}, ["Y", "Z"], 17, domain="ai.onnx.ml",
                       version=3, shapes=shapes, **given)  # fmt: skip
    assert inferred(content) == ["string[n]", "float[n,3]"]
    content = one_node("TreeEnsemble", {"X": x.astype(np.float64)}, ["Y"], 17, domain="ai.onnx.ml",
                       version=5, shapes=shapes, **split_forest(draw, 4, np.float64))  # fmt: skip
    assert inferred(content) == ["double[n,4]"]
    content = one_node("TreeEnsembleRegressor", {"X": x}, ["Y"], 17, domain="ai.onnx.ml", version=3,
                       shapes={"X": None}, n_targets=2, **grow(draw, "target", 2))  # fmt: skip
    assert inferred(content) == ["float[?,2]"]


def test_wrong_models_are_refused():
    draw = np.random.default_rng(2)
    x = table(draw)

    def refuse(message, **changes):
        given = grow(np.random.default_rng(2), "target", 2) | changes
        with pytest.raises(SardonyxError, match=message):
            run_here(model("TreeEnsembleRegressor", x, ["Y"], n_targets=2, **given), {"X": x})

    given = grow(np.random.default_rng(2), "target", 2)
    count = len(given["nodes_modes"])
    branches = [mode != "LEAF" for mode in given["nodes_modes"]]
    refuse("circle", nodes_truenodeids=[0] * count, nodes_falsenodeids=[0] * count)
    refuse("does not have", nodes_truenodeids=[999] * count)
    refuse("differ in length", nodes_featureids=[0])
    refuse("name no mode", nodes_modes=["BRANCH" if branch else "LEAF" for branch in branches])
    refuse("feature 77", nodes_featureids=[77] * count)
    refuse(r"not in \[0, 2\)", target_ids=[5] * len(given["target_ids"]))
    refuse("base values", base_values=[1.0, 2.0, 3.0])
    refuse("MEDIAN", aggregate_function="MEDIAN")
    refuse("SOFTER", post_transform="SOFTER")
    refuse("two nodes of one number", nodes_nodeids=[0] * count)
    refuse("name no node", target_nodeids=[999] * len(given["target_nodeids"]))
    refuse(r"not in \[0, 2\)", target_ids=[-1] * len(given["target_ids"]))
    refuse(r"not in \[0, 2\)", target_ids=[2] * len(given["target_ids"]))


def test_a_tree_of_one_leaf():
    x = np.zeros((3, 1), np.float32)
    given = {
        "nodes_treeids": [0], "nodes_nodeids": [0], "nodes_modes": ["LEAF"],
        "nodes_featureids": [0], "nodes_values": [0.0], "nodes_truenodeids": [0],
        "nodes_falsenodeids": [0], "target_treeids": [0], "target_nodeids": [0],
        "target_ids": [0], "target_weights": [2.5],
    }  # fmt: skip
    content = model("TreeEnsembleRegressor", x, ["Y"], n_targets=1, **given)
    assert run_here(content, {"X": x})[0].tolist() == [[2.5]] * 3


@pytest.mark.parametrize("name", ["aggregate_function", "post_transform"])
@pytest.mark.parametrize("number", [-1, 5])
def test_choices_that_there_are_not(name, number):
    given = {"aggregate_function": 1, "post_transform": 0, name: number}
    with pytest.raises(SardonyxError, match=f"{name} {number} is not in"):
        TreeEnsemble.infer(unknown(2), n_targets=1, leaf_targetids=(0,), **given)
