"""Who looks on while a program runs: to take times, or to stop it."""

from contextlib import AbstractContextManager
from typing import Any, Protocol

from sardonyx.compiler.kernels.reader import Call
from sardonyx.graph import Node, Value


class Watch(Protocol):
    """Told of each kernel and each reference; may end the run by raising."""

    def during(self, item: Call | Node) -> AbstractContextManager[None]:
        """What to enter while a kernel, or a node's reference, runs."""
        ...

    def observe(self, value: Value, item: Any) -> None:
        """Told of each value that a reference makes inside of a node's subgraphs."""
        ...
