"""On how many processors threads can work together here."""

import os
import platform
import sys

_NAMES = {"AMD64": "x86_64", "arm64": "aarch64"}
_NARROW = "" if sys.maxsize > 1 << 32 else " in 32 bits"
MACHINE = _NAMES.get(platform.machine(), platform.machine()) + _NARROW
"""The kind of the process's instructions, by one name on every system.

A process of 32 bits may be told of a processor of 64, whose instructions it does not have."""

SHARES = sys.platform == "linux" and MACHINE in ("x86_64", "aarch64")
"""Whether sleeping and waking is known for this system; elsewhere callers work alone."""


def available_processors() -> int:
    """On how many processors this process may run.

    >>> available_processors() >= 1
    True
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
