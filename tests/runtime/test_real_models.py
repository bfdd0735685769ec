"""Real models compiled, at one and two threads, beside outputs of another runtime."""

from pathlib import Path

import numpy as np
import pytest

import sardonyx as sx
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


def compiled(model: sx.Model, options: sx.SessionOptions) -> sx.InferenceSession:
    return sx.InferenceSession(model, options, ["CPUExecutionProvider"])


def by_time(path: Path) -> object:
    marks = [] if path.parent.name in QUICK else [pytest.mark.slow]
    return pytest.param(path, marks=marks)


@needs_models
@pytest.mark.parametrize(
    "path", [by_time(path) for path in cases()], ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_compiled(path: Path) -> None:
    model = sx.load(path.parent / "model.onnx")
    feeds, expected = read_case(path)
    feeds = with_keys(model, feeds)
    results = []
    for threads in (1, 2):
        options = sx.SessionOptions()
        options.intra_op_num_threads = threads
        results.append(compiled(model, options).run(list(expected), feeds))
    for one, two, wanted in zip(*results, expected.values(), strict=True):
        agree(one, wanted, WIDER.get(path.parent.name, ATOL))
        if isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one, two)
