"""Sizes that no machine holds: refused before NumPy multiplies them."""

from typing import Any

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.ops.allocate import count_up, repeat, tile
from tests.logged import warnings_of

REFERENCE = ["ReferenceExecutionProvider"]
HEAD = '<ir_version: 10, opset_import: ["": 21]>'
LONG = 2**62


def ints(*items: int) -> Any:
    return np.array(items, np.int64)


X = np.zeros((1, 1, 1, 1), np.float32)
FOUR = "g (float[a,b,c,d] x, int64[4] r) => (float[e,f,g,h] y)"


@pytest.mark.parametrize("providers", [REFERENCE, None])
@pytest.mark.parametrize(
    ("body", "feeds"),
    [
        (FOUR + "{ y = Tile(x, r) }", {"x": X, "r": ints(6, 6, LONG, 2**31)}),
        (FOUR + "{ y = Tile(x, r) }", {"x": X, "r": ints(0, 6, LONG, 2**31)}),
        (FOUR + "{ y = Tile(x, r) }", {"x": X, "r": ints(-1, 6, 1, 1)}),
        (FOUR + "{ y = Expand(x, r) }", {"x": X, "r": ints(6, 6, LONG, 2**31)}),
        (FOUR + '{ y = Resize<mode = "nearest">(x, , , r) }', {"x": X, "r": ints(1, 1, LONG, 9)}),
        ("g (int64[n] r) => (y) { y = ConstantOfShape(r) }", {"r": ints(LONG, LONG)}),
        ("g (int64[n] r) => (y) { y = ConstantOfShape(r) }", {"r": ints(0, LONG)}),
        ("g (int64 a, int64 b, int64 c) => (int64[n] y) { y = Range(a, b, c) }",
         {"a": np.int64(0), "b": np.int64(2**63 - 1), "c": np.int64(1)}),
        ("g (float[a,b] x, int64[4] r) => (float[c,d] y) { y = Pad(x, r) }",
         {"x": X[0, 0], "r": ints(LONG, 0, LONG, 0)}),
        ("g (int64[a] x, int64 d, int64[2] v) => (int64[b,c] y) { y = OneHot(x, d, v) }",
         {"x": ints(1, 2), "d": np.int64(LONG), "v": ints(0, 1)}),
    ],
)  # fmt: skip
def test_fed_sizes_beyond_memory_are_refused(
    body: str, feeds: dict[str, Any], providers: list[str] | None
) -> None:
    session = sx.InferenceSession(sx.load_text(HEAD + body), providers=providers)
    with pytest.raises((sx.EvaluationError, sx.OutOfMemoryError)) as met:
        session.run(None, feeds)
    assert "ValueError" not in str(met.value)


def test_repeats_that_differ_each_time_are_checked_each_time() -> None:
    session = sx.InferenceSession(sx.load_text(HEAD + FOUR + "{ y = Tile(x, r) }"))
    for count in range(1, 7):
        (found,) = session.run(None, {"x": X, "r": ints(count, 1, 1, 1)})
        assert found.shape == (count, 1, 1, 1)
    with pytest.raises(sx.EvaluationError, match="larger than any memory"):
        session.run(None, {"x": X, "r": ints(6, 6, LONG, 2**31)})
    assert session.run(None, {"x": X, "r": ints(2, 2, 1, 1)})[0].shape == (2, 2, 1, 1)


def test_what_numpy_multiplies_without_looking() -> None:
    with pytest.raises(sx.EvaluationError):
        repeat(np.zeros(4, np.int8), LONG, 0)
    with pytest.raises(sx.EvaluationError):
        tile(np.zeros((2, 2)), [LONG, 2])
    with pytest.raises(sx.EvaluationError):
        count_up(2**63 - 1)
    assert tile(np.zeros((0, 2)), [3, 2]).shape == (0, 4)
    assert tile(np.arange(2), [2, 2]).tolist() == [[0, 1, 0, 1]] * 2


def test_scales_in_blocks_do_not_repeat_too_often() -> None:
    text = (
        "g (float[4] x, float[4] s) => (y)"
        f"{{ y = QuantizeLinear<axis = 0, block_size = {LONG}>(x, s) }}"
    )
    with warnings_of("sardonyx.passes", "sardonyx.compiler"), pytest.raises(sx.SardonyxError):
        sx.evaluate(sx.load_text(HEAD + text), {"x": np.ones(4, np.float32),
                                                "s": np.ones(4, np.float32)})  # fmt: skip
