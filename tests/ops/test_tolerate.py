"""Broken rules that other runtimes forgive."""

import numpy as np
import pytest

import sardonyx as sx
from tests.logged import warnings_of


@pytest.mark.parametrize(
    ("count", "names"),
    [(1, "'c0'"), (3, "'c0', 'c1', 'c2'"), (50, "'c0', 'c1', 'c2' and 47 more")],
)
def test_constants_made_twice_are_one_notice(count: int, names: str) -> None:
    makers = [f"c{n} = Constant<value_float = {w}.0>()" for w in (1, 2) for n in range(count)]
    inputs = ", ".join(f"c{n}" for n in range(count))
    model = sx.load_text(
        '<ir_version: 10, opset_import: ["": 21]> g (float x) => (float y)'
        f" {{ {' '.join(makers)} y = Sum(x, {inputs}) }}"
    )
    with warnings_of("sardonyx") as messages:
        (y,) = sx.InferenceSession(model).run(None, {"x": np.float32(0)})
    assert y == 2 * count
    assert messages == [f"made by more than one Constant, the last one is used: {names}"]
