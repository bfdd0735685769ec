"""What a generator makes of a seed: a model, feeds for several runs, and how to call it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

Feeds = dict[str, Any]


def call_run(session: Any, feeds: Feeds) -> list[Any]:
    """Call a session the ordinary way."""
    return list(session.run(None, feeds))


@dataclass(frozen=True)
class Trial:
    """One model and the runs that are made with it.

    `feeds(n)` are those of run n. `plain(n)`, where given, are ordinary arrays with the same
    contents: a run with `feeds` gives the same bits, or is refused. `opens` says that the model is
    read, checked, inferred and simplified, and not run.
    """

    model: bytes
    what: str
    feeds: Callable[[int], Feeds] = field(default=lambda _: {})
    plain: Callable[[int], Feeds] | None = None
    call: Callable[[Any, Feeds], list[Any]] = call_run
    opens: bool = False
    random: bool = False
    threads: int = 1


class Generator(Protocol):
    """A module whose `make` gives the trial of a seed; `RUNS` runs share one model."""

    RUNS: int
    SHARE: int

    @staticmethod
    def make(seed: int) -> Trial:
        """The trial of a seed, the same every time."""
        ...
