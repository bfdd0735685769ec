"""Run a kernel natively on arrays, as `interpret` does."""

import ctypes
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.compiler import emit_ir as ir
from sardonyx.compiler.emit_engine import compile_module
from sardonyx.compiler.emit_loops import emit_kernel
from sardonyx.compiler.engine import Code, load_code
from sardonyx.compiler.host import host_features, host_target
from sardonyx.compiler.stop import NEVER
from sardonyx.compiler.targets import AVX2, GENERIC, NEON, WASM, Target
from sardonyx.dims import Expression
from sardonyx.loops import Kernel, verify
from tests.compiler.browser import run_kernel

LOWER = [
    target.name for target in (AVX2, NEON, GENERIC) if host_features().issuperset(target.needs)
]
"""Targets that this machine runs besides its own best."""


def engine_of(module: ir.Module | str, target: Target | None = None) -> Code:
    """A module made ready to run."""
    target = target or host_target()
    return load_code([compile_module(module, target)])


def run_native(
    kernel: Kernel,
    memories: Mapping[str, NDArray[Any]],
    parameters: Mapping[str, int] | None = None,
    target: Target | None = None,
) -> None:
    """Compile and run, in Node where that is what the target is for; the arrays change."""
    verify(kernel)
    target = target or host_target()
    if target.machine == WASM.machine:
        run_kernel(kernel, memories, parameters or {})
        return
    module = ir.Module()
    emit_kernel(module, "kernel", kernel, target)
    engine = engine_of(module, target)
    given = dict(parameters or {})
    values = [memories[name].ctypes.data for name in kernel.memories]
    values += [given[name] for name in kernel.parameters]
    frame = np.array([*values, 0, 0, 0, NEVER.address], np.int64)
    tasks = 0 if kernel.parallel is None else _number(kernel.parallel.extent, given)
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *[ctypes.c_int64] * 3)
    for step in range(1 if kernel.steps is None else _number(kernel.steps.extent, given)):
        prototype(engine.address("kernel"))(frame.ctypes.data, 0, tasks, step)


def _number(extent: Any, given: Mapping[str, int]) -> int:
    return extent.substitute(given) if isinstance(extent, Expression) else extent
