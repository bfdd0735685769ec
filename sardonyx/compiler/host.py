"""What decides which machine code this machine gets, outside of the compiler's own sources."""

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path

from sardonyx.compiler.targets import Target


@dataclass(frozen=True, slots=True)
class Host:
    """What LLVM says of itself and of this machine, in its words."""

    versions: tuple[str, ...]
    cpu: str
    features: str
    """Names with a sign before each, separated by commas."""

    @property
    def abilities(self) -> frozenset[str]:
        """What the processor can do.

        >>> sorted(Host((), "", "+avx,-avx512f,+sse2").abilities)
        ['avx', 'sse2']
        """
        return frozenset(word[1:] for word in self.features.split(",") if word.startswith("+"))

    def processor(self, target: Target) -> tuple[str, str]:
        """The processor that code for a target is made for, and its features."""
        return (target.cpu, target.features) if target.cpu else (self.cpu, self.features)

    def identity(self, target: Target) -> tuple[str, ...]:
        """All that decides what machine code a target gets."""
        return (*self.versions, target.name, *self.processor(target))


def library_state() -> str:
    """What is another when llvmlite may be another one, found without importing it."""
    found = importlib.util.find_spec("llvmlite")
    if found is None or found.origin is None:
        return ""
    folder = Path(found.origin).parent
    states = [os.stat(folder / name) for name in ("__init__.py", "_version.py", "binding")]
    return " ".join([str(folder), *(f"{item.st_size} {item.st_mtime_ns}" for item in states)])
