"""Signatures of operators, written as one line for each version.

`13(X: T, B?: T, rest*: each V, axis: int = -1, mode?: string) -> (Y: T, M?: B); T: floats; B: bool`

Inputs come first, then attributes; `?` marks what may be absent, `*` and `+` any number (from none,
from one), `each` that their types may differ. An attribute without `?` or default is required.
"""

import ast
import re
from collections.abc import Iterator
from enum import Enum
from functools import cache
from typing import Any

from sardonyx.errors import InputError
from sardonyx.graph import Attribute, AttributeType
from sardonyx.record import record

TYPE_SETS = {
    "floats3": "float16 float double",
    "floats": "floats3 bfloat16",
    "signed": "int8 int16 int32 int64",
    "unsigned": "uint8 uint16 uint32 uint64",
    "integers": "signed unsigned",
    "wide": "int32 int64 uint32 uint64",
    "numeric3": "integers floats3",
    "numeric": "integers floats",
    "complex": "complex64 complex128",
    "all15": "numeric3 bool string complex",
    "all": "all15 bfloat16",
    "float8s": "float8e4m3fn float8e4m3fnuz float8e5m2 float8e5m2fnuz",
    "int4s": "int4 uint4",
    "int2s": "int2 uint2",
    "float6s": "float6e2m3 float6e3m2",
}
"""Names for sets of element types that signatures share."""

_KINDS = {
    "int": AttributeType.INT,
    "float": AttributeType.FLOAT,
    "string": AttributeType.STRING,
    "tensor": AttributeType.TENSOR,
    "graph": AttributeType.GRAPH,
    "sparse_tensor": AttributeType.SPARSE_TENSOR,
    "type": AttributeType.TYPE_PROTO,
}
ATTRIBUTE_KINDS = _KINDS | {
    f"{name}s": AttributeType[kind.name + "S"] for name, kind in _KINDS.items()
}


class Arity(Enum):
    """How often a formal input or output may stand."""

    ONE = ""
    OPTIONAL = "?"
    ANY = "*"
    SOME = "+"

    @property
    def variadic(self) -> bool:
        """True where any number may stand."""
        return self in (Arity.ANY, Arity.SOME)


@record
class Formal:
    """A formal input or output: `type` names a constraint or is a type itself."""

    name: str
    type: str
    arity: Arity = Arity.ONE
    each: bool = False


REQUIRED = object()
"""The default of an attribute that must be given."""


@record
class AttributeFormal:
    """A formal attribute; `default` is None where it may be absent, REQUIRED where it may not."""

    name: str
    kind: AttributeType
    default: Any

    @property
    def required(self) -> bool:
        """True where a node must give it."""
        return self.default is REQUIRED


_AS_FLOATS = {AttributeType.FLOAT: AttributeType.INT, AttributeType.FLOATS: AttributeType.INTS}
"""What may stand for floats."""


def attribute_fits(given: Attribute, formal: AttributeFormal) -> bool:
    """True where an attribute is of the kind that an operator takes; whole numbers are floats too.

    >>> axis = AttributeFormal("axis", AttributeType.INT, 0)
    >>> attribute_fits(Attribute("axis", 1), axis), attribute_fits(Attribute("axis", 1.5), axis)
    (True, False)
    """
    if given.type in (formal.kind, _AS_FLOATS.get(formal.kind)) or given.value is None:
        return True
    empty: Any = () if formal.kind.name.endswith("S") else None
    return bool(given.value == empty)


@record
class Signature:
    """One version of an operator: the opset it begins with, and what it takes and gives."""

    since: int
    inputs: tuple[Formal, ...]
    outputs: tuple[Formal, ...]
    attributes: dict[str, AttributeFormal]
    constraints: dict[str, tuple[str, ...]]
    deprecated: bool = False
    open: bool = False
    """True where a node may have attributes beyond these, which hooks read from the node."""

    def types(self, formal: Formal) -> tuple[str, ...]:
        """The types a formal input or output may have."""
        return self.constraints.get(formal.type) or (formal.type,)

    def formal_input(self, position: int) -> Formal | None:
        """The formal input for an actual position, the last one repeated where it is variadic."""
        return _formal(self.inputs, position)

    def formal_output(self, position: int) -> Formal | None:
        """The formal output for an actual position."""
        return _formal(self.outputs, position)

    @property
    def input_range(self) -> tuple[int, int | None]:
        """The least and the greatest number of inputs; None is no limit."""
        return _range(self.inputs)

    @property
    def output_range(self) -> tuple[int, int | None]:
        """The least and the greatest number of outputs; None is no limit."""
        return _range(self.outputs)


def _formal(formals: tuple[Formal, ...], position: int) -> Formal | None:
    if position < len(formals):
        return formals[position]
    return formals[-1] if formals and formals[-1].arity.variadic else None


def _range(formals: tuple[Formal, ...]) -> tuple[int, int | None]:
    needed = [
        index + 1 for index, item in enumerate(formals) if item.arity in (Arity.ONE, Arity.SOME)
    ]
    if not formals or not formals[-1].arity.variadic:
        return max(needed, default=0), len(formals)
    return max([*needed[-1:], len(formals) - 1]), None


@cache
def parse_signature(line: str) -> Signature:
    """The signature a line describes.

    >>> signature = parse_signature("13(X: T, axis: int = -1) -> Y: T; T: floats3")
    >>> signature.since, signature.attributes["axis"].default, signature.types(signature.inputs[0])
    (13, -1, ('tensor(float16)', 'tensor(float)', 'tensor(double)'))
    """
    found = _LINE.fullmatch(" ".join(line.split()))
    if found is None:
        raise InputError(
            f"'{line}' is not a signature of an operator",
            hint="write it as in '1(x: T, by: float = 1.0) -> y: T; T: floats'",
        )
    since, inside, outside, constraints, deprecated = found.groups()
    inputs: list[Formal] = []
    attributes: dict[str, AttributeFormal] = {}
    for item in _split(inside or ""):
        made = _parse_item(item)
        if isinstance(made, Formal):
            inputs.append(made)
        else:
            attributes[made.name] = made
    outside = (outside or "").strip()
    outputs = _split(outside[1:-1] if outside.startswith("(") else outside)
    limits = dict(
        _parse_constraint(item) for item in (constraints or "").split(";") if item.strip()
    )
    formals = tuple(made for item in outputs if isinstance(made := _parse_item(item), Formal))
    return Signature(int(since), tuple(inputs), formals, attributes, limits, deprecated is not None)


_LINE = re.compile(r"(\d+)\s*(?:\((.*)\) -> (.*?)((?:; [^;]*?)*))?( deprecated)?")
_ITEM = re.compile(r"(.+?)([?*+]?): (each )?([^=]+?)(?: = (.*))?")


def _parse_item(item: str) -> Formal | AttributeFormal:
    found = _ITEM.fullmatch(item)
    if found is None:
        raise ValueError(f"not a formal input, output or attribute: {item}")
    name, arity, each, kind, default = found.groups()
    if kind not in ATTRIBUTE_KINDS:
        return Formal(name, kind, Arity(arity), each is not None)
    value: Any = None if arity else REQUIRED
    if default is not None:
        value = ast.literal_eval(default)
        value = tuple(value) if isinstance(value, list) else value
    return AttributeFormal(name, ATTRIBUTE_KINDS[kind], value)


def _parse_constraint(text: str) -> tuple[str, tuple[str, ...]]:
    name, _, types = text.strip().partition(": ")
    return name, expand_types(types)


@cache
def expand_types(text: str) -> tuple[str, ...]:
    """Type strings for names of element types, sets, and containers of them.

    >>> expand_types("bool seq(floats3)")[:2]
    ('tensor(bool)', 'seq(tensor(float16))')
    """
    return tuple(dict.fromkeys(_expand(text)))


def _expand(text: str) -> Iterator[str]:
    for item in _split(text, " "):
        head, bracket, rest = item.partition("(")
        if bracket and head in ("seq", "optional"):
            yield from (f"{head}({inner})" for inner in _expand(rest[:-1]))
        elif bracket:
            yield item
        elif head in TYPE_SETS:
            yield from _expand(TYPE_SETS[head])
        else:
            yield f"tensor({head})"


def _split(text: str, separator: str = ",") -> list[str]:
    """Split at separators that stand outside brackets and quotes."""
    pieces, depth, quoted, current = [], 0, "", ""
    for letter in text:
        if quoted:
            quoted = "" if letter == quoted else quoted
        elif letter in "'\"":
            quoted = letter
        depth += (letter in "([") - (letter in ")]") if not quoted else 0
        if letter == separator and not depth and not quoted:
            pieces.append(current.strip())
            current = ""
        else:
            current += letter
    pieces.append(current.strip())
    return [piece for piece in pieces if piece]
