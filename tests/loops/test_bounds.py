"""Which indices are proven to stay inside, which are sure to be outside, and which neither."""

import pytest

from sardonyx.dims import Size, maximum, minimum, symbol
from sardonyx.dtypes import DataType
from sardonyx.loops import kernel, verify
from sardonyx.loops.bounds import Verdict, judge, wrong_accesses
from sardonyx.loops.build import dense
from sardonyx.loops.nodes import (
    Binary,
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
    Statement,
    Store,
    Update,
    Value,
    Whole,
)
from sardonyx.loops.verify import KernelError

INT64, FLOAT = DataType.INT64, DataType.FLOAT
I, J, AT = symbol("%i"), symbol("%j"), symbol("%at")  # noqa: E741
N, M = symbol("n"), symbol("m")


def reading(index: Size, extent: Size, around: tuple[tuple[str, Size], ...]) -> Kernel:
    """Loops around a copy of an element at an index of an array of an extent."""
    body: tuple[Statement, ...] = (
        Store(dense("y", FLOAT, (1,)), (0,), Load(dense("x", FLOAT, (extent,)), (index,))),
    )
    for name, size in reversed(around):
        body = (Loop(name, size, body),)
    return kernel(body)


def verdict(made: Kernel, memory: str = "x") -> Verdict:
    """What is known of the only access of a memory."""
    (found,) = [item.verdict for item in judge(made) if item.memory == memory]
    return found


ROWS = (("%i", N), ("%j", M))
INSIDE = {
    "a loop over all": reading(I, N, (("%i", N),)),
    "numbers": reading(I + 2, 10, (("%i", 8),)),
    "rows": reading(I * M + J, N * M, ROWS),
    "columns": reading(J * N + I, N * M, ROWS),
    "backwards": reading(N - 1 - I, N, (("%i", N),)),
    "the last of some": reading(N - 1, N, (("%i", N),)),
    "a quotient": reading(I // M, N, (("%i", N * M),)),
    "a quotient and a remainder": reading(
        (I // 4) * 12 + I % 4 + 4 * J, 24, (("%i", 8), ("%j", 3))
    ),
    "quotients of quotients": reading(I // 4 // 3, 2, (("%i", 24),)),
    "what is left of a quotient": reading(I // 4 * 4, N, (("%i", N),)),
    "clipped": reading(minimum(I * 16, N - 16) + J, N, (("%i", N // 16), ("%j", 16))),
    "from a bound on": reading(maximum(N - 5, 0), N + 1, (("%i", N),)),
}
OUTSIDE = {
    "one beyond": reading(I + 1, N, (("%i", N),)),
    "one below": reading(I - 1, N, (("%i", N),)),
    "one too many": reading(I, 8, (("%i", 9),)),
    "the wrong stride": reading(I * 2, 8, (("%i", 5),)),
    "one too far back": reading(N - 2 - I, N, (("%i", N),)),
    "a row too many": reading(I * M + J, N * M, (("%i", N + 1), ("%j", M))),
    "always": reading(N, N, (("%i", 3),)),
    "the extent itself": reading(4, 4, ()),
}
UNKNOWN = {
    "any parameter": reading(N, M, ()),
    "a loop of another size": reading(I, M, (("%i", N),)),
    "the last of maybe none": reading(N - 1, N, (("%i", 3),)),
    "a product": reading(I * J, N, (("%i", N), ("%j", N))),
}


@pytest.mark.parametrize("name", INSIDE)
def test_inside(name: str) -> None:
    assert verdict(INSIDE[name]) is Verdict.INSIDE
    verify(INSIDE[name])


@pytest.mark.parametrize("name", OUTSIDE)
def test_outside(name: str) -> None:
    assert verdict(OUTSIDE[name]) is Verdict.OUTSIDE
    with pytest.raises(KernelError, match=r"malformed kernel: index x: .* is outside"):
        verify(OUTSIDE[name])


@pytest.mark.parametrize("name", UNKNOWN)
def test_unknown(name: str) -> None:
    assert verdict(UNKNOWN[name]) is Verdict.UNKNOWN
    verify(UNKNOWN[name])


@pytest.mark.parametrize("extent", range(5))
@pytest.mark.parametrize("count", range(5))
@pytest.mark.parametrize("step", [-2, -1, 0, 1, 2])
@pytest.mark.parametrize("start", [-1, 0, 1, 3])
def test_numbers_are_always_decided(extent: int, count: int, step: int, start: int) -> None:
    made = reading(I * step + start, extent, (("%i", count),))
    places = [index * step + start for index in range(count)]
    if not places:
        assert list(judge(made)) == [] or count
        return
    right = all(0 <= place < extent for place in places)
    assert verdict(made) is (Verdict.INSIDE if right else Verdict.OUTSIDE)


def guarded(left: Size, right: Size, index: Size, extent: Size) -> Kernel:
    body = reading(index, extent, ()).body
    return kernel([Loop("%i", 16, (Guard(left, right, body),), Kind.VECTOR)])


def test_guards() -> None:
    assert verdict(guarded(I, N, I, N)) is Verdict.INSIDE
    assert verdict(guarded(I + 1, N, I + 1, N)) is Verdict.INSIDE
    assert verdict(guarded(I, N, I + 1, N)) is Verdict.UNKNOWN
    assert verdict(guarded(I, N + 1, I, N)) is Verdict.UNKNOWN
    assert list(wrong_accesses(guarded(5, 3, 99, 4))) == []  # it never runs


def test_loops_within_loops_that_do_not_always_run() -> None:
    assert verdict(reading(I - 1, N, (("%i", N), ("%j", I)))) is Verdict.INSIDE
    assert verdict(reading(I - 3, N, (("%i", N), ("%j", I // 2)))) is Verdict.UNKNOWN


def named(value: Value, index: Size, extent: Size) -> Kernel:
    return kernel([Loop("%i", N, (Let("%at", value), *reading(index, extent, ()).body))])


def test_names() -> None:
    data = Load(dense("z", INT64, (1,)), (0,))
    zero = Constant(0, INT64)
    clipped = Binary("min", Binary("max", data, zero), Whole(N - 1))
    assert verdict(named(Whole(I), AT, N)) is Verdict.INSIDE
    assert verdict(named(Whole(I + 1), AT, N)) is Verdict.OUTSIDE
    assert verdict(named(data, AT, N)) is Verdict.UNKNOWN
    assert verdict(named(clipped, AT, N)) is Verdict.INSIDE
    assert verdict(named(clipped, AT + 1, N)) is Verdict.UNKNOWN
    assert verdict(named(Binary("min", data, Whole(N - 1)), AT, N)) is Verdict.UNKNOWN
    number = Cast(Binary("lt", data, zero), INT64)
    assert verdict(named(number, AT, 2)) is Verdict.INSIDE
    assert verdict(named(number, AT, 1)) is Verdict.UNKNOWN


@pytest.mark.parametrize(("extent", "wanted"), [(4, Verdict.INSIDE), (5, Verdict.OUTSIDE)])
def test_registers(extent: int, wanted: Verdict) -> None:
    read = Store(dense("y", FLOAT, (1,)), (0,), Read("sum", FLOAT, (I,)))
    inner = (Update("sum", "add", Constant(1.0, FLOAT), (I,)), read)
    made = kernel([Register("sum", FLOAT, (4,), 0), Loop("%i", extent, inner, Kind.UNROLL)])
    assert {item.verdict for item in judge(made) if item.memory == "sum"} == {wanted}
