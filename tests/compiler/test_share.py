"""Kernels that differ only in numbers share one, which does for each what its own would."""

from itertools import pairwise

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.compiler import share
from sardonyx.compiler.compile import build_parts
from sardonyx.compiler.host import host_target
from sardonyx.compiler.numbering import Numbering
from sardonyx.compiler.program import compile_model
from sardonyx.compiler.share import OWN, Family, family_text
from sardonyx.dims import Size, minimum, symbol
from sardonyx.dtypes import DataType
from sardonyx.loops import Kernel, interpret, kernel_text
from sardonyx.loops.build import constant, dense, kernel
from sardonyx.loops.nodes import (
    Binary,
    Kind,
    Load,
    Loop,
    Register,
    Store,
    Unary,
    Update,
    Whole,
)
from sardonyx.ops.catalog import standard
from tests.compiler.native import run_native

FLOAT = DataType.FLOAT
ROW, COLUMN = symbol("%i"), symbol("%j")


def scaled_rows(rows: int, columns: int, factor: float = 2.0) -> Kernel:
    """y = x * factor, as vectors, behind a gap of a row."""
    x, y = dense("x", FLOAT, (rows, columns)), dense("y", FLOAT, (rows + 1, columns))
    body = Store(y, (ROW + 1, COLUMN), Binary("mul", Load(x, (ROW, COLUMN)), constant(factor)))
    inner = Loop("%j", minimum(columns, 1000 - ROW), (body,), Kind.VECTOR)
    return kernel([Loop("%i", rows, (inner,))])


def total(columns: int) -> Kernel:
    """The sum of a row, and its root."""
    x, y = dense("x", FLOAT, (columns,)), dense("y", FLOAT, (1,))
    take = Update("sum", "add", Load(x, (COLUMN,)))
    made = Store(y, (0,), Unary("sqrt", constant(1.0)))
    return kernel([Register("sum", FLOAT, (), 0), Loop("%j", columns, (take,), Kind.VECTOR), made])


def family(*members: Kernel) -> Family:
    assert len({family_text(kernel_text(item)) for item in members}) == 1
    return Family(list(members))


@pytest.mark.parametrize("rows,columns", [(2, 2), (3, 15), (5, 16), (4, 17), (7, 100)])
def test_one_kernel_does_what_each_would(rows: int, columns: int) -> None:
    found = family(scaled_rows(9, 40), scaled_rows(11, 41)).find(scaled_rows(rows, columns))
    assert found is not None
    general, numbers = found
    rng = np.random.default_rng(0)
    x = rng.standard_normal((rows, columns)).astype(np.float32)
    expected = {"x": x, "y": np.full((rows + 1, columns), 7, np.float32)}
    shown = {"x": x, "y": expected["y"].copy()}
    native = {"x": x, "y": expected["y"].copy()}
    run_native(scaled_rows(rows, columns), expected)
    interpret(general.kernel, shown, numbers)
    run_native(general.kernel, native, numbers)
    np.testing.assert_array_equal(shown["y"], expected["y"])
    np.testing.assert_array_equal(native["y"], expected["y"])


def test_equal_numbers_stay_numbers() -> None:
    found = family(scaled_rows(9, 40), scaled_rows(11, 40)).find(scaled_rows(5, 40))
    assert found is not None and set(found[1].values()) == {5, 6}
    assert "40" in kernel_text(found[0].kernel)


def test_the_first_kernels_keep_their_numbers() -> None:
    assert (
        family(*[scaled_rows(9, 40 + n) for n in range(OWN - 1)]).find(scaled_rows(5, 50)) is None
    )


def test_a_second_general_kernel_where_the_first_does_not_fit() -> None:
    group = family(scaled_rows(9, 40), scaled_rows(11, 40))
    first = group.find(scaled_rows(5, 40))
    second = group.find(scaled_rows(5, 50))
    third = group.find(scaled_rows(6, 60))
    assert first is not None and second is not None and third is not None
    assert first[0] is not second[0] and third[0] is second[0]


@pytest.mark.parametrize("other", [scaled_rows(9, 40, factor=3.0), scaled_rows(1, 40)])
def test_constants_and_single_elements_are_families_of_their_own(other: Kernel) -> None:
    group = family(scaled_rows(9, 41), scaled_rows(8, 42), other)
    assert group.members.pop() is other
    assert group.find(other) is None
    assert group.find(scaled_rows(7, 43)) is not None


def test_sums_over_other_extents_are_not_shared() -> None:
    assert family(total(40), total(41)).find(total(42)) is None


def test_kernels_that_differ_in_too_many_numbers_are_not_shared() -> None:
    def many(first: int) -> Kernel:
        x = dense("x", DataType.INT64, (4000,))
        numbers = [first * (n + 2) ** 2 + n for n in range(share.MOST + 1)]
        return kernel([Store(x, (number,), Whole(5)) for number in numbers])

    assert family(many(2), many(3)).find(many(4)) is None


def test_parameters_for_numbers_below_zero_hold_what_is_above() -> None:
    def backwards(size: int) -> Kernel:
        x = dense("x", DataType.INT64, (size,))
        place: Size = size - 1 - ROW
        return kernel([Loop("%i", size, (Store(x, (place,), Whole(ROW * -size)),))])

    found = family(backwards(5), backwards(6)).find(backwards(9))
    assert found is not None and min(found[1].values()) >= 0
    memory = np.zeros(9, np.int64)
    run_native(found[0].kernel, {"x": memory}, found[1])
    assert memory.tolist() == [-9 * n for n in reversed(range(9))]


def test_quotients_and_remainders_by_other_numbers_are_shared() -> None:
    def digits(size: int, base: int) -> Kernel:
        x = dense("x", DataType.INT64, (size,))
        value = Whole(10 * (ROW // base) + ROW % base)
        return kernel([Loop("%i", size, (Store(x, (ROW,), value),))])

    found = family(digits(20, 3), digits(21, 4)).find(digits(29, 7))
    assert found is not None
    memory = np.zeros(29, np.int64)
    run_native(found[0].kernel, {"x": memory}, found[1])
    assert memory.tolist() == [10 * (n // 7) + n % 7 for n in range(29)]


def numbered(text: str) -> tuple[list[Kernel], list[tuple[int, ...]]]:
    """The kernels that are compiled for a model, and the arguments of each call."""
    added: list[Kernel] = []
    numbering = Numbering(added.append)
    parts = build_parts(sx.load_text(text), host_target(), standard())
    calls = [call for step in parts.built.steps for call in getattr(step, "calls", [])]
    return added, [numbering.kernel(call.kernel).arguments for call in calls]


def test_kernels_that_differ_in_names_of_quotients_are_one() -> None:
    added, arguments = numbered(
        '<ir_version: 10, opset_import: ["": 21]> g (float[1,2,h,w] x) => (a, b, c) {'
        " a = MaxPool<kernel_shape = [2,2], strides = [2,2]>(x)"
        " b = MaxPool<kernel_shape = [2,2], strides = [2,2]>(a)"
        " c = MaxPool<kernel_shape = [2,2], strides = [2,2]>(b) }"
    )
    assert len(added) < len(arguments)
    assert len(set(arguments)) == len(arguments)


WIDTHS = (2, 3, 17, 16, 5, 1, 33, 7)


def layers_model() -> sx.Model:
    """Products and epilogues of many widths, one behind another."""
    weights = ", ".join(
        f"float[{left},{right}] w{n}" for n, (left, right) in enumerate(pairwise(WIDTHS))
    )
    steps = [
        f"h{n} = MatMul({'x' if n == 0 else f'r{n - 1}'}, w{n}) r{n} = Tanh(h{n})"
        for n in range(len(WIDTHS) - 1)
    ]
    return sx.load_text(
        f'<ir_version: 10, opset_import: ["": 21]> g (float[6,2] x, {weights})'
        f" => (r{len(WIDTHS) - 2}) {{ {' '.join(steps)} }}"
    )


@pytest.mark.parametrize("threads", [1, 2])
def test_programs_with_and_without_sharing_give_the_same(
    monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    model = layers_model()
    assert model.graph is not None
    rng = np.random.default_rng(0)
    feeds = {
        value.name: rng.standard_normal(value.type.shape).astype(np.float32)
        for value in model.graph.inputs
    }
    shared = compile_model(model, threads=threads)
    monkeypatch.setattr(share, "OWN", 1 << 30)
    apart = compile_model(model, threads=threads)
    np.testing.assert_array_equal(shared.run(feeds)[0], apart.run(feeds)[0])
