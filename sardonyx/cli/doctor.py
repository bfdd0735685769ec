"""The verb `doctor`: what is installed, and what the machine offers."""

import os
import platform
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from sardonyx.cli.output import bytes_text, print_facts, print_json, waiting
from sardonyx.cli.probe import probe_targets
from sardonyx.compiler.host import host_features, host_target
from sardonyx.runtime.caching import open_cache
from sardonyx.runtime.processors import thread_limits
from sardonyx.version import VERSION

_NEEDED = ("numpy", "ml_dtypes", "protobuf", "llvmlite", "typer", "rich")
_OPTIONAL = {
    "pillow": "images as inputs",
    "onnx": "comparing with the original package",
    "onnxruntime": "bench and compare --against onnxruntime",
    "openvino": "bench and compare --against openvino",
}
_FEATURES = (
    "sse4.2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512vnni", "avx512bf16", "avx512fp16",
    "avxvnni", "amx-tile", "amx-int8", "amx-bf16", "neon", "dotprod", "i8mm", "bf16", "sve", "sve2",
)  # fmt: skip
_LITTLE_MEMORY = 1 << 30


def show_machine(*, as_json: bool) -> None:
    """Print versions, the processor, threads, limits, optional packages, and what is wrong."""
    with waiting("trying machine code"):
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
        ("target", f"{facts['target']}, unless a lower one is asked for"),
    ]
    rows += [("tried", f"{name}: {outcome}") for name, outcome in facts["targets"].items()]
    rows += [
        ("threads", f"{facts['threads']} of {facts['cores']}: {facts['threads_because']}"),
        ("quota", "none" if quota is None else f"{quota:g} processors"),
        ("memory", "unknown" if memory is None else bytes_text(memory)),
        ("memory limit", "none" if limit is None else bytes_text(limit)),
        ("cache", facts["cache"] or "turned off"),
    ]
    rows += [("needs", f"{name} {said or 'MISSING'}") for name, said in facts["needed"].items()]
    for name, said in facts["optional"].items():
        rows.append(("optional", f"{name} {said or 'not installed'}: {_OPTIONAL[name]}"))
    rows += [("problem", text) for text in facts["problems"] or ["none known"]]
    print_facts(rows)


def examine() -> dict[str, Any]:
    """What `doctor` shows, as plain values."""
    limits, cache = thread_limits(), open_cache()
    facts: dict[str, Any] = {
        "sardonyx": VERSION,
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "executable": sys.executable,
        "system": platform.platform(),
        "processor": _processor(),
        "features": [name for name in _FEATURES if name in host_features()],
        "target": host_target().name,
        "targets": probe_targets(),
        "cores": limits.processors,
        "threads": limits.threads,
        "threads_because": limits.reason,
        "cpu_quota": limits.quota,
        "memory_bytes": _memory(),
        "memory_limit_bytes": _memory_limit(),
        "cache": None if cache is None else str(cache.folder),
        "cache_problem": "" if cache is None else cache.problem(),
        "needed": {name: _version(name) for name in _NEEDED},
        "optional": {name: _version(name) for name in _OPTIONAL},
    }
    return facts | {"problems": list(find_problems(facts))}


def find_problems(facts: dict[str, Any]) -> Iterator[str]:
    """What of the facts will make trouble, and what to do.

    >>> list(find_problems({"needed": {"numpy": None}, "targets": {"avx2": "died of SIGILL"},
    ...     "target": "avx2", "cpu_quota": 0.5, "memory_limit_bytes": None}))
    ['numpy is missing: pip install numpy',
     'machine code for avx2 fails (died of SIGILL): choose a lower target',
     'the container has 0.5 processors: a run is halted for a part of the time']
    """
    for name, version in facts["needed"].items():
        if version is None:
            yield f"{name} is missing: pip install {name}"
    for name, outcome in facts["targets"].items():
        if outcome != "runs":
            yield f"machine code for {name} fails ({outcome}): choose a lower target"
    if facts["cpu_quota"] is not None and facts["cpu_quota"] < 1:
        share = f"{facts['cpu_quota']:g} processors"
        yield f"the container has {share}: a run is halted for a part of the time"
    limit = facts["memory_limit_bytes"]
    if limit is not None and limit < _LITTLE_MEMORY:
        yield f"memory: the container has only {bytes_text(limit)}"
    if facts.get("cache_problem"):
        yield f"the cache {facts['cache']} is not used: {facts['cache_problem']}"
    if facts["target"] == "generic" and platform.machine() in ("x86_64", "AMD64"):
        yield "the processor has neither AVX2 nor AVX-512, or hides them: runs will be slow"


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


def _processor() -> str:
    """The processor's name, as far as the system tells."""
    for line in _read("/proc/cpuinfo").splitlines():
        key, _, said = line.partition(":")
        if key.strip() == "model name":
            return said.strip()
    return _read("/proc/device-tree/model").rstrip("\0") or platform.processor()


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
