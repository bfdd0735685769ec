"""Tensors resampled to other sizes."""

from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from sardonyx.errors import ConversionError, EvaluationError, InferenceError
from sardonyx.ops.build import Builder
from sardonyx.ops.convert import convert_opset
from sardonyx.ops.interpolate import COORDINATE_MODES, MODES, NEAREST_MODES
from sardonyx.ops.resize import spelled_out
from tests.ops.direct import inferred, run, text_model
from tests.ops.one_node import load, one_node, run_converted, run_here, run_model, run_there, same

RANDOM = np.random.default_rng(6)
X = RANDOM.normal(0, 3, (1, 2, 5, 7)).astype(np.float32)
EMPTY = np.zeros(0, np.float32)


def reference(content: bytes, inputs: dict[str, Any]) -> list[Any]:
    """What onnx's own reference makes of it."""
    given = {name: item for name, item in inputs.items() if item is not None}
    return ReferenceEvaluator(onnx.load_from_string(content)).run(None, given)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("coordinates", [m for m in COORDINATE_MODES if m != "tf_crop_and_resize"])
@pytest.mark.parametrize("sizes", [(10, 14), (3, 4), (7, 7), (1, 1), (5, 16)])
def test_to_sizes(mode: str, coordinates: str, sizes: tuple[int, int]) -> None:
    inputs = {"x": X, "r": None, "f": None, "s": np.int64([1, 2, *sizes])}
    how = {"mode": mode, "coordinate_transformation_mode": coordinates}
    content = one_node("Resize", inputs, ["y"], 19, **how)
    (result,) = run_here(content, inputs)
    if coordinates == "pytorch_half_pixel" and 1 in sizes:
        theirs = run_there(content, inputs)
    else:
        theirs = reference(content, inputs)
    same([result], theirs, rtol=1e-4, atol=1e-5)
    if mode != "nearest" and coordinates != "half_pixel_symmetric" and sizes != (1, 1):
        same([result], run_there(content, inputs), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rounding", NEAREST_MODES)
@pytest.mark.parametrize("coordinates", ["half_pixel", "asymmetric", "align_corners"])
@pytest.mark.parametrize("sizes", [(10, 14), (3, 4), (8, 21), (5, 2)])
def test_nearest_like_onnxruntime(rounding: str, coordinates: str, sizes: tuple[int, int]) -> None:
    inputs = {"x": X, "r": None, "f": None, "s": np.int64([1, 2, *sizes])}
    how = {"nearest_mode": rounding, "coordinate_transformation_mode": coordinates}
    content = one_node("Resize", inputs, ["y"], 18, **how)
    same(run_here(content, inputs), run_there(content, inputs))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("factors", [(2, 3), (0.6, 0.6), (1, 1.7), (0.5, 2.5)])
@pytest.mark.parametrize("coordinates", ["half_pixel", "asymmetric"])
def test_by_factors(mode: str, factors: tuple[float, float], coordinates: str) -> None:
    inputs = {"x": X, "r": None, "f": np.float32([1, 1, *factors])}
    how = {"mode": mode, "coordinate_transformation_mode": coordinates}
    content = one_node("Resize", inputs, ["y"], 13, **how)
    same(run_here(content, inputs), run_there(content, inputs), rtol=1e-4, atol=1e-4)


def test_size_is_rounded_down_in_float() -> None:
    result = run("Resize", np.zeros(10, np.float32), None, np.float32([0.7]))
    assert result.shape == (7,)
    text = "g (float[10] x) => (y) { f = Constant<value = float[1] {0.7}>() y = Resize(x, , f) }"
    assert inferred(text) == ["float[7]"]


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("antialias", [0, 1])
@pytest.mark.parametrize("exclude", [0, 1])
@pytest.mark.parametrize("sizes", [(2, 3), (10, 4)])
def test_antialias_and_exclusion(
    mode: str, antialias: int, exclude: int, sizes: tuple[int, int]
) -> None:
    inputs = {"x": X, "r": None, "f": None, "s": np.int64([1, 2, *sizes])}
    how = {"mode": mode, "antialias": antialias, "exclude_outside": exclude}
    content = one_node("Resize", inputs, ["y"], 18, **how)
    same(run_here(content, inputs), reference(content, inputs), rtol=1e-4, atol=1e-5)
    if antialias:
        lower = run_converted(content, inputs, 17)
        same(lower, run_here(content, inputs), rtol=1e-4, atol=1e-5)
        text = f"""g (float[1,2,5,7] x) => (float[1,2,{sizes[0]},{sizes[1]}] y) {{
            s = Constant<value_ints=[1,2,{sizes[0]},{sizes[1]}]>()
            y = Resize<mode="{mode}", antialias=1, exclude_outside={exclude}>(x, , , s) }}"""
        lower = convert_opset(text_model(text, 18), 17)
        same(run_model(lower, {"x": X}), run_here(content, inputs), rtol=1e-4, atol=1e-5)
    else:
        same(run_converted(content, inputs, 13), run_here(content, inputs))


@pytest.mark.parametrize("mode", MODES)
def test_crop_and_resize(mode: str) -> None:
    region = np.float32([0, 0, 0.2, -0.37, 1, 1, 0.9, 1.23])
    inputs = {"x": X, "r": region, "f": None, "s": np.int64([1, 2, 4, 6])}
    how = {
        "mode": mode, "coordinate_transformation_mode": "tf_crop_and_resize",
        "extrapolation_value": 9.5,
    }  # fmt: skip
    content = one_node("Resize", inputs, ["y"], 13, **how)
    same(run_here(content, inputs), reference(content, inputs), rtol=1e-4, atol=1e-5)
    same(run_here(content, inputs), run_there(content, inputs), rtol=1e-4, atol=1e-4)


def test_crop_by_factors_shrinks_with_the_region() -> None:
    text = """g (float[8,n] x) => (y) { r = Constant<value = float[4] {0.25, 0, 0.75, 1}>()
        f = Constant<value = float[2] {2, 1}>()
        y = Resize<coordinate_transformation_mode="tf_crop_and_resize">(x, r, f) }"""
    assert inferred(text) == ["float[8,n]"]
    (result,) = run_model(text_model(text), {"x": np.zeros((8, 3), np.float32)})
    assert result.shape == (8, 3)


@pytest.mark.parametrize("axes", [[2, 3], [3], [-1, 2]])
@pytest.mark.parametrize("by", ["sizes", "scales"])
def test_some_dimensions(axes: list[int], by: str) -> None:
    wanted = np.int64([9, 4][: len(axes)]) if by == "sizes" else np.float32([1.5, 0.5][: len(axes)])
    inputs = {"x": X, "r": None, "f": None, "s": wanted}
    if by == "scales":
        inputs = {"x": X, "r": None, "f": wanted}
    content = one_node("Resize", inputs, ["y"], 18, axes=axes, mode="linear")
    expected = run_there(content, inputs)
    same(run_here(content, inputs), expected, rtol=1e-4, atol=1e-4)
    same(run_converted(content, inputs, 13), expected, rtol=1e-4, atol=1e-4)


def test_region_of_some_dimensions() -> None:
    text = """g (float[1,2,5,7] x, float[2] r) => (y) { s = Constant<value_ints=[4]>()
        y = Resize<axes=[3], coordinate_transformation_mode="tf_crop_and_resize">(x, r, , s) }"""
    inputs = {"x": X, "r": np.float32([0.25, 0.75])}
    lower = convert_opset(text_model(text), 17)
    same(run_model(lower, inputs), run_model(text_model(text), inputs))


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
@pytest.mark.parametrize("sizes", [(8, 8), (3, 9), (10, 5)])
def test_aspect_ratio(policy: str, sizes: tuple[int, int]) -> None:
    inputs = {"x": X, "r": None, "f": None, "s": np.int64(sizes)}
    how = {"axes": [2, 3], "keep_aspect_ratio_policy": policy, "mode": "linear"}
    content = one_node("Resize", inputs, ["y"], 18, **how)
    (result,) = run_here(content, inputs)
    same([result], reference(content, inputs), rtol=1e-4, atol=1e-5)
    text = f"""g (float[1,2,5,7] x) => (y) {{ s = Constant<value_ints=[{sizes[0]},{sizes[1]}]>()
        y = Resize<axes=[2,3], keep_aspect_ratio_policy="{policy}">(x, , , s) }}"""
    assert inferred(text) == [f"float{list(result.shape)}".replace(" ", "")]
    lower = convert_opset(text_model(text, 18), 17)
    same(run_model(lower, {"x": X}), run_model(text_model(text, 18), {"x": X}))
    same(run_converted(content, inputs, 17), [result], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("factors", [(2, 2), (1, 3)])
@pytest.mark.parametrize(("operator", "opset"), [("Upsample", 7), ("Upsample", 9), ("Resize", 10)])
def test_older_versions(mode: str, factors: tuple[int, int], operator: str, opset: int) -> None:
    scales = np.float32([1, 1, *factors])
    inputs = {"x": X} if opset == 7 else {"x": X, "f": scales}
    attributes = {"scales": scales.tolist()} if opset == 7 else {}
    content = one_node(operator, inputs, ["y"], opset, mode=mode, **attributes)
    same(run_here(content, inputs), run_there(content, inputs), rtol=1e-4, atol=1e-4)


def test_first_upsample() -> None:
    old = one_node(
        "Upsample", {"x": X}, ["y"], 1, height_scale=2.0, width_scale=3.0, mode="bilinear"
    )
    new = one_node("Upsample", {"x": X}, ["y"], 7, scales=[1.0, 1.0, 2.0, 3.0], mode="linear")
    same(run_here(old, {"x": X}), run_there(new, {"x": X}), rtol=1e-4, atol=1e-4)
    lower = convert_opset(load(new), 6)
    same(run_model(lower, {"x": X}), run_here(old, {"x": X}))
    assert lower.graph is not None
    assert lower.graph.nodes[0].attribute("height_scale") == 2


def test_resize_becomes_upsample() -> None:
    text = """g (float[1,2,5,7] x) => (float[1,2,10,7] y) { r = Constant<value = float[0] {}>()
        f = Constant<value = float[4] {1, 1, 2, 1}>()
        y = Resize<coordinate_transformation_mode="asymmetric", nearest_mode="floor">(x, r, f) }"""
    for opset, name in ((10, "Resize"), (9, "Upsample"), (8, "Upsample")):
        lower = convert_opset(text_model(text, 13), opset)
        assert lower.graph is not None
        assert lower.graph.outputs[0].producer.op_type == name
        same(run_model(lower, {"x": X}), run_model(text_model(text, 13), {"x": X}))
    with pytest.raises(ConversionError, match="only 'asymmetric' and 'floor'"):
        convert_opset(text_model(text.replace("asymmetric", "half_pixel"), 13), 10)
    symmetric = text_model(text.replace("asymmetric", "half_pixel_symmetric"), 19)
    lower = convert_opset(symmetric, 17)
    same(run_model(lower, {"x": X}), run_model(symmetric, {"x": X}))
    sizes = text.replace("asymmetric", "half_pixel_symmetric").replace("2,5,7", "2,h,7")
    same(
        run_model(convert_opset(text_model(sizes, 19), 17), {"x": X}),
        run_model(symmetric, {"x": X}),
    )
    rankless = text_model(text.replace("asymmetric", "half_pixel_symmetric"), 19)
    assert rankless.graph is not None
    rankless.graph.inputs[0].type = rankless.graph.inputs[0].type.with_shape(None)
    rankless.graph.outputs[0].type = rankless.graph.inputs[0].type
    rankless.graph.inputs[0].type = None
    with pytest.raises(ConversionError, match="the rank is not known"):
        convert_opset(rankless, 18)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("coordinates", COORDINATE_MODES)
@pytest.mark.parametrize("by", ["sizes", "scales"])
def test_products_say_every_mode(mode: str, coordinates: str, by: str) -> None:
    region = np.float32([0, 0, 0.2, -0.37, 1, 1, 0.9, 1.23])
    inputs = {"x": X, "r": region, "f": None, "s": np.int64([1, 2, 7, 4])}
    if by == "scales":
        inputs = {"x": X, "r": region, "f": np.float32([1, 1, 1.5, 0.6])}
    how = {"mode": mode, "coordinate_transformation_mode": coordinates, "extrapolation_value": 7.5}
    content = one_node("Resize", inputs, ["y"], 18, **how)
    node = load(content).graph.nodes[0]
    build = Builder(node.graph, 17, node)
    node.graph.outputs[0] = spelled_out(node, build, "")
    written = node.graph
    model = load(content)
    model.graph = written
    (result,) = run_model(model, inputs)
    same([result], run_here(content, inputs), rtol=1e-4, atol=1e-5)


def test_matrices_in_place_of_a_crop() -> None:
    text = """g (float[4,5] x) => (float[6,3] y) {
        r = Constant<value = float[4] {-0.2, 0.1, 1.1, 0.8}>() s = Constant<value_ints=[6,3]>()
        y = Resize<mode="MODE", antialias=1, extrapolation_value=7.5,
        coordinate_transformation_mode="tf_crop_and_resize">(x, r, , s) }"""
    x = X[0, 0, :4, :5].copy()
    for mode in ("linear", "cubic"):
        model = text_model(text.replace("MODE", mode), 18)
        lower = convert_opset(model, 17)
        same(run_model(lower, {"x": x}), run_model(model, {"x": x}), rtol=1e-4, atol=1e-5)
    whole = text_model(text.replace("MODE", "linear").replace("float[4,5] x", "int32[4,5] x"), 18)
    with pytest.raises(ConversionError, match="products of whole numbers"):
        convert_opset(whole, 17)


@pytest.mark.parametrize("rounding", ["floor", "round_prefer_floor"])
def test_half_pixel_for_nearest_neighbours(rounding: str) -> None:
    inputs = {"x": X, "r": EMPTY, "f": np.float32([1, 1, 0.6, 1.7])}
    how = {"coordinate_transformation_mode": "tf_half_pixel_for_nn", "nearest_mode": rounding}
    content = one_node("Resize", inputs, ["y"], 11, **how)
    same(run_here(content, inputs), run_there(content, inputs))
    wrong = one_node("Resize", inputs, ["y"], 11, **how | {"nearest_mode": "ceil"})
    with pytest.raises(ConversionError, match="has no successor"):
        run_here(wrong, inputs)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("Resize(x, , two)", "float[n,3,2*h,2*w]"),
        ("Resize(x, , half)", "float[n,3,h//2,w//2]"),
        ("Resize(x, , odd)", "float[n,3,?,?]"),
        ("Resize(x, , none, sizes)", "float[n,3,9,w]"),
        ("Resize<axes=[2]>(x, , , one)", "float[n,3,5,w]"),
        ("Resize(x, , any)", "float[?,?,?,?]"),
        ("Resize(u, , any)", "float[?,?,?,?]"),
    ],
)
def test_shapes(call: str, expected: str) -> None:
    text = f"""g (float[n,3,h,w] x, float[4] any, float[] u) => (y) {{
        two = Constant<value = float[4] {{1, 1, 2, 2}}>() none = Constant<value = float[0] {{}}>()
        half = Constant<value = float[4] {{1, 1, 0.5, 0.5}}>()
        odd = Constant<value = float[4] {{1, 1, 0.3, 0.7}}>()
        shape = Shape(x) nine = Constant<value_ints=[9]>() one = Constant<value_ints=[5]>()
        head = Shape<end=2>(x) tail = Shape<start=3>(x) sizes = Concat<axis=0>(head, nine, tail)
        y = {call} }}"""
    assert inferred(text) == [expected]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("Resize(x, , two)", "2 sizes or factors do not fit 1 dimensions"),
        ('Resize<mode="area">(x, , one)', "'area' is not one of"),
        ('Resize<coordinate_transformation_mode="x">(x, , one)', "'x' is not one of"),
    ],
)
def test_contradictions(call: str, message: str) -> None:
    text = f"""g (float[4] x) => (y) {{ two = Constant<value = float[2] {{1, 1}}>()
        one = Constant<value = float[1] {{1}}>() y = {call} }}"""
    with pytest.raises(InferenceError, match=message):
        inferred(text)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int64, np.float16, ml_dtypes.bfloat16])
def test_interpolated_whole_numbers_are_rounded_and_kept_in_bounds(dtype: Any) -> None:
    x = np.array([0, 100, 100, 0]).astype(dtype)
    result = run("Resize", x, None, None, np.int64([8]), mode="cubic")
    assert result.dtype == dtype
    exact = run("Resize", x.astype(np.float64), None, None, np.int64([8]), mode="cubic")
    if np.dtype(dtype).kind in "iu":
        bounds = np.iinfo(dtype)
        assert result.tolist() == np.clip(np.round(exact), bounds.min, bounds.max).tolist()
    else:
        assert (result == exact.astype(dtype)).all()


def test_nearest_takes_any_type() -> None:
    for x in (np.array(["a", "b"], object), np.array([1j, 2]), np.array([True, False])):
        result = run("Resize", x, None, np.float32([2]))
        assert result.tolist() == np.repeat(x, 2).tolist() and result.dtype == x.dtype
    with pytest.raises(EvaluationError, match="strings cannot be interpolated"):
        run("Resize", np.array(["a"], object), None, np.float32([2]), mode="linear")


def test_infinities_stay_where_they_are() -> None:
    x = np.float32([1, 2, np.inf, 4, 5])
    result = run("Resize", x, None, None, np.int64([9]), mode="linear",
                 coordinate_transformation_mode="align_corners")  # fmt: skip
    assert result.tolist() == [1, 1.5, 2, np.inf, np.inf, np.inf, 4, 4.5, 5]


def test_nothing_given_and_nothing_there() -> None:
    with pytest.raises(EvaluationError, match="neither sizes nor scales"):
        run("Resize", X)
    with pytest.raises(EvaluationError, match="size 0 cannot be made larger"):
        run("Resize", np.zeros(0, np.float32), None, None, np.int64([3]))
    for mode, size in product(MODES, (0, 3)):
        x = np.zeros((2, size), np.float32)
        assert run("Resize", x, None, None, np.int64([2, 0]), mode=mode).shape == (2, 0)


@pytest.mark.parametrize(
    ("size", "factor", "wanted"),
    [(2**24 + 1, 1.0, 2**24 + 1), (10_000_001, 3.0, 30_000_003), (7, 10 / 7, 10), (3, 0.34, 1)],
)
def test_sizes_beyond_what_float32_holds_stay_exact(size: int, factor: float, wanted: int) -> None:
    text = f"g (float[{size}] x) => (y) <float[1] f = {{{factor!r}}}> {{ y = Resize(x, , f) }}"
    assert inferred(text, 19) == [f"float[{wanted}]"]


def test_evaluation_keeps_a_size_beyond_float32() -> None:
    x = np.zeros(2**24 + 1, np.uint8)
    assert run("Resize", x, None, np.float32([1]), mode="nearest").shape == x.shape


@pytest.mark.parametrize("size", [2**48 + 1, 2**63 - 1])
def test_sizes_that_nobody_has_memory_for(size: int) -> None:
    x, sizes = np.ones((1, 2), np.float32), np.int64([1, size])
    with pytest.raises(EvaluationError, match="too large|larger than any memory"):
        run("Resize", x, None, None, sizes)
