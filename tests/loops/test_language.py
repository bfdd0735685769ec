"""The kernel language: its text, its rules, its meaning, and rewriting."""

import numpy as np
import pytest

from sardonyx.dims import symbol
from sardonyx.dtypes import DataType
from sardonyx.loops import interpret, kernel_text, verify
from sardonyx.loops.build import constant, dense, kernel, nest, variable
from sardonyx.loops.nodes import (
    Binary,
    Buffer,
    Cast,
    Constant,
    Guard,
    Kernel,
    Kind,
    Let,
    Load,
    Loop,
    Read,
    Register,
    Select,
    Statement,
    Store,
    Unary,
    Update,
    Whole,
)
from sardonyx.loops.rewrite import flattened, merge_axes
from sardonyx.loops.verify import KernelError

FLOAT = DataType.FLOAT
N = symbol("n")
ROW_NAME, ROW = variable("i")
COLUMN_NAME, COLUMN = variable("j")


def row_sums() -> Kernel:
    """y[i] = sum of x[i, :], for n rows of 3."""
    x, y = dense("x", FLOAT, (N, 3)), dense("y", FLOAT, (N,))
    body = (
        Register("total", FLOAT, (), 0.0),
        Loop(COLUMN_NAME, 3, (Update("total", "add", Load(x, (ROW, COLUMN))),), Kind.VECTOR),
        Store(y, (ROW,), Read("total", FLOAT)),
    )
    return kernel([Loop(ROW_NAME, N, body, Kind.PARALLEL)])


def test_text_shows_every_part() -> None:
    assert kernel_text(row_sums()).splitlines() == [
        "kernel(x, y, n)",
        "  x: float[n, 3] strides [3, 1]",
        "  y: float[n] strides [1]",
        "  parallel %i in n:",
        "    register total: float[] = 0.0",
        "    vector %j in 3:",
        "      total[] add= x[%i, %j]",
        "    y[%i] = total[]",
    ]


def test_text_of_shared_parts_is_linear() -> None:
    x = dense("x", FLOAT, (4,))
    value: Binary | Load = Load(x, (ROW,))
    for _ in range(60):
        value = Binary("mul", value, value)
    made = kernel([Loop(ROW_NAME, 4, (Store(x, (ROW,), value),))])
    verify(made)
    assert len(kernel_text(made)) < 4000


def test_interpreter_gives_the_meaning() -> None:
    x = np.arange(6, dtype=np.float32)
    y = np.zeros(2, np.float32)
    interpret(row_sums(), {"x": x, "y": y}, {"n": 2})
    assert y.tolist() == [3.0, 12.0]


def test_guards_names_choices_and_casts() -> None:
    indices, y = dense("k", DataType.INT64, (3,)), dense("y", DataType.INT32, (3,))
    at = symbol("%at")
    chosen = Select(
        Binary("lt", Whole(ROW), Constant(1, DataType.INT64)),
        Cast(constant(7.9), DataType.INT32),
        Cast(Whole(ROW + at), DataType.INT32),
    )
    body: tuple[Statement, ...] = (
        Let("%at", Load(indices, (ROW,))),
        Guard(at, 2, (Store(y, (at,), chosen),)),
    )
    result = np.full(3, -1, np.int32)
    made = kernel([Loop(ROW_NAME, 3, body)])
    verify(made)
    interpret(made, {"k": np.array([1, 2, 0]), "y": result})
    assert result.tolist() == [2, 7, -1]


def test_the_interpreter_checks_bounds() -> None:
    x = dense("x", FLOAT, (3,))
    made = kernel([Loop(ROW_NAME, 4, (Store(x, (ROW,), constant(0.0)),))])
    with pytest.raises(IndexError, match="index 3 of x"):
        interpret(made, {"x": np.zeros(8, np.float32)})


X = dense("x", FLOAT, (4, 4))
MALFORMED: dict[str, tuple[Statement, ...]] = {
    "2 indices|1 indices": (Store(X, (0,), constant(0.0)),),
    "takes another type": (Store(X, (0, 0), constant(0, DataType.INT64)),),
    "is not declared": (Update("r", "add", constant(1.0)),),
    "add of float and int64": (
        Store(X, (0, 0), Binary("add", constant(1.0), constant(1, DataType.INT64))),
    ),
    "exp of int64": (Store(X, (0, 0), Cast(Unary("exp", constant(1, DataType.INT64)), FLOAT)),),
    "unrolled loop": (Loop(ROW_NAME, N, (Store(X, (ROW, 0), constant(0.0)),), Kind.UNROLL),),
    "inside a vector loop": nest(
        [(ROW_NAME, 4), (COLUMN_NAME, 4)], (Store(X, (ROW, COLUMN), constant(0.0)),), Kind.VECTOR
    ),
    "not outermost": (
        Loop(
            ROW_NAME,
            4,
            (Loop(COLUMN_NAME, 4, (Store(X, (ROW, COLUMN), constant(0.0)),), Kind.PARALLEL),),
        ),
    ),
    "loop variable": nest([(ROW_NAME, 4), (ROW_NAME, 4)], (Store(X, (ROW, 0), constant(0.0)),)),
    "turning loop": (Loop(ROW_NAME, 4, (Store(X, (ROW, 0), constant(0.0)),), Kind.TURN),),
    "loop of steps": (Loop(ROW_NAME, 4, (Store(X, (ROW, 0), constant(0.0)),), Kind.STEPS),),
    "combiner": (Register("r", FLOAT, (), 0.0), Update("r", "sub", constant(1.0))),
}


@pytest.mark.parametrize("message", MALFORMED)
def test_malformed_kernels_are_refused(message: str) -> None:
    with pytest.raises(KernelError, match=message):
        verify(kernel(MALFORMED[message]))


def test_unbound_names_are_refused() -> None:
    made = Kernel(("x",), (), (Store(X, (ROW, 0), constant(0.0)),))
    with pytest.raises(KernelError, match="unbound %i"):
        verify(made)


def test_axes_merge_where_memory_allows_it() -> None:
    y, row = dense("y", FLOAT, (N, 5)), dense("r", FLOAT, (5,))
    x = dense("x", FLOAT, (N, 5))
    axes = [(ROW_NAME, N), (COLUMN_NAME, 5)]
    plain: tuple[Statement, ...] = (Store(y, (ROW, COLUMN), Load(x, (ROW, COLUMN))),)
    assert merge_axes(axes, plain) == ([(COLUMN_NAME, N * 5)], {ROW_NAME: 0})
    broadcast: tuple[Statement, ...] = (Store(y, (ROW, COLUMN), Load(row, (COLUMN,))),)
    assert merge_axes(axes, broadcast) == (axes, {})
    turned = Buffer("x", FLOAT, (N, 5), (1, N))
    assert merge_axes(axes, (Store(y, (ROW, COLUMN), Load(turned, (ROW, COLUMN))),)) == (axes, {})


def test_merged_and_flat_kernels_mean_the_same() -> None:
    x, y = dense("x", FLOAT, (3, 5)), dense("y", FLOAT, (3, 5))
    body: tuple[Statement, ...] = (Store(y, (ROW, COLUMN), Unary("neg", Load(x, (ROW, COLUMN)))),)
    axes, gone = merge_axes([(ROW_NAME, 3), (COLUMN_NAME, 5)], body)
    values = np.arange(15, dtype=np.float32)
    result = np.zeros(15, np.float32)
    interpret(kernel(nest(axes, flattened(body, gone))), {"x": values, "y": result})
    assert result.tolist() == (-values).tolist()
