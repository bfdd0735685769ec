"""Runtimes that take part in the benchmark, each behind the same two steps: open, then bind.

Only `benchmarks.worker` imports this, in a process for each runtime.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.models import NETWORKS, Feeds

Call = Callable[[], Any]
Bind = Callable[[Feeds], Call]
"""From inputs to a call of the model with them, which gives its outputs in the model's order."""


NATIVE = "CPUExecutionProvider"


@dataclass(frozen=True)
class Job:
    """What to open: a file, the benchmark's name for it, how many threads."""

    path: str
    name: str = ""
    threads: int = 1
    cache: str = ""
    """A folder for what a runtime keeps between processes."""


class AbsentError(Exception):
    """The runtime has no way to run this model."""


def open_sardonyx(job: Job) -> Bind:
    """Sardonyx, as native code."""
    import sardonyx as sx

    options = sx.SessionOptions()
    options.intra_op_num_threads = job.threads
    session = sx.InferenceSession(job.path, options, [NATIVE])
    if session.get_providers() != [NATIVE]:
        raise RuntimeError(f"the model runs on {', '.join(session.get_providers())}")
    return lambda feeds: lambda: session.run(None, feeds)


def open_onnxruntime(job: Job) -> Bind:
    """onnxruntime's CPU provider with all of its optimizations."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(3)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = job.threads
    session = onnxruntime.InferenceSession(job.path, options, ["CPUExecutionProvider"])
    return lambda feeds: lambda: session.run(None, feeds)


def open_openvino(job: Job) -> Bind:
    """OpenVINO for latency in float32, without copies of inputs and outputs."""
    import openvino

    core = openvino.Core()
    settings = {"INFERENCE_NUM_THREADS": job.threads, "NUM_STREAMS": 1,
                "INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}  # fmt: skip
    if job.cache:
        settings["CACHE_DIR"] = job.cache
    compiled = core.compile_model(job.path, "CPU", settings)
    request = compiled.create_infer_request()

    def bind(feeds: Feeds) -> Call:
        def call() -> list[Any]:
            found = request.infer(feeds, share_inputs=True, share_outputs=True)
            return [found[output] for output in compiled.outputs]

        return call

    return bind


def open_torch(job: Job) -> Bind:
    """PyTorch itself, on the module that the model was exported from."""
    return _bind_torch(_network(job), job.threads)


def open_torch_compile(job: Job) -> Bind:
    """PyTorch's own compiler on that module, with sizes that are fixed."""
    import torch

    return _bind_torch(torch.compile(_network(job), dynamic=False), job.threads)


def open_truth(job: Job) -> Bind:
    """What the others are judged by: PyTorch in float64, else sardonyx's reference operators."""
    if job.name in NETWORKS:
        network = _network(job).double()
        return _bind_torch(network, job.threads, lambda item: item.double())
    import sardonyx as sx

    session = sx.InferenceSession(job.path, providers=["ReferenceExecutionProvider"])
    return lambda feeds: lambda: session.run(None, feeds)


CONTENDERS: dict[str, Callable[[Job], Bind]] = {
    "sardonyx": open_sardonyx,
    "onnxruntime": open_onnxruntime,
    "openvino": open_openvino,
    "torch": open_torch,
    "torch-compile": open_torch_compile,
    "truth": open_truth,
}


def _network(job: Job) -> Any:
    """The module that the model was exported from, with the same weights."""
    if job.name not in NETWORKS:
        raise AbsentError("no torch module")
    # transformers imports torchvision if it is there, and fails if that does not fit torch.
    sys.modules.setdefault("torchvision", None)  # type: ignore[arg-type]
    import torch

    from benchmarks.network import vary

    torch.manual_seed(0)
    module = import_module(f"benchmarks.{NETWORKS[job.name]}")
    return vary(getattr(module, job.name.replace("-", "_"))().module)


def _bind_torch(module: Any, threads: int, convert: Callable[[Any], Any] | None = None) -> Bind:
    import torch

    torch.set_num_threads(threads)
    torch.set_num_interop_threads(1)

    def bind(feeds: Feeds) -> Call:
        inputs = [torch.from_numpy(np.asarray(array)) for array in feeds.values()]
        if convert is not None:
            inputs = [convert(item) if item.is_floating_point() else item for item in inputs]

        def call() -> list[Any]:
            with torch.inference_mode():
                found = module(*inputs)
            return [found] if isinstance(found, torch.Tensor) else list(found)

        return call

    return bind
