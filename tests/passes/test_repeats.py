"""Constants whose elements repeat lie in memory once until they are written."""

from collections.abc import Sequence

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.dtypes import DataType
from sardonyx.format.pages import mapping
from sardonyx.graph import Model, Opsets
from sardonyx.passes.fold_constants import fold_constants
from sardonyx.passes.fuse_convolution import fuse_convolution
from sardonyx.passes.merge_duplicates import merge_duplicates
from sardonyx.passes.repeats import compact, core, least_core, repeats
from tests.passes.cases import becomes, model_of, run_pass, weights

FILLED = """w = ConstantOfShape<value = float[1] {0.5}>(size)"""


def set_constants(model: Model, **arrays: np.ndarray) -> Model:
    for name, array in arrays.items():
        model.graph.value(name).tensor.set(array)
    return model


def constant(model: Model, name: str) -> np.ndarray:
    return model.graph.value(name).tensor.numpy()


@pytest.mark.parametrize(
    ("array", "expected"),
    [(np.ones((2, 3)), False), (np.ones((1, 1))[::, ::], False), (np.ones(()), False),
     (np.broadcast_to(np.float32(1), ()), False), (np.broadcast_to(np.float32(1), (1, 1)), False),
     (np.broadcast_to(np.float32(1), (2,)), True), (np.ones((3, 2)).T, False),
     (np.broadcast_to(np.ones((2, 1)), (2, 3)), True)],
)  # fmt: skip
def test_what_repeats(array: np.ndarray, expected: bool) -> None:
    assert repeats(array) is expected
    assert np.array_equal(np.broadcast_to(core(array), array.shape), array)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0,)])
def test_nothing_repeats_nothing(shape: Sequence[int]) -> None:
    empty = np.broadcast_to(np.float32(1), shape)
    assert core(empty).size == least_core(empty).size == 0


@pytest.mark.parametrize(
    ("column", "rows"), [((0.0, 0.0), 1), ((0.0, -0.0), 2), ((np.nan, np.nan), 1), ((1.0, 2.0), 2)]
)
def test_the_least_core_tells_bits_apart(column: tuple[float, float], rows: int) -> None:
    array = np.broadcast_to(np.array(column, np.float32)[:, None], (2, 5))
    assert least_core(array).shape == (rows, 1)


def test_filled_constants_take_no_memory() -> None:
    model = model_of("(float[300,400] x) => (float[300,400] y)", f"{FILLED} y = Mul(x, w)",
                     "int64[2] size = {300, 400}")  # fmt: skip
    result = becomes(model, ["Mul"], fold_constants)
    assert constant(result, "w").strides == (0, 0)
    assert not constant(result, "w").flags.writeable
    again = sx.load(sx.to_bytes(result))
    assert np.array_equal(constant(again, "w"), np.full((300, 400), 0.5, np.float32))


def test_expanded_constants_take_the_memory_of_what_is_expanded() -> None:
    model = model_of("(float[4,300,3] x) => (float[4,300,3] y)",
                     "w = Expand(v, size) y = Mul(x, w)", weights("v", 300, 1),
                     "int64[3] size = {4, 300, 3}")  # fmt: skip
    result = becomes(model, ["Mul"], fold_constants)
    assert constant(result, "w").strides == (0, 4, 0)


def test_constants_computed_from_repeated_ones() -> None:
    body = f"{FILLED} t = Transpose(w) u = Add(t, v) r = Reshape(u, flat) y = Mul(x, r)"
    model = model_of("(float[6] x) => (float[6] y)", body, "int64[2] size = {2, 3}",
                     weights("v", 3, 1), "int64[1] flat = {-1}")  # fmt: skip
    becomes(model, ["Mul"], fold_constants)


@pytest.mark.parametrize("dtype", [DataType.INT4, DataType.BFLOAT16, DataType.BOOL])
def test_repeated_elements_of_any_type_are_written(dtype: DataType) -> None:
    array = np.broadcast_to(np.ones(1, dtype.numpy), (300, 701))
    tensor = sx.Tensor(array, "w", dtype=dtype)
    graph = sx.Graph("g")
    graph.add_initializer(tensor, "w")
    again = sx.load(sx.to_bytes(sx.Model(graph, Opsets({"": 21}), ir_version=10)))
    assert np.array_equal(constant(again, "w"), array)


def test_arrays_out_of_order_are_written_in_order(tmp_path) -> None:
    array = np.arange(300 * 400, dtype=np.float32).reshape(300, 400).T
    graph = sx.Graph("g")
    graph.add_initializer(sx.Tensor(array), "w")
    model = sx.Model(graph, Opsets({"": 21}), ir_version=10)
    sx.save(model, tmp_path / "a.onnx")
    sx.save(model, tmp_path / "b.onnx", external_data=True)
    for name in ("a", "b"):
        assert np.array_equal(constant(sx.load(tmp_path / f"{name}.onnx"), "w"), array)
    assert (tmp_path / "a.onnx").read_bytes() == sx.to_bytes(model)


def test_a_normalization_of_repeated_weights() -> None:
    body = f"{FILLED} a = Conv(x, w) y = BatchNormalization(a, s, o, m, v)"
    norm = (weights("s", 4), weights("o", 4), weights("m", 4), weights("v", 4, positive=True))
    model = model_of("(float[n,2,5,5] x) => (float[n,4,3,3] y)", body,
                     "int64[4] size = {4, 2, 3, 3}", *norm)  # fmt: skip
    folded = becomes(model, ["Conv", "BatchNormalization"], fold_constants)
    result = becomes(folded, ["Conv"], fuse_convolution)
    made = result.graph.nodes[0].inputs[1]
    assert made is not None
    assert made.tensor.numpy().strides == (4, 0, 0, 0)


PAIR = "(float[60,50] x) => (float[60,50] y)"
PRODUCTS = "p = Mul(x, a) q = Mul(p, b) y = Mul(q, c)"
CONSTANTS = tuple(f"float[1] {name} = {{0}}" for name in "abc")


def merged(*arrays: np.ndarray) -> int:
    model = model_of(PAIR, PRODUCTS, *CONSTANTS)
    set_constants(model, **dict(zip("abc", arrays, strict=True)))
    return len(run_pass(model, merge_duplicates)[0].graph.initializers)


def test_equal_repeated_constants_are_kept_once() -> None:
    scalar = np.broadcast_to(np.float32(1), (60, 50))
    column = np.broadcast_to(np.ones((60, 1), np.float32), (60, 50))
    row = np.broadcast_to(np.ones(50, np.float32), (60, 50))
    assert merged(scalar, column, row) == 1
    assert merged(scalar, column, np.ones((60, 50), np.float32)) == 1
    other = np.ones((60, 1), np.float32)
    other[30] = 2
    assert merged(scalar, np.broadcast_to(other, (60, 50)), row) == 2


def test_equal_cores_along_other_axes_are_not_equal() -> None:
    ramp = np.ones(50, np.float32)
    ramp[25] = 2
    model = model_of("(float[50,50] x) => (float[50,50] y)", PRODUCTS, *CONSTANTS)
    column, row = (np.broadcast_to(item, (50, 50)) for item in (ramp[:, None], ramp))
    set_constants(model, a=column, b=row, c=column.copy())
    assert len(run_pass(model, merge_duplicates)[0].graph.initializers) == 2
    set_constants(model, a=column, b=row, c=np.broadcast_to(ramp[:, None].copy(), (50, 50)))
    assert len(run_pass(model, merge_duplicates)[0].graph.initializers) == 2


def test_results_are_the_callers_own() -> None:
    model = model_of("(int64[1] n) => (float[m] y)", "y = ConstantOfShape(n)")
    (found,) = sx.evaluate(model, {"n": np.array([3])})
    found += 1
    assert found.tolist() == [1, 1, 1]


def test_compact_arrays_hold_nothing_else() -> None:
    whole = np.arange(1000.0).reshape(20, 50)
    assert compact(whole) is whole
    turned = whole.T
    assert compact(turned) is turned
    part = compact(whole[3:5])
    assert part.base is None
    assert np.array_equal(part, whole[3:5])
    spread = compact(np.broadcast_to(whole[3:5, :1], (2, 600)))
    assert spread.strides[1] == 0
    assert core(spread).size == 2
    assert np.array_equal(spread[:, 7], whole[3:5, 0])


def test_slices_of_a_file_stay_in_it(tmp_path) -> None:
    body = (
        "a = Slice(w, zero, two) b = Slice(w, two, four) c = Concat<axis = 0>(b, a) y = Mul(x, c)"
    )
    numbers = ("int64[1] zero = {0}", "int64[1] two = {2}", "int64[1] four = {4}")
    signature = "(float[4,3] x) => (float[4,3] y)"
    model = model_of(signature, body, weights("w", 4, 3), *numbers)
    sx.save(model, tmp_path / "model.onnx")
    becomes(sx.load(tmp_path / "model.onnx"), ["Mul"], fold_constants)
    returned = "a = Slice(w, zero, two) y = Mul(x, a)"
    model = model_of("(float[2,3] x) => (float[2,3] y)", returned, weights("w", 4, 3), *numbers)
    result = becomes(model, ["Mul"], fold_constants)
    sx.save(model, tmp_path / "model.onnx")
    result = becomes(sx.load(tmp_path / "model.onnx"), ["Mul"], fold_constants)
    assert mapping(constant(result, "a")) is not None
    sx.save(result, tmp_path / "model.onnx")
    again = sx.load(tmp_path / "model.onnx")
    assert np.array_equal(constant(again, "a"), constant(result, "a"))


def test_a_value_read_twice_and_again_later() -> None:
    body = "a = Neg(w) b = Add(a, a) c = Mul(b, a) d = Sub(c, b) y = Add(x, d) z = Add(x, b)"
    model = model_of("(float[3] x) => (float[3] y, float[3] z)", body, weights("w", 3))
    becomes(model, ["Add", "Add"], fold_constants)
