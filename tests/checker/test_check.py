"""The checker's calls: what they take, raise and return; large and hostile models."""

import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import sardonyx as sx
from sardonyx.checker import Finding, find_problems
from sardonyx.checker.functions import MOST_FUNCTIONS
from sardonyx.dtypes import DataType
from sardonyx.errors import CheckError, FormatError, SardonyxError
from sardonyx.format.load import load
from sardonyx.graph import Attribute, Function, Graph, Model, Node, Opsets, Tensor, TensorType
from sardonyx.ops.catalog import standard
from sardonyx.ops.operator import Operator
from tests.checker.broken_models import BRANCHES, CALL, PLAIN, sound
from tests.checker.mutate_messages import mutate
from tests.checker.test_broken import CASES
from tests.fuzz.mutate import mutations

FLOAT = TensorType(DataType.FLOAT, (2,))
BROKEN = PLAIN.replace("Relu (mid)", "Relu (nowhere)").replace("Add (x, w)", "Add (x, w, w)")


def _rules(model: Any, **options: Any) -> list[str]:
    return [finding.rule for finding in find_problems(model, **options)]


def _model(*op_types: str, opset: int = 21) -> Model:
    """A chain of operators from x to y."""
    graph = Graph("g")
    value = graph.add_input("x", FLOAT)
    for position, op_type in enumerate(op_types):
        value = graph.add(op_type, [value], [f"v{position}"]).output
    value.declared = FLOAT
    graph.outputs.append(value)
    return Model(graph, Opsets({"": opset}), 10)


def test_takes_models_bytes_messages_and_paths(tmp_path: Path) -> None:
    content = sound(BROKEN)
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    expected = find_problems(content)
    assert [finding.rule for finding in expected] == ["too-many-inputs", "undefined-value"]
    for source in (load(content), onnx.ModelProto.FromString(content), path, str(path)):
        assert find_problems(source) == expected
        with pytest.raises(CheckError):
            sx.check(source)


def test_check_passes_sound_models() -> None:
    assert sx.check(sound(PLAIN)) is None
    assert sx.check(load(sound(BRANCHES)), full=True) is None


def test_message_lists_every_problem() -> None:
    with pytest.raises(CheckError) as caught:
        sx.check(sound(BROKEN))
    text = str(caught.value)
    assert text.startswith("the model has 2 problems:")
    assert "graph 'g' > node 'add' (Add): there are 3 inputs" in text
    assert "graph 'g' > node 'relu' (Relu) > input 0: 'nowhere' is not defined" in text
    assert len(caught.value.findings) == 2


def test_long_messages_are_cut() -> None:
    with pytest.raises(CheckError) as caught:
        sx.check(_model(*["Nothing"] * 50))
    lines = str(caught.value).split("\n")
    assert len(lines) == 22
    assert lines[0] == "the model has 50 problems:"
    assert lines[-1] == "  and 30 more"
    assert len(caught.value.findings) == 50


def test_errors_come_before_warnings() -> None:
    message = onnx.ModelProto.FromString(sound(BROKEN))
    message.graph.output.add().CopyFrom(message.graph.output[0])
    with pytest.raises(CheckError) as caught:
        sx.check(message)
    severities = [finding.severity for finding in caught.value.findings]
    assert severities == ["error", "error", "warning"]


def test_warnings_alone_do_not_raise() -> None:
    message = onnx.ModelProto.FromString(sound(PLAIN))
    message.graph.output.add().CopyFrom(message.graph.output[0])
    assert _rules(message) == ["output-duplicate"]
    sx.check(message)


def test_finding_says_what_where_and_remedy() -> None:
    finding = find_problems(sound(BROKEN))[1]
    assert finding == Finding(
        rule="undefined-value",
        where="graph 'g' > node 'relu' (Relu) > input 0",
        what="'nowhere' is not defined",
        remedy="correct the name, or define the value before it is used",
    )
    with pytest.raises(AttributeError):
        finding.rule = "other"  # type: ignore[misc]


def test_custom_domains_are_allowed_unless_asked() -> None:
    message = onnx.ModelProto.FromString(sound(PLAIN))
    message.opset_import.add(domain="own", version=1)
    message.graph.node.add(op_type="Foo", domain="own", name="n", input=["x"], output=["q"])
    assert _rules(message) == []
    assert _rules(message, custom_domains=False) == ["operator-custom-unknown"]
    with pytest.raises(CheckError):
        sx.check(message, custom_domains=False)
    assert _rules(sound(CALL), custom_domains=False) == []


def test_custom_operators_come_with_a_catalog() -> None:
    class Foo(Operator):
        """An operator of our own."""

        domain = "own"
        signatures = ("1(x: T, power: int) -> y: T; T: floats",)

    catalog = {**standard(), ("own", "Foo"): Foo}
    message = onnx.ModelProto.FromString(sound(PLAIN))
    message.opset_import.add(domain="own", version=1)
    node = message.graph.node.add(op_type="Foo", domain="own", input=["i"], output=["q"])
    found = _rules(message, catalog=catalog, custom_domains=False)
    assert sorted(found) == ["attribute-missing", "type-not-allowed"]
    node.input[0] = "x"
    node.attribute.add(name="power", type=2, i=2)
    assert _rules(message, catalog=catalog, custom_domains=False) == []


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ("[bad] y = MatMul (x, z)", "graph 'g' > node 'bad' (MatMul)"),
        ("[bad] y = Concat <axis = 7> (x, x)", "graph 'g' > node 'bad' (Concat)"),
        ("m = Neg (x) [bad] y = Gemm (m, z)", "graph 'g' > node 'bad' (Gemm)"),
    ],
)
def test_full_adds_what_inference_finds(body: str, place: str) -> None:
    header = '<ir_version: 10, opset_import: ["": 21]>'
    text = f"{header} g (float[2,3] x, float[2,3] z) => (float[N] y) {{ {body} }}"
    assert _rules(sound(text)) == []
    found = find_problems(sound(text), full=True)
    assert [(finding.rule, finding.where) for finding in found] == [("inference", place)]


def test_full_reports_each_contradiction_once() -> None:
    text = """<ir_version: 10, opset_import: ["": 21, "own": 1]>
        g (float[2,3] x) => (float[2,2] y) { a = own.f (x) b = own.f (x) y = Add (a, b) }
        <domain: "own", opset_import: ["": 21]> f (p) => (q) { [bad] q = MatMul (p, p) }"""
    found = find_problems(sound(text), full=True)
    assert [finding.rule for finding in found] == ["inference"]
    assert found[0].where == "function 'own.f' > node 'bad' (MatMul)"


def test_full_finds_wrong_declarations() -> None:
    text = (
        '<ir_version: 10, opset_import: ["": 21]> g (float[2,3] x) => (float[5] y) { y = Neg (x) }'
    )
    found = find_problems(sound(text), full=True)
    assert [finding.rule for finding in found] == ["inference"]
    assert "'y'" in found[0].what


def test_full_knows_types_that_are_not_declared() -> None:
    text = """<ir_version: 10, opset_import: ["": 21]>
        g (float[2] x) => (float[2] y) { [shape] s = Shape (x) [bad] y = Add (x, s) }"""
    assert _rules(sound(text)) == []
    found = find_problems(sound(text), full=True)
    assert ("type-inconsistent", "graph 'g' > node 'bad' (Add) > input 1") in [
        (finding.rule, finding.where) for finding in found
    ]


def test_full_upgrades_old_models() -> None:
    text = """<ir_version: 7, opset_import: ["": 11]>
        g (float[2,3] x) => (float[2] y) { y = ReduceSum <axes = [1], keepdims = 0> (x) }"""
    assert find_problems(sound(text), full=True) == []


@pytest.mark.parametrize("case", CASES, ids=str)
def test_full_bears_broken_models(case: Any) -> None:
    findings = find_problems(case.message(onnx), full=True)
    assert (case.rule, case.where) in [(finding.rule, finding.where) for finding in findings]
    assert "inference-failed" not in [finding.rule for finding in findings]


def test_inference_that_fails_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise KeyError("hook")

    monkeypatch.setattr("sardonyx.checker.inference.infer_all", fail)
    assert _rules(sound(PLAIN), full=True) == ["inference-failed"]
    assert "inference-failed" not in _rules(sound(BROKEN), full=True)


def test_graphs_made_in_memory() -> None:
    model = _model("Relu", "Neg")
    assert find_problems(model) == []
    model.graph.nodes[0].output.name = ""
    assert _rules(model) == ["value-name-missing"]


def test_tensor_that_disagrees_with_its_array() -> None:
    model = _model("Relu")
    value = model.graph.add_initializer(Tensor(np.zeros(3, np.float32)), "w")
    assert find_problems(model) == []
    value.tensor.shape = (4,)
    assert _rules(model) == ["tensor-array-mismatch"]
    value.tensor.shape, value.tensor.element = (3,), int(DataType.INT32)
    assert _rules(model) == ["tensor-array-mismatch"]


def test_deep_nesting_is_a_finding_not_a_crash() -> None:
    graph = Graph("deepest")
    for depth in range(3000):
        outer = Graph(f"g{depth}")
        node = Node("Foo", [], ["o"], domain="own")
        node.set_attribute("body", Attribute("body", graph))
        outer.nodes.append(node)
        graph = outer
    model = Model(graph, Opsets({"": 21, "own": 1}), 10)
    assert "nesting-too-deep" in _rules(model)
    assert "nesting-too-deep" in _rules(model, full=True)


def test_too_many_functions() -> None:
    model = _model("Relu")
    model.functions = [Function("own", f"f{n}") for n in range(MOST_FUNCTIONS + 1)]
    assert "too-many-functions" in _rules(model)


def test_functions_that_double_at_each_level_are_followed_once() -> None:
    model = _model("Relu")
    model.graph.add("f0", [model.graph.inputs[0]], ["z"], domain="own")
    model.opsets["own"] = 1
    for level in range(60):
        body = Graph()
        value = body.add_input("a")
        callee = f"f{level + 1}" if level < 59 else "Neg"
        domain = "own" if level < 59 else ""
        for name in ("b", "c"):
            value = body.add(callee, [value], [name], domain=domain).output
        body.outputs.append(value)
        model.functions.append(Function("own", f"f{level}", body, Opsets({"": 21, "own": 1})))
    assert _rules(model) == []
    assert _rules(model, full=True) == []


def test_external_data_is_looked_at(tmp_path: Path) -> None:
    message = onnx.ModelProto.FromString(sound(PLAIN))
    tensor = message.graph.initializer[0]
    tensor.ClearField("float_data")
    tensor.data_location = 1
    tensor.external_data.add(key="location", value="w.bin")
    path = tmp_path / "model.onnx"
    path.write_bytes(message.SerializeToString())
    assert _rules(path) == ["external-data-unreachable"]
    (tmp_path / "w.bin").write_bytes(bytes(8))
    assert _rules(path) == ["external-data-unreachable"]
    (tmp_path / "w.bin").write_bytes(bytes(12))
    assert _rules(path) == []
    (tmp_path / "w.bin").unlink()
    (tmp_path / "other.bin").write_bytes(bytes(12))
    (tmp_path / "w.bin").symlink_to(tmp_path / "other.bin")
    assert _rules(path) == ["external-data-unreachable"]


def test_arrays_in_memory_are_not_looked_for_on_disk(tmp_path: Path) -> None:
    message = onnx.ModelProto.FromString(sound(PLAIN))
    tensor = message.graph.initializer[0]
    tensor.ClearField("float_data")
    tensor.data_location = 1
    tensor.external_data.add(key="location", value="#weights")
    path = tmp_path / "model.onnx"
    path.write_bytes(message.SerializeToString())
    onnx.checker.check_model(message)
    assert _rules(path) == []
    tensor.external_data.add(key="length", value="7")
    path.write_bytes(message.SerializeToString())
    assert _rules(path) == ["external-data-size"]


def test_unreadable_bytes_are_refused() -> None:
    with pytest.raises(FormatError):
        sx.check(b"\xff\xff\xff")
    with pytest.raises(FormatError):
        find_problems(b"")


def test_ten_thousand_nodes_take_about_a_second() -> None:
    model = _model(*["Relu", "Neg"] * 5000)
    start = time.perf_counter()
    assert find_problems(model) == []
    assert time.perf_counter() - start < 2


def test_damaged_files_never_raise_foreign_errors() -> None:
    for content in mutations(7, 400, [sound(PLAIN), sound(BRANCHES), sound(CALL)]):
        try:
            find_problems(content, full=True)
        except SardonyxError:
            continue


@pytest.mark.parametrize("seed", range(20))
def test_odd_messages_never_raise_foreign_errors(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(20):
        message = onnx.ModelProto.FromString(sound(chance.choice((PLAIN, BRANCHES, CALL))))
        mutate(message, chance, chance.randrange(1, 6))
        try:
            findings = find_problems(message, full=chance.random() < 0.5)
        except SardonyxError:
            continue
        assert all(finding.where and finding.what and finding.remedy for finding in findings)
