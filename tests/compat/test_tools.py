"""`tools`: dimensions of inputs and outputs, dummies for weights, against the real `onnx`."""

import doctest
import inspect
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx as real
import onnx.tools.replace_constants
import onnx.tools.update_model_dims
import pytest

from sardonyx.compat import onnx as ours
from sardonyx.compat.onnx.tools import replace_constants, update_model_dims
from tests.compat.differential import Call, assert_same
from tests.compat.text_models import function, graph, model

DIMENSIONS = """<ir_version: 8, opset_import: ["" : 17]>
g (float[b, 3, w] x, float[b, 4] z) => (float[b, d, 5] y, float[7] k) <float[y_1, q] t>
{ y = Some (x, z) k = Other (t) t = Third (x) }
"""
Dims = dict[str, list[Any]]
GOOD_X: Dims = {"x": ["b", 3, "w"], "z": ["b", 4]}
GOOD_Y: Dims = {"y": ["b", "d", 5], "k": [7]}
UPDATES: dict[str, tuple[Any, Any]] = {
    "same": (GOOD_X, GOOD_Y),
    "sizes": ({"x": [2, 3, 8], "z": [2, 4]}, {"y": [2, 6, 5], "k": [7]}),
    "other names": ({"x": ["n", "c", "l"], "z": ["n", "m"]}, {"y": ["n", "p", "r"], "k": ["s"]}),
    "unknown": ({"x": [-1, -1, -1], "z": [-1, -1]}, {"y": [-1, "d", 5], "k": [-1]}),
    "unknown twice": ({"x": [-1, 3, -2], "z": [-1, 4]}, {"y": [-5, "d", 5], "k": [7]}),
    "generated name is taken": (GOOD_X, {"y": ["b", -1, 5], "k": [7]}),
    "contradiction": ({"x": ["b", 4, "w"], "z": ["b", 4]}, GOOD_Y),
    "contradiction in output": (GOOD_X, {"y": ["b", "d", 6], "k": [7]}),
    "zero": ({"x": [0, 3, 0], "z": [0, 4]}, GOOD_Y),
    "true": ({"x": [True, 3, False], "z": ["b", 4]}, GOOD_Y),
    "fewer dimensions": ({"x": [2], "z": []}, {"y": [2], "k": []}),
    "more dimensions": ({"x": [2, 3, 4, 5], "z": ["b", 4]}, GOOD_Y),
    "input missing": ({"x": ["b", 3, "w"]}, GOOD_Y),
    "output missing": (GOOD_X, {}),
    "extra names": ({**GOOD_X, "nothing": [1]}, {**GOOD_Y, "neither": [1]}),
    "float": ({"x": [2.0, 3, "w"], "z": ["b", 4]}, GOOD_Y),
    "None": ({"x": [None, 3, "w"], "z": ["b", 4]}, GOOD_Y),
    "numpy": ({"x": [np.int64(2), 3, "w"], "z": ["b", 4]}, GOOD_Y),
    "bytes": ({"x": [b"n", 3, "w"], "z": ["b", 4]}, GOOD_Y),
    "empty name": ({"x": ["", 3, ""], "z": ["", 4]}, GOOD_Y),
    "text for a list": ({"x": "bcd", "z": ["b", 4]}, GOOD_Y),
    "tuples": ({"x": ("b", 3, "w"), "z": ("b", 4)}, GOOD_Y),
    "dimensions are None": (None, None),
    "too large": ({"x": [2**70, 3, "w"], "z": ["b", 4]}, GOOD_Y),
}


@pytest.mark.parametrize("checked", [True, False])
@pytest.mark.parametrize("name", UPDATES)
def test_update_inputs_outputs_dims(name: str, checked: bool, tmp_path: Path) -> None:
    """The model passes the checker only when its nodes are of operators that exist."""
    inputs, outputs = UPDATES[name]

    def call(o: Any, folder: Path) -> Any:
        proto = model(o, DIMENSIONS)
        if checked:
            for node, operator in zip(proto.graph.node, ("Add", "Relu", "Abs"), strict=True):
                node.op_type = operator
            proto.graph.node.insert(0, proto.graph.node.pop(2))
        result = o.tools.update_model_dims.update_inputs_outputs_dims(proto, inputs, outputs)
        return result, result is proto

    assert_same(call, tmp_path)


def test_dimensions_of_something_else(tmp_path: Path) -> None:
    def update(o: Any, target: Any) -> Any:
        return o.tools.update_model_dims.update_inputs_outputs_dims(target, {"s": [2]}, {"s": [2]})

    def sequence(o: Any) -> Any:
        proto = model(o, DIMENSIONS)
        del proto.graph.input[:], proto.graph.output[:]
        proto.graph.input.add(name="s").type.sequence_type.elem_type.tensor_type.elem_type = 1
        return proto

    builds: list[Callable[[Any], Any]] = [lambda o: o.ModelProto(), lambda o: None, sequence]
    for index, build in enumerate(builds):
        (tmp_path / str(index)).mkdir()
        assert_same(lambda o, folder, build=build: update(o, build(o)), tmp_path / str(index))


def _array(o: Any, name: str, shape: tuple[int, ...], kind: Any = np.float32) -> Any:
    return o.numpy_helper.from_array(np.ones(shape, kind), name)


def _weights(o: Any, kind: Any = np.float32) -> Any:
    proto = model(
        o,
        '<ir_version: 8, producer_name: "p", producer_version: "2", domain: "d", model_version: 3,'
        ' doc_string: "text", metadata_props: ["k": "v"], opset_import: ["" : 17, "local" : 1]>'
        "g (float[N] x, float[20, 10] w) => (float[N] y) <float[N] t> "
        "{ [n] t = MatMul (x, w) y = Add (t, s) }",
    )
    proto.graph.doc_string = "lost"
    proto.graph.initializer.append(_array(o, "w", (20, 10), kind))
    proto.graph.initializer.append(_array(o, "s", (10,), kind))
    return proto


def _constants(o: Any) -> Any:
    proto = _weights(o)
    for name, shape in (("a", (200,)), ("b", (2,)), ("", (3, 100))):
        value = _array(o, name, shape)
        node = o.helper.make_node("Constant", [], [f"c{name}"], value=value, name="const")
        proto.graph.node.insert(0, node)
    proto.graph.node.insert(0, o.helper.make_node("Constant", [], ["nothing"]))
    return proto


def _constant_with(**attributes: Any) -> Callable[[Any], Any]:
    def build(o: Any) -> Any:
        proto = _weights(o)
        proto.graph.node.append(o.helper.make_node("Constant", [], ["c"], **attributes))
        return proto

    return build


def _branches(o: Any) -> Any:
    proto = _weights(o)
    inner = graph(o, "p () => (float[N] q) <float[N] u> { u = Neg (x) q = Add (u, v) }")
    inner.initializer.append(_array(o, "v", (300,)))
    small = graph(o, "p () => (float[N] q) { q = Neg (x) }")
    node = o.helper.make_node("If", ["c"], ["z"], name="lost", domain="lost")
    node.attribute.append(o.helper.make_attribute("then_branch", inner))
    node.attribute.append(o.helper.make_attribute("else_branch", small))
    node.attribute.append(o.helper.make_attribute("number", 7))
    proto.graph.node.append(node)
    many = o.helper.make_node("Many", ["c"], ["m"], many=[small, inner], few=[small, small])
    proto.graph.node.append(many)
    return proto


def _only_small_branches(o: Any) -> Any:
    proto = model(o, '<ir_version: 8, opset_import: ["" : 17]> g (float[N] x) => (y) { }')
    small = graph(o, "p () => (float[N] q) { q = Neg (x) }")
    node = o.helper.make_node("If", ["c"], ["z"], name="kept", then_branch=small, graphs=[small])
    node.attribute.add(name="typed", type=5)
    untyped = node.attribute.add(name="untyped")
    untyped.g.initializer.append(_array(o, "big", (500,)))
    proto.graph.node.append(node)
    return proto


def _constants_of_shape(o: Any) -> Any:
    return model(
        o,
        '<ir_version: 8, opset_import: ["" : 17]> g (int64[1] n, float zero) => (float[N] y, k) {'
        " a = ConstantOfShape <value = float[1] {3}> (n)"
        " b = ConstantOfShape <value = int64[1] {4}> (n)"
        " one = Relu (a) n_N = Abs (one) n_N_2 = Abs (n_N) y = Add (a, b) k = Neg (n_N_2) }",
    )


def _shape_without_value(o: Any) -> Any:
    proto = _constants_of_shape(o)
    del proto.graph.node[0].attribute[:]
    return proto


def _two_attributes(o: Any) -> Any:
    proto = _constants_of_shape(o)
    proto.graph.node[0].attribute.append(o.helper.make_attribute("other", 1))
    return proto


def _sparse(size: int) -> Callable[[Any], Any]:
    def build(o: Any) -> Any:
        proto = _weights(o)
        proto.graph.sparse_initializer.append(
            o.helper.make_sparse_tensor(
                o.helper.make_tensor("v", 1, [1], [1.0]),
                o.helper.make_tensor("i", 7, [1], [0]),
                [size],
            )
        )
        return proto

    return build


def _functions(o: Any) -> Any:
    proto = _weights(o)
    for name, size in (("large", 300), ("small", 3)):
        body = function(
            o,
            f'<domain: "local", opset_import: ["" : 17]> {name} <a> (x) => (y) '
            "{ y = Add (x, c) s = ConstantOfShape <value = float[1] {3}> (x) }",
        )
        constant = o.helper.make_node("Constant", [], ["c"], value=_array(o, "k", (size,)))
        body.node.insert(0, constant)
        body.doc_string = "lost"
        proto.functions.append(body)
    return proto


def _opset(version: int) -> Callable[[Any], Any]:
    def build(o: Any) -> Any:
        proto = _weights(o)
        proto.opset_import[0].version = version
        return proto

    return build


def _typed(kind: Any) -> Callable[[Any], Any]:
    return lambda o: _weights(o, kind)


def _text_weights(o: Any) -> Any:
    proto = _weights(o)
    texts = o.helper.make_tensor("texts", o.TensorProto.STRING, [200], [b"x"] * 200)
    proto.graph.initializer.append(texts)
    return proto


def _odd_dimensions(o: Any) -> Any:
    proto = _weights(o)
    proto.graph.initializer.add(name="scalar", data_type=1)
    proto.graph.initializer.add(name="huge", data_type=1, dims=[2**40, 2**40])
    proto.graph.initializer.add(name="negative", data_type=1, dims=[-5, -100])
    proto.graph.initializer.add(name="empty", data_type=1, dims=[0, 1000])
    return proto


BUILT: dict[str, Callable[[Any], Any]] = {
    "weights": _weights,
    "constants": _constants,
    "constant of a float": _constant_with(value_float=1.0),
    "constant of ints": _constant_with(value_ints=[1, 2]),
    "constant of text": _constant_with(value_string="x"),
    "branches": _branches,
    "only small branches": _only_small_branches,
    "constants of shape": _constants_of_shape,
    "shape without value": _shape_without_value,
    "two attributes": _two_attributes,
    "large sparse": _sparse(500),
    "small sparse": _sparse(5),
    "functions": _functions,
    "opset 8": _opset(8),
    "opset 9": _opset(9),
    "opset 10": _opset(10),
    "opset 11": _opset(11),
    "int64": _typed(np.int64),
    "bool": _typed(np.bool_),
    "float16": _typed(np.float16),
    "complex": _typed(np.complex64),
    "texts": _text_weights,
    "odd dimensions": _odd_dimensions,
    "empty model": lambda o: o.ModelProto(),
}
OPTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "range": {"use_range": True},
    "value 1": {"value_constant_of_shape": 1},
    "value 2": {"value_constant_of_shape": 2},
    "range and value 1": {"use_range": True, "value_constant_of_shape": 1},
    "threshold 5": {"threshold": 5},
    "threshold -1": {"threshold": -1, "value_constant_of_shape": 1},
    "threshold 10000": {"threshold": 10_000},
    "old format": {"ir_version": 3},
}


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", BUILT)
def test_replace_in_models(name: str, options: str, tmp_path: Path) -> None:
    def call(o: Any, folder: Path) -> Any:
        replace = o.tools.replace_constants.replace_initializer_by_constant_of_shape
        original = BUILT[name](o)
        return replace(original, **OPTIONS[options]), original

    assert_same(call, tmp_path)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", ["weights", "branches", "constants", "functions"])
def test_replace_in_parts(name: str, options: str, tmp_path: Path) -> None:
    def call(o: Any, folder: Path) -> Any:
        replace = o.tools.replace_constants.replace_initializer_by_constant_of_shape
        proto = BUILT[name](o)
        parts = [proto.graph, *proto.functions]
        changed = [replace(part, **OPTIONS[options]) for part in parts]
        again = [replace(part, use_range=True) for part in changed]
        same = [new is old for new, old in zip(changed, parts, strict=True)]
        return changed, again, same

    assert_same(call, tmp_path)


def _replace(*arguments: Any, **options: Any) -> Call:
    return lambda o, folder: o.tools.replace_constants.replace_initializer_by_constant_of_shape(
        *arguments, **options
    )


def _private(name: str, build: Callable[[Any], Any], *arguments: Any) -> Call:
    return lambda o, folder: getattr(o.tools.replace_constants, name)(build(o), *arguments)


SPECIAL: dict[str, Call] = {
    "None": _replace(None),
    "text": _replace("model.onnx"),
    "node": lambda o, folder: o.tools.replace_constants.replace_initializer_by_constant_of_shape(
        o.NodeProto()
    ),
    "nothing": _replace(),
    "value of wrong type": lambda o, folder: (
        o.tools.replace_constants.replace_initializer_by_constant_of_shape(
            _weights(o), value_constant_of_shape="x"
        )
    ),
    "threshold of wrong type": lambda o, folder: (
        o.tools.replace_constants.replace_initializer_by_constant_of_shape(_weights(o), "x")
    ),
    "range of a model": _private("_replace_constant_of_shape_with_range", _weights),
    "value of a model": _private("_replace_constant_of_shape_value", _weights, 1.0),
    "range of a graph": _private(
        "_replace_constant_of_shape_with_range", lambda o: _constants_of_shape(o).graph
    ),
    "value of a graph": _private(
        "_replace_constant_of_shape_value", lambda o: _constants_of_shape(o).graph, 4.0
    ),
    "value of a function": _private(
        "_replace_constant_of_shape_value", lambda o: _functions(o).functions[0], 4.0
    ),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_cases(name: str, tmp_path: Path) -> None:
    assert_same(SPECIAL[name], tmp_path)


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (
            update_model_dims.update_inputs_outputs_dims,
            real.tools.update_model_dims.update_inputs_outputs_dims,
        ),
        (
            replace_constants.replace_initializer_by_constant_of_shape,
            real.tools.replace_constants.replace_initializer_by_constant_of_shape,
        ),
    ],
)
def test_signatures(mine: Any, theirs: Any) -> None:
    def shape(function: Any) -> list[Any]:
        parameters = inspect.signature(function).parameters.values()
        return [(each.name, each.kind, each.default) for each in parameters]

    assert shape(mine) == shape(theirs)


@pytest.mark.parametrize("module", [update_model_dims, replace_constants])
def test_examples(module: Any) -> None:
    result = doctest.testmod(module)
    assert result.attempted and not result.failed


@pytest.mark.parametrize("depth", [102, 20_000])
def test_endless_nesting_is_refused(depth: int) -> None:
    replace = replace_constants.replace_initializer_by_constant_of_shape
    deep = ours.ModelProto()
    inner = deep.graph
    for _ in range(depth):
        inner = inner.node.add(op_type="If").attribute.add(name="b", type=5).g
    with pytest.raises(RecursionError, match="nested more than"):
        replace(deep)


def test_many_constants_of_shape_in_seconds() -> None:
    """They share one shape, so that all their names clash."""
    large = ours.GraphProto(name="g")
    for index in range(10_000):
        large.node.add(op_type="ConstantOfShape", input=["shape"], output=[f"v{index}"])
    start = time.perf_counter()
    replaced = replace_constants.replace_initializer_by_constant_of_shape(large, use_range=True)
    assert len(replaced.node) == 60_002
    assert replaced.node[-1].input[0] == "shape_FLAT_10000"
    assert time.perf_counter() - start < 20
