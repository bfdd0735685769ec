"""What one core of this machine can do at best, measured by loops made for that."""

import ctypes
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sardonyx.compiler.emit_engine import compile_module
from sardonyx.compiler.engine import load_code
from sardonyx.compiler.host import host_target

ROUNDS = 100_000
STREAMS = 8
"""Vectors of 64 bytes that a round of reading takes."""


def multiply_add_rate(runs: int = 40) -> float:
    """Operations a second of one core that only multiplies and adds in registers.

    >>> multiply_add_rate(runs=1) > 1e6
    True
    """
    target = host_target()
    lanes, count = target.lanes, target.registers * 3 // 4
    vector = f"<{lanes} x float>"
    fma = f"@llvm.fma.v{lanes}f32"
    each = range(count)
    lines = [
        f"declare {vector} {fma}({vector}, {vector}, {vector})",
        f"define void @run(ptr %p) {{\nentry:\n %a = load {vector}, ptr %p, align 4",
        " br label %loop\nloop:\n %i = phi i64 [0, %entry], [%j, %loop]",
    ]
    lines += [f" %x{n} = phi {vector} [%a, %entry], [%y{n}, %loop]" for n in each]
    lines += [
        f" %y{n} = call {vector} {fma}({vector} %x{n}, {vector} %a, {vector} %a)" for n in each
    ]
    lines += [f" %j = add i64 %i, 1\n %more = icmp slt i64 %j, {ROUNDS}"]
    lines += [" br i1 %more, label %loop, label %exit\nexit:"]
    for n in each:
        lines += [f" %q{n} = getelementptr i8, ptr %p, i64 {n * 4 * lanes}"]
        lines += [f" store {vector} %y{n}, ptr %q{n}, align 4"]
    engine = load_code([compile_module("\n".join([*lines, " ret void\n}"]), target)])
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(engine.address("run"))
    memory = np.zeros(count * lanes, np.float32)
    return 2 * lanes * count * ROUNDS / _best(partial(run, memory.ctypes.data), runs)


class Reading:
    """A loop that reads memory, a multiple of 512 bytes, as fast as one core can.

    >>> Reading().rate(1 << 16, runs=1) > 1e6
    True
    """

    def __init__(self) -> None:
        each = range(STREAMS)
        lines = [
            "define void @run(ptr %p, i64 %n, ptr %out) {\nentry:\n br label %loop\nloop:",
            " %i = phi i64 [0, %entry], [%j, %loop]",
        ]
        lines += [f" %x{n} = phi <8 x i64> [zeroinitializer, %entry], [%y{n}, %loop]" for n in each]
        for n in each:
            lines += [
                f" %at{n} = add i64 %i, {64 * n}\n %q{n} = getelementptr i8, ptr %p, i64 %at{n}",
                f" %v{n} = load <8 x i64>, ptr %q{n}, align 8",
                f" %y{n} = or <8 x i64> %x{n}, %v{n}",
            ]
        lines += [f" %j = add i64 %i, {64 * STREAMS}\n %more = icmp slt i64 %j, %n"]
        lines += [" br i1 %more, label %loop, label %exit\nexit:"]
        lines += [f" store volatile <8 x i64> %y{n}, ptr %out, align 8" for n in each]
        target = host_target()
        text = "\n".join([*lines, " ret void\n}"])
        self._engine = load_code([compile_module(text, target)])
        prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
        self._run = prototype(self._engine.address("run"))
        self._out = np.zeros(STREAMS, np.int64)

    def __call__(self, array: NDArray[np.int64]) -> None:
        self._run(array.ctypes.data, array.nbytes, self._out.ctypes.data)

    def rate(self, size: int, runs: int = 20) -> float:
        """Bytes a second, of memory of this size that is read again and again."""
        memory = np.ones(max(size // 512, 1) * 64, np.int64)
        return memory.nbytes / _best(partial(self, memory), runs)


def _best(call: Callable[[], None], runs: int) -> float:
    """Seconds of the fastest run, as the processor counts them: other load cannot take those."""
    found = float("inf")
    for _ in range(runs):
        begin = time.process_time()
        call()
        found = min(found, time.process_time() - begin)
    return max(found, 1e-9)
