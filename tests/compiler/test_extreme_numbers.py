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


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("where", ["x", "w"])
def test_channels_filtered_by_themselves_meet_pixels_and_taps_only(stride: int, where: str) -> None:
    draw = np.random.default_rng(2)
    feeds = {"x": draw.integers(1, 9, (1, 2, 4, 4)).astype(F),
             "w": draw.integers(1, 9, (2, 1, 3, 3)).astype(F)}  # fmt: skip
    feeds[where][0, 0, 1, 0] = np.inf
    text = f"""g (float[1,2,h,k] x, float[2,1,3,3] w) => (float y) {{
        y = ConvTranspose <group = 2, strides = [{stride}, {stride}]> (x, w) }}"""
    assert np.isfinite(both(text, feeds)[0]).any()


@pytest.mark.parametrize("how", ["none", "tanh"])
@pytest.mark.parametrize("dtype", ["float", "double"])
def test_nothing_is_left_of_minus_infinity(how: str, dtype: str) -> None:
    model = sx.load_text(f"""{HEADER} g ({dtype}[n] x) => ({dtype}[n] y) {{
        y = Gelu <approximate = "{how}"> (x) }}""")
    x = np.append(ODD, [-3e38, -1e5, -20]).astype(F if dtype == "float" else np.float64)
    found = compile_model(model, threads=1).run({"x": x})[0]
    np.testing.assert_allclose(found, sx.evaluate(model, {"x": x})[0], rtol=1e-5)
    assert found[6] == 0 and np.isnan(found[7])


@pytest.mark.parametrize("operator", ["Elu", "Selu", "Celu"])
@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0, 1e6, 1e30])
def test_large_factors_of_small_differences(operator: str, alpha: float) -> None:
    model = sx.load_text(f"""{HEADER} g (float[n] x) => (float[n] y) {{
        y = {operator} <alpha = {alpha}> (x) }}""")
    x = np.array([-1e-9, -1e-6, -1e-3, -0.5, -1, -20, -1e4, -0.0, 2, -np.inf, np.inf, np.nan], F)
    found = compile_model(model, threads=1).run({"x": x})[0]
    np.testing.assert_allclose(found, sx.evaluate(model, {"x": x})[0], rtol=2e-5, atol=2e-7)


def test_a_nan_scale_gives_the_zero_point() -> None:
    text = """g (uint8[2,3] a, float s, uint8 z, uint8[3,2] b) => (uint8 y) {
        y = QLinearMatMul (a, s, z, b, s, z, s, z) }"""
    feeds = {"a": np.arange(6, dtype=np.uint8).reshape(2, 3), "s": np.array(np.nan, F),
             "z": np.array(118, np.uint8), "b": np.ones((3, 2), np.uint8)}  # fmt: skip
    assert (both(text, feeds)[0] == 118).all()


def test_an_index_that_is_no_number_is_nowhere() -> None:
    text = """g (float[n] i, int64[2] v) => (int64 y) {
        d = Constant <value_int = 4> () y = OneHot (i, d, v) }"""
    (y,) = both(text, {"i": np.append(ODD, [2, -1]).astype(F), "v": np.array([0, 1])})
    assert y.sum(1).tolist() == [1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_regions_that_are_no_numbers_lie_outside(mode: str) -> None:
    text = f"""g (float[1,1,4,4] x, float[8] roi) => (float y) {{
        n = Constant <value_floats = [0.0]> () s = Constant <value_ints = [1, 1, 3, 3]> ()
        y = Resize <mode = "{mode}", coordinate_transformation_mode = "tf_crop_and_resize",
                    extrapolation_value = 7.0> (x, roi, , s) }}"""
    for odd in (np.nan, np.inf, -np.inf, 3e38):
        roi = np.array([0, 0, 0, odd, 1, 1, 1, 1], F)
        x = np.arange(16, dtype=F).reshape(1, 1, 4, 4)
        model = sx.load_text(HEADER + text)
        model.graph.outputs[0].declared = None
        found = compile_model(model, threads=1).run({"x": x, "roi": roi})[0]
        np.testing.assert_allclose(found, sx.evaluate(model, {"x": x, "roi": roi})[0], rtol=1e-5)
        assert (found[..., 0] == 7).all()
