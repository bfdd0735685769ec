"""Sizes as Python source, so that a program finds its numbers for new shapes in microseconds."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sardonyx.dims import Expression, Size, broadcast, floor_divide, is_nonnegative, remainder


class Code:
    """A function under construction; equal sizes are computed once."""

    def __init__(
        self,
        names: Sequence[str],
        more: Sequence[str] = (),
        derived: Mapping[str, Size] | None = None,
    ) -> None:
        """`derived` are names of sizes that are computed of the others."""
        self._arguments = {name: f"v{number}" for number, name in enumerate(names)}
        self._lines = [f"def compute({', '.join([*self._arguments.values(), *more])}):"]
        self._known: dict[Any, str] = {}
        self._derived = derived or {}

    def argument(self, name: str) -> str:
        """The size called `name`."""
        if name not in self._arguments:
            self._arguments[name] = self.value(self._derived[name])
        return self._arguments[name]

    def value(self, size: Size) -> str:
        """A size as a name or a number."""
        return self._expression(size) if isinstance(size, Expression) else str(size)

    def count(self, size: Size) -> str:
        """A size that is 0 where it would be below."""
        if isinstance(size, int):
            return str(max(size, 0))
        return (
            self.value(size) if is_nonnegative(size) else self.named(f"max({self.value(size)}, 0)")
        )

    def named(self, text: str) -> str:
        """A name for what a piece of source computes; equal pieces have one name."""
        if text.isdecimal():
            return text
        if text not in self._known:
            self._known[text] = f"x{len(self._known)}"
            self._lines.append(f" {self._known[text]} = {text}")
        return self._known[text]

    def line(self, text: str) -> None:
        """One statement."""
        self._lines.append(f" {text}")

    def source(self) -> str:
        """All of it."""
        return "\n".join(self._lines)

    def _expression(self, size: Expression) -> str:
        terms = []
        for atoms, factor in size.terms.items():
            parts = [self._atom(atom) for atom in atoms]
            if factor != 1 or not parts:
                parts.append(str(factor))
            terms.append("*".join(parts))
        return self.named(" + ".join(terms)) if len(terms) > 1 or "*" in terms[0] else terms[0]

    def _atom(self, atom: Any) -> str:
        if isinstance(atom, str):
            return self.argument(atom)
        sign, left, right = atom
        pair = f"{self.value(left)}, {self.value(right)}"
        if sign in ("//", "%") and isinstance(right, int) and right:
            return self.named(f"{self.value(left)} {sign} {right}")
        return self.named(f"{_FUNCTIONS[sign]}({pair})")


_FUNCTIONS = {"//": "divide", "%": "modulo", "min": "min", "max": "max", "broadcast": "together"}


def _together(left: int, right: int) -> Size:
    result = broadcast(left, right)
    return 1 if result is None else result


def function(source: str) -> Callable[..., Any]:
    """The function that source made by `Code` defines.

    >>> from sardonyx.dims import symbol
    >>> code = Code(["n"])
    >>> code.line(f"return {code.value(symbol('n') * 2 + 1)}")
    >>> function(code.source())(5)
    11
    """
    space: dict[str, Any] = {"divide": floor_divide, "modulo": remainder, "together": _together}
    exec(compile(source, "<sizes>", "exec"), space)
    return space["compute"]  # type: ignore[no-any-return]
