"""On how many processors threads can work together here."""

import os
import platform
import sys

MACHINE = {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
"""The kind of this machine's instructions, by one name on every system."""

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
