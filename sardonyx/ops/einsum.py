"""Einstein summation."""

import re
from collections import Counter

import numpy as np

from sardonyx.dims import Size
from sardonyx.errors import InferenceError
from sardonyx.ops.bfloat16 import through_float
from sardonyx.ops.fact import Fact, Sizes, broadcast, same_size, tensor, unknown
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array, narrow, widen
from sardonyx.record import record

_ELLIPSIS = "..."
_TERM = re.compile(r"[A-Za-z]*(?:\.\.\.[A-Za-z]*)?")


@record
class Equation:
    """An equation in explicit form: one term for each operand, and the output's."""

    operands: tuple[str, ...]
    output: str

    @staticmethod
    def parse(text: str) -> "Equation":
        """Read an equation; the output of an implicit one has every letter that stands once.

        >>> Equation.parse("bij, bjk")
        Equation(operands=('bij', 'bjk'), output='ik')
        """
        left, arrow, right = text.replace(" ", "").partition("->")
        operands = tuple(left.split(","))
        for term in (*operands, right):
            if not _TERM.fullmatch(term):
                raise InferenceError(f"'{term}' in the equation '{text}' is not a list of letters")
        if not arrow:
            right = _implicit(operands)
        for letter in right.replace(_ELLIPSIS, ""):
            if letter not in left or right.count(letter) > 1:
                raise InferenceError(f"'{letter}' of the output is not once in '{text}'")
        return Equation(operands, right)


def _implicit(operands: tuple[str, ...]) -> str:
    counts = Counter("".join(operands).replace(".", ""))
    dots = _ELLIPSIS if any(_ELLIPSIS in term for term in operands) else ""
    return dots + "".join(sorted(letter for letter, count in counts.items() if count == 1))


class Einsum(Operator):
    """Sums of products over the indices an equation names."""

    signatures = (
        "12(Inputs+: T, equation: string) -> Output: T; T: numeric3",
        "28(Inputs+: T, equation: string) -> Output: T; T: numeric",
    )
    downgrade_28 = through_float

    def infer(*inputs: Fact, equation: str) -> Fact:
        parsed = Equation.parse(equation)
        if len(parsed.operands) != len(inputs):
            raise InferenceError(
                f"'{equation}' is for {len(parsed.operands)} inputs, not {len(inputs)}"
            )
        dtype = next((fact.dtype for fact in inputs if fact.dtype), None)
        sizes: dict[str, Size | None] = {}
        spread: list[Sizes | None] = []
        for term, fact in zip(parsed.operands, inputs, strict=True):
            spread.append(_bind(term, fact, sizes, equation))
        dots = broadcast(*(shape for shape in spread if shape != ()))
        if _ELLIPSIS not in parsed.output:
            return tensor(dtype, [sizes.get(letter) for letter in parsed.output])
        if dots is None:
            return unknown(None, dtype)
        before, after = parsed.output.split(_ELLIPSIS)
        return tensor(dtype, (*map(sizes.get, before), *dots, *map(sizes.get, after)))

    def reference(*inputs: Array, equation: str) -> Array:
        parsed = Equation.parse(equation)
        left, right = ",".join(parsed.operands), parsed.output
        summed = _ELLIPSIS in left and _ELLIPSIS not in right
        text = f"{left}->{_ELLIPSIS if summed else ''}{right}"
        result = np.asarray(np.einsum(text, *map(widen, inputs), optimize=len(inputs) > 1))
        if summed:
            result = result.sum(axis=tuple(range(result.ndim - len(right))), dtype=result.dtype)
        return narrow(result, inputs[0].dtype)


def _bind(term: str, fact: Fact, sizes: dict[str, Size | None], equation: str) -> Sizes | None:
    """Enter the sizes an operand gives its letters; returns the shape behind its ellipsis."""
    before, dots, after = term.partition(_ELLIPSIS)
    if fact.shape is None:
        return None if dots else ()
    letters, rank = len(before) + len(after), len(fact.shape)
    if letters > rank or (letters < rank and not dots):
        raise InferenceError(f"'{term}' of '{equation}' does not fit {fact}")
    behind = rank - len(after)
    named = (*fact.shape[: len(before)], *fact.shape[behind:])
    for letter, size in zip(before + after, named, strict=True):
        if letter in sizes and 1 in (size, sizes[letter]):
            sizes[letter] = size if sizes[letter] == 1 else sizes[letter]
            continue
        what = f"index '{letter}' of '{equation}' has two sizes"
        sizes[letter] = same_size(sizes.get(letter), size, what)
    return fact.shape[len(before) : behind]
