"""The verb `profile` with `--roofline`: each kernel beside the machine's limits."""

from dataclasses import asdict
from pathlib import Path

import sardonyx as sx
from sardonyx.cli.output import print_json, print_line, print_table, waiting
from sardonyx.cli.session import Request
from sardonyx.runtime.processors import thread_limits
from sardonyx.runtime.roofline import KernelRate, Limits, measure_limits, rate_kernels

COLUMNS = ("kernel", "ms", "GFLOP/s", "GB/s", "of limit", "computes")


def show_roofline(
    request: Request, runs: int, top: int, trace: Path | None, *, as_json: bool
) -> None:
    """Profile a model, measure the machine, and show how near each kernel comes to it."""
    model = sx.load(request.path)
    feeds = request.feeds(model)
    options = sx.SessionOptions()
    session = request.session(model, options)
    with request.blaming_sizes(model):
        profile = session.profile(feeds, runs=runs)
    if trace is not None:
        profile.save(trace)
    with waiting("measuring this machine"):
        limits = measure_limits(request.threads or thread_limits().threads)
    found = rate_kernels(profile, model, feeds, limits, options)
    if as_json:
        print_json({"file": str(request.path), "runs": runs, "limits": asdict(limits),
                    "kernels": [asdict(item) for item in found[:top]]})  # fmt: skip
        return
    title = (
        f"{request.path}: {profile.seconds / profile.runs * 1e3:.2f} ms; this machine: "
        f"{limits.flops / 1e9:.0f} GFLOP/s, {limits.bytes / 1e9:.1f} GB/s "
        f"({len(found[:top])} of {len(found)} kernels)"
    )
    rows = [_row(item, limits) for item in found[:top]]
    print_table(title, COLUMNS, rows, "ms GFLOP/s GB/s")
    if trace is not None:
        print_line(f"wrote {trace}")


def _row(item: KernelRate, limits: Limits) -> tuple[str, ...]:
    by_work = item.flops / limits.flops > item.bytes / limits.bytes
    seconds = max(item.seconds, 1e-12)
    return (
        item.name,
        f"{item.seconds * 1e3:.4f}",
        f"{item.flops / seconds / 1e9:.1f}",
        f"{item.bytes / seconds / 1e9:.2f}",
        f"{item.share:.0%} of {'arithmetic' if by_work else 'memory'}",
        item.what,
    )
