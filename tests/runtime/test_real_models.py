"""Real models compiled for each target, at 1 and 2 threads, beside outputs of another runtime."""

from pathlib import Path

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.errors import UnsupportedError
from tests.compiler.browser import needs_node, run_model
from tests.compiler.native import LOWER
from tests.ops.test_shared_models import ATOL, WIDER, agree, cases, read_case, with_keys
from tests.shared_models import needs_models

QUICK = {
    "cnn_mnist_pytorch",
    "deeploy_cct2",
    "mnist_8",
    "scan_rnn",
    "sk_lof",
    "sk_rf_iris",
    "super_resolution_10",
    "yolov8_nms",
}
"""Models that compile in a few seconds; the others take up to a minute each."""

NOT_IN_A_BROWSER = {
    "crop_and_resize_loop", "dictvectorizer_trees", "knn_imputer_functions", "loop_lstm_tiny",
    "lr_mnist_scikit", "scan_rnn", "silero_vad", "sk_lof", "sk_pipeline_lightgbm", "sk_rf_iris",
    "sk_titanic", "tiny_gpt2_greedysearch", "tract_qlstm", "yolov8_nms",
}  # fmt: skip
"""Models with subgraphs, texts, dictionaries, or sizes that only a run tells."""

TARGETS = ("native", *LOWER)


def run_compiled(
    model: sx.Model, target: str, threads: int, names: list[str], feeds: dict[str, object]
) -> list[object]:
    options = sx.SessionOptions()
    options.intra_op_num_threads = threads
    if target != "native":
        options.add_session_config_entry("sardonyx.target", target)
    return sx.InferenceSession(model, options, ["CPUExecutionProvider"]).run(names, feeds)


def choices() -> list[object]:
    """Every model at every target; the quick ones for this machine's own are not slow."""
    return [
        pytest.param(
            path, target, id=f"{path.parent.name}-{path.stem}-{target}",
            marks=[] if path.parent.name in QUICK and target == "native" else [pytest.mark.slow],
        )
        for path in cases()
        for target in TARGETS
    ]  # fmt: skip


@needs_models
@pytest.mark.parametrize(("path", "target"), choices())
def test_compiled(path: Path, target: str) -> None:
    model = sx.load(path.parent / "model.onnx")
    feeds, expected = read_case(path)
    feeds = with_keys(model, feeds)
    one, two = (run_compiled(model, target, n, list(expected), feeds) for n in (1, 2))
    for first, second, wanted in zip(one, two, expected.values(), strict=True):
        agree(first, wanted, WIDER.get(path.parent.name, ATOL))
        if isinstance(first, np.ndarray):
            np.testing.assert_array_equal(first, second)


@needs_models
@needs_node
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=f"{path.parent.name}-{path.stem}",
                     marks=[] if path.parent.name in QUICK else [pytest.mark.slow])
        for path in cases()
    ],
)  # fmt: skip
def test_in_a_browser(path: Path) -> None:
    name = path.parent.name
    model = sx.simplify(sx.load(path.parent / "model.onnx"))
    feeds, expected = read_case(path)
    feeds = with_keys(model, feeds)
    if name in NOT_IN_A_BROWSER:
        with pytest.raises(UnsupportedError):
            run_model(model, feeds)
        return
    assert model.graph is not None
    names = [value.name for value in model.graph.outputs]
    found = dict(zip(names, run_model(model, feeds), strict=True))
    for output, wanted in expected.items():
        agree(found[output], wanted, WIDER.get(name, ATOL))
