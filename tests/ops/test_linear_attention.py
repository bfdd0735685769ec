"""LinearAttention against onnx's reference and its own function."""

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from sardonyx.errors import InferenceError, SardonyxError
from tests.ops.one_node import inferred, one_node, run_converted, run_here, same

BATCH, LENGTH, KEY, VALUE = 2, 5, 4, 3
RULES = ["linear", "gated", "delta", "gated_delta"]


def inputs_of(
    rule, heads=4, shared=2, *, past=True, wide_decay=True, wide_beta=True, dtype=np.float32
):
    draw = np.random.default_rng(len(rule))

    def make(*shape, low=-1.0, high=1.0):
        return draw.uniform(low, high, shape).astype(dtype)

    given = {
        "query": make(BATCH, LENGTH, heads * KEY),
        "key": make(BATCH, LENGTH, shared * KEY),
        "value": make(BATCH, LENGTH, shared * VALUE),
        "past_state": make(BATCH, shared, KEY, VALUE) if past else None,
        "decay": None,
        "beta": None,
    }
    if "gated" in rule:
        given["decay"] = make(BATCH, LENGTH, shared * (KEY if wide_decay else 1), high=0.0)
    if "delta" in rule:
        given["beta"] = make(BATCH, LENGTH, shared if wide_beta else 1, low=0.0)
    return given


def model(given, rule, heads=4, shared=2, shapes=None, **attributes):
    return one_node("LinearAttention", given, ["output", "present_state"], 27, shapes=shapes,
                    update_rule=rule, q_num_heads=heads, kv_num_heads=shared,
                    **attributes)  # fmt: skip


def by_reference(given, rule, heads, shared, **attributes):
    declared = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)
        for name in ("output", "present_state")
    ]
    content = one_node("LinearAttention", given, declared, 27, update_rule=rule, q_num_heads=heads,
                       kv_num_heads=shared, **attributes)  # fmt: skip
    feeds = {name: item for name, item in given.items() if item is not None}
    return ReferenceEvaluator(onnx.load_from_string(content)).run(None, feeds)


@pytest.mark.parametrize("past", [False, True])
@pytest.mark.parametrize("heads", [(4, 2), (2, 2), (3, 1)])
@pytest.mark.parametrize("rule", RULES)
def test_rules(rule, heads, past):
    for wide in (True, False):
        given = inputs_of(rule, *heads, past=past, wide_decay=wide, wide_beta=wide)
        for scale in (0.0, 0.7):
            content = model(given, rule, *heads, scale=scale)
            actual = run_here(content, given)
            same(actual, by_reference(given, rule, *heads, scale=scale), rtol=1e-4, atol=1e-5)
    for opset in (26, 22, 17):
        same(run_converted(content, given, opset), actual, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_element_types(dtype):
    given = inputs_of("gated_delta", dtype=dtype)
    given["past_state"] = given["past_state"].astype(np.float32)
    output, state = run_here(model(given, "gated_delta"), given)
    assert (output.dtype, state.dtype) == (dtype, np.float32)
    wide = {name: item.astype(np.float32) for name, item in given.items()}
    expected = run_here(model(wide, "gated_delta"), wide)
    rounded = expected[0].astype(dtype).astype(np.float32)
    same([output.astype(np.float32), state], [rounded, expected[1]], rtol=1e-2)
    given["past_state"] = None
    _, state = run_here(model(given, "gated_delta"), given)
    assert state.dtype == dtype


def test_no_positions():
    given = inputs_of("linear")
    for name in ("query", "key", "value"):
        given[name] = given[name][:, :0]
    output, state = run_here(model(given, "linear"), given)
    assert output.shape == (BATCH, 0, 4 * VALUE)
    np.testing.assert_array_equal(state, given["past_state"])


def test_inference():
    given = inputs_of("gated")
    shapes = {"query": ["b", "t", 16], "key": ["b", "t", 8], "value": ["b", "t", 6],
              "past_state": None, "decay": None}  # fmt: skip
    assert inferred(model(given, "gated", shapes=shapes)) == ["float[b,t,12]", "float[b,2,4,3]"]
    nothing = dict.fromkeys(("query", "key", "value", "past_state", "decay"))
    assert inferred(model(given, "gated", shapes=nothing)) == ["float[?,?,?]", "float[?,2,?,?]"]


def test_contradictions():
    given = inputs_of("linear")
    for rule, message in (("gated", "needs decay"), ("cubic", "none of"), ("delta", "needs beta")):
        with pytest.raises(InferenceError, match=message):
            inferred(model(given, rule))
        with pytest.raises(SardonyxError, match=message):
            run_here(model(given, rule), given)
    with pytest.raises(InferenceError, match="takes no decay"):
        inferred(model(inputs_of("gated"), "linear"))
    with pytest.raises(InferenceError, match="no multiple"):
        inferred(model(given, "linear", 3, 2))
    with pytest.raises(InferenceError, match="rank 4"):
        inferred(model(given, "linear", shapes={"query": [2, 5, 4, 4]}))
    with pytest.raises(SardonyxError, match="sizes of past_state: 4 against 2"):
        wrong = given | {"past_state": given["past_state"][:, :, :2]}
        run_here(model(wrong, "linear"), wrong)
