"""How many threads a process should use: what the system, its container and its user allow."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import ceil
from os.path import join
from pathlib import Path

from sardonyx.compiler.processors import SHARES, available_processors

OPENMP = "OMP_NUM_THREADS"


@dataclass(frozen=True, slots=True)
class ThreadLimits:
    """What bounds the number of threads that a session uses by default."""

    processors: int
    """Processors of the machine."""
    available: int
    """Those on which threads of this process may run."""
    quota: float | None
    """How many processors' time the container may use."""
    environment: int | None
    """What OMP_NUM_THREADS says."""
    together: bool = True
    """Whether threads can share work on this system."""

    @property
    def threads(self) -> int:
        """The smallest of the limits; a part of a processor counts as one."""
        quota = self.available if self.quota is None else ceil(self.quota)
        limits = self.available, quota, self.environment or self.available
        return max(1, min(limits)) if self.together else 1

    @property
    def reason(self) -> str:
        """Which limit decides.

        >>> ThreadLimits(8, 4, 2.5, None).reason
        'the container may use 2.5 processors'
        """
        threads = self.threads
        if not self.together:
            return "threads share work only on Linux, on x86-64 and aarch64"
        if self.environment is not None and threads == self.environment < self.available:
            return f"{OPENMP} is {self.environment}"
        if self.quota is not None and threads < self.available:
            return f"the container may use {self.quota:g} processors"
        if self.available < self.processors:
            return f"the process may use {self.available} of {self.processors} processors"
        return "these are all processors of the machine"


def thread_limits(
    environment: Mapping[str, str] = os.environ, root: Path = Path("/")
) -> ThreadLimits:
    """The limits of this process; `root` is where its system's files are found.

    >>> limits = thread_limits({"OMP_NUM_THREADS": "1"})
    >>> limits.threads
    1
    """
    said = environment.get(OPENMP, "").partition(",")[0].strip()
    threads = int(said) if said.isdecimal() else 0
    return ThreadLimits(
        os.cpu_count() or 1, available_processors(), cpu_quota(root), threads or None, SHARES
    )


@cache
def cpu_quota(root: Path = Path("/")) -> float | None:
    """How many processors' time control groups allow, by the tightest group that we are in.

    It is asked for once: a process does not move between containers.
    """
    found = [quota for group in _groups(str(root)) if (quota := _quota(group)) is not None]
    return min(found, default=None)


def _groups(root: str) -> Iterator[str]:
    """The folders of this process's groups that may bound its time, and of the groups around."""
    entries = [line.split(":", 2) for line in _read(join(root, "proc/self/cgroup")).splitlines()]
    inside = {kind: path for entry in entries if len(entry) == 3 for _, kind, path in [entry]}
    for line in _read(join(root, "proc/self/mountinfo")).splitlines():
        if " - cgroup" not in line:
            continue
        fields, _, kind = line.partition(" - ")
        words, kinds = fields.split(), kind.split()
        if len(words) < 5 or not kinds or kinds[0] not in ("cgroup", "cgroup2"):
            continue
        options = kinds[-1].split(",")
        for controllers, path in inside.items():
            named = kinds[0] == "cgroup" and "cpu" in controllers.split(",") and "cpu" in options
            if named or (kinds[0] == "cgroup2" and not controllers):
                yield from _around(root, _plain(words[4]), _plain(words[3]), path)


def _around(root: str, mount: str, top: str, path: str) -> Iterator[str]:
    """A group and those around it, as far as they can be seen where `top` is mounted."""
    folder = join(root, mount.lstrip("/"))
    above = top.rstrip("/") + "/"
    inner = f"{path}/"[len(above) :] if f"{path}/".startswith(above) else ""
    parts = [part for part in inner.split("/") if part]
    for count in range(0 if ".." in parts else len(parts), -1, -1):
        yield join(folder, *parts[:count])


def _quota(group: str) -> float | None:
    """What one group allows: by the newer interface's file, or by the older one's two."""
    words = _read(join(group, "cpu.max")).split()
    words = words or [
        *_read(join(group, "cpu.cfs_quota_us")).split(),
        *_read(join(group, "cpu.cfs_period_us")).split(),
    ]
    if len(words) != 2 or not all(word.isdecimal() for word in words):
        return None
    quota, period = map(int, words)
    return quota / period if quota and period else None


def _plain(path: str) -> str:
    """A path of `mountinfo`, which writes some characters as octal numbers."""
    first, *others = path.split("\\")
    return first + "".join(chr(int(part[:3], 8)) + part[3:] for part in others)


def _read(path: str) -> str:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read().decode(errors="replace")
    except OSError:
        return ""
