"""Steps of optimizers, by their formulas."""

import numpy as np
import pytest

from sardonyx.errors import InferenceError, SardonyxError
from tests.ops.one_node import inferred, one_node, run_here, same

DOMAIN = "ai.onnx.preview.training"


def step(op_type, variables, rate=0.1, count=3, dtype=np.float32, **attributes):
    """The outputs for variables, each a tuple of itself, its gradient and its states."""
    parts = len(variables[0])
    inputs = {"R": np.array(rate, np.float32), "T": np.array(count)}
    for part in range(parts):
        for index, variable in enumerate(variables):
            inputs[f"v{part}_{index}"] = np.array(variable[part], dtype)
    outputs = [f"o{index}" for index in range(len(variables) * (parts - 1))]
    content = one_node(op_type, inputs, outputs, domain=DOMAIN, **attributes)
    return run_here(content, inputs), inferred(content)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_adagrad(dtype):
    results, types = step("Adagrad", [([1, 2], [0.5, -1], [2, 3]), ([4], [1], [0])], dtype=dtype,
                          decay_factor=0.2, epsilon=1e-3, norm_coefficient=0.01)  # fmt: skip
    gradients = [np.array([0.51, -0.98]), np.array([1.04])]
    squares = [np.array([2, 3]) + gradients[0] ** 2, gradients[1] ** 2]
    expected = [
        np.array(x) - 0.1 / (1 + 3 * 0.2) * g / (np.sqrt(h) + 1e-3)
        for x, g, h in zip(([1, 2], [4]), gradients, squares, strict=True)
    ]
    same(results, [item.astype(dtype) for item in (*expected, *squares)])
    text = "float" if dtype == np.float32 else "double"
    assert types == [f"{text}[2]", f"{text}[1]"] * 2


@pytest.mark.parametrize("count", [0, 3])
def test_adam(count):
    results, types = step("Adam", [([1.0, 2], [0.5, -1], [0.1, 0.2], [2, 3])], count=count,
                          alpha=0.8, beta=0.9, epsilon=1e-3,
                          norm_coefficient_post=0.01)  # fmt: skip
    gradient = np.array([0.5, -1])
    mean = 0.8 * np.array([0.1, 0.2]) + 0.2 * gradient
    squares = 0.9 * np.array([2, 3]) + 0.1 * gradient**2
    rate = 0.1 if count == 0 else 0.1 * np.sqrt(1 - 0.9**count) / (1 - 0.8**count)
    new = 0.99 * (np.array([1, 2]) - rate * mean / (np.sqrt(squares) + 1e-3))
    same(results, [item.astype(np.float32) for item in (new, mean, squares)])
    assert types == ["float[2]"] * 3


@pytest.mark.parametrize("count", [0, 3])
@pytest.mark.parametrize("mode", ["standard", "nesterov"])
def test_momentum(mode, count):
    results, _ = step("Momentum", [([1.0, 2], [0.5, -1], [0.1, 0.2])], count=count, alpha=0.8,
                      beta=0.3, norm_coefficient=0.1, mode=mode)  # fmt: skip
    gradient = np.array([0.6, -0.8])
    momentum = 0.8 * np.array([0.1, 0.2]) + (0.3 if count else 1) * gradient
    move = momentum if mode == "standard" else gradient + 0.8 * momentum
    same(results, [item.astype(np.float32) for item in (np.array([1, 2]) - 0.1 * move, momentum)])


def test_wrong_models_are_refused():
    attributes = {"alpha": 0.8, "beta": 0.3, "norm_coefficient": 0.1, "mode": "heavy"}
    inputs = {"R": np.float32(0.1), "T": np.array(1), "a": np.float32([1]), "b": np.float32([1])}
    inputs = {name: np.asarray(item) for name, item in inputs.items()}
    content = one_node("Momentum", inputs, ["x", "y"], domain=DOMAIN, **attributes)
    with pytest.raises(InferenceError, match="heavy"):
        inferred(content)
    with pytest.raises(SardonyxError, match="heavy"):
        run_here(content, inputs)
    attributes["mode"] = "standard"
    content = one_node("Momentum", inputs, ["x", "y"], domain=DOMAIN, **attributes)
    with pytest.raises(SardonyxError, match="2 inputs are no 3 for each variable"):
        run_here(content, inputs)
