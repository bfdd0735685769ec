"""The processor that the program runs on, told without LLVM where the system tells it."""

import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path

from sardonyx.compiler.forks import FORKS
from sardonyx.compiler.processors import MACHINE
from sardonyx.compiler.targets import Target, choose_target

_LINUX = Path("/proc/cpuinfo")
_ENOUGH = 1 << 14
"""Bytes that tell of the first processor; to tell of all takes long where there are many."""
_IDENTITY = (
    "vendor_id", "cpu family", "model", "stepping", "model name",
    "CPU implementer", "CPU variant", "CPU part", "CPU revision",
)  # fmt: skip
"""What Linux calls the facts that tell processors apart, on x86-64 and on aarch64."""
_CAPABILITIES = {
    16: {1: "neon", 8: "lse", 10: "fullfp16", 20: "dotprod", 22: "sve"},
    26: {1: "sve2", 13: "i8mm", 14: "bf16"},
}
"""On aarch64: by the number of a word that Linux hands every process, what its bits mean."""


@cache
def host_features() -> frozenset[str]:
    """What the processor can do and the system lets it; what targets need is in LLVM's words.

    >>> isinstance(host_features(), frozenset)
    True
    """
    flags = _told().get("flags")
    if MACHINE == "x86_64" and flags:
        return frozenset(map(_llvm_word, flags.split()))
    if MACHINE == "aarch64" and sys.platform == "linux":
        return frozenset(_capabilities())
    from sardonyx.compiler.emit_engine import llvm_features

    return llvm_features()


def host_target(name: str | None = None) -> Target:
    """The best target for this machine, or a lower one by name."""
    return choose_target(host_features(), name)


@cache
def host_identity() -> tuple[str, ...]:
    """What tells this kind of processor from others that code may be made for."""
    told = _told()
    words = (told.get(word, "") for word in _IDENTITY)
    return (MACHINE, *words, *sorted(host_features()))


@cache
def llvm_identity() -> tuple[str, ...]:
    """What tells the LLVM that makes code from others: its library's size and time."""
    found = [(os.path.basename(path), os.stat(path)) for path in _llvm_libraries()]
    return tuple(f"{name} {status.st_size} {status.st_mtime_ns}" for name, status in found)


@cache
def load_llvm_ahead() -> None:
    """Begin to load LLVM's library, which takes a while, in a thread that needs no interpreter.

    Whoever imports it later finds it there, or waits for the rest; what cannot be loaded is told
    only then.
    """
    load = getattr(ctypes.CDLL(None), "dlopen", None) if sys.platform == "linux" else None
    if load is None:
        return

    def run() -> None:
        with FORKS.held_off():
            for path in _llvm_libraries():
                load(os.fsencode(path), os.RTLD_NOW)

    with suppress(RuntimeError):  # the interpreter is about to end and starts no more threads
        threading.Thread(target=run, daemon=True).start()


@cache
def _llvm_libraries() -> tuple[str, ...]:
    found = PathFinder.find_spec("llvmlite")
    assert found is not None and found.submodule_search_locations
    with os.scandir(os.path.join(found.submodule_search_locations[0], "binding")) as files:
        return tuple(sorted(file.path for file in files if "llvmlite" in file.name))


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


def _capabilities() -> Iterator[str]:
    """What Linux tells this process of an aarch64 processor."""
    ask = ctypes.CDLL(None).getauxval
    ask.restype, ask.argtypes = ctypes.c_ulong, [ctypes.c_ulong]
    for number, names in _CAPABILITIES.items():
        word = ask(number)
        yield from (name for bit, name in names.items() if word >> bit & 1)


def _llvm_word(flag: str) -> str:
    """A flag of Linux as LLVM calls it: `avx512_vnni` is `avx512vnni`, `amx_tile` is `amx-tile`."""
    if flag.startswith("avx512"):
        return flag.replace("_", "")
    return flag.replace("_", "-") if flag.startswith("amx") else flag
