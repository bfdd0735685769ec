"""`inliner`: bodies in the place of calls, named and wired exactly as the real `onnx` does it."""

import doctest
import inspect
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx as real
import onnx.inliner
import pytest

from sardonyx.compat.onnx import _function_calls, _inline, _renaming, inliner
from tests.compat.differential import assert_same
from tests.compat.inliner_models import (
    IMPORTS,
    LOCAL,
    MISMATCHES,
    SCHEMA_BODIES,
    TEXTS,
    chain_of_calls,
)
from tests.compat.meaning import assert_same_meaning
from tests.compat.text_models import function, model


def _local(convert: bool) -> Callable[[Any, Any], Any]:
    return lambda o, proto: o.inliner.inline_local_functions(proto, convert)


def _selected(ids: Any, exclude: bool) -> Callable[[Any, Any], Any]:
    return lambda o, proto: o.inliner.inline_selected_functions(proto, ids, exclude)


CALLS = {
    "all": _local(False),
    "all, converting": _local(True),
    "chosen f": _selected([("local", "f")], False),
    "all but f": _selected([("local", "f")], True),
    "chosen h": _selected([("local", "h")], False),
    "none": _selected([], False),
    "all but none": _selected([], True),
}


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("kind", CALLS)
def test_inlined_models(kind: str, text: str, tmp_path: Path) -> None:
    def call(o: Any, folder: Path) -> Any:
        original = model(o, TEXTS[text])
        return CALLS[kind](o, original), original

    assert_same(call, tmp_path)


FUNCTIONS = frozenset(schema.name for schema in real.defs.get_function_ops())


@pytest.mark.parametrize("text", MISMATCHES)
@pytest.mark.parametrize("kind", CALLS)
def test_other_operator_set_versions(kind: str, text: str, tmp_path: Path) -> None:
    of_model, of_function, body = MISMATCHES[text]

    def build(o: Any) -> Any:
        return model(
            o,
            f'<ir_version: 8, opset_import: ["" : {of_model}, "local" : 1]>'
            "g (float[1, 4] X) => (Y) { K = Neg (X) Y = local.f (K) }"
            f'<domain: "local", opset_import: ["" : {of_function}, "local" : 1]>'
            f"f (x) => (y) {{ {body} }}"
            f'<domain: "local", opset_import: ["" : {of_model}]>'
            "h (x) => (y) { y = Abs (x) }",
        )

    if kind == "all, converting":
        assert_same_meaning(build, CALLS[kind], tmp_path)
    else:
        assert_same(lambda o, folder: CALLS[kind](o, build(o)), tmp_path)


@pytest.mark.parametrize("name", IMPORTS)
@pytest.mark.parametrize("kind", ["all", "all, converting", "chosen f", "all but f"])
def test_imports(kind: str, name: str, tmp_path: Path) -> None:
    of_model, of_function = IMPORTS[name]

    def build(o: Any) -> Any:
        return model(
            o,
            f"<ir_version: 8, opset_import: {of_model}>"
            "g (float[N] X) => (float[N] Y) { Y = local.f (X) }"
            f'<domain: "local", opset_import: {of_function}>f (x) => (y) {{ y = Relu (x) }}',
        )

    if kind == "all, converting":
        assert_same_meaning(build, CALLS[kind], tmp_path)
    else:
        assert_same(lambda o, folder: CALLS[kind](o, build(o)), tmp_path)


def _constants_and_branches(o: Any) -> Any:
    """A call that gets a constant, and reads another value inside a graph."""
    return model(
        o,
        '<ir_version: 8, opset_import: ["" : 17, "local" : 1]>'
        "g (bool C, float[4] X) => (Y) { K = Constant <value_float = 2.0> () B = Neg (X)"
        " Y = local.f <yes = p () => (float[4] q) <float[1] w = {1}> "
        "{ m = Add (B, w) q = Add (m, K) }> (C, X, K) }"
        '<domain: "local", opset_import: ["" : 16]>'
        "f <yes> (c, x, k) => (y) { t = Mul (x, k) y = If (c) <then_branch: graph = @yes,"
        " else_branch = p () => (float[4] q) { q = Relu (t) }> }",
    )


def _untyped(o: Any) -> Any:
    original = model(o, TEXTS["calls between"])
    original.functions[0].opset_import[0].version = 16
    original.graph.node[0].op_type = "NoSuchOperator"
    return original


def _no_results(o: Any) -> Any:
    original = model(o, TEXTS["one call"])
    original.graph.node.add(op_type="f", domain="local", input=["X"])
    original.functions.add(domain="local", name="h")
    original.graph.node.add(op_type="h", domain="local")
    return original


def _value_info(o: Any) -> Any:
    original = model(o, TEXTS["called twice"])
    for name in ("x", "t", "y", "elsewhere", ""):
        value = o.helper.make_tensor_value_info(name, 1, ["N"])
        original.functions[0].value_info.append(value)
    original.functions[0].value_info.add()
    original.graph.value_info.append(o.helper.make_tensor_value_info("T", 1, ["N"]))
    return original


def _value_info_in_branch(o: Any) -> Any:
    original = model(o, TEXTS["call in a branch"])
    original.functions[0].value_info.append(o.helper.make_tensor_value_info("t", 1, ["N"]))
    return original


def _overloads(o: Any) -> Any:
    original = model(o, TEXTS["called twice"])
    original.graph.node[1].overload = "fast"
    fast = original.functions.add()
    fast.CopyFrom(function(o, LOCAL + "f (x) => (y) { y = Sqrt (x) }"))
    fast.overload = "fast"
    return original


def _missing_overload(o: Any) -> Any:
    original = model(o, TEXTS["called twice"])
    original.graph.node[1].overload = "fast"
    return original


def _double_colons(o: Any) -> Any:
    original = model(o, TEXTS["called twice"])
    original.functions[0].overload = "k"
    original.graph.node[0].op_type = "f::k"
    return original


def _sparse_in_branch(o: Any) -> Any:
    original = model(o, TEXTS["branch with initializers"])
    for attribute in original.functions[0].node[0].attribute:
        sparse = attribute.g.sparse_initializer.add(dims=[2])
        sparse.values.name = "s"
        attribute.g.value_info.add(name="x")
    return original


def _attributes_of_the_call(o: Any) -> Any:
    original = model(o, TEXTS["attribute given"])
    call = original.graph.node[0]
    call.attribute.append(o.helper.make_attribute("a", 0.75))
    call.attribute.add(name="other", ref_attr_name="from_outside", type=1)
    original.functions[0].node[0].attribute.add(name="q", ref_attr_name="other", type=1)
    original.functions[0].node[0].attribute.add(ref_attr_name="a")
    return original


def _graphs_attribute(o: Any) -> Any:
    original = model(o, TEXTS["nested"])
    calling = model(o, TEXTS["called twice"]).graph
    other = model(o, TEXTS["three levels"].replace("local.f", "local.h")).graph
    for nodes, inner in ((original.graph.node, calling), (original.functions[0].node, other)):
        nodes.append(o.helper.make_node("Many", ["X"], ["Z"], parts=[inner, inner]))
    return original


def _without_graph(o: Any) -> Any:
    original = model(o, TEXTS["one call"])
    original.ClearField("graph")
    return original


def _extras(o: Any) -> Any:
    original = model(o, TEXTS["called twice"])
    original.metadata_props.add(key="k", value="v")
    original.functions[0].metadata_props.add(key="lost", value="v")
    original.functions[0].node[0].metadata_props.add(key="n", value="v")
    original.functions[0].node[0].doc_string = "kept"
    original.graph.node[0].doc_string = "lost"
    return original


def _many_functions(o: Any) -> Any:
    original = model(o, TEXTS["one call"])
    for index in range(10_000):
        original.functions.add(domain="local", name=f"unused{index}")
    return original


BUILT = {
    build.__name__.strip("_"): build
    for build in (
        _constants_and_branches, _untyped, _value_info, _value_info_in_branch, _overloads,
        _missing_overload, _double_colons, _sparse_in_branch, _attributes_of_the_call,
        _graphs_attribute, _without_graph, _no_results, _extras, _many_functions,
    )
} | {
    "chain of 100": lambda o: model(o, chain_of_calls(100)),
    "empty model": lambda o: o.ModelProto(),
}  # fmt: skip


@pytest.mark.parametrize("name", BUILT)
@pytest.mark.parametrize("kind", ["all", "all, converting", "chosen f", "all but f"])
def test_built_models(kind: str, name: str, tmp_path: Path) -> None:
    if (kind, name) == ("all, converting", "constants_and_branches"):
        assert_same_meaning(BUILT[name], CALLS[kind], tmp_path)
    else:
        assert_same(lambda o, folder: CALLS[kind](o, BUILT[name](o)), tmp_path)


SCHEMA_CALLS: dict[str, dict[str, Any]] = {
    "everything": {"function_ids": [], "exclude": True},
    "one operator": {"function_ids": [("", "LeakyRelu"), ("", "Softsign"), ("", "CastLike")]},
    "all but CastLike": {"function_ids": [("", "CastLike")], "exclude": True},
    "nothing": {"function_ids": []},
}


@pytest.mark.parametrize("version", [13, 17, 22])
@pytest.mark.parametrize("body", SCHEMA_BODIES)
@pytest.mark.parametrize("kind", SCHEMA_CALLS)
def test_operators_that_are_functions(kind: str, body: str, version: int, tmp_path: Path) -> None:
    def build(o: Any) -> Any:
        return model(
            o,
            f'<ir_version: 8, opset_import: ["" : {version}, "local" : 1]>'
            f"g (float[4] X, int64[1] Z) => (Y) {{ {SCHEMA_BODIES[body]} }}"
            f'<domain: "local", opset_import: ["" : {version}]>'
            "f (x) => (y) { t = Softsign (x) y = LeakyRelu <alpha = 0.5> (t) }",
        )

    def inline(o: Any, original: Any) -> Any:
        return o.inliner.inline_selected_functions(
            original, **SCHEMA_CALLS[kind], inline_schema_functions=True
        )

    gone = FUNCTIONS - {"CastLike"} if kind == "all but CastLike" else FUNCTIONS
    assert_same_meaning(build, inline, tmp_path, gone)


class _Serializes:
    """Something that is no model but has bytes."""

    def __init__(self, content: Any) -> None:
        self.content = content

    def SerializeToString(self) -> Any:
        return self.content


ARGUMENTS: dict[str, Callable[[Any, Any], Any]] = {
    "convert is 1": lambda o, m: o.inliner.inline_local_functions(m, 1),
    "convert is None": lambda o, m: o.inliner.inline_local_functions(m, None),
    "convert is a numpy bool": lambda o, m: o.inliner.inline_local_functions(m, np.True_),
    "convert by name": lambda o, m: o.inliner.inline_local_functions(m, convert_version=True),
    "model is None": lambda o, m: o.inliner.inline_local_functions(None),
    "model is bytes": lambda o, m: o.inliner.inline_local_functions(m.SerializeToString()),
    "model is a graph": lambda o, m: o.inliner.inline_local_functions(m.graph),
    "bad bytes": lambda o, m: o.inliner.inline_local_functions(_Serializes(b"\xff\xff")),
    "good bytes": lambda o, m: o.inliner.inline_local_functions(_Serializes(m.SerializeToString())),
    "no bytes": lambda o, m: o.inliner.inline_local_functions(_Serializes("text")),
    "bytearray": lambda o, m: o.inliner.inline_local_functions(_Serializes(bytearray())),
    "exclude is 1": lambda o, m: o.inliner.inline_selected_functions(m, [], 1),
    "exclude is text": lambda o, m: o.inliner.inline_selected_functions(m, [], "yes"),
    "schema is 0": lambda o, m: o.inliner.inline_selected_functions(m, [], True, 0),
    "selected of None": lambda o, m: o.inliner.inline_selected_functions(None, []),
    "bad ids before bad bytes": lambda o, m: o.inliner.inline_selected_functions(
        _Serializes(b"\xff"), None
    ),
}
IDS: dict[str, Callable[[], Any]] = {
    "pairs": lambda: [("local", "f")],
    "tuple of pairs": lambda: (("local", "f"),),
    "lists": lambda: [["local", "f"]],
    "set": lambda: {("local", "f")},
    "text": lambda: "lf",
    "texts of two": lambda: ["lf"],
    "texts of three": lambda: ["lfg"],
    "one": lambda: [("local",)],
    "three": lambda: [("local", "f", "")],
    "None": lambda: None,
    "number in pair": lambda: [("local", 1)],
    "bytes": lambda: [(b"local", b"f")],
    "iterator": lambda: iter([("local", "f")]),
    "dictionary": lambda: {("local", "f"): 1},
    "pair is a dictionary": lambda: [{"local": 1, "f": 2}],
    "pair is a set": lambda: [{"local", "f"}],
    "range": lambda: range(0),
    "array": lambda: np.array([["local", "f"]]),
    "empty bytes": lambda: b"",
    "empty bytearray": bytearray,
    "number": lambda: 5,
    "nothing for a pair": lambda: [None],
    "unknown": lambda: [("local", "zzz"), ("", "f")],
    "repeated": lambda: [("local", "f"), ("local", "f")],
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments(name: str, tmp_path: Path) -> None:
    assert_same(lambda o, folder: ARGUMENTS[name](o, model(o, TEXTS["one call"])), tmp_path)


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize("exclude", [False, True])
def test_function_ids(name: str, exclude: bool, tmp_path: Path) -> None:
    def call(o: Any, folder: Path) -> Any:
        proto = model(o, TEXTS["nested"])
        return o.inliner.inline_selected_functions(proto, IDS[name](), exclude)

    assert_same(call, tmp_path)


def _random_nodes(chance: random.Random, o: Any, level: int, calls: list[str]) -> list[Any]:
    """Nodes over a handful of names, so that they hide, repeat and clash."""
    names = ["a", "b", "t", "t__1", "t__2", "a__1", "b__3_0", "", "x", "y"]
    nodes = []
    for _ in range(chance.randint(1, 4)):
        inputs = [chance.choice(names) for _ in range(chance.randint(0, 2))]
        outputs = [chance.choice(names) for _ in range(chance.randint(1, 2))]
        callee = chance.choice([*calls, "Relu", "If"])
        domain = "local" if callee in calls else ""
        name = chance.choice(["", "t", "n", "a__2"])
        node = o.helper.make_node(callee, inputs, outputs, name=name, domain=domain)
        if chance.random() < 0.3:
            node.attribute.add(name="k", ref_attr_name=chance.choice("kmn"), type=1)
        if chance.random() < 0.3:
            node.attribute.add(name=chance.choice("mn"), f=chance.random(), type=1)
        if level and (callee == "If" or chance.random() < 0.2):
            inner = o.GraphProto(name="inner")
            inner.node.extend(_random_nodes(chance, o, level - 1, calls))
            for values in (inner.input, inner.output, inner.initializer, inner.value_info):
                for _ in range(chance.randint(0, 2)):
                    values.add(name=chance.choice(names))
            node.attribute.append(o.helper.make_attribute("body", inner))
        nodes.append(node)
    return nodes


@pytest.mark.parametrize("seed", range(60))
def test_random_models(seed: int, tmp_path: Path) -> None:
    def call(o: Any, folder: Path) -> Any:
        chance = random.Random(seed)
        proto = o.ModelProto(ir_version=8)
        proto.opset_import.add(domain="", version=17)
        names = ["f", "h", "k"]
        proto.graph.node.extend(_random_nodes(chance, o, 2, names))
        for index, name in enumerate(names):
            body = proto.functions.add(domain="local", name=name)
            body.input.extend(chance.sample(["x", "a", "b"], 2))
            body.output.extend(chance.sample(["y", "t", "a"], 2))
            body.node.extend(_random_nodes(chance, o, 2, names[index + 1 :]))
            body.value_info.add(name="t")
        return [CALLS[kind](o, proto) for kind in ("all", "chosen f", "all but f", "chosen h")]

    assert_same(call, tmp_path)


@pytest.mark.parametrize("name", ["inline_local_functions", "inline_selected_functions"])
def test_signatures(name: str) -> None:
    def shape(function: Any) -> list[Any]:
        parameters = inspect.signature(function).parameters.values()
        return [(each.name, each.kind, each.default) for each in parameters]

    assert shape(getattr(inliner, name)) == shape(getattr(real.inliner, name))


@pytest.mark.parametrize(
    "module", [inliner, _inline, _renaming, _function_calls], ids=lambda it: it.__name__
)
def test_examples(module: Any) -> None:
    result = doctest.testmod(module)
    assert not result.failed
    assert result.attempted or module is _inline
