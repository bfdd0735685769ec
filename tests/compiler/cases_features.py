"""Cases of trees, linear models and the preparation of features."""

import math
from typing import Any

import numpy as np

from sardonyx.graph import Tensor
from tests.compiler.case import Case, normal

_ML = "ai.onnx.ml"


def _trees(
    part: str, count: int, targets: int, seed: int, mode: str = "BRANCH_LEQ"
) -> dict[str, Any]:
    """Random trees of different depth over five features."""
    random = np.random.default_rng(seed)
    made: dict[str, list[Any]] = {
        f"nodes_{name}": []
        for name in (
            "treeids",
            "nodeids",
            "featureids",
            "values",
            "modes",
            "truenodeids",
            "falsenodeids",
            "missing_value_tracks_true",
        )
    } | {f"{part}_{name}": [] for name in ("treeids", "nodeids", "ids", "weights")}

    def add(tree: int, numbers: list[int], depth: int) -> int:
        number = len(numbers)
        numbers.append(number)
        place = len(made["nodes_treeids"])
        leaf = depth == 0 or random.random() < 0.2
        row = (
            tree,
            number,
            int(random.integers(5)),
            float(random.standard_normal()),
            "LEAF" if leaf else mode,
            0,
            0,
            int(random.integers(2)),
        )
        for key, item in zip([key for key in made if key.startswith("nodes_")], row, strict=True):
            made[key].append(item)
        if leaf:
            for target in range(targets):
                entry = (tree, number, target, float(random.standard_normal()))
                for key, item in zip(("treeids", "nodeids", "ids", "weights"), entry, strict=True):
                    made[f"{part}_{key}"].append(item)
        else:
            made["nodes_truenodeids"][place] = add(tree, numbers, depth - 1)
            made["nodes_falsenodeids"][place] = add(tree, numbers, depth - 1)
        return number

    for tree in range(count):
        add(tree, [], 1 + tree % 6)
    return made


_TABLE = normal(33, 5)
_TABLE[3, 2] = math.nan
_LINES = [float(item) for item in normal(15)]

_TOKENS = np.random.default_rng(3).integers(0, 4, (3, 20))


def _counts(tokens: Any, label: str, **how: Any) -> Case:
    """Runs of one, two and three tokens of a pool that lists one of them twice."""
    given: dict[str, Any] = {
        "min_gram_length": 1, "max_gram_length": 3, "max_skip_count": 2, "mode": "TF",
        "ngram_counts": [0, 3, 11], "ngram_indexes": [0, 4, 2, 3, 1, 6, 5, 2, 7],
        "pool_int64s": [2, 0, 9, 1, 1, 0, 3, 2, 2, 1, 1, 0, 1, 2, 3, 3, 3],
    }  # fmt: skip
    return Case("TfIdfVectorizer", (tokens,), given | how, label=label)


_WEIGHTS = [0.5, 1.0, 2.0, -1.0, 4.0, 0.25, 3.0, 7.0]
TOKENS = [
    _counts(_TOKENS, "rows"),
    _counts(_TOKENS[0].astype(np.int32), "row"),
    _counts(_TOKENS, "two", min_gram_length=2, max_gram_length=2, max_skip_count=0),
    _counts(_TOKENS, "whether", mode="IDF", weights=_WEIGHTS),
    _counts(_TOKENS, "weights", mode="TFIDF", weights=_WEIGHTS),
    _counts(_TOKENS[:, :1], "one"),
    _counts(_TOKENS[:, :0], "none"),
    _counts(_TOKENS[:0], "no rows"),
    _counts(
        _TOKENS,
        "no run",
        ngram_counts=[0, 0],
        pool_int64s=[1, 2],
        ngram_indexes=[0],
        max_gram_length=1,
    ),
]

CASES: list[Case] = [
    *TOKENS,
    *(
        Case(
            "TreeEnsembleRegressor",
            (_TABLE[:rows],),
            {"n_targets": 2, **_trees("target", trees, 2, trees), "base_values": [0.5, -1.0]},
            domain=_ML,
            label=f"{trees}-{rows}",
        )
        for trees, rows in ((1, 1), (7, 31), (8, 32), (9, 33), (20, 0))
    ),
    *(
        Case(
            "TreeEnsembleRegressor",
            (_TABLE,),
            {"n_targets": 1, **_trees("target", 9, 1, 3, mode)},
            domain=_ML,
            label=mode,
        )
        for mode in ("BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
    ),
    Case(
        "TreeEnsembleRegressor",
        (_TABLE.astype(np.float64),),
        {"n_targets": 1, "aggregate_function": "AVERAGE", **_trees("target", 9, 1, 3)},
        domain=_ML,
        label="double",
    ),
    *(
        Case(
            "TreeEnsembleClassifier",
            (_TABLE,),
            {"classlabels_int64s": [5, 7, 9], "post_transform": how, **_trees("class", 12, 3, 4)},
            domain=_ML,
            outputs=2,
            label=how,
        )
        for how in ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO")
    ),
    *(
        Case(
            "TreeEnsembleClassifier",
            (_TABLE,),
            {"classlabels_int64s": [5, 7], "post_transform": how, **_trees("class", 12, 1, 4)},
            domain=_ML,
            outputs=2,
            label=f"two-{how}",
        )
        for how in ("NONE", "LOGISTIC")
    ),
    Case(
        "LinearRegressor",
        (_TABLE[:2],),
        {"coefficients": _LINES, "targets": 3, "intercepts": [1.0, 2.0, 3.0]},
        domain=_ML,
        symbolic=False,
    ),
    *(
        Case(
            "LinearClassifier",
            (_TABLE[5:],),
            {
                "coefficients": _LINES[:count],
                "classlabels_ints": list(range(max(count // 5, 2))),
                "post_transform": how,
            },
            domain=_ML,
            outputs=2,
            symbolic=False,
            label=f"{count}-{how}",
        )
        for count, how in ((15, "SOFTMAX"), (5, "LOGISTIC"), (10, "NONE"))
    ),
    Case("Scaler", (_TABLE,), {"offset": _LINES[:5], "scale": [2.0]}, domain=_ML),
    Case("Scaler", (_TABLE.astype(np.float64),), {"scale": _LINES[:5]}, domain=_ML, label="double"),
    *(
        Case("Normalizer", (_TABLE[5:],), {"norm": norm}, domain=_ML, label=norm)
        for norm in ("MAX", "L1", "L2")
    ),
    Case("OneHotEncoder", (np.array([[1, 5], [9, 2]]),), {"cats_int64s": [5, 2, 7]}, domain=_ML),
    Case("FeatureVectorizer", (_TABLE, np.arange(66).reshape(33, 2)), domain=_ML, symbolic=False),
    Case("Binarizer", (_TABLE,), {"threshold": 0.25}, domain=_ML),
    Case(
        "Imputer",
        (_TABLE,),
        {"imputed_value_floats": _LINES[:5], "replaced_value_float": math.nan},
        domain=_ML,
        symbolic=False,
    ),
    Case(
        "Imputer",
        (np.arange(6).reshape(2, 3),),
        {"imputed_value_int64s": [9], "replaced_value_int64": 4},
        domain=_ML,
        label="integers",
    ),
    Case("ArrayFeatureExtractor", (_TABLE, np.array([[3, 0, 4]])), domain=_ML),
    *(
        Case(
            "TreeEnsemble",
            (_TABLE,),
            {
                "aggregate_function": how,
                "leaf_targetids": targets,
                "leaf_weights": Tensor(np.float32([1, 2, 3])),
                "nodes_falseleafs": [1, 1],
                "nodes_falsenodeids": [2, 1],
                "nodes_featureids": [0, 2],
                "nodes_modes": Tensor(np.uint8([0, 3])),
                "nodes_splits": Tensor(np.float32([0.5, -0.5])),
                "nodes_trueleafs": [0, 1],
                "nodes_truenodeids": [1, 0],
                "tree_roots": [0],
            },
            domain=_ML,
            label=f"targets {targets[1]} {how}",
            symbolic=False,
        )
        for how, targets in ((1, [0, 0, 0]), (0, [0, 2, 1]))
    ),
    Case(
        "TreeEnsemble",
        (_TABLE,),
        {
            "n_targets": 1,
            "aggregate_function": 1,
            "leaf_targetids": [0, 0, 0],
            "leaf_weights": Tensor(np.float32([1, 2, 3])),
            "nodes_falseleafs": [1, 1],
            "nodes_falsenodeids": [2, 1],
            "nodes_featureids": [0, 2],
            "nodes_modes": Tensor(np.uint8([0, 3])),
            "nodes_splits": Tensor(np.float32([0.5, -0.5])),
            "nodes_trueleafs": [0, 1],
            "nodes_truenodeids": [1, 0],
            "tree_roots": [0],
        },
        domain=_ML,
    ),
]
