"""Einsum as products of pairs: axes turned and merged to matrices, the product, and axes again."""

from sardonyx.compiler.forms import (
    Axis,
    Form,
    NotLowered,
    View,
    expand,
    fold,
    reshape,
    squeeze,
    transpose,
)
from sardonyx.compiler.lowerings.contraction import matrix_product
from sardonyx.compiler.lowerings.request import Lowerings, Request
from sardonyx.dims import Size, broadcast, product
from sardonyx.ops.einsum import Equation

_DOTS = "..."


def einsum(request: Request, *inputs: Form, equation: str) -> Form:
    """Sums of products over the indices an equation names."""
    parsed = Equation.parse(equation)
    hidden = _hidden_letters(parsed, inputs)
    named = [
        _letters(term, len(x.shape), hidden)
        for term, x in zip(parsed.operands, inputs, strict=True)
    ]
    pairs = [_diagonal(request, x, term) for x, term in zip(inputs, named, strict=True)]
    terms = [term for _, term in pairs]
    output = parsed.output.replace(_DOTS, hidden)
    result, letters = pairs[0]
    for position, (x, other) in enumerate(pairs[1:], 2):
        later = set(output).union(*terms[position:])
        result, letters = _pair(request, result, letters, x, other, later)
    return _arranged(result, letters, output)


def _hidden_letters(parsed: Equation, inputs: tuple[Form, ...]) -> str:
    """Letters for the axes that dots stand for."""
    used = set("".join(parsed.operands))
    free = [chr(code) for code in range(0x100, 0x180) if chr(code) not in used]
    counts = [
        len(x.shape) - len(term.replace(_DOTS, ""))
        for term, x in zip(parsed.operands, inputs, strict=True)
        if _DOTS in term
    ]
    return "".join(free[: max(counts, default=0)])


def _letters(term: str, rank: int, hidden: str) -> str:
    count = rank - len(term.replace(_DOTS, ""))
    return term.replace(_DOTS, hidden[len(hidden) - count :])


def _diagonal(request: Request, x: Form, letters: str) -> tuple[Form, str]:
    """Elements at which an index that an input has several times is the same."""
    kept = "".join(dict.fromkeys(letters))
    if kept == letters:
        return x, letters
    sizes: dict[str, Size] = {}
    for letter, size in zip(letters, x.shape, strict=True):
        sizes[letter] = request.agree(sizes.get(letter, size), size)
    axes = tuple(Axis(kept.index(letter)) for letter in letters)
    return View(tuple(sizes[letter] for letter in kept), x.dtype, x, axes), kept


def _summed(x: Form, letters: str, kept: set[str]) -> tuple[Form, str]:
    gone = [axis for axis, letter in enumerate(letters) if letter not in kept]
    if not gone:
        return x, letters
    return (
        squeeze(fold("add", x, gone, 0), gone),
        "".join(letter for letter in letters if letter in kept),
    )


def _pair(
    request: Request, x: Form, left: str, y: Form, right: str, later: set[str]
) -> tuple[Form, str]:
    """The product of two, with indices summed that nothing else has."""
    x, left = _summed(x, left, later | set(right))
    y, right = _summed(y, right, later | set(left))
    sizes = dict(zip(left, x.shape, strict=True))
    for letter, size in zip(right, y.shape, strict=True):
        together = broadcast(sizes.get(letter, size), size)
        if together is None:
            raise NotLowered(f"sizes {sizes[letter]} and {size} do not agree")
        sizes[letter] = together
    batch = [letter for letter in left if letter in right and letter in later]
    inner = [letter for letter in left if letter in right and letter not in later]
    rows = [letter for letter in left if letter not in right]
    columns = [letter for letter in right if letter not in left]

    def matrix(form: Form, letters: str, first: list[str], second: list[str]) -> Form:
        turned = transpose(form, [letters.index(letter) for letter in (*batch, *first, *second)])
        lead = turned.shape[: len(batch)]
        whole = expand(turned, [*lead, *(sizes[letter] for letter in (*first, *second))])
        ends = [product([sizes[letter] for letter in part]) for part in (first, second)]
        return reshape(whole, [*lead, *ends])

    made = matrix_product(request, matrix(x, left, rows, inner), matrix(y, right, inner, columns))
    shape: list[Size] = [sizes[letter] for letter in (*batch, *rows, *columns)]
    return reshape(made, shape), "".join((*batch, *rows, *columns))


def _arranged(x: Form, letters: str, output: str) -> Form:
    x, letters = _summed(x, letters, set(output))
    return transpose(x, [letters.index(letter) for letter in output])


LOWERINGS: Lowerings = {("", "Einsum"): einsum}
