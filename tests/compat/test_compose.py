"""`compose`: joining models, prefixes, one more output dimension, against the real `onnx`."""

import doctest
import inspect
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx as real
import pytest

from sardonyx.compat import onnx as ours
from sardonyx.compat.onnx import _nesting, _prefix, compose
from tests.compat.compose_models import ALL, BRANCHES, CHAIN, FIRST, MERGES, PAIR, SECOND, XY
from tests.compat.differential import Call, assert_same
from tests.compat.text_models import graph, model

PRODUCERS: dict[str, dict[str, Any]] = {
    "all": {"producer_name": "me", "producer_version": "2", "domain": "d", "model_version": 9},
    "producer None": {"producer_name": None},
    "version None": {"model_version": None},
    "domain None": {"domain": None},
    "version text": {"model_version": "1"},
}


@pytest.mark.parametrize("name", MERGES)
def test_merge_models(name: str, tmp_path: Path) -> None:
    first, second, io_map, options = MERGES[name]

    def call(o: Any, folder: Path) -> Any:
        one, two = model(o, first), model(o, second)
        merged = o.compose.merge_models(one, two, io_map, **options)
        return merged, one, two

    assert_same(call, tmp_path)


@pytest.mark.parametrize("name", MERGES)
def test_merge_graphs(name: str, tmp_path: Path) -> None:
    first, second, io_map, options = MERGES[name]

    def call(o: Any, folder: Path) -> Any:
        one, two = model(o, first).graph, model(o, second).graph
        one.doc_string, two.doc_string = "one", "two"
        merged = o.compose.merge_graphs(one, two, io_map, **options)
        return merged, one, two

    assert_same(call, tmp_path)


@pytest.mark.parametrize("name", PRODUCERS)
def test_merged_model_says_who_made_it(name: str, tmp_path: Path) -> None:
    def call(o: Any, folder: Path) -> Any:
        return o.compose.merge_models(model(o, FIRST), model(o, SECOND), PAIR, **PRODUCERS[name])

    assert_same(call, tmp_path)


@pytest.mark.parametrize("name", MERGES)
def test_check_overlapping_names(name: str, tmp_path: Path) -> None:
    first, second, io_map, _ = MERGES[name]

    def call(o: Any, folder: Path) -> Any:
        one, two = model(o, first).graph, model(o, second).graph
        found = o.compose.check_overlapping_names(one, two, io_map)
        without = o.compose.check_overlapping_names(one, two)
        return [[(kind, sorted(names)) for kind, names in each] for each in (found, without)]

    assert_same(call, tmp_path)


def _sparse(o: Any, values: str, indices: str) -> Any:
    return o.helper.make_sparse_tensor(
        o.helper.make_tensor(values, o.TensorProto.FLOAT, [1], [2.0]),
        o.helper.make_tensor(indices, o.TensorProto.INT64, [1], [0]),
        [3],
    )


@pytest.mark.parametrize("second", [("v", "j"), ("w", "i"), ("v", "i"), ("w", "j"), ("x", "j")])
@pytest.mark.parametrize("options", [{}, {"prefix2": "b/"}, {"outputs": ["a"]}], ids=str)
def test_merge_sparse_initializers(
    second: tuple[str, str], options: dict[str, Any], tmp_path: Path
) -> None:
    def call(o: Any, folder: Path) -> Any:
        one = graph(o, "g (float[3] p) => (float[3] a, float[3] q) { a = Relu (p) q = Abs (p) }")
        two = graph(o, "h (float[3] x) => (float[3] y) { y = Neg (x) }")
        one.sparse_initializer.append(_sparse(o, "v", "i"))
        two.sparse_initializer.append(_sparse(o, *second))
        overlap = [
            (kind, sorted(names)) for kind, names in o.compose.check_overlapping_names(one, two)
        ]
        return overlap, o.compose.merge_graphs(one, two, [("a", "x")], **options)

    assert_same(call, tmp_path)


def _initializer_for_joined_input(o: Any, folder: Path) -> Any:
    one = model(o, CHAIN).graph
    two = model(o, CHAIN).graph
    two.initializer.append(o.helper.make_tensor("x", 1, [1], [5.0]))
    two.value_info.add(name="x")
    return o.compose.merge_graphs(one, two, XY, prefix2="b/")


def _untyped_graph_attribute(o: Any, folder: Path) -> Any:
    two = model(o, BRANCHES).graph
    for attribute in two.node[1].attribute:
        attribute.ClearField("type")
    return o.compose.merge_graphs(model(o, CHAIN).graph, two, XY, prefix1="a/")


def _graphs_attribute(o: Any, folder: Path) -> Any:
    two = model(o, CHAIN).graph
    inner = model(o, CHAIN).graph
    two.node.append(o.helper.make_node("Many", ["x"], ["z"], parts=[inner, inner]))
    return o.compose.merge_graphs(model(o, CHAIN).graph, two, XY, prefix1="a/")


def _duplicate_makers(o: Any, folder: Path) -> Any:
    one = model(o, FIRST).graph
    one.node.append(one.node[0])
    return o.compose.merge_graphs(one, model(o, SECOND).graph, PAIR[:1], outputs=["D0"])


def _quantization_annotation(o: Any, folder: Path) -> Any:
    one = model(o, FIRST).graph
    one.quantization_annotation.add(tensor_name="B0")
    return o.compose.merge_graphs(one, model(o, SECOND).graph, PAIR[:1], outputs=["D0"])


SPECIAL: list[Call] = [
    _initializer_for_joined_input,
    _untyped_graph_attribute,
    _graphs_attribute,
    _duplicate_makers,
    _quantization_annotation,
    lambda o, folder: o.compose.merge_models(model(o, FIRST).graph, model(o, SECOND), PAIR),
    lambda o, folder: o.compose.merge_models(model(o, FIRST), None, PAIR),
    lambda o, folder: o.compose.merge_graphs(model(o, FIRST), model(o, SECOND), PAIR),
    lambda o, folder: o.compose.merge_graphs(model(o, FIRST).graph, b"", PAIR),
    lambda o, folder: o.compose.check_overlapping_names(model(o, FIRST), model(o, FIRST)),
    lambda o, folder: o.compose.check_overlapping_names(model(o, FIRST).graph, "x"),
    lambda o, folder: o.compose.add_prefix("x", "p"),
    lambda o, folder: o.compose.add_prefix(model(o, CHAIN).graph, "p"),
    lambda o, folder: o.compose.add_prefix_graph(model(o, CHAIN), "p"),
    lambda o, folder: o.compose.add_prefix(model(o, CHAIN), None),
    lambda o, folder: o.compose.add_prefix(model(o, CHAIN), 4),
    lambda o, folder: o.compose.add_prefix(o.ModelProto(), None),
    lambda o, folder: o.compose.add_prefix(o.ModelProto(), "p"),
    lambda o, folder: o.compose.expand_out_dim(model(o, CHAIN).graph, 0),
    lambda o, folder: o.compose.expand_out_dim_graph(model(o, CHAIN), 0),
    lambda o, folder: o.compose.merge_models(o.ModelProto(), o.ModelProto(), []),
    lambda o, folder: o.compose.merge_graphs(o.GraphProto(), o.GraphProto(), []),
]


@pytest.mark.parametrize("index", range(len(SPECIAL)))
def test_special_cases(index: int, tmp_path: Path) -> None:
    assert_same(SPECIAL[index], tmp_path)


FLAGS = ["nodes", "edges", "inputs", "outputs", "initializers", "value_infos", "functions"]


@pytest.mark.parametrize("text", ALL)
@pytest.mark.parametrize("inplace", [False, True])
def test_add_prefix(text: str, inplace: bool, tmp_path: Path) -> None:
    def call(o: Any, folder: Path) -> Any:
        original = model(o, ALL[text])
        renamed = o.compose.add_prefix(original, "p/", inplace=inplace)
        return renamed, original, renamed is original

    assert_same(call, tmp_path)


@pytest.mark.parametrize("text", ["BRANCHES", "NESTED", "WEIGHTS", "FUNCTIONS", "LOOP"])
@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize("value", [True, False, None])
def test_add_prefix_to_some(text: str, flag: str, value: bool | None, tmp_path: Path) -> None:
    """One kind alone is renamed (True), or all but one (False, None)."""
    options = {f"rename_{other}": not value for other in FLAGS} | {f"rename_{flag}": value}

    def call(o: Any, folder: Path) -> Any:
        return o.compose.add_prefix(model(o, ALL[text]), "p/", **options)

    assert_same(call, tmp_path)


@pytest.mark.parametrize("text", ["BRANCHES", "NESTED", "WEIGHTS"])
@pytest.mark.parametrize("given", [None, {}, {"x": "other", "t": "T"}, {"w": "weight"}], ids=str)
def test_add_prefix_graph_with_name_map(
    text: str, given: dict[str, str] | None, tmp_path: Path
) -> None:
    def call(o: Any, folder: Path) -> Any:
        name_map = None if given is None else dict(given)
        original = model(o, ALL[text]).graph
        renamed = o.compose.add_prefix_graph(original, "p/", name_map=name_map)
        kept = o.compose.add_prefix_graph(
            original, "p/", rename_inputs=False, rename_edges=False, name_map=name_map
        )
        return renamed, kept, original, name_map

    assert_same(call, tmp_path)


def test_prefix_of_sparse_initializers(tmp_path: Path) -> None:
    def call(o: Any, folder: Path) -> Any:
        one = model(o, CHAIN).graph
        one.sparse_initializer.append(_sparse(o, "v", "i"))
        one.sparse_initializer.append(_sparse(o, "", ""))
        one.sparse_initializer.add()
        return (
            o.compose.add_prefix_graph(one, "p/"),
            o.compose.add_prefix_graph(one, "p/", rename_initializers=False),
        )

    assert_same(call, tmp_path)


@pytest.mark.parametrize("text", ["FIRST", "CHAIN", "WEIGHTS", "BRANCHES", "LOOP", "DOCUMENTED"])
@pytest.mark.parametrize("position", [0, 1, -1, 7, -7])
def test_expand_out_dim(text: str, position: int, tmp_path: Path) -> None:
    def call(o: Any, folder: Path) -> Any:
        original = model(o, ALL[text])
        expanded = o.compose.expand_out_dim(original, position)
        in_place = o.compose.expand_out_dim(original, position, inplace=True)
        return expanded, in_place, in_place is original, expanded is original

    assert_same(call, tmp_path)


@pytest.mark.parametrize("position", [None, "0", 1.5, np.int64(1), True], ids=repr)
def test_expand_out_dim_of_wrong_type(position: Any, tmp_path: Path) -> None:
    def call(o: Any, folder: Path) -> Any:
        return o.compose.expand_out_dim_graph(model(o, CHAIN).graph, position)

    assert_same(call, tmp_path)


def test_expand_out_dim_of_untyped_and_sequence_outputs(tmp_path: Path) -> None:
    def call(o: Any, folder: Path) -> Any:
        one = model(o, CHAIN).graph
        one.output.add(name="t", doc_string="lost")
        one.output.add(name="u").type.sequence_type.elem_type.tensor_type.elem_type = 1
        return o.compose.expand_out_dim_graph(one, 0)

    assert_same(call, tmp_path)


PUBLIC = [
    "add_prefix",
    "add_prefix_graph",
    "check_overlapping_names",
    "expand_out_dim",
    "expand_out_dim_graph",
    "merge_graphs",
    "merge_models",
]


@pytest.mark.parametrize("name", PUBLIC)
def test_signatures(name: str) -> None:
    def shape(function: Any) -> list[Any]:
        parameters = inspect.signature(function).parameters.values()
        return [(each.name, each.kind, each.default) for each in parameters]

    assert shape(getattr(compose, name)) == shape(getattr(real.compose, name))


def test_all_public_functions_are_there() -> None:
    functions = inspect.getmembers(real.compose, inspect.isfunction)
    assert sorted(name for name, _ in functions) == PUBLIC == sorted(compose.__all__)


@pytest.mark.parametrize("module", [compose, _prefix, _nesting], ids=lambda it: it.__name__)
def test_examples(module: Any) -> None:
    result = doctest.testmod(module)
    assert result.attempted and not result.failed


def _deep_graph(depth: int) -> Any:
    outermost = innermost = ours.GraphProto(name="deep")
    for _ in range(depth):
        innermost = innermost.node.add(op_type="If").attribute.add(name="b", type=5).g
        innermost.name = "inner"
    return outermost


@pytest.mark.parametrize("depth", [_nesting.MAXIMUM_NESTING + 1, 20_000])
def test_endless_nesting_is_refused(depth: int) -> None:
    deep, flat = _deep_graph(depth), ours.GraphProto()
    whole = ours.ModelProto()
    inner = whole.functions.add(name="f").node.add().attribute.add(name="b").g
    for _ in range(depth):
        inner = inner.node.add().attribute.add(name="b").g
    for call in (
        lambda: compose.add_prefix_graph(deep, "p"),
        lambda: compose.add_prefix_graph(deep, "p", inplace=True),
        lambda: compose.merge_graphs(deep, flat, []),
        lambda: compose.merge_graphs(flat, deep, []),
        lambda: compose.expand_out_dim_graph(deep, 0),
        lambda: compose.add_prefix(whole, "p"),
        lambda: compose.expand_out_dim(whole, 0),
        lambda: compose.merge_models(whole, ours.ModelProto(), []),
    ):
        with pytest.raises(RecursionError, match="nested more than"):
            call()


def test_nesting_that_a_file_cannot_hold_still_works() -> None:
    deep = _deep_graph(_nesting.MAXIMUM_NESTING)
    assert compose.add_prefix_graph(deep, "p").node[0].op_type == "If"
    assert sys.getrecursionlimit() > 2 * _nesting.MAXIMUM_NESTING


def test_large_models_merge_in_seconds() -> None:
    nodes = [ours.helper.make_node("Relu", [f"v{i}"], [f"v{i + 1}"]) for i in range(10_000)]
    ends = [ours.helper.make_tensor_value_info(name, 1, ["n"]) for name in ("v0", "v10000")]
    large = ours.helper.make_graph(nodes, "large", ends[:1], ends[1:])
    start = time.perf_counter()
    merged = compose.merge_graphs(large, large, [("v10000", "v0")], prefix1="a/", prefix2="b/")
    assert len(merged.node) == 20_000
    assert merged.node[10_000].input[0] == "a/v10000"
    assert time.perf_counter() - start < 10
