"""The verb `doctor`: what is installed, and what the machine offers."""

import os
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from sardonyx.cli.output import bytes_text, print_facts, print_json
from sardonyx.runtime.processors import thread_limits
from sardonyx.version import VERSION

_NEEDED = ("numpy", "ml_dtypes", "protobuf", "llvmlite", "typer", "rich")
_OPTIONAL = {
    "pillow": "images as inputs",
    "onnx": "comparing with the original package",
    "onnxruntime": "bench and compare --against onnxruntime",
}
_FEATURES = (
    "sse4_2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512_vnni", "avx512_bf16", "avx_vnni",
    "amx_tile", "amx_int8", "amx_bf16", "asimd", "asimddp", "i8mm", "bf16", "sve", "sve2",
)  # fmt: skip


def show_machine(*, as_json: bool) -> None:
    """Print versions, the processor, threads, limits and optional packages."""
    facts = examine()
    if as_json:
        print_json(facts)
        return
    quota = facts["cpu_quota"]
    memory = facts["memory_bytes"]
    limit = facts["memory_limit_bytes"]
    rows = [
        ("sardonyx", facts["sardonyx"]),
        ("python", f"{facts['python']} ({facts['implementation']})"),
        ("system", facts["system"]),
        ("processor", facts["processor"] or "unknown"),
        ("features", ", ".join(facts["features"]) or "none known"),
        ("threads", f"{facts['threads']} of {facts['cores']}: {facts['threads_because']}"),
        ("quota", "none" if quota is None else f"{quota:g} processors"),
        ("memory", "unknown" if memory is None else bytes_text(memory)),
        ("memory limit", "none" if limit is None else bytes_text(limit)),
    ]
    rows += [("needs", f"{name} {said or 'MISSING'}") for name, said in facts["needed"].items()]
    for name, said in facts["optional"].items():
        rows.append(("optional", f"{name} {said or 'not installed'}: {_OPTIONAL[name]}"))
    print_facts(rows)


def examine() -> dict[str, Any]:
    """What `doctor` shows, as plain values."""
    model, flags = _processor()
    limits = thread_limits()
    return {
        "sardonyx": VERSION,
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "executable": sys.executable,
        "system": platform.platform(),
        "processor": model,
        "features": [name for name in _FEATURES if name in flags],
        "cores": limits.processors,
        "threads": limits.threads,
        "threads_because": limits.reason,
        "cpu_quota": limits.quota,
        "memory_bytes": _memory(),
        "memory_limit_bytes": _memory_limit(),
        "needed": {name: _version(name) for name in _NEEDED},
        "optional": {name: _version(name) for name in _OPTIONAL},
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _processor() -> tuple[str, set[str]]:
    """The processor's name and its features, as far as the system tells."""
    model, flags = platform.processor(), set[str]()
    for line in _read("/proc/cpuinfo").splitlines():
        key, _, said = line.partition(":")
        if key.strip() == "model name":
            model = said.strip()
        elif key.strip() in ("flags", "Features"):
            flags |= set(said.split())
    return model, flags


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _memory_limit() -> int | None:
    """Bytes a container may use; None where it is not limited."""
    said = (
        _read("/sys/fs/cgroup/memory.max").strip()
        or _read("/sys/fs/cgroup/memory/memory.limit_in_bytes").strip()
    )
    limit = int(said) if said.isdigit() else 0
    return limit if 0 < limit < 1 << 60 else None
