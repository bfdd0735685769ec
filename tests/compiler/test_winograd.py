"""Convolutions by Winograd's way, which only many channels take otherwise, on every target."""

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.compiler.kernels import winograd
from sardonyx.compiler.program import compile_model
from tests.compiler.case import Case, normal, run_cases
from tests.compiler.cases_sliding import conv
from tests.compiler.native import LOWER
from tests.compiler.test_meaning import run_by_meaning

TARGETS = [*LOWER, None]


WINOGRAD = [
    conv((1, 16, 6, 6), (17, 16, 3, 3), pads=[1, 1, 1, 1]),
    conv((2, 17, 9, 7), (33, 17, 3, 3), pads=[1, 1, 1, 1]),
    conv((1, 35, 8, 13), (15, 35, 3, 3), pads=[0, 2, 1, 0]),
    conv((3, 1, 8, 8), (1, 1, 3, 3)),
    conv((1, 16, 4, 4), (16, 16, 3, 3), pads=[1, 1, 1, 1]),
    conv((2, 16, 1, 64), (16, 16, 3, 3), pads=[1, 1, 1, 1]),
    conv((1, 16, 2, 8), (16, 16, 3, 3), pads=[1, 1, 1, 1]),
]


@pytest.fixture
def any_channels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(winograd, "SMALLEST", 1)


@pytest.mark.usefixtures("any_channels")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", WINOGRAD, ids=lambda case: case.name)
def test_winograd(case: Case, target: str | None) -> None:
    run_cases(case, target)


@pytest.mark.usefixtures("any_channels")
def test_winograd_means_what_it_computes() -> None:
    model, feeds = conv((1, 5, 7, 6), (3, 5, 3, 3), pads=[1, 0, 1, 1]).model(symbolic=True)
    program = compile_model(model, target="generic", threads=1)
    (wanted,) = sx.evaluate(model, feeds)
    (found,), (native,) = run_by_meaning(model, "generic", feeds), program.run(feeds)
    np.testing.assert_allclose(found.reshape(wanted.shape), wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(native, wanted, rtol=1e-4, atol=1e-5)


def test_winograd_is_as_exact_as_float32() -> None:
    image, weights = normal(1, 128, 14, 14), normal(32, 128, 3, 3)
    case = Case("Conv", (image, weights), {"pads": [1, 1, 1, 1]}, fixed=(1,))
    model, feeds = case.model(symbolic=False)
    (found,) = compile_model(model, threads=1).run(feeds)
    padded = np.pad(image.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    exact = sum(
        np.einsum("nchw,mc->nmhw", padded[:, :, y : y + 14, x : x + 14], weights[:, :, y, x])
        for y in range(3)
        for x in range(3)
    )
    error = np.sqrt(np.mean((found - exact) ** 2) / np.mean(np.square(exact)))
    assert error < 3e-7
