"""A plugin of pytest: this processor has no more than AVX2, as far as sardonyx is told.

    python -m pytest -p tests.processors.avx2_only tests/compiler

Under an emulator it is what the emulated processor has: Linux goes on to tell of the real one.
"""

import tempfile
from pathlib import Path

from sardonyx.compiler import host

BEYOND = ("avx512", "avx_vnni", "avx_ifma", "amx", "gfni", "vaes", "vpclmulqdq")
"""How the flags of later processors begin."""


def without_later_flags(told: str) -> str:
    """What Linux says of processors, with flags up to AVX2 alone.

    >>> without_later_flags("flags : fma avx2 avx512f amx_tile")
    'flags : fma avx2'
    """
    lines = [
        " ".join(word for word in line.split() if not word.startswith(BEYOND))
        if line.startswith("flags")
        else line
        for line in told.splitlines()
    ]
    return "\n".join(lines)


def pytest_configure() -> None:
    """Put another file in the place of the one that Linux keeps."""
    told = without_later_flags(host._LINUX.read_text())
    folder = Path(tempfile.mkdtemp(prefix="sardonyx-processor-"))
    host._LINUX = folder / "cpuinfo"  # type: ignore[misc]
    host._LINUX.write_text(told)
    host.host_features.cache_clear()
    host._told.cache_clear()
