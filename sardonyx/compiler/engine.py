"""Object code made ready to run, by our own linker where it can, else by LLVM's."""

from collections.abc import Sequence
from logging import getLogger
from typing import Protocol

from sardonyx.compiler.link import LINKS, Linked
from sardonyx.errors import UnsupportedError

_log = getLogger("sardonyx")


class Code(Protocol):
    """Machine code in memory; it lives as long as this object."""

    def address(self, name: str) -> int:
        """Where a function begins."""


def load_code(objects: Sequence[bytes]) -> Code:
    """The functions of some objects, whose names differ."""
    if LINKS:
        try:
            return Linked(objects)
        except UnsupportedError as error:
            _log.debug("LLVM links: %s", error)
    from sardonyx.compiler.emit_engine import Engine

    return Engine(objects)
