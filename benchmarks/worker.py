"""A process that runs one model in one runtime, as `benchmarks.lockstep` tells it over a pipe.

Each line that comes in is a request as JSON, and each gets one line back. What libraries print goes
to standard error.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Answer = dict[str, Any]


def peak_memory() -> int:
    """The most bytes this process had in memory so far.

    Linux counts a parent's memory into `ru_maxrss` of a process that it started, so that is asked
    only elsewhere.
    """
    status = Path("/proc/self/status")
    if status.is_file():
        lines = status.read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


class Worker:
    """The model that is open, and calls of it by the file of their inputs."""

    def __init__(self) -> None:
        self._before = peak_memory()
        self._bind: Any = None
        self._calls: dict[str, Callable[[], Any]] = {}

    def open(self, runtime: str, job: dict[str, Any]) -> Answer:
        """Make a session; the import of the runtime is timed apart."""
        from benchmarks.contenders import CONTENDERS, Job

        begin = time.perf_counter()
        _load_package(runtime)
        middle = time.perf_counter()
        self._bind = CONTENDERS[runtime](Job(**job))
        end = time.perf_counter()
        return {"import": middle - begin, "create": end - middle}

    def call(self, inputs: str, outputs: str = "", seconds: float = 0.0) -> Answer:
        """Call the model once, then again until the time is over; the outputs may be kept."""
        if inputs not in self._calls:
            with np.load(inputs, allow_pickle=False) as file:
                self._calls[inputs] = self._bind(dict(file))
        call = self._calls[inputs]
        times = []
        start = time.perf_counter()
        while True:
            begin = time.perf_counter()
            found = call()
            end = time.perf_counter()
            times.append(end - begin)
            if end - start >= seconds:
                break
        if outputs:
            np.savez(outputs, *(_array(item) for item in found))
        return {"times": times}

    def memory(self) -> Answer:
        """Bytes at the peak, above those of an interpreter with NumPy."""
        return {"bytes": peak_memory() - self._before}


def _load_package(runtime: str) -> None:
    match runtime:
        case "onnxruntime":
            import onnxruntime  # noqa: F401
        case "openvino":
            import openvino  # noqa: F401
        case "torch" | "torch-compile" | "truth":
            import torch  # noqa: F401
        case _:
            import sardonyx as sx

            sx.InferenceSession  # noqa: B018


def _array(item: Any) -> np.ndarray:
    found = np.asarray(item)
    if found.dtype.kind not in "biufcUS":
        raise TypeError(f"an output of {found.dtype} cannot be compared")
    return found


def answer(worker: Worker, request: dict[str, Any]) -> Answer:
    """What a request comes to; a failure is an answer too."""
    action = {"open": worker.open, "call": worker.call, "memory": worker.memory}
    try:
        return action[request.pop("do")](**request)
    except Exception as error:  # noqa: BLE001
        return {"failed": type(error).__name__, "why": describe(error)}


def describe(error: Exception) -> str:
    """The lines of a message that say what happened, without those that say where in a peer.

    >>> describe(ValueError("Exception from src/core.cpp:132:\\nno such operator"))
    'no such operator'
    """
    lines = [line.strip() for line in str(error).splitlines()]
    said = [line for line in lines if line and not line.startswith(("Exception from", "Check '"))]
    return " ".join(said)[:300]


def main() -> None:
    """Answer until nothing more comes in."""
    with os.fdopen(os.dup(1), "w") as replies:
        os.dup2(2, 1)
        worker = Worker()
        for line in sys.stdin:
            print(json.dumps(answer(worker, json.loads(line))), file=replies, flush=True)


if __name__ == "__main__":
    main()
