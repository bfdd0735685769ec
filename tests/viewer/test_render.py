"""The page as text: what it says, how texts of a model get into it, how large it is."""

import json
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sardonyx as sx
from sardonyx import viewer
from sardonyx.graph import Graph, Model, Node, Opsets, SparseTensor, Tensor
from sardonyx.ops.catalog import OPERATORS
from sardonyx.viewer import render_html
from sardonyx.viewer.describe import describe_model
from sardonyx.viewer.families import FAMILIES, OTHER, family_of
from sardonyx.viewer.render import SCRIPTS, digest, embed
from sardonyx.viewer.weights import SAMPLE, describe_tensor, small_text
from tests.shared_models import model_paths, needs_models
from tests.viewer.models import HOSTILE, hostile, nested, network

PACKAGE = Path(viewer.__file__).parent
BLOCK = re.compile(r"<script([^>]*)>(.*?)</script>", re.S)


def data_of(page: str) -> Any:
    (block,) = [text for attributes, text in BLOCK.findall(page) if "json" in attributes]
    return json.loads(block)


def test_a_page_has_one_script_and_one_block_of_data() -> None:
    page = render_html(nested())
    assert [attributes for attributes, _ in BLOCK.findall(page)] == [
        ' type="application/json" id="data"', ""
    ]  # fmt: skip
    assert page.count("<style>") == 1
    assert "%" not in re.sub(r"<(script|style)[^>]*>.*?</\1>", "", page, flags=re.S)


def test_the_policy_names_what_the_page_contains() -> None:
    page = render_html(nested())
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    style = re.search(r"<style>(.*?)</style>", page, re.S)
    assert style is not None
    assert f"style-src '{digest(style[1])}'" in policy[1]
    assert f"script-src '{digest(BLOCK.findall(page)[1][1])}'" in policy[1]
    assert "default-src 'none'" in policy[1]


def test_the_page_asks_for_nothing_from_elsewhere() -> None:
    page = render_html(nested())
    assert not re.search(r"https?://|//[a-z]+\.[a-z]|@import|url\(|\bfetch\b|XMLHttpRequest", page)
    assert not re.search(r"<(link|img|iframe|object|embed)\b", page)


def test_texts_of_the_model_never_become_markup() -> None:
    script = "".join((PACKAGE / name).read_text() for name in SCRIPTS)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", script)


def test_hostile_texts_stay_data() -> None:
    model = hostile()
    page = render_html(model, title=HOSTILE[0] + '"&')
    assert len(BLOCK.findall(page)) == 2
    assert "alert(1)</script>" not in page
    assert "<img" not in page
    assert "&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;&quot;&amp;</title>" in page
    page.encode()
    graph = data_of(page)["sides"][0]["graphs"][0]
    operators = [node["operator"] for node in graph["nodes"] if node["kind"] == 0]
    assert operators[:7] == list(HOSTILE[:7])
    assert operators[7].startswith("long long") and len(operators[7]) < 500
    assert "20000 characters" in operators[7]
    assert all(len(node["title"]) < 80 for node in graph["nodes"])


@pytest.mark.parametrize("text", HOSTILE)
def test_embedded_data_comes_back_whole(text: str) -> None:
    inside = embed({text: [text]})
    assert inside.isascii()
    assert not set("<>&") & set(inside)
    assert json.loads(inside) == {text: [text]}


def test_the_page_itself_is_light() -> None:
    empty = render_html(Model(Graph("empty"), Opsets({"": 21}), 10))
    assert len(empty.encode()) < 200_000
    for name in (*SCRIPTS, "page.css", "page.html"):
        assert len((PACKAGE / name).read_text().splitlines()) <= 500


def test_a_model_without_a_graph_is_shown_empty() -> None:
    graphs = data_of(render_html(Model(None, Opsets({"": 21}), 10)))["sides"][0]["graphs"]
    assert [graph["title"] for graph in graphs] == ["(no graph)"]


def test_weight_of_data_stays_within_bounds() -> None:
    assert len(render_html(network(5_000)).encode()) < 3_000_000


def test_every_operator_has_a_family() -> None:
    listed = [module for family in FAMILIES for module in family.modules.split()]
    assert sorted(listed) == sorted({name for names in OPERATORS.values() for name in names})
    assert family_of(Node("NoSuchOperator")) == OTHER


def test_values_have_inferred_types() -> None:
    graph = describe_model(network(10))["graphs"][0]
    types = {name: type_ for name, type_, *_ in graph["values"]}
    assert types["v9"] == "float[1,8,16,16]"
    assert types["weight5"] == "float[8,8,1,1]"


def test_constants_stand_inside_the_nodes_that_read_them() -> None:
    model = sx.load_text(
        '<ir_version: 10, opset_import: ["": 21]> g (float[2] x) => (float[2] y, float c)'
        "<float[40] w = {" + ",".join(["1"] * 40) + "}> {"
        "c = Constant<value = float {0.5}>() d = Constant<value_ints = [1, 2]>()"
        "z = Custom<alpha: float = 3>(x, w, d) y = Add(z, c) }"
    )
    nodes = describe_model(model)["graphs"][0]["nodes"]
    shown = {node["title"]: node["rows"] for node in nodes}
    assert shown["Custom"] == [["1", "40"], ["2", "= [1, 2]"], ["alpha", "3"]]
    assert shown["Add"] == [["B", "= 0.5"]]
    assert [node["title"] for node in nodes] == ["x", "Constant", "Custom", "Add", "y", "c"]


def test_subgraphs_and_functions_are_reached_from_their_nodes() -> None:
    graphs = describe_model(nested())["graphs"]
    (outer,) = [node for node in graphs[0]["nodes"] if node.get("name") == "outer_if"]
    (call,) = [node for node in graphs[0]["nodes"] if node.get("name") == "call"]
    names = {name: graphs[number]["title"] for name, number in outer["graphs"]}
    assert names == {"then_branch": "then_branch", "else_branch": "else_branch"}
    assert [graphs[number]["title"] for _, number in call["graphs"]] == ["function local.Twice"]
    then = graphs[dict(outer["graphs"])["then_branch"]]
    assert then["outer"] == 0
    (inner,) = [node for node in then["nodes"] if node.get("name") == "inner_if"]
    deepest = graphs[dict(inner["graphs"])["then_branch"]]
    assert [node["title"] for node in deepest["nodes"]] == ["Exp", "x", "inner_then_y"]
    assert [node["kind"] for node in deepest["nodes"]] == [0, 4, 2]
    captured = [edge for edge in graphs[0]["edges"] if edge[3] & 2]
    assert len(captured) == 1


def test_constants_that_nothing_reads_are_listed() -> None:
    model = network(5)
    assert model.graph is not None
    model.graph.add_initializer(Tensor(np.zeros(99, np.float32), "left over"))
    assert "left over" in [weight["name"] for weight in describe_model(model)["weights"]]


def test_cycles_and_deep_nesting_are_drawn() -> None:
    graph = Graph("cycle")
    first = graph.add("Neg", [graph.add_input("x")], ["a"])
    second = graph.add("Abs", [first.output], ["b"])
    first.set_inputs([second.output])
    flag = graph.add_input("flag")
    body = graph
    for depth in range(300):
        inner = Graph(f"level{depth}")
        branches = {"then_branch": inner, "else_branch": Graph()}
        body.add("If", [flag], [f"y{depth}"], branches)
        body = inner
    data = describe_model(Model(graph, Opsets({"": 21}), 10))
    assert len(data["graphs"]) == 601
    nodes = [node["title"] for node in data["graphs"][0]["nodes"]]
    edges = [(nodes[edge[0]], nodes[edge[1]]) for edge in data["graphs"][0]["edges"]]
    assert edges == [("Abs", "Neg"), ("Neg", "Abs"), ("flag", "If")]


def test_huge_weights_cost_little() -> None:
    start = time.process_time()
    found = describe_tensor(Tensor(np.zeros((1 << 15, 1 << 16), np.float32)))
    assert found["count"] == 1 << 31 and found["zeros"] == 1
    assert time.process_time() - start < 1


def test_seconds_go_to_nodes_by_name_or_output() -> None:
    profile = {"block0/node1": 0.25, "v2": 0.5, "nobody": 1.0}
    nodes = describe_model(network(5), profile)["graphs"][0]["nodes"]
    seconds = {node["operator"]: node["seconds"] for node in nodes if "seconds" in node}
    assert seconds == {"Relu": 0.25, "Mul": 0.5}
    assert data_of(render_html(network(5), profile=profile))["heat"] is True


def test_a_comparison_marks_what_differs() -> None:
    before, after = network(6), network(6)
    (relu,) = [node for node in after.graph.nodes if node.op_type == "Relu"]
    relu.output.replace_all_uses(relu.inputs[0])
    after.graph.nodes.remove(relu)
    after.graph.nodes[0].set_attribute("group", 1)
    extra = after.graph.add("Neg", [after.graph.outputs[0]], ["extra"], name="extra")
    after.graph.outputs[0] = extra.output
    left, right = data_of(render_html(before, compare=after))["sides"]
    status = [
        {node["title"]: node["status"] for node in side["graphs"][0]["nodes"] if "status" in node}
        for side in (left, right)
    ]
    assert status[0] == {"Relu": "gone", "Conv": "changed", "v5": "gone"}
    assert status[1] == {"Neg": "new", "Conv": "changed", "extra": "new"}
    assert (left["name"], right["name"]) == ("left", "right")
    for node in left["graphs"][0]["nodes"]:
        if "twin" in node:
            number, at = node["twin"]
            assert right["graphs"][number]["nodes"][at]["title"] == node["title"]


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "bool", "complex64"])
def test_statistics_of_weights(dtype: str) -> None:
    numbers = np.random.default_rng(0).standard_normal(2_000) * 9
    values = (numbers > 0) if dtype == "bool" else numbers.astype(dtype)
    found = describe_tensor(Tensor(values))
    numbers = np.abs(values) if dtype == "complex64" else values.astype(np.float64)
    assert found["low"] == pytest.approx(numbers.min())
    assert found["high"] == pytest.approx(numbers.max())
    assert found["mean"] == pytest.approx(numbers.mean())
    assert max(found["bins"]) == 100 and len(found["bins"]) == 32
    assert found["zeros"] == pytest.approx(np.mean(numbers == 0))


def test_large_weights_are_sampled() -> None:
    values = np.random.default_rng(0).standard_normal(50 * SAMPLE).astype(np.float32)
    found = describe_tensor(Tensor(values))
    assert found["sampled"] and found["count"] == values.size
    assert found["deviation"] == pytest.approx(1, abs=0.05)


def test_odd_weights_are_described_without_failing() -> None:
    odd = describe_tensor(Tensor(np.array([np.nan, np.inf, 1.0, 2.0], np.float32)))
    assert odd["odd"] == 0.5 and odd["low"] == 1
    assert "low" not in describe_tensor(Tensor(np.full(3, np.nan)))
    huge = describe_tensor(Tensor(np.array([-1.7e308, 1.7e308])))
    assert "bins" not in huge
    assert describe_tensor(Tensor(np.zeros((0, 4), np.float32))) == {"count": 0, "text": "[]"}
    assert describe_tensor(Tensor(np.array(["a", b"\xff"], object)))["text"] == "['a', '\ufffd']"
    assert describe_tensor(SparseTensor(None, None, (2,)))["problem"]
    json.dumps([odd, huge], allow_nan=False)
    assert small_text(Tensor(np.array([2**63 - 1, -1]))) == "= [max, -1]"


def test_small_tensors_are_written_out() -> None:
    whole = np.arange(25)
    assert small_text(Tensor(whole[:6])) == "= [0, 1, 2, 3, 4, 5]"
    assert small_text(Tensor(whole[:7])) == ""
    assert small_text(SparseTensor(Tensor(whole[:1]), Tensor(whole[:1]), (2,))) == ""
    assert "text" in describe_tensor(Tensor(whole[:24]))
    assert "text" not in describe_tensor(Tensor(whole))
    assert describe_tensor(SparseTensor(Tensor(whole[:2]), None, (9,)))["high"] == 1
    long = describe_tensor(Tensor(np.array(["x" * 700], object)))["text"]
    assert len(long) == 600 and long.endswith("x…")
    assert len(describe_tensor(Tensor(np.array("x" * 598, object)))["text"]) == 600
    assert describe_tensor(Tensor(np.zeros(SAMPLE, np.int8)))["sampled"] is False
    assert describe_tensor(Tensor(np.zeros(SAMPLE + 1, np.int8)))["sampled"] is True


def test_samples_reach_from_the_first_element_to_the_last() -> None:
    values = np.zeros(SAMPLE * 3, np.float32)
    values[0], values[-1] = -5, 7
    found = describe_tensor(Tensor(values))
    assert (found["low"], found["high"]) == (-5, 7)


def test_histograms() -> None:
    found = describe_tensor(Tensor(np.array([0, 0, 0, 0, 31], np.float32)))
    assert found["bins"] == [100.0, *[0.0] * 30, 25.0]
    same = describe_tensor(Tensor(np.full(3, 2.0)))
    assert "bins" not in same and (same["low"], same["high"], same["deviation"]) == (2, 2, 0)


def test_names_of_the_sides() -> None:
    def names(*, compare: Any = None, **more: Any) -> list[str]:
        data = data_of(render_html(network(5), compare=compare, **more))
        return [side["name"] for side in data["sides"]]

    (own,) = names()
    assert own and names(title="told") == ["told"]
    assert names(compare=network(5), title="told") == ["left", "right"]
    assert names(compare=network(5), names=("a", "b")) == ["a", "b"]
    other = network(5)
    assert other.graph is not None
    other.graph.name = "other"
    assert names(compare=other) == [own, "other"]


def test_missing_external_data_is_said(tmp_path: Path) -> None:
    model = network(5)
    sx.save(model, tmp_path / "m.onnx", external_data="m.bin", size_threshold=0)
    (tmp_path / "m.bin").unlink()
    page = render_html(sx.load(tmp_path / "m.onnx", external_data=False))
    assert "m.bin" in data_of(page)["sides"][0]["weights"][0]["problem"]


@needs_models
@pytest.mark.parametrize("path", model_paths(), ids=lambda path: path.parent.name)
def test_real_models_become_pages(path: Path) -> None:
    data = data_of(render_html(path))
    (side,) = data["sides"]
    model = sx.load(path)
    assert len(side["graphs"]) == sum(1 for _ in model.graphs())
    for graph in side["graphs"]:
        for source, target, value, _, *points in graph["edges"]:
            assert source < len(graph["nodes"]) and target < len(graph["nodes"])
            assert value < len(graph["values"])
            assert len(points) % 3 == 1
