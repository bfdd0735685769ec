"""`inliner`: calls without end, results without bounds, and large models."""

import time
from pathlib import Path
from typing import Any

import onnx.inliner  # noqa: F401 - as an attribute, which it is not by itself
import pytest
from google.protobuf.message import DecodeError

from sardonyx.compat import onnx as ours
from sardonyx.compat.onnx import _inline, inliner
from tests.compat.differential import assert_same
from tests.compat.inliner_models import TEXTS, chain_of_calls, with_functions
from tests.compat.text_models import model


def test_recursion_names_the_functions() -> None:
    with pytest.raises(Exception, match="local::f -> local::h -> local::f") as caught:
        inliner.inline_local_functions(model(ours, TEXTS["two call each other"]))
    assert type(caught.value).__name__ == "ValidationError"


def test_chain_of_calls_beyond_the_limit() -> None:
    with pytest.raises(Exception, match="more than 100 nested calls") as caught:
        inliner.inline_local_functions(model(ours, chain_of_calls(101)))
    assert type(caught.value).__name__ == "ValidationError"


def test_recursion_through_an_operator_is_an_error() -> None:
    """Exp is a local function that calls Softplus, whose own definition calls Exp."""
    looping = model(
        ours,
        '<ir_version: 8, opset_import: ["" : 18]>'
        "g (float[N] X) => (float[N] Y) { Y = Exp (X) }"
        '<domain: "", opset_import: ["" : 18]> Exp (x) => (y) { y = Softplus (x) }',
    )
    with pytest.raises(Exception, match="a function calls itself") as caught:
        inliner.inline_selected_functions(looping, [], True, True)
    assert type(caught.value).__name__ == "ValidationError"


def _doubling(levels: int) -> str:
    calls = [
        f"f{i} (x) => (y) {{ t = local.f{i + 1} (x) y = local.f{i + 1} (t) }}"
        for i in range(levels)
    ]
    return with_functions(
        "g (float[N] X) => (float[N] Y) { Y = local.f0 (X) }",
        *calls,
        f"f{levels} (x) => (y) {{ y = Relu (x) }}",
    )


def _all_but_none(proto: Any) -> Any:
    return inliner.inline_selected_functions(proto, [], True)


def test_exponential_growth_is_refused_at_once() -> None:
    bomb = model(ours, _doubling(90))
    for call in (inliner.inline_local_functions, _all_but_none):
        start = time.perf_counter()
        with pytest.raises(Exception, match="more than 2000000 nodes") as caught:
            call(bomb)
        assert type(caught.value).__name__ == "ValidationError"
        assert time.perf_counter() - start < 1


def test_growth_within_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    doubled = model(ours, _doubling(5))
    assert len(inliner.inline_local_functions(doubled).graph.node) == 32
    monkeypatch.setattr(_inline, "MAXIMUM_NODES", 31)
    with pytest.raises(Exception, match="more than 31 nodes"):
        inliner.inline_local_functions(doubled)


def test_exponential_growth_of_an_attribute_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_inline, "MAXIMUM_BYTES", 10_000_000)
    grow = [
        f"f{i} <b> (x) => (y) {{ y = local.f{i + 1} <b = p () => (q) {{ r = If (x) <"
        "then_branch: graph = @b, else_branch: graph = @b> q = If (x) <"
        "then_branch: graph = @b, else_branch: graph = @b> }> (x) }"
        for i in range(30)
    ]
    bomb = with_functions(
        "g (bool X) => (Y) { Y = local.f0 <b = p () => (q) { q = Neg (X) }> (X) }", *grow,
        "f30 <b> (x) => (y) { y = If (x) <then_branch: graph = @b, else_branch: graph = @b> }",
    )  # fmt: skip
    with pytest.raises(Exception, match="bytes") as caught:
        inliner.inline_local_functions(model(ours, bomb))
    assert type(caught.value).__name__ == "ValidationError"


@pytest.mark.parametrize("depth", [102, 20_000])
def test_endless_nesting_is_refused(depth: int) -> None:
    deep = ours.ModelProto()
    inner = deep.graph
    for _ in range(depth):
        inner = inner.node.add(op_type="If").attribute.add(name="b", type=5).g
    with pytest.raises(RecursionError, match="nested more than"):
        inliner.inline_local_functions(deep)
    with pytest.raises(RecursionError, match="nested more than"):
        inliner.inline_selected_functions(deep, [])


def test_result_nested_too_deeply_to_be_read(tmp_path: Path) -> None:
    """Each function hides the call of the next in 20 graphs: 60 levels, which no file can hold."""

    def build(o: Any) -> Any:
        proto = model(o, TEXTS["one call"])
        del proto.functions[:]
        for name, callee in (("f", "h"), ("h", "k"), ("k", "")):
            body = proto.functions.add(domain="local", name=name, input=["x"], output=["y"])
            level = body
            for _ in range(20):
                level = level.node.add(op_type="If", output=["y"]).attribute.add(name="b").g
            level.node.add(op_type=callee, domain="local", input=["x"], output=["y"])
        return proto

    assert_same(lambda o, folder: o.inliner.inline_local_functions(build(o)), tmp_path)
    with pytest.raises(DecodeError):
        inliner.inline_local_functions(build(ours))


def test_large_models_are_inlined_in_seconds() -> None:
    large = model(ours, TEXTS["one call"])
    del large.graph.node[:]
    for index in range(5_000):
        large.graph.node.add(
            op_type="f", domain="local", input=[f"v{index}"], output=[f"v{index + 1}"]
        )
    start = time.perf_counter()
    inlined = inliner.inline_local_functions(large)
    assert len(inlined.graph.node) == 10_000
    assert inlined.graph.node[-1].input[0] == "t__5000"
    assert time.perf_counter() - start < 10
