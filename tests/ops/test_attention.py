"""Attention and FlexAttention against onnxruntime, onnx's reference and their own functions."""

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from sardonyx.errors import InferenceError, SardonyxError
from sardonyx.ops.build import Builder
from sardonyx.ops.catalog import standard
from sardonyx.ops.convert import function_results
from sardonyx.ops.replace import replace_node
from tests.ops.one_node import (
    inferred,
    load,
    one_node,
    run_converted,
    run_here,
    run_model,
    run_there,
    same,
)

OUTPUTS = ["Y", "present_key", "present_value", "scores"]
NAMES = ("Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen")


def inputs_of(heads=4, shared=4, queries=3, keys=5, *, past=0, packed=False, dtype=np.float32,
              mask=None, valid=None, size=4, value_size=6, batch=2, seed=0):  # fmt: skip
    draw = np.random.default_rng(seed)

    def make(count, length, width):
        x = draw.normal(size=(batch, count, length, width)).astype(dtype)
        return x.swapaxes(1, 2).reshape(batch, length, count * width) if packed else x

    given = {
        "Q": make(heads, queries, size),
        "K": make(shared, keys, size),
        "V": make(shared, keys, value_size),
        "attn_mask": mask,
    }
    for name, width in (("past_key", size), ("past_value", value_size)):
        shape = (batch, shared, past, width)
        given[name] = draw.normal(size=shape).astype(dtype) if past else None
    given["nonpad_kv_seqlen"] = None if valid is None else np.array(valid, np.int64)
    return given


def mask_of(kind, *shape):
    draw = np.random.default_rng(3)
    if kind == "bool":
        return draw.random(shape) < 0.7
    return draw.normal(size=shape).astype(np.float32)


def model(given, outputs=("Y",), opset=25, shapes=None, **attributes):
    return one_node("Attention", given, list(outputs), opset, shapes=shapes, **attributes)


def by_reference(given, outputs=("Y",), opset=25, **attributes):
    """What onnx's own reference makes of it; nothing where it is not to be trusted."""
    declared = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in outputs
    ]
    content = one_node("Attention", given, declared, opset, **attributes)
    return ReferenceEvaluator(onnx.load_from_string(content)).run(
        None, {name: item for name, item in given.items() if item is not None}
    )


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("shared", [4, 2, 1])
@pytest.mark.parametrize("is_causal", [0, 1])
def test_heads_against_onnxruntime(is_causal, shared, packed):
    given = inputs_of(shared=shared, packed=packed)
    heads = {"q_num_heads": 4, "kv_num_heads": shared} if packed else {}
    content = model(given, opset=23, is_causal=is_causal, **heads)
    same(run_here(content, given), run_there(content, given), rtol=1e-4)


@pytest.mark.parametrize("kind", ["bool", "float"])
@pytest.mark.parametrize("shape", [(3, 5), (2, 1, 3, 5), (1, 4, 3, 5), (2, 4, 3, 5)])
def test_masks_against_onnxruntime(shape, kind):
    given = inputs_of(mask=mask_of(kind, *shape))
    content = model(given, opset=23, scale=0.3, softcap=2.0)
    same(run_here(content, given), run_there(content, given), rtol=1e-4)


def test_cache_against_onnxruntime():
    given = inputs_of(past=3, shared=2)
    for is_causal in (0, 1):
        content = model(given, OUTPUTS[:3], opset=23, is_causal=is_causal)
        same(run_here(content, given), run_there(content, given), rtol=1e-4)


@pytest.mark.parametrize("mode", [1, 2, 3])
@pytest.mark.parametrize("softcap", [0.0, 1.5])
def test_scores(softcap, mode):
    given = inputs_of(past=2, mask=mask_of("bool", 3, 7))
    settings = {"qk_matmul_output_mode": mode, "softcap": softcap, "is_causal": 1}
    expected = by_reference(given, OUTPUTS, **settings)
    same(run_here(model(given, OUTPUTS, **settings), given), expected, rtol=1e-4)


def test_raw_scores_come_before_the_cap():
    given = inputs_of()
    capped = run_here(model(given, OUTPUTS, softcap=0.5), given)[3]
    plain = run_here(model(given, OUTPUTS), given)[3]
    same([capped], [plain])
    q, k = given["Q"].astype(np.float64), given["K"].astype(np.float64)
    np.testing.assert_allclose(plain, q @ k.swapaxes(2, 3) / 2, rtol=1e-4, atol=1e-5)


LIMITS = [
    {"left_window_size": 1},
    {"right_window_size": 0},
    {"left_window_size": 1, "right_window_size": 2},
    {"left_window_size": 2, "is_causal": 1},
    {"is_causal": 1},
    {},
]


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("cache", ["none", "past", "valid"])
@pytest.mark.parametrize("mask", [None, "bool", "float"])
def test_windows_and_caches(limits, cache, mask):
    total = 8 if cache == "past" else 5
    given = inputs_of(
        past=3 if cache == "past" else 0, valid=[2, 5] if cache == "valid" else None,
        mask=None if mask is None else mask_of(mask, 2, 1, 3, total),
    )  # fmt: skip
    same(run_here(model(given, **limits), given), by_reference(given, **limits), rtol=1e-4)


@pytest.mark.parametrize("kind", ["bool", "float"])
def test_short_masks_end_with_nothing(kind):
    given = inputs_of(mask=mask_of(kind, 3, 3))
    long = given["attn_mask"]
    fill = np.zeros((3, 2), bool) if kind == "bool" else np.full((3, 2), -np.inf, np.float32)
    other = given | {"attn_mask": np.concatenate([long, fill], 1)}
    same(run_here(model(given), given), run_here(model(other), other))


def test_rows_that_see_nothing_are_zero():
    mask = np.ones((3, 5), bool)
    mask[1] = False
    for item in (mask, np.where(mask, 0, -np.inf).astype(np.float32)):
        given = inputs_of(mask=item)
        y, _, _, weights = run_here(model(given, OUTPUTS, qk_matmul_output_mode=3), given)
        assert not y[:, :, 1].any() and not weights[:, :, 1].any()
        assert np.isfinite(y).all() and y[:, :, 0].any()
    given = inputs_of(keys=0)
    assert not run_here(model(given), given)[0].any()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_element_types(dtype):
    given = inputs_of(dtype=dtype, past=1)
    wide = {name: item if item is None else item.astype(np.float64) for name, item in given.items()}
    actual = run_here(model(given, OUTPUTS, is_causal=1), given)
    expected = run_here(model(wide, OUTPUTS, is_causal=1), wide)
    assert [item.dtype for item in actual] == [dtype] * 4
    tolerance = {np.float16: 1e-2, ml_dtypes.bfloat16: 6e-2, np.float64: 1e-9}[dtype]
    for mine, theirs in zip(actual, expected, strict=True):
        np.testing.assert_allclose(mine.astype(np.float64), theirs, rtol=tolerance, atol=tolerance)


def test_softmax_precision():
    given = inputs_of(dtype=np.float16)
    plain = run_here(model(given), given)[0]
    for precision, dtype in ((1, np.float16), (11, np.float16), (16, np.float16)):
        (y,) = run_here(model(given, softmax_precision=precision), given)
        assert y.dtype == dtype
        np.testing.assert_allclose(
            y.astype(np.float32), plain.astype(np.float32), atol=3e-2 if precision == 16 else 3e-3
        )


def test_integer_masks_are_added():
    given = inputs_of(mask=np.array([[0, 1, 2, 3, 4]] * 3, np.int64))
    other = given | {"attn_mask": given["attn_mask"].astype(np.float32)}
    same(run_here(model(given), given), run_here(model(other), other))


FUNCTION_CASES = [
    ({}, {}),
    ({"shared": 2}, {"is_causal": 1}),
    ({"packed": True, "shared": 2}, {"q_num_heads": 4, "kv_num_heads": 2}),
    ({"past": 3}, {"is_causal": 1, "softcap": 1.5}),
    ({"mask": mask_of("bool", 2, 1, 3, 5)}, {"scale": 0.4}),
    ({"mask": mask_of("float", 3, 4)}, {"left_window_size": 1}),
    ({"valid": [2, 5]}, {"is_causal": 1, "right_window_size": 1}),
    ({"past": 2, "mask": mask_of("bool", 3, 7)}, {"softmax_precision": 11, "scale": -0.5}),
]


@pytest.mark.parametrize("mode", range(4))
@pytest.mark.parametrize(("shape", "attributes"), FUNCTION_CASES)
def test_function(shape, attributes, mode):
    given = inputs_of(**shape)
    content = model(given, OUTPUTS, qk_matmul_output_mode=mode, **attributes)
    expected = run_here(content, given)
    same(run_expanded(content, given), expected, rtol=1e-4, atol=1e-5)
    if mode == 0:
        for opset in (24, 22, 18, 17):
            same(run_converted(content, given, opset), expected, rtol=1e-4, atol=1e-5)


def run_expanded(content, given):
    """What our reference makes of a model whose first node is replaced by its function."""
    whole = load(content)
    (node,) = whole.graph.nodes
    operator = standard()[node.domain, node.op_type]
    build = Builder(whole.graph, whole.opset, node)
    replace_node(node, function_results(node, operator, operator.newest(), build))
    assert node.op_type not in {item.op_type for item in whole.graph.nodes}
    return run_model(whole, given)


def test_function_with_unused_outputs():
    given = inputs_of()
    for outputs in (["Y"], ["Y", "", "present_value"], ["Y", "", "", "scores"]):
        content = model(given, outputs)
        same(run_converted(content, given, 22), run_here(content, given), rtol=1e-4, atol=1e-5)


def test_function_in_half_precision():
    given = inputs_of(dtype=np.float16, mask=mask_of("bool", 3, 5))
    content = model(given, is_causal=1)
    actual = run_converted(content, given, 17)
    same(actual, run_here(content, given), rtol=1e-2, atol=5e-3)


def test_inference():
    given = inputs_of(past=2)
    shapes = {"Q": ["b", 8, "q", 4], "K": ["b", 2, "k", 4], "V": ["b", 2, "k", 6],
              "past_key": ["b", 2, "p", 4], "past_value": ["b", 2, "p", 6]}  # fmt: skip
    assert inferred(model(given, OUTPUTS, shapes=shapes)) == [
        "float[b,8,q,6]", "float[b,2,k+p,4]", "float[b,2,k+p,6]", "float[b,8,q,k+p]"
    ]  # fmt: skip
    given = inputs_of(packed=True)
    shapes = {"Q": ["b", "q", 16], "K": ["b", "k", 8], "V": ["b", "k", 12]}
    content = model(given, OUTPUTS, shapes=shapes, q_num_heads=4, kv_num_heads=2)
    assert inferred(content) == [
        "float[b,q,24]", "float[b,2,k,4]", "float[b,2,k,6]", "float[b,4,q,k]"
    ]  # fmt: skip
    nothing = dict.fromkeys(("Q", "K", "V"))
    assert inferred(model(given, shapes=nothing)) == ["float"]


def test_contradictions():
    given = inputs_of(packed=True)
    with pytest.raises(InferenceError, match="number of heads"):
        inferred(model(given))
    with pytest.raises(InferenceError, match="no multiple"):
        inferred(model(given, q_num_heads=4, kv_num_heads=3))
    with pytest.raises(InferenceError, match="rank 2"):
        inferred(model(given, shapes={"Q": [2, 3]}, q_num_heads=4, kv_num_heads=4))
    with pytest.raises(InferenceError, match="head size"):
        inferred(model(inputs_of(), shapes={"Q": [2, 4, 3, 5]}))
    given = inputs_of(past=2) | {"past_value": None}
    with pytest.raises(InferenceError, match="go together"):
        inferred(model(given))
    with pytest.raises(SardonyxError, match="go together"):
        run_here(model(given), given)
    given = inputs_of(past=2, valid=[1, 2])
    with pytest.raises(SardonyxError, match="cannot be given together"):
        run_here(model(given), given)
    with pytest.raises(InferenceError, match="window size of -2"):
        inferred(model(inputs_of(), left_window_size=-2))
    given = inputs_of(heads=3, shared=2)
    with pytest.raises(SardonyxError, match="no multiple"):
        run_here(model(given), given)


def flex(given, **graphs):
    """A model with FlexAttention, its graphs given as text."""
    made = {}
    for name, text in graphs.items():
        made[name] = onnx.parser.parse_graph(text) if isinstance(text, str) else text
    return one_node("FlexAttention", given, ["Y"], 24, domain="ai.onnx.preview", **made)


def flex_inputs(**options):
    given = inputs_of(**options)
    return {name: given[name] for name in ("Q", "K", "V")}


DOUBLE = "s (float[2,4,3,5] a) => (float[2,4,3,5] b) { b = Add(a, a) }"
HALVE = "p (float[2,4,3,5] a) => (float[2,4,3,5] b) <float h = {0.5}> { c = Mul(a, h) b = Neg(c) }"


def test_flex_attention():
    given = flex_inputs(shared=2)
    plain = run_here(model(given), given)
    same(run_here(flex(given), given), plain, rtol=1e-5)
    doubled = run_here(model(given, scale=1.0), given)
    same(run_here(flex(given, score_mod=DOUBLE), given), doubled, rtol=1e-5)
    (halved,) = run_here(flex(given, score_mod=DOUBLE, prob_mod=HALVE, scale=0.5), given)
    same([halved], [doubled[0] * np.float32(-0.5)], rtol=1e-5)


def test_flex_attention_function():
    for options in (
        {},
        {"score_mod": DOUBLE},
        {"score_mod": DOUBLE, "prob_mod": HALVE, "scale": 0.25},
    ):
        given = flex_inputs(shared=2)
        content = flex(given, **options)
        same(run_expanded(content, given), run_here(content, given), rtol=1e-5)


def test_flex_attention_precision():
    given = flex_inputs(dtype=np.float16)
    (y,) = run_here(flex(given, score_mod=DOUBLE), given)
    assert y.dtype == np.float16
    single = DOUBLE.replace("float[", "float16[")
    (y,) = run_here(flex(given, score_mod=single, softmax_precision=10), given)
    assert y.dtype == np.float16
    given = flex_inputs(dtype=np.float64)
    (y,) = run_here(flex(given, score_mod=DOUBLE.replace("float[", "double[")), given)
    assert y.dtype == np.float64


def test_flex_attention_inference():
    given = flex_inputs()
    shapes = {"Q": ["b", 4, "q", 4], "K": ["b", 2, "k", 4], "V": ["b", 2, "k", 6]}
    content = one_node("FlexAttention", given, ["Y"], 24, domain="ai.onnx.preview", shapes=shapes)
    assert inferred(content) == ["float[b,4,q,6]"]
    content = one_node("FlexAttention", given, ["Y"], 24, domain="ai.onnx.preview",
                       shapes={"Q": [1, 2, 3]})  # fmt: skip
    with pytest.raises(InferenceError, match="rank 3"):
        inferred(content)


def test_a_mode_of_scores_that_there_is_not():
    inputs = {name: np.ones((1, 1, 2, 4), np.float32) for name in "QKV"}
    for mode in (-1, 4):
        content = one_node("Attention", inputs, ["y"], opset=23, qk_matmul_output_mode=mode)
        with pytest.raises(SardonyxError, match=f"qk_matmul_output_mode is {mode}, not 0 to 3"):
            run_here(content, inputs)


def test_flexible_attention_of_other_batches():
    inputs = {name: np.ones((1, 1, 2, 4), np.float32) for name in "QKV"}
    for name in "QKV":
        wrong = inputs | {name: np.ones((3, 1, 2, 4), np.float32)}
        content = one_node("FlexAttention", wrong, ["y"], domain="ai.onnx.preview", version=1)
        with pytest.raises(SardonyxError, match="batch of"):
            run_here(content, wrong)
