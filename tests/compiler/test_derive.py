"""Quotients of sizes have names: sizes stay short, and programs run for every size as before."""

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.compiler.compile import build_parts
from sardonyx.compiler.derive import QUOTIENT, Definitions
from sardonyx.compiler.host import host_target
from sardonyx.compiler.program import compile_model
from sardonyx.dims import Size, minimum, symbol
from sardonyx.errors import SardonyxError
from sardonyx.ops.catalog import standard

N, M = symbol("n"), symbol("m")
STRIDES = (
    '<ir_version: 10, opset_import: ["": 21]>'
    " g (float[b,3,h,w] x, float[5,3,3,3] k, float[4,5,3,3] l) => (y, s) {"
    " p = Conv<strides = [2,2], pads = [1,1,1,1]>(x, k) q = Relu(p)"
    " y = Conv<strides = [2,2]>(q, l) s = Shape(y) }"
)


def test_a_quotient_with_what_is_added_to_it_is_one_name() -> None:
    definitions = Definitions()
    height = definitions.shape((N - 3) // 2 + 1)
    assert str(height) == "_unknown_quotient000000"
    assert definitions.shape(((N - 3) // 2) * 4 + 4) == height * 4
    assert definitions.content((N - 3) // 2) == height - 1
    assert definitions.full(height * M) == ((N - 3) // 2) * M + M


def test_a_quotient_that_cannot_be_below_zero_stays_so() -> None:
    definitions = Definitions()
    assert definitions.shape(N // 2 + 1) == definitions.shape(N // 2) + 1


@pytest.mark.parametrize("size", [4, N, N * 3 + 1, minimum(N, 4), N % 3])
def test_other_sizes_stay(size: Size) -> None:
    definitions = Definitions()
    assert definitions.shape(size) == size
    assert definitions.content(N // 2) == N // 2
    assert not definitions.sizes


def test_names_of_names_are_told_by_those_of_the_model() -> None:
    definitions = Definitions()
    first = definitions.shape((N - 1) // 2 + 1)
    second = definitions.shape((first - 1) // M)
    assert definitions.told(["k", *second.symbols]) == {"k", "n", "m"}
    assert definitions.one_level(second) == (first - 1) // M
    assert definitions.full(second) == ((N - 1) // 2) // M


def test_kernels_see_names() -> None:
    parts = build_parts(sx.load_text(STRIDES), host_target(), standard())
    calls = [call for step in parts.built.steps for call in getattr(step, "calls", [])]
    names = {name for call in calls for name in call.kernel.parameters}
    assert any(map(QUOTIENT.fullmatch, names))
    assert parts.lowered.definitions.told(names) <= {"b", "h", "w"}


@pytest.mark.parametrize("shape", [(1, 5, 6), (2, 17, 9), (0, 9, 9), (1, 6, 40), (3, 33, 5)])
def test_strides_of_any_size(shape: tuple[int, int, int]) -> None:
    batch, height, width = shape
    model = sx.load_text(STRIDES)
    rng = np.random.default_rng(0)
    shapes = {"x": (batch, 3, height, width), "k": (5, 3, 3, 3), "l": (4, 5, 3, 3)}
    feeds = {
        name: rng.standard_normal(size, np.float32).reshape(size) for name, size in shapes.items()
    }
    found = compile_model(model, threads=1).run(feeds)
    for made, wanted in zip(found, sx.evaluate(model, feeds), strict=True):
        np.testing.assert_allclose(made, wanted, rtol=1e-5, atol=1e-5)


def test_an_image_that_is_too_small_is_an_error_in_the_model_s_own_names() -> None:
    text = (
        '<ir_version: 10, opset_import: ["": 21]> g (float[1,1,h,8] x, float[1,1,5,1] k) => (y) {'
        " p = Conv<strides = [2,1]>(x, k) y = Conv<strides = [2,1]>(p, k) }"
    )
    program = compile_model(sx.load_text(text), threads=1)
    small = {"x": np.zeros((1, 1, 6, 8), np.float32), "k": np.zeros((1, 1, 5, 1), np.float32)}
    with pytest.raises(SardonyxError) as caught:
        program.run(small)
    assert "h" in str(caught.value) and "_unknown" not in str(caught.value)


def test_a_model_s_own_names_are_not_mistaken() -> None:
    text = STRIDES.replace("float[b,3,h,w] x", "float[_unknown_quotient000000,3,h,w] x")
    parts = build_parts(sx.load_text(text), host_target(), standard())
    definitions = parts.lowered.definitions
    assert definitions.sizes and "_unknown_quotient000000" not in definitions.sizes
    model = sx.load_text(text)
    feeds = {
        name: np.ones(size, np.float32)
        for name, size in {"x": (2, 3, 9, 7), "k": (5, 3, 3, 3), "l": (4, 5, 3, 3)}.items()
    }
    found = compile_model(model, threads=1).run(feeds)
    np.testing.assert_allclose(found[0], sx.evaluate(model, feeds)[0], rtol=1e-5)


def test_names_are_fresh() -> None:
    definitions = Definitions(taken={"_unknown_quotient000001"})
    for divisor in range(2, 6):
        definitions.shape(N // divisor)
    assert len(definitions.sizes) == 4
    assert definitions.taken.isdisjoint(definitions.sizes)
