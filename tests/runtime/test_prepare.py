"""Models that break rules with one meaning: they run as on onnxruntime, with a notice."""

import logging

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import sardonyx as sx

PROVIDERS = ["ReferenceExecutionProvider", "CPUExecutionProvider"]
X = np.array([[1, -2, 3, -4]], np.float32)


def make(nodes: list, opsets: list[tuple[str, int]], *, weights: list = (), ir: int = 9) -> bytes:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 4]) for name in "xy")
    graph = helper.make_graph(nodes, "g", [x], [y], list(weights))
    imports = [helper.make_opsetid(*item) for item in opsets]
    model = helper.make_model(graph, opset_imports=imports)
    model.ir_version = ir
    return model.SerializeToString()


NODE = helper.make_node
WEIGHT = helper.make_tensor("unused", TensorProto.FLOAT, [4], [1, 2, 3, 4])
CASES = {
    "unsorted": (
        make([NODE("Relu", ["a"], ["y"]), NODE("Neg", ["x"], ["a"])], [("", 17)]),
        "sorted", logging.WARNING,
    ),
    "missing import": (
        make([NODE("Gelu", ["x"], ["y"], domain="com.microsoft")], [("", 17)]),
        "'com.microsoft' without importing", logging.WARNING,
    ),
    "missing ml import": (
        make([NODE("Scaler", ["x"], ["y"], domain="ai.onnx.ml", scale=[2.0], offset=[1.0])],
             [("", 17)]),
        "'ai.onnx.ml' without importing", logging.WARNING,
    ),
    "imported as ai.onnx": (
        make([NODE("Relu", ["x"], ["y"])], [("ai.onnx", 17)]), "'ai.onnx'", logging.INFO,
    ),
    "spelled ai.onnx": (
        make([NODE("Relu", ["x"], ["y"], domain="ai.onnx")], [("", 17)]), "'ai.onnx'", logging.INFO,
    ),
    "unused constant": (
        make([NODE("Relu", ["x"], ["y"])], [("", 17)], weights=[WEIGHT]),
        "dropped 1 constants that nothing uses: unused", logging.INFO,
    ),
}  # fmt: skip


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("name", list(CASES))
def test_forgiven_with_a_notice(name: str, provider: str, caplog: pytest.LogCaptureFixture) -> None:
    content, notice, level = CASES[name]
    expected = onnxruntime.InferenceSession(content).run(None, {"x": X})[0]
    with caplog.at_level(logging.INFO, "sardonyx"):
        session = sx.InferenceSession(content, providers=[provider])
    np.testing.assert_allclose(session.run(None, {"x": X})[0], expected, rtol=1e-6)
    told = [record for record in caplog.records if notice in record.getMessage()]
    assert len(told) == 1 and told[0].levelno == level


def test_the_checker_still_reports() -> None:
    for name in ("unsorted", "missing import"):
        assert sx.find_problems(sx.load(CASES[name][0])), name


def test_what_is_right_is_not_talked_about(caplog: pytest.LogCaptureFixture) -> None:
    content = make([NODE("Relu", ["x"], ["y"])], [("", 17)])
    with caplog.at_level(logging.INFO, "sardonyx"):
        sx.InferenceSession(content)
    assert caplog.text == ""


def test_a_constant_that_only_a_subgraph_reads_stays() -> None:
    model = sx.load_text("""<ir_version: 9, opset_import: ["": 17]>
    g (bool c) => (float[2] y) <float[2] k = {1.0, 2.0}> {
      y = If (c) <then_branch = a () => (float[2] p) { p = Identity(k) },
                  else_branch = b () => (float[2] q) { q = Neg(k) }>
    }""")
    for provider in PROVIDERS:
        session = sx.InferenceSession(model, providers=[provider])
        assert session.run(None, {"c": np.array(False)})[0].tolist() == [-1, -2]


def test_newer_files_run_where_every_operator_is_known() -> None:
    """onnxruntime refuses what the newest onnx writes by default."""
    content = make([NODE("Relu", ["x"], ["y"])], [("", 17)], ir=99)
    assert sx.InferenceSession(content).run(None, {"x": X})[0].sum() == 4
    default = onnx.helper.make_model(onnx.load_from_string(content).graph)
    assert sx.InferenceSession(default).run(None, {"x": X})[0].sum() == 4
    with pytest.raises(sx.UnsupportedError, match=r"version 99 of 'ai.onnx'; 28 is the newest"):
        sx.InferenceSession(make([NODE("Relu", ["x"], ["y"])], [("", 99)]))


def test_the_users_model_is_not_changed() -> None:
    model = sx.load(CASES["unsorted"][0])
    before = sx.to_bytes(model)
    options = sx.SessionOptions()
    options.add_free_dimension_override_by_name("n", 1)
    sx.InferenceSession(model, options)
    assert sx.to_bytes(model) == before
