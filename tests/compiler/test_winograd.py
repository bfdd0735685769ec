"""Convolutions by Winograd's way, which only many channels take otherwise, on every target."""

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.compiler.kernels import winograd_filters
from sardonyx.compiler.program import compile_model
from sardonyx.compiler.specialize import with_contents
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
    monkeypatch.setattr(winograd_filters, "SMALLEST", 1)


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


def exactly(image: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A convolution padded by 1, in float64, and the sum of its products' sizes."""
    padded = np.pad(image.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    height, width = image.shape[2:]

    def total(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return sum(
            np.einsum("nchw,mc->nmhw", left[:, :, y : y + height, x : x + width], right[..., y, x])
            for y in range(3)
            for x in range(3)
        )

    with np.errstate(invalid="ignore"):
        wide = weights.astype(np.float64)
        return total(padded, wide), total(np.abs(padded), np.abs(wide))


def convolve(image: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The same by the compiler."""
    case = Case("Conv", (image, weights), {"pads": [1, 1, 1, 1]}, fixed=(1,))
    model, feeds = case.model(symbolic=False)
    (found,) = compile_model(model, threads=1).run(feeds)
    return found


def largest_error(image: np.ndarray, weights: np.ndarray) -> float:
    """The largest error, in roundings of the sum of products' sizes that makes an element."""
    found, (exact, sizes) = convolve(image, weights), exactly(image, weights)
    rounding = np.finfo(np.float32).eps / 2
    return float((np.abs(found - exact) / (rounding * np.maximum(sizes, 1e-30))).max())


def _scaled(array: np.ndarray, decades: float) -> np.ndarray:
    powers = np.random.default_rng(7).uniform(-decades, decades, array.shape)
    return (array * 10.0**powers).astype(np.float32)


def _with(array: np.ndarray, place: tuple, number: float) -> np.ndarray:
    made = array.copy()
    made[place] = number
    return made


IMAGE, WEIGHTS = normal(1, 64, 18, 18), normal(64, 64, 3, 3)
UNIT = np.zeros((64, 64, 3, 3), np.float32)
UNIT[range(64), range(64), 1, 1] = 1
HARD = {
    "usual": (IMAGE, WEIGHTS),
    "one large element": (_with(IMAGE, (0, 3, 7, 7), 1e6), WEIGHTS),
    "a large pixel": (_with(IMAGE, (0, slice(None), 7, 7), 1e6), WEIGHTS),
    "a large pixel at small weights": (
        _with(IMAGE, (0, slice(None), 7, 7), 1e6),
        WEIGHTS * np.where(np.arange(9).reshape(3, 3) == 4, 1e-6, 1).astype(np.float32),
    ),
    "a large pixel and copies": (_with(IMAGE, (0, slice(None), 7, 7), 1e6), UNIT),
    "sparse": (np.where(np.abs(IMAGE) > 2.8, IMAGE, 0).astype(np.float32), WEIGHTS),
    "alone": (_with(np.zeros_like(IMAGE), (0, 5, 4, 4), 3.0), WEIGHTS),
    "pixels of all sizes": (_scaled(IMAGE, 15), WEIGHTS),
    "weights of all sizes": (IMAGE, _scaled(WEIGHTS, 15)),
    "huge pixels": (np.sign(IMAGE) * np.float32(3e38), WEIGHTS * np.float32(1e-5)),
    "huge weights": (IMAGE * np.float32(1e-6), np.sign(WEIGHTS) * np.float32(3e38)),
    "tiny weights": (IMAGE * np.float32(1e30), WEIGHTS * np.float32(1e-41)),
}


@pytest.mark.parametrize("name", HARD)
def test_winograd_is_never_far_from_the_direct_sum(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = largest_error(*HARD[name])
    monkeypatch.setattr(winograd_filters, "UNEVEN", 0)
    assert found < 4 * largest_error(*HARD[name]) + 2


@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan, 3e38])
def test_what_is_not_finite_is_what_the_direct_sum_gives(number: float) -> None:
    image = _with(_with(IMAGE, (0, 3, 7, 8), number), (0, 9, 0, 17), number)
    found, (exact, _) = convolve(image, WEIGHTS), exactly(image, WEIGHTS)
    with np.errstate(over="ignore"):
        exact = exact.astype(np.float32)
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(exact))
    wrong = ~np.isfinite(exact)
    np.testing.assert_array_equal(found[wrong], exact[wrong])


def test_layers_of_one_size_are_asked_each_by_itself() -> None:
    """The second one's filters only copy; its kernels must not be those of the first."""
    text = """<ir_version: 10, opset_import: ["": 21]>
        g (float[1,64,18,18] x, float[64,64,3,3] w, float[64,64,3,3] u) => (float z) {
          y = Conv <pads = [1, 1, 1, 1]> (x, w)
          z = Conv <pads = [1, 1, 1, 1]> (y, u)
        }"""
    model = with_contents(sx.load_text(text), {"w": WEIGHTS, "u": UNIT})
    model.graph.outputs[0].declared = None
    image = _with(IMAGE, (0, slice(None), 7, 7), 1e6)
    (found,) = compile_model(model, threads=1).run({"x": image})
    np.testing.assert_array_equal(found, convolve(image, WEIGHTS))


def test_trained_filters_are_taken_as_even() -> None:
    """Weights that fade towards the corners, and a dead channel among them."""
    fading = np.array([[0.2, 0.6, 0.2], [0.6, 1, 0.6], [0.2, 0.6, 0.2]], np.float32)
    weights = WEIGHTS * fading
    weights[3] *= 1e-35
    assert winograd_filters.is_even(weights)
    assert not winograd_filters.is_even(_with(weights, (5, slice(None), 0, 2), 0.0))
    assert not winograd_filters.is_even(_with(weights, (5, 5, 0, 2), np.nan))
    assert not winograd_filters.is_even(_with(weights, (5, 5, 0, 2), np.inf))


def test_winograd_is_as_exact_as_float32() -> None:
    image, weights = normal(1, 128, 14, 14), normal(32, 128, 3, 3)
    found, (exact, _) = convolve(image, weights), exactly(image, weights)
    error = np.sqrt(np.mean((found - exact) ** 2) / np.mean(np.square(exact)))
    assert error < 3e-7
