"""Symbolic sizes: the same as numbers once names are numbers, and no longer than needed."""

import random

import pytest

from sardonyx.dims import (
    LARGEST_EXPRESSION,
    Expression,
    Size,
    broadcast,
    ceil_divide,
    floor_divide,
    is_nonnegative,
    maximum,
    minimum,
    remainder,
    symbol,
)

n, m = symbol("n"), symbol("m")


def value(size: Size, sizes: dict[str, int]) -> Size:
    return size.substitute(sizes) if isinstance(size, Expression) else size


STEPS = {
    "add": (lambda a, b: a + b, lambda a, b: a + b),
    "sub": (lambda a, b: a - b, lambda a, b: a - b),
    "mul": (lambda a, b: a * b, lambda a, b: a * b),
    "min": (minimum, min),
    "max": (maximum, max),
    "floor": (lambda a, b: floor_divide(a, 3), lambda a, b: a // 3),
    "ceil": (lambda a, b: ceil_divide(a, 4), lambda a, b: -(-a // 4)),
    "rest": (lambda a, b: remainder(a, 5), lambda a, b: a % 5),
}


@pytest.mark.parametrize("seed", range(40))
def test_symbolic_arithmetic_is_that_of_numbers(seed: int) -> None:
    chance = random.Random(seed)
    numbers = {"n": chance.randint(0, 9), "m": chance.randint(0, 9)}
    pool: list[tuple[Size, int]] = [(n, numbers["n"]), (m, numbers["m"]), (3, 3), (0, 0)]
    for _ in range(12):
        symbolic, exact = STEPS[chance.choice(list(STEPS))]
        (a, x), (b, y) = chance.choice(pool), chance.choice(pool)
        made, wanted = symbolic(a, b), exact(x, y)
        if isinstance(made, Expression) and made.atoms > 40:
            continue
        assert value(made, numbers) == wanted, f"{a} and {b}"
        assert not is_nonnegative(made) or wanted >= 0
        pool.append((made, wanted))


def test_clipping_again_what_is_clipped_changes_nothing() -> None:
    size: Size = maximum(0, minimum(8, n + 1) - n)
    for _ in range(20):
        grown = size + n
        assert minimum(8, grown) == minimum(8, n + 1)
        assert maximum(0, minimum(8, grown) - n) == size
    assert str(size) == "max(0, min(1, 8-n))"


def test_equal_sizes_are_equal_however_they_were_made() -> None:
    for left, right in (
        ((n + m) * 2 - m, m + n * 2),
        (minimum(n, minimum(m, 5)), minimum(minimum(5, n), m)),
        (maximum(minimum(n, 3), minimum(n, 4)), minimum(n, 4)),
        (broadcast(broadcast(n, m), n), broadcast(m, n)),
        ((n * m + n) // n, m + 1),
    ):
        assert left == right and hash(left) == hash(right) and str(left) == str(right)


def test_substitution_replaces_all_at_once() -> None:
    size = floor_divide(n * m + n, 4) + n
    assert size.substitute({"n": m, "m": n}) == floor_divide(m * n + m, 4) + m
    assert size.substitute({"k": 3}) is size
    assert size.substitute({"n": 8, "m": 3}) == 16


def test_a_size_that_would_be_huge_becomes_one_name() -> None:
    size: Size = 0
    for number in range(LARGEST_EXPRESSION):
        size = size + symbol(f"a{number}")
    assert isinstance(size, Expression) and size.atoms == LARGEST_EXPRESSION
    huge, again = size + symbol("b"), symbol("b") + size
    assert huge == again and isinstance(huge, Expression) and huge.atoms == 1
