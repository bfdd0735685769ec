"""LSTM with quantized weights."""

import numpy as np
import pytest

from sardonyx.errors import EvaluationError
from tests.ops.contrib_case import Draw, check, run_here

STEPS, BATCH, INPUT, HIDDEN = 4, 3, 5, 6


@pytest.fixture
def draw():
    return Draw()


def layer(draw, dtype, directions, *, each):
    """W, R, and a function that makes scales and zero points for one of them."""
    low, high, centre = (-60, 60, 0) if dtype == np.int8 else (60, 200, 128)
    shape = (directions, 4 * HIDDEN) if each else (directions,)

    def parameters():
        scale = np.abs(draw.floats(*shape)) * np.float32(0.01) + np.float32(0.003)
        return [scale, np.full(shape, centre, dtype)]

    weights = [
        draw.whole(low, high, directions, size, 4 * HIDDEN, dtype=dtype) for size in (INPUT, HIDDEN)
    ]
    return weights, [*parameters(), *parameters()]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_dynamic_quantize_lstm(draw, dtype, direction, each, whole):
    directions = 2 if direction == "bidirectional" else 1
    weights, parameters = layer(draw, dtype, directions, each=each)
    attributes = {"hidden_size": HIDDEN, "direction": direction}
    rest = [draw.floats(directions, 8 * HIDDEN) * 0.1, None, None, None, None]
    if whole:
        states = [draw.floats(directions, BATCH, HIDDEN) for _ in range(2)]
        peepholes = draw.floats(directions, 3 * HIDDEN) * 0.1
        rest = [None, np.array([4, 2, 3], np.int32), *states, peepholes]
        attributes["clip"] = 3.0
    inputs = [draw.floats(STEPS, BATCH, INPUT), *weights, *rest, *parameters]
    inputs = [item if item is None or item.dtype != np.float64 else item.astype(np.float32)
              for item in inputs]  # fmt: skip
    constants = (1, 2, 8, 9, 10, 11)
    check("DynamicQuantizeLSTM", inputs, attributes, 3, constants=constants, rtol=0, atol=1e-2)


def test_lengths_must_fit(draw):
    weights, parameters = layer(draw, np.int8, 1, each=False)
    rest = [None, np.array([5, 1, 1], np.int32), None, None, None]
    inputs = [draw.floats(STEPS, BATCH, INPUT), *weights, *rest, *parameters]
    with pytest.raises(EvaluationError, match="do not fit 3 sequences of 4 steps"):
        run_here("DynamicQuantizeLSTM", inputs, {"hidden_size": HIDDEN}, 3)
