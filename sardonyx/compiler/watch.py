"""Who looks on while a program runs: to take times, or to stop it."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from sardonyx.graph import Node, Value


class Checkpoint:
    """Stands where an observer does, but wants no values: it may only end the run by raising."""

    def __init__(self, check: Callable[[], None]) -> None:
        self.check = check

    def __call__(self, value: Value, item: Any) -> None:
        self.check()


class Watch(Protocol):
    """Told of each kernel and each reference; may end the run by raising."""

    checkpoint: Checkpoint
    """Passed to references, for nodes that have subgraphs."""

    def during(self, item: str | Node) -> AbstractContextManager[None]:
        """What to enter while a kernel, by its name, or a node's reference runs."""
        ...
