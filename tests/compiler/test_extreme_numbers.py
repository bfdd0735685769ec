"""Infinities, NaN and huge numbers, wherever they may stand: as the reference has it."""

from typing import Any

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.compiler.program import Settings, compile_model
from sardonyx.compiler.specialize import with_contents

F = np.float32
HEADER = '<ir_version: 10, opset_import: ["": 21]>'
ODD = np.array([1, -1, 0, -0.0, 3, np.inf, -np.inf, np.nan, 3e38, 1e-42], F)


def both(text: str, feeds: dict[str, Any], *, unranked: tuple[str, ...] = ()) -> list[Any]:
    """What native code gives, after it was compared with the reference, bit by bit."""
    model = sx.load_text(HEADER + text)
    for value in (*model.graph.inputs, *model.graph.outputs):
        if value.name in unranked or value in model.graph.outputs:
            value.declared = sx.TensorType(value.type.element, None)
    found, expected = compile_model(model, threads=1).run(feeds), sx.evaluate(model, feeds)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    return found


@pytest.mark.parametrize("operator", ["Max", "Min"])
@pytest.mark.parametrize("inputs", ["x, c", "c, x"])
def test_a_constant_nan_is_the_largest_and_the_smallest(operator: str, inputs: str) -> None:
    constant = "c = Constant <value = float {nan}> ()"
    text = f"g (float[n] x) => (float y) {{ {constant} y = {operator} ({inputs}) }}"
    assert np.isnan(both(text, {"x": ODD})[0]).all()


@pytest.mark.parametrize("slope", [np.inf, -np.inf, np.nan, 0.5])
def test_a_slope_counts_below_zero_only(slope: float) -> None:
    text = "g (float[n] x, float[1] s) => (float y) { y = PRelu (x, s) }"
    feeds = {"x": ODD, "s": np.array([slope], F)}
    both(text, feeds, unranked=("x", "s"))
    (y,) = both(text, feeds, unranked=("x",))
    np.testing.assert_array_equal(y[ODD >= 0], ODD[ODD >= 0])


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("fed", [True, False])
def test_weights_of_a_transposed_convolution_meet_pixels_only(
    stride: int, number: float, fed: bool
) -> None:
    weights = np.ones((2, 3, 2, 2), F)
    weights[0, 1, 0, 1] = number
    feeds = {"x": np.arange(1, 19, dtype=F).reshape(1, 2, 3, 3), "w": weights}
    text = f"""g (float[1,2,h,k] x, float[2,3,2,2] w) => (float y) {{
        y = ConvTranspose <strides = [{stride}, {stride}]> (x, w) }}"""
    model = sx.load_text(HEADER + text)
    model.graph.outputs[0].declared = None
    if not fed:
        model = with_contents(model, {"w": feeds.pop("w")})
    (found,), (expected,) = compile_model(model, threads=1).run(feeds), sx.evaluate(model, feeds)
    np.testing.assert_array_equal(found, expected)
    assert np.isfinite(expected).any()


EXPONENTS = {
    "uint64": [0, 3, 2**24 + 1, 2**53 + 1, 2**63, 2**64 - 1],
    "int64": [0, -3, 2**24 + 1, -(2**24) - 1, 2**53 + 1, -(2**63)],
    "int32": [2, -3, 2**24 + 1],
}


@pytest.mark.parametrize("kind", EXPONENTS)
@pytest.mark.parametrize("dtype", ["float", "double"])
def test_a_whole_exponent_is_not_rounded(kind: str, dtype: str) -> None:
    wide = np.float32 if dtype == "float" else np.float64
    x, e = np.meshgrid(ODD, np.array(EXPONENTS[kind], kind))
    x = x.astype(wide)
    text = f"g ({dtype}[a,b] x, {kind}[a,b] e) => ({dtype} y) {{ y = Pow (x, e) }}"
    model = sx.load_text(HEADER + text)
    model.graph.outputs[0].declared = None
    found = compile_model(model, threads=1).run({"x": x, "e": e})[0]
    expected = sx.evaluate(model, {"x": x, "e": e})[0]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_array_equal(found[x == -1], np.where(e % 2 == 1, -1, 1)[x == -1])


@pytest.mark.parametrize("kinds", [("int64", "int64"), ("int32", "int64"), ("int64", "uint8")])
@pytest.mark.parametrize("exponent", [None, 0, 2, 20])
def test_powers_of_whole_numbers_are_exact(kinds: tuple[str, str], exponent: int | None) -> None:
    base, power = kinds
    x = np.array([7, -3, 2, -1, 0, 1, 2**31 - 1], base)
    if exponent is not None:
        text = f"""g ({base}[n] x) => ({base} y) {{
            e = Constant <value = {power} {{{exponent}}}> () y = Pow (x, e) }}"""
        (y,) = both(text, {"x": x})
        if base == "int64" and exponent == 20:
            assert y[0] == 7**20
        return
    e = np.array([20, 39, 63, 5, 3, 0, 2], power)
    both(f"g ({base}[n] x, {power}[n] e) => ({base} y) {{ y = Pow (x, e) }}", {"x": x, "e": e})
    if power == "int64":
        e = np.array([-1, 2**62 + 1, -5, -3, 3, -9, -2])
        both(f"g ({base}[n] x, {power}[n] e) => ({base} y) {{ y = Pow (x, e) }}", {"x": x, "e": e})


def test_columns_are_summed_without_products() -> None:
    columns = np.arange(1 * 4 * 9, dtype=F).reshape(1, 4, 9)
    columns[0, 1, 4] = np.inf
    text = """g (float[a,b,c] x, int64[2] size, int64[2] block) => (float y) {
        y = Col2Im (x, size, block) }"""
    feeds = {"x": columns, "size": np.array([4, 4]), "block": np.array([2, 2])}
    assert not np.isnan(both(text, feeds)[0]).any()
    model = sx.load_text(HEADER + text)
    model.graph.outputs[0].declared = None
    general = Settings(threads=1).open(lambda: model, "", specialize=False)
    assert not np.isnan(general.run(feeds)[0]).any()


@pytest.mark.parametrize("place", [-1, -16, 16])
def test_unpooling_counts_no_index_from_the_end(place: int) -> None:
    model = sx.load_text(
        HEADER
        + """g (float[1,1,2,2] x, int64[1,1,2,2] i) => (float[1,1,4,4] y) {
        y = MaxUnpool <kernel_shape = [2, 2], strides = [2, 2]> (x, i) }"""
    )
    feeds = {"x": np.ones((1, 1, 2, 2), F), "i": np.array([0, 5, place, 15]).reshape(1, 1, 2, 2)}
    with pytest.raises(sx.EvaluationError, match="out of range"):
        compile_model(model, threads=1).run(feeds)
    with pytest.raises(sx.EvaluationError, match="outside of the 16 elements"):
        sx.evaluate(model, feeds)


@pytest.mark.parametrize("length", [4, 2**40, -1])
def test_a_sequence_is_not_longer_than_its_axis(length: int) -> None:
    model = sx.load_text(
        HEADER
        + """g (float[a,b] x, int64[b] l) => (float[a,b] y) {
        y = ReverseSequence (x, l) }"""
    )
    feeds = {"x": np.ones((3, 2), F), "l": np.array([length, 2])}
    with pytest.raises(sx.EvaluationError, match="out of range"):
        compile_model(model, threads=1).run(feeds)
    with pytest.raises(sx.EvaluationError, match="sequences have 3 elements"):
        sx.evaluate(model, feeds)
