"""Nodes as boxes: a title, and rows for the constants and attributes worth seeing at a glance."""

from dataclasses import dataclass, field
from typing import Any

from sardonyx.graph import Attribute, AttributeType, Node
from sardonyx.ops.operator import Operator
from sardonyx.viewer.text import attribute_text, fit, one_line, text_width

TITLE_SIZE = 12.5
BOLD = 1.1
"""How much wider bold text is."""
ROW_SIZE = 10.5
ROW_ROOM = 32.0
"""Space around and between the name and the text of a row."""
TITLE_HEIGHT = 24.0
ROW_HEIGHT = 15.0
WIDEST = 210.0
NARROWEST = 64.0
MOST_ROWS = 6
MOST_ATTRIBUTES = 3

OPERATION, INPUT, OUTPUT, CONSTANT, OUTER = range(5)
"""Kinds of boxes: a node, a graph's input, its output, a constant, a value of an outer graph."""


@dataclass(slots=True)
class Box:
    """What is drawn for one node: size and text."""

    title: str
    rows: list[tuple[str, str]] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0

    def measure(self) -> "Box":
        """Cut texts to what fits and set the size."""
        self.title = fit(one_line(self.title), TITLE_SIZE * BOLD, WIDEST - 20)
        widest = text_width(self.title, TITLE_SIZE) * BOLD + 24
        rows = []
        for name, text in self.rows:
            label = fit(one_line(name), ROW_SIZE, 80)
            rest = fit(one_line(text), ROW_SIZE, WIDEST - ROW_ROOM - text_width(label, ROW_SIZE))
            widest = max(widest, text_width(label + rest, ROW_SIZE) + ROW_ROOM)
            rows.append((label, rest))
        self.rows = rows
        self.width = float(round(min(WIDEST, max(NARROWEST, widest)) / 2) * 2)
        self.height = TITLE_HEIGHT + (len(rows) * ROW_HEIGHT + 6 if rows else 0)
        return self


def node_box(node: Node, operator: type[Operator] | None, constants: list[tuple[str, str]]) -> Box:
    """The box of a node, with (name, text) of the constants it reads."""
    telling = [
        (name, attribute_text(attribute))
        for name, attribute in node.attributes.items()
        if _is_telling(attribute, operator)
    ]
    rows = constants[:MOST_ROWS]
    if len(constants) > MOST_ROWS:
        rows = [*constants[: MOST_ROWS - 1], ("", f"and {len(constants) - MOST_ROWS + 1} more")]
    rows += telling[: min(MOST_ATTRIBUTES, MOST_ROWS - len(rows))]
    return Box(node.op_type or "(no operator)", rows).measure()


def value_box(title: str, type_: str) -> Box:
    """The box of a graph's input or output."""
    return Box(title or "(unnamed)", [("", type_)] if type_ else []).measure()


def _is_telling(attribute: Attribute, operator: type[Operator] | None) -> bool:
    """Short, and not what one would expect anyway."""
    if attribute.reference:
        return True
    value: Any = attribute.value
    match attribute.type:
        case AttributeType.INT | AttributeType.FLOAT | AttributeType.STRING:
            return bool(value != _default(attribute.name, operator)) and value != b""
        case AttributeType.INTS:
            return 0 < len(value or ()) <= 8 and not set(value) <= {0} and not set(value) <= {1}
    return False


def _default(name: str, operator: type[Operator] | None) -> Any:
    formal = operator.newest().attributes.get(name) if operator is not None else None
    default = None if formal is None else formal.default
    return default.encode() if isinstance(default, str) else default
