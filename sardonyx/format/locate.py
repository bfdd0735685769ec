"""Which field a byte lies in: for error messages only, so that reading itself need not know."""

from sardonyx.format.fields import messages
from sardonyx.format.wire import BYTES, Buffer, WireError, fields


def locate(buffer: Buffer, message: str, offset: int) -> str:
    """The path of the innermost field around `offset`, such as `graph.node[3].attribute[0]`."""
    steps: list[str] = []
    start, end = 0, len(buffer)
    kind: str | None = message
    while kind is not None and len(steps) < 120:
        found = _child(buffer, start, end, kind, offset)
        if found is None:
            break
        name, start, end, kind = found
        steps.append(name)
    return ".".join(steps)


def _child(
    buffer: Buffer, start: int, end: int, message: str, offset: int
) -> tuple[str, int, int, str | None] | None:
    table = {row.number: row for row in messages()[message].fields}
    counts: dict[int, int] = {}
    try:
        for tag, a, b, at in fields(buffer, start, end):
            number = tag >> 3
            counts[number] = counts.get(number, -1) + 1
            if not at <= offset <= b or (offset == b and b < end):
                continue
            row = table.get(number)
            if row is None:
                return None
            name = f"{row.name}[{counts[number]}]" if row.repeated else row.name
            inner = row.kind if row.kind in messages() and tag & 7 == BYTES else None
            return name, a, b, inner
    except WireError:
        return None
    return None
