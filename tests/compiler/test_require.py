"""Sizes that forms rely on become agreements, or leave the node to its reference."""

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.compiler.derive import Definitions
from sardonyx.compiler.forms import (
    Axis,
    Contraction,
    Form,
    Gather,
    Join,
    NotLowered,
    Reshape,
    View,
    constant,
)
from sardonyx.compiler.lowerings import Agreement
from sardonyx.compiler.require import requirements
from sardonyx.dims import symbol
from sardonyx.dtypes import DataType
from sardonyx.errors import SardonyxError

FLOAT = DataType.FLOAT
N = symbol("n")
NONE = Definitions()
TABLE = constant(np.zeros((2, 3), np.float32))
OPEN = Form((N, 3), FLOAT)


@pytest.mark.parametrize(
    "form",
    [
        View((2, 4), FLOAT, TABLE, (Axis(0), Axis(1))),
        View((2,), FLOAT, TABLE, (Axis(0), Axis(None, 3))),
        View((2, 3), FLOAT, TABLE, (Axis(0, -1), Axis(1))),
        View((2, 3), FLOAT, TABLE, (Axis(0), Axis(1, 1, -1))),
        Reshape((7,), FLOAT, TABLE),
        Join((2, 7), FLOAT, (TABLE, TABLE), 1),
        Gather((2, 2), FLOAT, TABLE, constant(np.zeros(1, np.int64)), 1),
        Contraction((2, 3), FLOAT, TABLE, TABLE, 3),
    ],
)
def test_numbers_that_do_not_fit_are_refused(form: Form) -> None:
    with pytest.raises(NotLowered):
        requirements([form], {TABLE}, NONE)


def test_empty_views_may_begin_anywhere() -> None:
    assert requirements([View((0, 3), FLOAT, TABLE, (Axis(0, 2), Axis(1)))], {TABLE}, NONE) == []


def test_sizes_known_later_are_agreements() -> None:
    assert requirements([Reshape((6,), FLOAT, OPEN)], {OPEN}, NONE) == [Agreement(N * 3, 6)]
    (pair,) = requirements([View((3,), FLOAT, OPEN, (Axis(None, 4), Axis(0)))], {OPEN}, NONE)
    assert pair.right == 0


@pytest.mark.parametrize("rows", [1, 3, 17])
def test_updates_that_do_not_fit_a_scatter_are_an_error(rows: int) -> None:
    model = sx.load_text(
        '<ir_version: 10, opset_import: ["": 21]> g (float[a,b] x, int64[c,d] i, float[e,f] u)'
        " => (float[a,b] y) { y = ScatterElements<axis = 1>(x, i, u) }"
    )
    session = sx.InferenceSession(model)
    feeds = {
        "x": np.zeros((2, 5), np.float32),
        "i": np.zeros((2, 2), np.int64),
        "u": np.ones((rows, 2), np.float32),
    }
    with pytest.raises(SardonyxError):
        session.run(None, feeds)


def test_axes_out_of_range_are_an_error() -> None:
    model = sx.load_text(
        '<ir_version: 10, opset_import: ["": 21]> g (float[a,b] x) => (float[a,b] y)'
        " { y = LogSoftmax<axis = -1000>(x) }"
    )
    with pytest.raises(SardonyxError):
        sx.InferenceSession(model).run(None, {"x": np.zeros((2, 5), np.float32)})
