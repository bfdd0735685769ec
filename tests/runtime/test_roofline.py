"""Kernels beside the machine's limits: their operations, their bytes, and the nearer limit."""

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.runtime.roofline import KernelRate, Limits, measure_limits, rate_kernels

HEAD = '<ir_version: 10, opset_import: ["": 21]>'
LIMITS = Limits(flops=1e9, bytes=1e9)


def rates(text: str, feeds: dict[str, np.ndarray]) -> list[KernelRate]:
    model = sx.load_text(HEAD + text)
    profile = sx.InferenceSession(model).profile(feeds, runs=2)
    return rate_kernels(profile, model, feeds, LIMITS)


@pytest.mark.parametrize("rows", [1, 7])
def test_a_product_with_what_is_fused_into_it(rows: int) -> None:
    x, w = np.ones((rows, 16), np.float32), np.ones((16, 32), np.float32)
    text = "g (float[n,16] x, float[16,32] w) => (y) { a = MatMul(x, w) y = Relu(a) }"
    found = rates(text, {"x": x, "w": w})
    assert sum(item.flops for item in found) == 2 * rows * 16 * 32
    assert sum(item.bytes for item in found) == 4 * (rows * 16 + 16 * 32 + rows * 32)


def test_maps_are_limited_by_memory() -> None:
    (item,) = rates("g (float[n] x) => (y) { a = Tanh(x) y = Neg(a) }", {"x": np.ones(64, "f4")})
    assert (item.flops, item.bytes) == (0, 512)
    assert item.share == pytest.approx(512 / 1e9 / item.seconds)


def test_sizes_of_dimensions_without_names() -> None:
    (item,) = rates("g (float[?,?] x) => (y) { y = Exp(x) }", {"x": np.ones((3, 5), "f4")})
    assert item.bytes == 120


def test_empty_inputs_have_no_bytes() -> None:
    assert all(item.bytes == 0 for item in rates(
        "g (float[n] x) => (y) { y = Exp(x) }", {"x": np.ones(0, "f4")}))  # fmt: skip


def test_limits_of_this_machine() -> None:
    one, two = measure_limits(1), measure_limits(2)
    assert one.flops > 1e8 and one.bytes > 1e7
    assert two.bytes > 1e7
    assert LIMITS.seconds(2e9, 1e9) == 2 and LIMITS.seconds(0, 3e9) == 3
