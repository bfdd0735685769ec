"""What a check knows while it walks a model: versions, operators, functions, visible names."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field

from sardonyx.checker.findings import Place, Report
from sardonyx.format.wire import BYTES, WireError, fields
from sardonyx.graph import AttributeType, Function, FunctionKey, Value
from sardonyx.ops.catalog import Catalog
from sardonyx.ops.fact import from_type
from sardonyx.ops.infer import type_string
from sardonyx.record import record

DEEPEST = 100
"""How many graphs may lie inside one another; a file holds a third of that."""


def declared_type(value: Value) -> str | None:
    """The type a model states for a value, in the form signatures use."""
    type_ = value.type
    return None if type_ is None else type_string(from_type(type_))


@record
class Interface:
    """What callers of a function, and references inside it, must know of the function."""

    name: str
    inputs: int
    outputs: int
    required: tuple[str, ...]
    attributes: Mapping[str, AttributeType | int | None]
    """Every attribute, with the type of its default where it has one."""

    @classmethod
    def of(cls, function: Function) -> "Interface":
        """The interface of a function."""
        attributes: dict[str, AttributeType | int | None] = dict.fromkeys(function.attributes)
        attributes.update((item.name, item.type) for item in function.attribute_defaults)
        graph = function.graph
        required = tuple(function.attributes)
        return cls(function.name, len(graph.inputs), len(graph.outputs), required, attributes)


@record
class Context:
    """What holds for the nodes of one graph, and where findings go."""

    report: Report
    catalog: Catalog
    ir_version: int
    opsets: Mapping[str, int]
    functions: Mapping[FunctionKey, Interface] = field(default_factory=dict)
    devices: Mapping[str, int] = field(default_factory=dict)
    function: Interface | None = None
    """The function whose body is checked."""
    depth: int = 0
    """How many graphs lie around the one that is checked."""
    custom_domains: bool = True
    """Whether operators of domains that the catalog does not hold may be used."""
    type_of: Callable[[Value], str | None] = declared_type

    @property
    def nested(self) -> bool:
        """True inside a subgraph."""
        return self.depth > 0

    def version(self, domain: str) -> int | None:
        """The imported version of a domain; both spellings of the default one are the same."""
        found = self.opsets.get(domain)
        if found is None and domain in _DEFAULT:
            found = next((self.opsets[name] for name in _DEFAULT if name in self.opsets), None)
        return found

    def require_ir(self, version: int, feature: str, place: Place) -> None:
        """Note that `feature` begins with an IR version, where the model's is older."""
        if self.ir_version < version:
            what = (
                f"IR version {self.ir_version} has no {feature}, they begin with version {version}"
            )
            self.report.add_once(feature, "ir-version-too-old", place, what)


_DEFAULT = ("", "ai.onnx")


class Scope:
    """The names that a graph has defined so far, inside those around it."""

    __slots__ = ("_names", "_parent", "_values", "unsorted")

    def __init__(self, parent: "Scope | None" = None) -> None:
        self.unsorted = False
        """Whether something in here, or in a graph inside, is used before it is defined."""
        self._parent = parent
        self._values: set[Value] = set()
        self._names: set[str] = set()

    def define(self, value: Value) -> None:
        """Make a value visible from here on."""
        self._values.add(value)
        if value.name:
            self._names.add(value.name)

    def holds(self, name: str) -> bool:
        """True where this graph itself has defined the name."""
        return name in self._names

    def defines(self, value: Value) -> bool:
        """True where this graph itself has defined the value, or another one of its name."""
        return value in self._values or value.name in self._names

    def sees(self, value: Value) -> bool:
        """True where this graph or one around it has defined the value."""
        return any(scope.defines(value) for scope in self._chain())

    def hides(self, name: str) -> bool:
        """True where a graph around this one has defined the name."""
        return any(scope.holds(name) for scope in self._chain() if scope is not self)

    def note_unsorted(self) -> None:
        """Remember, here and around, that something is used before it is defined."""
        for scope in self._chain():
            scope.unsorted = True

    def _chain(self) -> "Iterator[Scope]":
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope._parent


def kept_fields(leftover: bytes) -> list[tuple[int, bytes | None]]:
    """The fields among bytes that a reader kept: number, and content where it has a length."""
    found: list[tuple[int, bytes | None]] = []
    try:
        for tag, a, b, _ in fields(leftover, 0, len(leftover)):
            found.append((tag >> 3, leftover[a:b] if tag & 7 == BYTES else None))
    except WireError:
        return found
    return found
