"""RotaryEmbedding against onnxruntime and its own function."""

import ml_dtypes
import numpy as np
import pytest

from sardonyx.errors import InferenceError, SardonyxError
from tests.ops.one_node import inferred, one_node, run_converted, run_here, run_there, same

BATCH, HEADS, LENGTH, SIZE, POSITIONS = 2, 3, 4, 6, 10


def inputs_of(*, packed=False, positions=True, rotated=SIZE, dtype=np.float32):
    draw = np.random.default_rng(0)
    shape = (BATCH, LENGTH, HEADS * SIZE) if packed else (BATCH, HEADS, LENGTH, SIZE)
    cache = (POSITIONS, rotated // 2) if positions else (BATCH, LENGTH, rotated // 2)
    angles = draw.uniform(-3, 3, cache)
    given = {
        "X": draw.normal(size=shape).astype(dtype),
        "cos_cache": np.cos(angles).astype(dtype),
        "sin_cache": np.sin(angles).astype(dtype),
    }
    ids = draw.integers(0, POSITIONS, (BATCH, LENGTH)) if positions else None
    return given | {"position_ids": ids}


CASES = [
    {"packed": packed, "positions": positions, "rotated": rotated}
    for packed in (False, True)
    for positions in (False, True)
    for rotated in (SIZE, 4)
]


def model(given, shapes=None, **attributes):
    return one_node("RotaryEmbedding", given, ["Y"], 23, shapes=shapes, **attributes)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("case", CASES)
def test_against_onnxruntime(case, interleaved):
    given = inputs_of(**case)
    settings = {"interleaved": interleaved}
    if case["rotated"] != SIZE:
        settings["rotary_embedding_dim"] = case["rotated"]
    if case["packed"] or case["rotated"] != SIZE:
        settings["num_heads"] = HEADS
    content = model(given, **settings)
    actual = run_here(content, given)
    same(actual, run_there(content, given))
    for opset in (22, 17):
        same(run_converted(content, given, opset), actual)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_element_types(dtype):
    given = inputs_of(dtype=dtype)
    wide = {
        name: item.astype(np.float32) if name != "position_ids" else item
        for name, item in given.items()
    }
    (actual,) = run_here(model(given), given)
    (expected,) = run_here(model(wide), wide)
    assert actual.dtype == dtype
    same([actual.astype(np.float32)], [expected.astype(dtype).astype(np.float32)], rtol=1e-2)


def test_inference():
    shapes = {"X": ["b", 3, "s", 6]}
    assert inferred(model(inputs_of(), shapes)) == ["float[b,3,s,6]"]
    assert inferred(model(inputs_of(), {"X": None, "cos_cache": None})) == ["float"]
    with pytest.raises(InferenceError, match="num_heads"):
        inferred(model(inputs_of(packed=True)))
    with pytest.raises(InferenceError, match="rank 2"):
        inferred(model(inputs_of(), {"X": [3, 4]}))
    with pytest.raises(InferenceError, match="cache: 3 against 4"):
        inferred(model(inputs_of(), {"cos_cache": [10, 4]}))
    with pytest.raises(InferenceError, match="cos_cache has rank 2, expected 3"):
        inferred(model(inputs_of() | {"position_ids": None}))


def test_wrong_models_are_refused():
    given = inputs_of(rotated=4)
    with pytest.raises(SardonyxError, match="half the rotated size, cache: 3 against 2"):
        run_here(model(given), given)
    given = inputs_of(packed=True)
    with pytest.raises(SardonyxError, match="half the rotated size, cache: 2 against 3"):
        run_here(model(given, num_heads=4), given)
