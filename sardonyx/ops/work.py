"""How much a run may do: what takes longer is refused before it begins."""

import math
from collections.abc import Sequence

from sardonyx.errors import WorkLimitError

WORK_LIMIT = 1 << 50
"""Elementary operations that a run may take unless its session says otherwise: about a day."""
WORK_LIMIT_ENTRY = "sardonyx.work_limit"
"""The session's configuration entry that says otherwise."""
NODE_WORK = 1 << 16
"""Operations that a node counts as whatever it does, where Python runs it."""


def elements(shapes: Sequence[Sequence[int]]) -> int:
    """How many elements arrays of these shapes have together.

    >>> elements([(2, 3), (), (0, 5)])
    7
    """
    return sum(math.prod(shape) for shape in shapes)


def require_work(what: str, work: int, limit: int, more: str = "") -> None:
    """An error where work is over the limit; `what` does it, and `more` says where most of it is.

    >>> require_work("a run", 10, WORK_LIMIT)
    """
    if work > limit:
        raise WorkLimitError(
            f"{what} would take about {work} elementary operations, and the limit is {limit}{more}",
            hint="feed smaller sizes, or set the session's configuration entry "
            f"'{WORK_LIMIT_ENTRY}' to a larger number",
        )
