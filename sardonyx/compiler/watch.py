"""Who looks on while a program runs: to take times, or to stop it."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from sardonyx.compiler.stop import Stop
from sardonyx.graph import Node, Value


class Watch(Protocol):
    """Told of each reference, and of each kernel if wanted; may end the run by raising."""

    stop: Stop
    """Ends kernels once it is set."""
    one_by_one: bool
    """Whether kernels run one by one, so that it is told of each."""
    checkpoint: "Checkpoint"
    """Passed to references, for nodes that have subgraphs."""

    def during(self, item: str | Node) -> AbstractContextManager[None]:
        """What to enter while a kernel, by its name, or a node's reference runs."""
        ...


class Checkpoint:
    """Stands where an observer does, but wants no values: it may only end the run by raising.

    It watches the programs of subgraphs.
    """

    one_by_one = False

    def __init__(self, check: Callable[[], None], stop: Stop) -> None:
        self.check = check
        self.stop = stop
        self.checkpoint = self

    def __call__(self, value: Value, item: Any) -> None:
        self.check()

    def during(self, item: str | Node) -> AbstractContextManager[None]:
        """Look before a node."""
        self.check()
        return nullcontext()
