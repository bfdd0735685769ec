"""Feed damaged files to everything that opens one: `python -m tests.fuzz.run --count 20000`.

Whatever happens must be a model or one of our own errors, within a second and without much memory.
"""

import argparse
import faulthandler
import resource
import sys
import time
import traceback
from dataclasses import dataclass, field

from sardonyx.errors import SardonyxError
from sardonyx.format.load import load
from sardonyx.format.save import to_bytes
from tests.fuzz.mutate import default_corpus, mutations

LONGEST = 1.0
MOST_MEMORY = 64 << 20


@dataclass
class Report:
    """What became of the files."""

    opened: int = 0
    refused: int = 0
    foreign: list[str] = field(default_factory=list)
    slow: list[str] = field(default_factory=list)
    slowest: float = 0.0


def exercise(content: bytes) -> None:
    """Open a file, look at every weight, and write the model again."""
    model = load(content)
    for tensor in model.tensors():
        try:
            tensor.numpy()
        except SardonyxError:
            continue
    to_bytes(model)


def run(seed: int, count: int) -> Report:
    """Exercise `count` damaged files."""
    report = Report()
    for number, content in enumerate(mutations(seed, count, default_corpus())):
        start = time.perf_counter()
        try:
            exercise(content)
            report.opened += 1
        except SardonyxError:
            report.refused += 1
        except Exception:  # noqa: BLE001 - any other exception is what this harness looks for
            report.foreign.append(f"seed {seed}, file {number}: {traceback.format_exc(limit=-3)}")
        taken = time.perf_counter() - start
        report.slowest = max(report.slowest, taken)
        if taken > LONGEST:
            report.slow.append(
                f"seed {seed}, file {number}: {taken:.2f} s for {len(content)} bytes"
            )
    return report


def main() -> int:
    """Run and print what was found; 1 where anything was."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    faulthandler.enable()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    report = run(arguments.seed, arguments.count)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    for line in report.foreign[:10] + report.slow[:10]:
        print(line)
    print(
        f"{arguments.count} files: {report.opened} opened, {report.refused} refused, "
        f"{len(report.foreign)} foreign exceptions, {len(report.slow)} over {LONGEST:g} s "
        f"(slowest {report.slowest:.3f} s), peak memory +{grown / 1024:.0f} MiB"
    )
    return bool(report.foreign or report.slow)


if __name__ == "__main__":
    sys.exit(main())
