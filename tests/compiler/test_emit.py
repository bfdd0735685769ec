"""Machine code does what the interpreter says, and math functions keep their stated error."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from sardonyx.compiler.host import host_features
from sardonyx.compiler.targets import TARGETS, WASM, Target
from sardonyx.dims import symbol
from sardonyx.dtypes import DataType
from sardonyx.loops import interpret
from sardonyx.loops.build import constant, dense, kernel, variable
from sardonyx.loops.nodes import (
    Binary,
    Cast,
    Dot,
    Guard,
    Kernel,
    Kind,
    Let,
    Load,
    Loop,
    Read,
    Register,
    Select,
    Store,
    Unary,
    Update,
    Whole,
)
from tests.compiler.browser import needs_node
from tests.compiler.native import run_native

RUNNABLE = [target for target in TARGETS if host_features().issuperset(target.needs)]
targets = pytest.mark.parametrize(
    "target", [*RUNNABLE, pytest.param(WASM, marks=needs_node)], ids=lambda target: target.name
)
FLOAT = DataType.FLOAT


def both(made: Kernel, arrays: dict[str, NDArray], names: dict[str, int], target: Target) -> None:
    """Assert that machine code and interpreter leave the same in every array."""
    expected = {name: array.copy() for name, array in arrays.items()}
    interpret(made, expected, names)
    run_native(made, arrays, names, target)
    for name, array in arrays.items():
        np.testing.assert_allclose(array, expected[name], rtol=2e-6, atol=1e-6)


@targets
@pytest.mark.parametrize("size", [0, 1, 3, 4, 15, 16, 17, 33, 100])
def test_vector_loop_with_any_tail(target: Target, size: int) -> None:
    name, i = variable("i")
    n = symbol("n")
    x, y = dense("x", FLOAT, (n,)), dense("y", FLOAT, (n,))
    value = Binary("max", Binary("sub", Load(x, (i,)), constant(0.5)), constant(0.0))
    made = kernel([Loop(name, n, (Store(y, (i,), value),), Kind.VECTOR)])
    rng = np.random.default_rng(0)
    arrays = {"x": rng.standard_normal(size + 1, np.float32), "y": np.full(size + 1, 7, np.float32)}
    both(made, arrays, {"n": size}, target)


@targets
@pytest.mark.parametrize("combine", ["add", "max", "min", "mul"])
@pytest.mark.parametrize("size", [1, 5, 16, 63, 64, 130, 300])
def test_reduction_along_rows(target: Target, combine: str, size: int) -> None:
    (outer, i), (inner, j) = variable("i"), variable("j")
    rows = symbol("rows")
    x, y = dense("x", FLOAT, (rows, size)), dense("y", FLOAT, (rows,))
    initial = {"add": 0.0, "mul": 1.0, "max": -math.inf, "min": math.inf}[combine]
    body = (
        Register("total", FLOAT, (), initial),
        Loop(inner, size, (Update("total", combine, Load(x, (i, j))),), Kind.VECTOR),
        Store(y, (i,), Read("total", FLOAT)),
    )
    made = kernel([Loop(outer, rows, body, Kind.PARALLEL)])
    values = 1 + np.random.default_rng(1).standard_normal(3 * size, np.float32) * 0.01
    both(made, {"x": values, "y": np.zeros(3, np.float32)}, {"rows": 3}, target)


@targets
@pytest.mark.parametrize("size", [1, 16, 21])
def test_strided_access_both_ways(target: Target, size: int) -> None:
    (outer, i), (inner, j) = variable("i"), variable("j")
    x, y = dense("x", FLOAT, (size, 3)), dense("y", FLOAT, (3, size))
    across = Loop(inner, size, (Store(y, (i, j), Load(x, (j, i))),), Kind.VECTOR)
    back = Loop(inner, size, (Store(x, (j, i), Unary("neg", Load(y, (i, j)))),), Kind.VECTOR)
    made = kernel([Loop(outer, 3, (across, back))])
    values = np.arange(size * 3, dtype=np.float32)
    both(made, {"x": values, "y": np.zeros(size * 3, np.float32)}, {}, target)


@targets
@pytest.mark.parametrize("columns", [10, 16, 32, 40])
def test_register_tile_with_guarded_columns(target: Target, columns: int) -> None:
    width = 2 * target.lanes
    panels = -(-columns // width)
    (pn, p), (kn, k), (rn, r), (vn, v), (ln, lane) = (variable(word) for word in "pkrvl")
    a, c = dense("a", FLOAT, (3, 5)), dense("c", FLOAT, (3, columns))
    b = dense("b", FLOAT, (panels, 5, width))
    column = v * target.lanes + lane
    product = Binary("mul", Load(a, (r, k)), Load(b, (p, k, column)))

    def tile(body: object) -> Loop:
        inner = Loop(ln, target.lanes, (body,), Kind.VECTOR)  # type: ignore[arg-type]
        return Loop(rn, 3, (Loop(vn, 2, (inner,), Kind.UNROLL),), Kind.UNROLL)

    store = Store(c, (r, p * width + column), Read("t", FLOAT, (r, column)))
    body = (
        Register("t", FLOAT, (3, width), 0.0, lanes=True),
        Loop(kn, 5, (tile(Update("t", "add", product, (r, column))),)),
        tile(Guard(p * width + column, columns, (store,))),
    )
    rng = np.random.default_rng(2)
    arrays = {
        "a": rng.standard_normal(15, np.float32),
        "b": rng.standard_normal(panels * 5 * width, np.float32),
        "c": np.zeros(3 * columns, np.float32),
    }
    both(kernel([Loop(pn, panels, body, Kind.PARALLEL)]), arrays, {}, target)


@targets
def test_integers_bools_and_named_integers(target: Target) -> None:
    (outer, i), (inner, j) = variable("i"), variable("j")
    row = symbol("%row")
    indices, table = dense("indices", DataType.INT64, (4,)), dense("table", FLOAT, (9, 20))
    flags, y = dense("flags", DataType.BOOL, (4, 20)), dense("y", DataType.INT32, (4, 20))
    element = Load(table, (row, j))
    body = (
        Store(flags, (i, j), Binary("lt", element, constant(0.0))),
        Store(
            y,
            (i, j),
            Cast(Select(Load(flags, (i, j)), Cast(Whole(j + i), FLOAT), element), DataType.INT32),
        ),
    )
    made = kernel(
        [Loop(outer, 4, (Let("%row", Load(indices, (i,))), Loop(inner, 20, body, Kind.VECTOR)))]
    )
    rng = np.random.default_rng(3)
    arrays = {
        "indices": np.array([8, 0, 3, 3]),
        "table": (rng.standard_normal(180) * 9).astype(np.float32),
        "flags": np.zeros(80, np.bool_),
        "y": np.zeros(80, np.int32),
    }
    both(made, arrays, {}, target)


def apply_unary(name: str, values: NDArray[np.float32], target: Target) -> NDArray[np.float32]:
    index, i = variable("i")
    x, y = (dense(word, FLOAT, (values.size,)) for word in "xy")
    result = np.zeros_like(values)
    body = Store(y, (i,), Unary(name, Load(x, (i,))))
    run_native(
        kernel([Loop(index, values.size, (body,), Kind.VECTOR)]),
        {"x": values, "y": result},
        {},
        target,
    )
    return result


MATH = {
    "exp": (np.exp, -87, 88.7, 1.5),
    "log": (np.log, 1e-30, 1e30, 1.5),
    "tanh": (np.tanh, -12, 12, 2.5),
    "erf": (np.vectorize(math.erf), -5, 5, 2.0),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), -80, 80, 3.0),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1e-20, 1e20, 2.0),
}


@targets
@pytest.mark.parametrize("name", MATH)
def test_math_keeps_its_stated_error(target: Target, name: str) -> None:
    exact, low, high, limit = MATH[name]
    if low > 0:
        values = np.geomspace(low, high, 40001).astype(np.float32)
        values = np.concatenate([values, np.linspace(0.5, 2.0, 20001, dtype=np.float32)])
    else:
        values = np.linspace(low, high, 40001, dtype=np.float32)
        values = np.concatenate([values, np.linspace(-1.5, 1.5, 20001, dtype=np.float32)])
    expected = exact(values.astype(np.float64))
    error = np.abs(apply_unary(name, values, target) - expected) / np.spacing(
        np.abs(expected).astype(np.float32)
    )
    assert error.max() <= limit, f"{error.max():.2f} ulp at {values[error.argmax()]}"


@targets
@pytest.mark.parametrize("name", ["exp", "log", "tanh", "erf", "sigmoid"])
def test_math_of_special_values(target: Target, name: str) -> None:
    values = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, 1e-40, 200.0, -200.0], np.float32)
    with np.errstate(all="ignore"):
        expected = MATH[name][0](values.astype(np.float64)).astype(np.float32)
    found = apply_unary(name, values, target)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-44)


@targets
def test_a_square_is_turned(target: Target) -> None:
    lanes = target.lanes
    (outer, i), (inner, j) = variable("i"), variable("j")
    x, y = (dense(name, FLOAT, (lanes, lanes)) for name in "xy")
    copy = Loop(inner, lanes, (Store(y, (j, i), Load(x, (i, j))),), Kind.VECTOR)
    made = kernel([Loop(outer, lanes, (copy,), Kind.TURN)])
    values = np.arange(lanes * lanes, dtype=np.float32)
    both(made, {"x": values, "y": np.zeros_like(values)}, {}, target)


@pytest.mark.parametrize("dtype", [DataType.INT8, DataType.UINT8, DataType.INT16])
def test_a_narrow_store_of_one_lane_leaves_what_lies_behind(dtype: DataType) -> None:
    source, result = dense("s", DataType.INT32, (17,)), dense("t", dtype, (17,))
    name, i = variable("i")
    copy = Store(result, (i,), Cast(Load(source, (i,)), dtype))
    memories = {
        "s": np.arange(300, 317, dtype=np.int32),
        "t": np.full(24, 77, dtype.numpy),
    }
    run_native(kernel([Loop(name, 17, (copy,), Kind.VECTOR)]), memories)
    np.testing.assert_array_equal(memories["t"][:17], memories["s"].astype(dtype.numpy))
    np.testing.assert_array_equal(memories["t"][17:], 77)


@targets
def test_sums_of_four_products_of_bytes_are_exact(target: Target) -> None:
    ends = np.array([0, 255, 1, 254], np.uint8), np.array([-128, 127, -1, 0], np.int8)
    left = np.array([np.roll(ends[0], n) for n in range(18)]).view(np.int32).reshape(-1)
    right = np.array([np.roll(ends[1], n // 4) for n in range(18)]).view(np.int32).reshape(-1)
    buffers = [dense(word, DataType.INT32, (18,)) for word in "lrt"]
    name, i = variable("i")
    dot = Dot(Load(buffers[0], (i,)), Load(buffers[1], (i,)))
    body = kernel([Loop(name, 18, (Store(buffers[2], (i,), dot),), Kind.VECTOR)])
    both(body, {"l": left, "r": right, "t": np.zeros(18, np.int32)}, {}, target)


@targets
def test_sums_of_two_products_of_bfloat16(target: Target) -> None:
    halves = np.array([1.5, -2.0, 3.0e38, 0.0, np.inf, np.nan, -0.25, 1.0e-30], np.float32)
    left = np.array([np.roll(halves, n)[:2] for n in range(18)])
    right = np.array([np.roll(halves, n // 8 + 2 * n)[:2] for n in range(18)])
    words = [side.astype(DataType.BFLOAT16.numpy).view(np.int32)[:, 0] for side in (left, right)]
    buffers = [dense(word, DataType.INT32, (18,)) for word in "lr"]
    total = dense("t", DataType.FLOAT, (18,))
    name, i = variable("i")
    dot = Dot(Load(buffers[0], (i,)), Load(buffers[1], (i,)), DataType.FLOAT)
    body = kernel([Loop(name, 18, (Store(total, (i,), dot),), Kind.VECTOR)])
    memories = dict(zip("lr", words, strict=True)) | {"t": np.zeros(18, np.float32)}
    with np.errstate(all="ignore"):
        both(body, memories, {}, target)
