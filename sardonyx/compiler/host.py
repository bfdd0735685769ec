"""The processor that the program runs on, told without LLVM where the system tells it."""

import os
import platform
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path

from sardonyx.compiler.targets import Target, choose_target

_LINUX = Path("/proc/cpuinfo")
_ENOUGH = 1 << 14
"""Bytes that tell of the first processor; to tell of all takes long where there are many."""


@cache
def host_features() -> frozenset[str]:
    """What the processor can do and the system lets it; what targets need is in LLVM's words.

    >>> isinstance(host_features(), frozenset)
    True
    """
    flags = _told().get("flags")
    if platform.machine() == "x86_64" and flags:
        return frozenset(map(_llvm_word, flags.split()))
    from sardonyx.compiler.emit_engine import llvm_features

    return llvm_features()


def host_target(name: str | None = None) -> Target:
    """The best target for this machine, or a lower one by name."""
    return choose_target(host_features(), name)


@cache
def host_identity() -> tuple[str, ...]:
    """What tells this kind of processor from others that code may be made for."""
    told = _told()
    words = ("vendor_id", "cpu family", "model", "stepping", "model name", "flags")
    features = () if "flags" in told else sorted(host_features())
    return (platform.machine(), *(told.get(word, "") for word in words), *features)


@cache
def llvm_identity() -> tuple[str, ...]:
    """What tells the LLVM that makes code from others: its library's size and time."""
    found = PathFinder.find_spec("llvmlite")
    assert found is not None and found.submodule_search_locations
    with os.scandir(os.path.join(found.submodule_search_locations[0], "binding")) as files:
        libraries = [(file.name, file.stat()) for file in files if "llvmlite" in file.name]
    return tuple(f"{name} {it.st_size} {it.st_mtime_ns}" for name, it in sorted(libraries))


@cache
def _told() -> dict[str, str]:
    """What Linux says of the first processor."""
    try:
        with open(_LINUX, "rb", buffering=0) as file:
            first = file.read(_ENOUGH).decode(errors="replace").partition("\n\n")[0]
    except OSError:
        return {}
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _llvm_word(flag: str) -> str:
    """A flag of Linux as LLVM calls it: `avx512_vnni` is `avx512vnni`, `amx_tile` is `amx-tile`."""
    if flag.startswith("avx512"):
        return flag.replace("_", "")
    return flag.replace("_", "-") if flag.startswith("amx") else flag
