"""Small models that ask for unbounded time or memory, by attributes, constants and structure."""

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from tests.scale import models

HUGE, LONG = 2**31, 2**62
_ML = "ai.onnx.ml"
_MICROSOFT = "com.microsoft"


def one_node(
    op_type: str, inputs: dict[str, Any], *, domain: str = "", outputs: int = 1,
    kind: int = TensorProto.FLOAT, constants: dict[str, Any] | None = None, **attributes: Any,
) -> ModelProto:  # fmt: skip
    """A model of one node; inputs are shapes, or types with shapes, constants arrays."""
    values = []
    for name, said in inputs.items():
        element, shape = said if isinstance(said, tuple) else (TensorProto.FLOAT, said)
        values.append(helper.make_tensor_value_info(name, element, shape))
    held = [
        numpy_helper.from_array(np.asarray(array), name)
        for name, array in (constants or {}).items()
    ]
    names = [*inputs, *(constants or {})]
    node = helper.make_node(
        op_type, names, [f"y{item}" for item in range(outputs)], domain=domain, **attributes
    )
    return whole([node], values, ["y0"], held, kind)


def whole(
    nodes: list[NodeProto], inputs: list[Any], outputs: list[str], constants: list[Any] = (),  # type: ignore[assignment]
    kind: int = TensorProto.FLOAT, functions: list[Any] = (),  # type: ignore[assignment]
) -> ModelProto:  # fmt: skip
    """A model of nodes, whose outputs have no known shape."""
    results = [helper.make_tensor_value_info(name, kind, None) for name in outputs]
    graph = helper.make_graph(nodes, "g", inputs, results, constants)
    imports = [
        helper.make_opsetid(domain, version)
        for domain, version in (("", 21), (_ML, 4), (_MICROSOFT, 1), ("local", 1))
    ]
    return helper.make_model(graph, opset_imports=imports, ir_version=10, functions=list(functions))


def _ints(*items: int) -> Any:
    return np.array(items, np.int64)


def _tokens(**changed: Any) -> ModelProto:
    settings: dict[str, Any] = {
        "max_gram_length": 1, "min_gram_length": 1, "max_skip_count": 0, "mode": "TF",
        "ngram_counts": [0, 2], "ngram_indexes": [0, 1, 2], "pool_int64s": [1, 2, 3, 4],
    } | changed  # fmt: skip
    return one_node("TfIdfVectorizer", {"x": (TensorProto.INT64, [8])}, **settings)


def _tokenizer(**how: Any) -> ModelProto:
    return one_node(
        "Tokenizer", {"x": (TensorProto.STRING, ["n"])}, domain=_MICROSOFT,
        kind=TensorProto.STRING, mark=0, mincharnum=1, pad_value="", **how,
    )  # fmt: skip


def _trees(**changed: Any) -> ModelProto:
    settings: dict[str, Any] = {
        "n_targets": 1, "nodes_treeids": [0, 0], "nodes_nodeids": [0, 1],
        "nodes_featureids": [0, 0], "nodes_values": [0.5, 0.5],
        "nodes_modes": ["BRANCH_LEQ", "BRANCH_LEQ"], "nodes_truenodeids": [1, 0],
        "nodes_falsenodeids": [1, 0], "target_treeids": [0], "target_nodeids": [0],
        "target_ids": [0], "target_weights": [1.0],
    } | changed  # fmt: skip
    return one_node("TreeEnsembleRegressor", {"x": ["n", 4]}, domain=_ML, **settings)


def _loop(count: int, *, condition: bool = True, constant: bool = True) -> ModelProto:
    """A loop that adds 1, so often, on a constant or on an input."""
    floats = TensorProto.FLOAT
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Add", ["s", "one"], ["t"])],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
            helper.make_tensor_value_info("s", floats, [1]),
        ],
        [
            helper.make_tensor_value_info("d", TensorProto.BOOL, []),
            helper.make_tensor_value_info("t", floats, [1]),
        ],
    )
    start = "one" if constant else "x"
    node = helper.make_node("Loop", ["m", "c0" if condition else "", start], ["y0"], body=body)
    constants = {
        "m": np.array(count, np.int64), "c0": np.array(True), "one": np.ones(1, np.float32),
    }  # fmt: skip
    held = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    nodes = [node, helper.make_node("Add", ["y0", "x"], ["z"])]
    return whole(nodes, [helper.make_tensor_value_info("x", floats, [1])], ["z"], held)


def nested_loops(depth: int) -> ModelProto:
    """Loop in Loop, each with a state whose shape changes from round to round."""
    floats = TensorProto.FLOAT
    graph: Any = None
    for level in range(depth):
        state, made = f"s{level}", f"t{level}"
        nodes = [helper.make_node("Identity", [f"c{level}"], [f"d{level}"])]
        source = state
        if graph is not None:
            source = f"u{level}"
            nodes.append(helper.make_node("Loop", ["m", "", state], [source], body=graph))
        nodes.append(helper.make_node("Concat", [source, source], [made], axis=0))
        graph = helper.make_graph(
            nodes, f"body{level}",
            [helper.make_tensor_value_info(f"i{level}", TensorProto.INT64, []),
             helper.make_tensor_value_info(f"c{level}", TensorProto.BOOL, []),
             helper.make_tensor_value_info(state, floats, None)],
            [helper.make_tensor_value_info(f"d{level}", TensorProto.BOOL, []),
             helper.make_tensor_value_info(made, floats, None)],
        )  # fmt: skip
    held = [numpy_helper.from_array(np.array(1, np.int64), "m")]
    node = helper.make_node("Loop", ["m", "", "x"], ["y0"], body=graph)
    return whole([node], [helper.make_tensor_value_info("x", floats, [1, 2])], ["y0"], held)


def _function(name: str, nodes: list[NodeProto], attributes: tuple[str, ...] = ()) -> Any:
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("local", 1)]
    return helper.make_function(
        "local", name, ["x"], ["y"], nodes, imports, attributes=list(attributes)
    )


def _recursive(mutual: bool) -> ModelProto:
    other = "g" if mutual else "f"
    functions = [_function("f", [helper.make_node(other, ["x"], ["y"], domain="local")])]
    if mutual:
        functions.append(_function("g", [helper.make_node("f", ["x"], ["y"], domain="local")]))
    node = helper.make_node("f", ["x"], ["y0"], domain="local")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    return whole([node], [x], ["y0"], functions=functions)


def _recursive_attribute() -> ModelProto:
    """An attribute that refers to itself through the function that takes it."""
    inner = helper.make_node("f", ["x"], ["y"], domain="local")
    inner.attribute.add(name="a", ref_attr_name="a", type=1)
    node = helper.make_node("f", ["x"], ["y0"], domain="local", a=1.0)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    return whole([node], [x], ["y0"], functions=[_function("f", [inner], ("a",))])


def _different_sizes(depth: int) -> ModelProto:
    """Each function calls the next twice, with another size each time."""
    functions = [_function("f0", [helper.make_node("Neg", ["x"], ["y"])])]
    for level in range(1, depth + 1):
        constant = helper.make_node(
            "Constant", [], ["w"],
            value=helper.make_tensor("w", TensorProto.FLOAT, [2**level], [0.0] * 2**level)
            if level < 8 else helper.make_tensor("w", TensorProto.FLOAT, [level], [0.0] * level),
        )  # fmt: skip
        callee = f"f{level - 1}"
        nodes = [
            constant,
            helper.make_node("Concat", ["x", "w"], ["v"], axis=0),
            helper.make_node(callee, ["x"], ["a"], domain="local"),
            helper.make_node(callee, ["v"], ["b"], domain="local"),
            helper.make_node("Concat", ["a", "b"], ["y"], axis=0),
        ]
        functions.append(_function(f"f{level}", nodes))
    node = helper.make_node(f"f{depth}", ["x"], ["y0"], domain="local")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])
    return whole([node], [x], ["y0"], functions=functions)


def _calls_in_branches(depth: int) -> ModelProto:
    """Functions of one node, an If, that call the next in both branches."""
    functions = [_function("f0", [helper.make_node("Neg", ["x"], ["y"])])]
    for level in range(1, depth + 1):
        branches = {}
        for name in ("then_branch", "else_branch"):
            call = helper.make_node(f"f{level - 1}", ["x"], [f"{name}_y"], domain="local")
            result = helper.make_tensor_value_info(f"{name}_y", TensorProto.FLOAT, None)
            branches[name] = helper.make_graph([call], name, [], [result])
        flag = helper.make_node("Constant", [], ["c"], value=helper.make_tensor("c", 9, [], [1]))
        functions.append(
            _function(f"f{level}", [flag, helper.make_node("If", ["c"], ["y"], **branches)])
        )
    node = helper.make_node(f"f{depth}", ["x"], ["y0"], domain="local")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    return whole([node], [x], ["y0"], functions=functions)


def _default_graphs(depth: int) -> ModelProto:
    """Functions whose attribute is a graph by default, used twice, that calls the next."""
    functions = [_function("f0", [helper.make_node("Neg", ["x"], ["y"])])]
    for level in range(1, depth + 1):
        call = helper.make_node(f"f{level - 1}", ["x"], ["b_y"], domain="local")
        result = helper.make_tensor_value_info("b_y", TensorProto.FLOAT, None)
        flag = helper.make_node("Constant", [], ["c"], value=helper.make_tensor("c", 9, [], [1]))
        choice = helper.make_node("If", ["c"], ["y"])
        for name in ("then_branch", "else_branch"):
            choice.attribute.add(name=name, ref_attr_name="b", type=5)
        function = _function(f"f{level}", [flag, choice])
        graph = helper.make_graph([call], "b", [], [result])
        function.attribute_proto.append(helper.make_attribute("b", graph))
        functions.append(function)
    node = helper.make_node(f"f{depth}", ["x"], ["y0"], domain="local")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    return whole([node], [x], ["y0"], functions=functions)


def _empty_functions(depth: int) -> ModelProto:
    """Functions without nodes of their own that call one another twice."""
    functions = [_function("f0", [])]
    functions[0].output[0] = "x"
    for level in range(1, depth + 1):
        callee = f"f{level - 1}"
        nodes = [
            helper.make_node(callee, ["x"], ["t"], domain="local"),
            helper.make_node(callee, ["t"], ["y"], domain="local"),
        ]
        functions.append(_function(f"f{level}", nodes))
    node = helper.make_node(f"f{depth}", ["x"], ["y0"], domain="local")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    return whole([node], [x], ["y0"], functions=functions)


def _long_names(depth: int) -> ModelProto:
    """Functions that double and whose nodes have names of a megabyte."""
    model = models.doubled_functions(depth)
    for function in model.functions:
        for node in function.node:
            node.name = "n" * 1_000_000
    return model


def _deep_type(depth: int) -> ModelProto:
    model = one_node("Identity", {"x": [1]})
    kind = model.graph.input[0].type
    for _ in range(depth):
        kind.Clear()
        kind = kind.sequence_type.elem_type
    kind.tensor_type.elem_type = 1
    return model


def _duplicates() -> ModelProto:
    model = models.chain(8)
    for node in model.graph.node:
        node.output[0] = "y"
    return model


def _optional_nest(depth: int) -> ModelProto:
    nodes = [helper.make_node("Optional", ["x"], ["v0"])]
    for level in range(depth):
        nodes.append(helper.make_node("Optional", [f"v{level}"], [f"v{level + 1}"]))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    return whole(nodes, [x], [f"v{depth}"])


def _sequence_nest(depth: int) -> ModelProto:
    nodes = [helper.make_node("SequenceConstruct", ["x"], ["v0"])]
    for level in range(depth):
        nodes.append(helper.make_node("SequenceConstruct", [f"v{level}"], [f"v{level + 1}"]))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    return whole(nodes, [x], [f"v{depth}"])


def _folded(op_type: str, *arrays: Any, kind: int = TensorProto.FLOAT, **how: Any) -> ModelProto:
    """A node of constants alone, whose result is cut to one element and added to the input."""
    constants = {f"k{item}": array for item, array in enumerate(arrays)}
    node = helper.make_node(op_type, list(constants), ["big"], **how)
    names = {"zero": _ints(0), "one": _ints(1)}
    nodes = [
        node,
        helper.make_node("ReduceMax", ["big"], ["top"], keepdims=0),
        helper.make_node("Cast", ["top"], ["number"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["number", "x"], ["y0"]),
    ]
    held = [numpy_helper.from_array(np.asarray(a), n) for n, a in (constants | names).items()]
    return whole(nodes, [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])], ["y0"], held)


F = np.float32
CASES: dict[str, Callable[[], ModelProto]] = {
    "functions that double": lambda: models.doubled_functions(40),
    "functions that double within the limit": lambda: models.doubled_functions(14),
    "functions with other sizes": lambda: _different_sizes(40),
    "functions in branches": lambda: _calls_in_branches(40),
    "functions of graphs": lambda: _default_graphs(40),
    "functions without nodes": lambda: _empty_functions(40),
    "functions with long names": lambda: _long_names(14),
    "function that calls itself": lambda: _recursive(False),
    "functions that call each other": lambda: _recursive(True),
    "attribute of itself": _recursive_attribute,
    "deep chain of functions": lambda: models.chained_functions(2000),
    "nested loops": lambda: nested_loops(20),
    "nested branches": lambda: models.nested_ifs(28),
    "deep type": lambda: _deep_type(40),
    "names made twice": _duplicates,
    "optional of optional": lambda: _optional_nest(400),
    "sequence of sequence": lambda: _sequence_nest(400),
    "n-grams of any length": lambda: _tokens(max_gram_length=HUGE),
    "n-grams of any length from 2": lambda: _tokens(max_gram_length=LONG, min_gram_length=2),
    "n-grams with any skips": lambda: _tokens(max_gram_length=2, max_skip_count=LONG),
    "n-grams at huge places": lambda: _tokens(ngram_indexes=[0, 1, LONG]),
    "n-grams from behind": lambda: _tokens(ngram_counts=[0, LONG]),
    "n-grams from before": lambda: _tokens(ngram_counts=[-LONG, 0]),
    "expression that doubles": lambda: _tokenizer(tokenexp="(a+)+b"),
    "separator that doubles": lambda: _tokenizer(separators=["(a|a)*c", "(x*)*y"]),
    "expression of many steps": lambda: _tokenizer(tokenexp="((a{1000}){1000}){1000}"),
    "expression of many groups": lambda: _tokenizer(tokenexp="(" * 20000 + "a" + ")" * 20000),
    "expression with a back reference": lambda: _tokenizer(tokenexp=r"(a*)\1b"),
    "full match that doubles": lambda: one_node(
        "RegexFullMatch", {"x": (TensorProto.STRING, ["n"])}, kind=TensorProto.BOOL,
        pattern="(a?){200}a{200}|((a*)*)*b"),
    "full match of many letters": lambda: one_node(
        "RegexFullMatch", {"x": (TensorProto.STRING, ["n"])}, kind=TensorProto.BOOL,
        pattern="x{1000}" * 5000),
    "split without end": lambda: one_node(
        "StringSplit", {"x": (TensorProto.STRING, ["n"])}, outputs=2, kind=TensorProto.STRING,
        delimiter="", maxsplit=LONG),
    "trees in a circle": _trees,
    "tree that is its own child": lambda: _trees(
        nodes_truenodeids=[0, 1], nodes_falsenodeids=[0, 1]),
    "trees with children far away": lambda: _trees(
        nodes_truenodeids=[LONG, 0], nodes_falsenodeids=[-5, 0]),
    "trees with huge targets": lambda: _trees(n_targets=LONG),
    "trees with huge ids": lambda: _trees(target_ids=[LONG], n_targets=1),
    "loop without end, constant": lambda: _loop(LONG),
    "loop without end, no condition": lambda: _loop(LONG, condition=False),
    "filled constant": lambda: _folded("ConstantOfShape", _ints(HUGE, HUGE)),
    "filled constant of 2**40": lambda: _folded("ConstantOfShape", _ints(2**40)),
    "range": lambda: _folded("Range", *(np.array(v, np.int64) for v in (0, LONG, 1))),
    "range of small steps": lambda: _folded(
        "Range", *(np.array(v, np.float32) for v in (0, 1, 1e-30))),
    "range of no steps": lambda: _folded(
        "Range", *(np.array(v, np.float32) for v in (0, 1e30, 1e-30))),
    "tile": lambda: _folded("Tile", np.ones((2, 2), F), _ints(HUGE, HUGE)),
    "expand": lambda: _folded("Expand", np.ones(1, F), _ints(HUGE, HUGE)),
    "pad": lambda: _folded("Pad", np.ones(2, F), _ints(HUGE * 16, HUGE * 16)),
    "pad the other way": lambda: _folded("Pad", np.ones(2, F), _ints(-LONG, LONG)),
    "reflecting pad": lambda: _folded("Pad", np.ones(2, F), _ints(2**40, 0), mode="wrap"),
    "resize": lambda: _folded(
        "Resize", np.ones((1, 1, 2, 2), F), np.zeros(0, F), np.zeros(0, F),
        _ints(1, 1, HUGE, HUGE)),
    "one hot": lambda: _folded(
        "OneHot", _ints(1), np.array(2**40, np.int64), np.array([0, 1], F)),
    "eye": lambda: _folded("EyeLike", np.zeros((2, 2), F), k=LONG),
    "identity matrix": lambda: _folded("Trilu", np.zeros((2, 2), F), np.array(LONG, np.int64)),
    "split into many": lambda: one_node("Split", {"x": ["n"]}, outputs=1, num_outputs=HUGE),
    "split into equal parts": lambda: one_node(
        "SplitToSequence", {"x": [4]}, constants={"s": np.array(0, np.int64)}),
    "kernel of 2**31": lambda: one_node(
        "MaxPool", {"x": [1, 1, 4, 4]}, kernel_shape=[HUGE, HUGE], pads=[HUGE] * 4),
    "kernel and pads of 2**40": lambda: one_node(
        "AveragePool", {"x": [1, 1, 4]}, kernel_shape=[2**40], pads=[2**40, 2**40],
        count_include_pad=1),
    "strides of 2**62": lambda: one_node(
        "MaxPool", {"x": [1, 1, 4]}, kernel_shape=[2], strides=[LONG], dilations=[LONG]),
    "dilated pool": lambda: one_node(
        "LpPool", {"x": [1, 1, "n"]}, kernel_shape=[HUGE], dilations=[HUGE], pads=[2**40, 2**40]),
    "groups of 2**31": lambda: one_node(
        "Conv", {"x": [1, 2, 4, 4]}, constants={"w": np.ones((2, 1, 1, 1), F)}, group=HUGE),
    "group 0": lambda: one_node(
        "Conv", {"x": [1, 2, 4, 4]}, constants={"w": np.ones((2, 1, 1, 1), F)}, group=0),
    "pads of a convolution": lambda: one_node(
        "Conv", {"x": [1, 1, 4]}, constants={"w": np.ones((1, 1, 1), F)}, pads=[2**40, 2**40]),
    "transposed output": lambda: one_node(
        "ConvTranspose", {"x": [1, 1, 4]}, constants={"w": np.ones((1, 1, 1), F)},
        output_shape=[2**40]),
    "transposed strides": lambda: one_node(
        "ConvTranspose", {"x": [1, 1, 4]}, constants={"w": np.ones((1, 1, 1), F)},
        strides=[LONG]),
    "long einsum": lambda: one_node(
        "Einsum", {"x": [2]}, equation=",".join(["a"] * 20000) + "->a"),
    "einsum of one input, many letters": lambda: one_node(
        "Einsum", {"x": [2, 2]}, equation="a" * 200000 + "->a"),
    "einsum of spaces": lambda: one_node("Einsum", {"x": [2]}, equation=" " * 300000 + "a->a"),
    "einsum of many inputs": lambda: one_node(
        "Einsum", {f"x{item}": [2, 2] for item in range(24)},
        equation=",".join(f"{chr(97 + i)}{chr(98 + i)}" for i in range(24)) + "->ay"),
    "hidden size of 2**31": lambda: one_node(
        "LSTM", {"x": ["s", "b", 4]}, hidden_size=HUGE,
        constants={"w": np.ones((1, 16, 4), F), "r": np.ones((1, 16, 4), F)}),
    "heads of 2**62": lambda: one_node(
        "Attention", {"q": [1, 4, 8], "k": [1, 4, 8], "v": [1, 4, 8]},
        q_num_heads=LONG, kv_num_heads=LONG),
    "depth of 2**31": lambda: one_node(
        "DepthToSpace", {"x": [1, 4, 2, 2]}, blocksize=HUGE),
    "space of 2**62": lambda: one_node("SpaceToDepth", {"x": [1, 4, 2, 2]}, blocksize=LONG),
    "regions": lambda: one_node(
        "RoiAlign", {"x": [1, 1, 4, 4]},
        constants={"r": np.ones((1, 4), F), "b": _ints(0)}, output_height=HUGE, output_width=HUGE,
        sampling_ratio=HUGE),
    "samples of regions": lambda: one_node(
        "RoiAlign", {"x": [1, 1, 4, 4]},
        constants={"r": np.ones((1, 4), F), "b": _ints(0)}, output_height=1, output_width=1,
        sampling_ratio=2**24),
    "pooled regions": lambda: one_node(
        "MaxRoiPool", {"x": [1, 1, 4, 4]}, constants={"r": np.ones((1, 5), F)},
        pooled_shape=[HUGE, HUGE]),
    "windows": lambda: _folded("HannWindow", np.array(2**40, np.int64)),
    "mel bank": lambda: _folded(
        "MelWeightMatrix", *(np.array(v, np.int64) for v in (2**30, 2**30, 8000)),
        np.array(0.0, F), np.array(4000.0, F)),
    "fourier": lambda: one_node(
        "DFT", {"x": [1, 8, 1]}, constants={"n": np.array(2**40, np.int64)}),
    "fourier of a prime": lambda: one_node(
        "DFT", {"x": [1, 8, 1]}, constants={"n": np.array(2**31 - 1, np.int64)}),
    "steps of a spectrum": lambda: one_node(
        "STFT", {"x": [1, 64, 1]},
        constants={"s": np.array(LONG, np.int64), "w": np.ones(8, F)}),
    "normal numbers": lambda: one_node("RandomNormal", {}, shape=[HUGE, HUGE]),
    "draws": lambda: one_node(
        "Multinomial", {"x": [1, 4]}, sample_size=LONG, kind=TensorProto.INT32),
    "repetitions in any length": lambda: one_node(
        "NGramRepeatBlock", {"i": (TensorProto.INT64, [1, 4]), "s": [1, 8]}, domain=_MICROSOFT,
        ngram_size=LONG),
    "columns": lambda: one_node(
        "Col2Im", {"x": [1, 4, 1]}, constants={"i": _ints(HUGE, HUGE), "b": _ints(2, 2)}),
    "unpooled": lambda: one_node(
        "MaxUnpool", {"x": [1, 1, 2, 2]}, constants={"i": np.zeros((1, 1, 2, 2), np.int64)},
        kernel_shape=[HUGE, HUGE], strides=[HUGE, HUGE]),
    "grid": lambda: one_node(
        "AffineGrid", {"t": [1, 2, 3]}, constants={"s": _ints(1, 1, HUGE, HUGE)}),
    "boxes": lambda: one_node(
        "NonMaxSuppression", {"b": [1, 4, 4], "s": [1, 1, 4]}, kind=TensorProto.INT64,
        constants={"m": np.array(LONG, np.int64)}),
    "largest of many": lambda: one_node(
        "TopK", {"x": [8]}, outputs=2, constants={"k": _ints(LONG)}),
    "neighbours": lambda: one_node("LRN", {"x": [1, 4, 4, 4]}, size=2**62 + 1),
    "embedding": lambda: one_node(
        "ArrayFeatureExtractor", {"x": [1, 4]}, domain=_ML, constants={"i": _ints(LONG)}),
    "support vectors": lambda: one_node(
        "SVMRegressor", {"x": [1, 4]}, domain=_ML, n_supports=HUGE, coefficients=[1.0],
        support_vectors=[1.0], rho=[0.0]),
    "degree of a kernel": lambda: one_node(
        "SVMRegressor", {"x": [1, 1]}, domain=_ML, n_supports=1, coefficients=[1.0],
        support_vectors=[1.0], rho=[0.0], kernel_type="POLY", kernel_params=[1.0, 1.0, 1e30]),
    "features": lambda: one_node(
        "FeatureVectorizer", {"x": [1, 4]}, domain=_ML, inputdimensions=[LONG]),
    "word of letters": lambda: one_node(
        "CumSum", {"x": [4]}, constants={"a": np.array(LONG, np.int64)}),
    "bits of a product": lambda: one_node(
        "MatMulNBits", {"x": [1, 16]}, domain=_MICROSOFT, K=LONG, N=LONG, bits=4, block_size=16,
        constants={"b": np.ones((1, 1, 8), np.uint8), "s": np.ones(1, F)}),
}  # fmt: skip
"""By what they do; each must end with a result or one of our errors."""
