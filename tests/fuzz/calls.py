"""Run official cases with other attributes and feeds: `python -m tests.fuzz.calls --count 5000`.

Whatever happens must be results like the reference's, or one of our own errors; a process never
ends by a signal. Each batch of cases has a child of its own, so that a crash is told with its seed.
"""

import argparse
import os
import random
import resource
import signal
import sys
import warnings
from typing import Any

import numpy as np
import onnx

import sardonyx as sx
from sardonyx.errors import SardonyxError
from tests.conformance.suite import RANDOM, Case, cases
from tests.fuzz.guard import guard_segments
from tests.logged import warnings_of

BATCH = 40
SECONDS = 30
MEMORY = 8 << 30
NUMBERS = (-(2**63), -(2**31), -1000, -7, -3, -2, -1, 0, 1, 2, 3, 5, 8, 1000, 2**31, 2**63 - 1)
ODD = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30, -1e-30)


def change_attribute(rng: random.Random, model: onnx.ModelProto) -> None:
    """Give one attribute of some node another number."""
    found = [
        attribute
        for node in model.graph.node
        for attribute in node.attribute
        if attribute.type in (onnx.AttributeProto.INT, onnx.AttributeProto.INTS,
                              onnx.AttributeProto.FLOAT)
    ]  # fmt: skip
    if not found:
        return
    attribute = rng.choice(found)
    if attribute.type == onnx.AttributeProto.FLOAT:
        attribute.f = rng.choice(ODD)
    elif attribute.type == onnx.AttributeProto.INT:
        attribute.i = rng.choice(NUMBERS)
    elif attribute.ints and rng.random() < 0.7:
        attribute.ints[rng.randrange(len(attribute.ints))] = rng.choice(NUMBERS)
    elif attribute.ints and rng.random() < 0.5:
        attribute.ints.pop()
    else:
        attribute.ints.append(rng.choice(NUMBERS))


def change_feed(rng: random.Random, feeds: list[Any]) -> None:
    """Give one tensor another shape or other elements."""
    places = [n for n, item in enumerate(feeds) if isinstance(item, np.ndarray)]
    if not places:
        return
    place = rng.choice(places)
    array = feeds[place]
    if array.ndim and rng.random() < 0.5:
        shape = list(array.shape)
        axis = rng.randrange(array.ndim)
        shape[axis] = rng.choice((0, 1, shape[axis] + 1, max(shape[axis] - 1, 0), 17))
        feeds[place] = np.resize(array, shape) if array.size else np.zeros(shape, array.dtype)
    elif array.size and array.dtype.kind in "iuf":
        array = array.copy()
        flat = array.reshape(-1)
        kind = array.dtype
        for _ in range(rng.randint(1, 3)):
            if kind.kind == "f":
                with np.errstate(over="ignore"):
                    flat[rng.randrange(flat.size)] = rng.choice(ODD)
            else:
                limits = np.iinfo(kind)
                number = min(max(rng.choice(NUMBERS), limits.min), limits.max)
                flat[rng.randrange(flat.size)] = number
        feeds[place] = array.reshape(feeds[place].shape)


def changed(seed: int) -> tuple[Case, onnx.ModelProto, list[Any]]:
    """A case of the suite, changed in one or two places, its declared sizes left open."""
    rng = random.Random(seed)
    case = rng.choice(cases("node"))
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    for value in (*model.graph.input, *model.graph.output):
        if value.type.WhichOneof("value") != "tensor_type":
            continue
        for size in value.type.tensor_type.shape.dim:
            size.Clear()
    feeds = list(case.data_sets[0][0]) if case.data_sets else []
    for _ in range(rng.randint(1, 2)):
        change_attribute(rng, model) if rng.random() < 0.4 else change_feed(rng, feeds)
    return case, model, feeds


def run(content: bytes, feeds: dict[str, Any], provider: str) -> list[Any] | SardonyxError:
    """The outputs, or our error."""
    try:
        session = sx.InferenceSession(content, _options(), [provider])
        return list(session.run(None, feeds))
    except SardonyxError as error:
        return error


def _options() -> sx.SessionOptions:
    options = sx.SessionOptions()
    options.intra_op_num_threads = 2
    options.log_severity_level = 4
    options.add_session_config_entry("sardonyx.cache", "off")
    return options


def differs(found: Any, wanted: Any) -> str:
    """How results differ by more than rounding; empty where they do not."""
    if not isinstance(wanted, np.ndarray) or not isinstance(found, np.ndarray):
        return ""
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return f"{found.dtype}{found.shape} instead of {wanted.dtype}{wanted.shape}"
    if wanted.dtype == object:
        return "" if (found == wanted).all() else "other words"
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    with np.errstate(all="ignore"):
        finite = np.isfinite(b)
        size = float(np.abs(b[finite]).max()) if finite.any() else 1.0
        odd = (np.isnan(a) != np.isnan(b)) | (np.isinf(b) & (a != b))
        odd |= finite & (np.abs(a - b) > 1e-2 * max(size, 1e-3))
    return f"{int(odd.sum())} of {odd.size} differ" if odd.any() else ""


def breaks_rules(content: bytes) -> bool:
    """Whether the model itself is wrong: who refuses it is right, even where NumPy goes on."""
    try:
        sx.check(content, full=True)
    except SardonyxError:
        return True
    return False


def problem(seed: int) -> str:
    """What is wrong with one changed case, or nothing."""
    case, model, given = changed(seed)
    names = [value.name for value in model.graph.input]
    feeds = dict(zip(names, given, strict=False))
    content = model.SerializeToString()
    operators = " ".join(sorted({node.op_type for node in model.graph.node}))[:60]
    where = f"seed {seed} {case.name} [{operators}]"
    try:
        with warnings_of("sardonyx.passes", "sardonyx.compiler") as rules:
            found = run(content, feeds, "CPUExecutionProvider")
        if rules:
            return f"{where}: {rules[0][:200]}"
        wanted = run(content, feeds, "ReferenceExecutionProvider")
    except Exception as error:  # noqa: BLE001 - any other exception is what this looks for
        return f"{where}: {type(error).__name__}: {str(error)[:160]}"
    if isinstance(found, SardonyxError) or isinstance(wanted, SardonyxError):
        if type(found) is type(wanted) or not isinstance(found, SardonyxError):
            if isinstance(wanted, SardonyxError) and not isinstance(found, SardonyxError):
                empty = all(getattr(item, "size", 1) == 0 for item in found)
                if empty and "cannot reshape array of size 0" in str(wanted):
                    return ""  # a computed 0 keeps a size in Reshape, which only empty tensors meet
                return f"{where}: runs, where the reference says {str(wanted)[:160]}"
            return ""
        if not isinstance(wanted, SardonyxError) and not breaks_rules(content):
            return f"{where}: refused, where the reference runs: {str(found)[:160]}"
        return ""
    if case.name in RANDOM:
        return ""
    said = [text for a, b in zip(found, wanted, strict=True) if (text := differs(a, b))]
    return f"{where}: {said[0]}" if said else ""


def run_batch(start: int, count: int) -> list[str]:
    """Problems of a batch, found in a child."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        warnings.simplefilter("ignore")
        guard_segments()
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, 2)
        with os.fdopen(writer, "w", buffering=1) as out:
            for seed in range(start, start + count):
                out.write(f"@{seed}\n")
                signal.alarm(SECONDS)
                text = problem(seed).replace("\n", " ")
                signal.alarm(0)
                if text:
                    out.write(text + "\n")
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as lines:
        told = lines.read().splitlines()
    status = os.waitpid(child, 0)[1]
    found = [line for line in told if not line.startswith("@")]
    if status:
        last = int(next(line for line in reversed(told) if line.startswith("@"))[1:])
        code = os.waitstatus_to_exitcode(status)
        what = "took too long" if code == -signal.SIGALRM else f"ended with {code}"
        found.append(f"seed {last} {changed(last)[0].name}: {what}")
        found += run_batch(last + 1, start + count - last - 1) if last + 1 < start + count else []
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--start", type=int, default=0)
    given = parser.parse_args()
    cases("node")
    problems = 0
    for start in range(given.start, given.start + given.count, BATCH):
        size = min(BATCH, given.start + given.count - start)
        for line in run_batch(start, size):
            problems += 1
            print(line, flush=True)
    print(f"{given.count} changed cases, {problems} problems")
    return min(problems, 100)


if __name__ == "__main__":
    sys.exit(main())
