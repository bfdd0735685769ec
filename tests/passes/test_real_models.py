"""Real models, simplified: valid, no larger, and equal on two runtimes."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from sardonyx.format.load import load
from sardonyx.format.save import to_bytes
from sardonyx.graph import Model
from sardonyx.graph.verify import verify
from sardonyx.ops.evaluate import Evaluator
from sardonyx.passes.pipeline import simplify
from tests.ops.test_shared_models import ATOL, WIDER, agree, read_case, with_keys
from tests.shared_models import model_paths, needs_models

UNCHECKED = {
    # Uses com.microsoft without importing it, and operators that its opset does not have.
    "tiny_gpt2_greedysearch",
}
"""Models that onnx.checker refuses, as they come and simplified."""


def count_nodes(model: Model) -> int:
    return sum(len(graph.nodes) for graph in model.graphs())


def checked(content: bytes) -> bool:
    try:
        onnx.checker.check_model(onnx.load_from_string(content))
    except onnx.checker.ValidationError:
        return False
    return True


def run_elsewhere(
    content: bytes, names: list[str], feeds: dict[str, Any], *, optimized: bool = True
) -> list[Any]:
    options = onnxruntime.SessionOptions()
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(content, options, ["CPUExecutionProvider"])
    return list(session.run(names, feeds))


@needs_models
@pytest.mark.parametrize("path", model_paths(), ids=lambda path: path.parent.name)
def test_real_models(path: Path) -> None:
    name = path.parent.name
    model = load(path)
    small = simplify(model)
    verify(small)
    assert count_nodes(small) <= count_nodes(model)
    assert [value.name for value in small.graph.outputs] == [
        value.name for value in model.graph.outputs
    ]
    content = to_bytes(small)
    assert checked(content) == (name not in UNCHECKED)
    for case in sorted(path.parent.glob("case*.npz")):
        feeds, expected = read_case(case)
        feeds = with_keys(model, feeds)
        names = list(expected)
        here, wanted = Evaluator(small).run(names, feeds), list(expected.values())
        agree_all(here, wanted, name)
        if name in WIDER:
            # Optimized, it would multiply bytes, and some processors saturate such products.
            wanted = run_elsewhere(to_bytes(model), names, feeds, optimized=False)
        agree_all(run_elsewhere(content, names, feeds, optimized=name not in WIDER), wanted, name)


def agree_all(results: list[Any], wanted: list[Any], name: str) -> None:
    for actual, expected in zip(results, wanted, strict=True):
        agree(_plain(actual), _plain(expected), WIDER.get(name, ATOL))


def _plain(value: Any) -> Any:
    return np.asarray(value) if isinstance(value, float) else value


@needs_models
@pytest.mark.parametrize("path", model_paths(), ids=lambda path: path.parent.name)
def test_simplifying_twice_changes_no_more(path: Path) -> None:
    once = simplify(load(path))
    assert count_nodes(simplify(once)) <= count_nodes(once)
