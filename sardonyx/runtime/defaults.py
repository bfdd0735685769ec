"""What onnxruntime's module functions set for all sessions of a process that are made later."""

from dataclasses import dataclass


@dataclass
class Defaults:
    """Settings of a process. The only state that sessions share, because users ask for it."""

    seed: int | None = None
    """Where random operators begin; None for another place each time."""
    threads: int = 0
    """Threads of sessions that do not say how many; 0 for as many as the machine allows."""


PROCESS = Defaults()


def set_seed(seed: int) -> None:
    """Make random operators of sessions made from now on repeatable.

    >>> set_seed(7)
    >>> PROCESS.seed
    7
    >>> PROCESS.seed = None
    """
    PROCESS.seed = int(seed)
