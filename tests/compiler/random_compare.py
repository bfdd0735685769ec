"""Compare the compiler with the reference and with onnxruntime on random models.

    python -m tests.compiler.random_compare --count 5000 [--start 0] [--target avx2]
        [--checked accesses]

Every disagreement is printed with its seed; the exit code is their number, at most 100.
"""

import argparse
import sys
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import onnxruntime
from numpy.typing import NDArray

import sardonyx as sx
from sardonyx.compiler.program import compile_model
from sardonyx.compiler.targets import CHECKS
from sardonyx.dtypes import from_numpy
from tests.compiler.random_graphs import Case, random_case

FLOAT_STEPS = {np.dtype(np.float32): 2e-4, np.dtype(np.float64): 1e-6}
"""How far floats may lie apart, as a part of the largest in their tensor."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one model: disagreements, and whether onnxruntime took part."""

    problems: tuple[str, ...]
    peer: bool
    native: bool


def apart(found: NDArray[Any], wanted: NDArray[Any]) -> str:
    """Where two results differ by more than their type's resolution; empty where they do not."""
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return f"{found.dtype}{found.shape} instead of {wanted.dtype}{wanted.shape}"
    if not from_numpy(wanted.dtype).is_float:
        count = int(np.sum(found != wanted))
        return f"{count} of {wanted.size} elements differ" if count else ""
    narrow = wanted.dtype.itemsize < 4
    part = 16 * float(ml_dtypes.finfo(wanted.dtype).eps) if narrow else FLOAT_STEPS[wanted.dtype]
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    finite = np.isfinite(b)
    size = max(1.0, float(np.abs(b[finite]).max())) if finite.any() else 1.0
    odd = np.isnan(a) != np.isnan(b)
    odd |= np.isinf(b) & (a != b)
    with np.errstate(invalid="ignore"):
        odd |= finite & (np.abs(a - b) > part * size)
    if not odd.any():
        return ""
    place = tuple(int(axis) for axis in np.argwhere(odd)[0])
    return f"{int(odd.sum())} of {odd.size} differ, first {a[place]} for {b[place]} at {place}"


def peer_results(case: Case) -> list[Any] | None:
    """What onnxruntime gives; None where it does not take the model."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(
            sx.to_bytes(case.model), options, providers=["CPUExecutionProvider"]
        )
        results: list[Any] = session.run(None, case.feeds)
    except Exception:  # noqa: BLE001 - types and operators that it lacks
        return None
    return results


def compare(seed: int, target: str | None = None, checked: str = "") -> Outcome:
    """Run one random model everywhere."""
    case = random_case(seed)
    names = [value.name for value in case.model.graph.outputs]  # type: ignore[union-attr]
    wanted = sx.evaluate(case.model, case.feeds)
    try:
        program = compile_model(case.model, target=target, threads=1, checked=checked)
        found = program.run(case.feeds)
    except Exception as error:  # noqa: BLE001 - a failure is a disagreement too
        return Outcome((f"seed {seed}: {type(error).__name__}: {error}",), False, False)
    native = all(row.kernel != "reference" for row in program.explain())
    problems = [
        f"seed {seed}, output {name}: compiled {said}"
        for name, a, b in zip(names, found, wanted, strict=True)
        if (said := apart(a, b))
    ]
    peer = peer_results(case)
    for name, a, b in zip(names, wanted, peer or (), strict=False):
        if not problems and (said := apart(a, np.asarray(b))):
            problems.append(f"seed {seed}, output {name}: reference against onnxruntime {said}")
    return Outcome(tuple(problems), peer is not None, native)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--target", default=None)
    parser.add_argument("--checked", default="", choices=CHECKS)
    given = parser.parse_args()
    problems, peers, native = 0, 0, 0
    for seed in range(given.start, given.start + given.count):
        outcome = compare(seed, given.target, given.checked)
        peers += outcome.peer
        native += outcome.native
        problems += len(outcome.problems)
        for line in outcome.problems:
            print(line, flush=True)
    print(
        f"{given.count} models, {native} wholly native, {peers} also on onnxruntime, "
        f"{problems} disagreements"
    )
    return min(problems, 100)


if __name__ == "__main__":
    sys.exit(main())
