"""Activations and reductions of numbers from all over their types, as the reference has them."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import sardonyx as sx
from sardonyx.compiler.program import compile_model

TYPES = {
    "float": np.dtype(np.float32),
    "double": np.dtype(np.float64),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
}


def odd(dtype: np.dtype[Any]) -> Any:
    """Both ends of a type, what lies around 0, and what is no number."""
    facts = ml_dtypes.finfo(dtype)
    ends = [float(facts.max), float(facts.tiny), float(facts.smallest_subnormal)]
    sizes = [*ends, 0.0, 1e-30, 1e-5, 0.01, 0.2, 0.2499, 0.26, 0.5, 1, 5, 20, 90, np.inf]
    with np.errstate(all="ignore"):
        return np.array([*sizes, *[-item for item in sizes], np.nan, -1.5]).astype(dtype)


def near(model: sx.Model, feeds: dict[str, Any]) -> None:
    """Native code gives what the reference gives, within a few steps of the type."""
    found, expected = compile_model(model, threads=1).run(feeds), sx.evaluate(model, feeds)
    for one, other in zip(found, expected, strict=True):
        facts = ml_dtypes.finfo(other.dtype)
        steps = 2 if other.dtype.itemsize == 2 else 8
        np.testing.assert_allclose(
            one.astype(np.float64), other.astype(np.float64), rtol=steps * float(facts.eps),
            atol=8 * float(facts.smallest_subnormal),
        )  # fmt: skip


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(
    "unit", ["Elu", "Elu <alpha = 3.5>", "Selu", "Celu", "Celu <alpha = 3.0>", "Celu <alpha = -2.>"]
)
def test_an_exponential_less_one_keeps_its_digits(unit: str, kind: str) -> None:
    text = f"g ({kind}[n] x) => ({kind}[n] y) {{ y = {unit} (x) }}"
    model = sx.load_text(f'<ir_version: 10, opset_import: ["": 28]> {text}')
    near(model, {"x": odd(TYPES[kind])})


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("keep", [0, 1])
@pytest.mark.parametrize(
    "name", ["L1", "L2", "LogSum", "LogSumExp", "SumSquare", "Sum", "Mean", "Prod", "Max", "Min"]
)
def test_over_no_axes_the_function_still_applies(name: str, keep: int, kind: str) -> None:
    text = f"""g ({kind}[5,6] x) => ({kind}[5,6] y) {{
        a = Constant <value = int64[0] {{}}> ()
        y = Reduce{name} <noop_with_empty_axes = 1, keepdims = {keep}> (x, a) }}"""
    model = sx.load_text(f'<ir_version: 10, opset_import: ["": 22]> {text}')
    near(model, {"x": odd(TYPES[kind])[:30].reshape(5, 6)})


def test_whole_numbers_are_squared_over_no_axes() -> None:
    text = """g (int32[4] x) => (int32[4] y, int32[4] z) {
        a = Constant <value = int64[0] {}> ()
        y = ReduceSumSquare <noop_with_empty_axes = 1> (x, a)
        z = ReduceL1 <noop_with_empty_axes = 1> (x) }"""
    model = sx.load_text(f'<ir_version: 10, opset_import: ["": 22]> {text}')
    squares, sizes = compile_model(model, threads=1).run({"x": np.int32([5, -3, 0, 2])})
    np.testing.assert_array_equal(squares, [25, 9, 0, 4])
    np.testing.assert_array_equal(sizes, [5, 3, 0, 2])
