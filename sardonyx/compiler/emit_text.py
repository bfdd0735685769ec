"""Kernels as LLVM's text and as the machine's assembly, to be read."""

from collections.abc import Sequence

from sardonyx.compiler import emit_ir as ir
from sardonyx.compiler.emit_engine import Compilation
from sardonyx.compiler.emit_loops import emit_kernel
from sardonyx.compiler.targets import Target
from sardonyx.loops import Kernel


def llvm_text(kernels: Sequence[Kernel], target: Target) -> str:
    """A module of the kernels (`kernel0`, ...) as they are emitted, before LLVM works on it."""
    module = ir.Module("program")
    for number, kernel in enumerate(kernels):
        emit_kernel(module, f"kernel{number}", kernel, target)
    return str(module)


def assembly_text(kernels: Sequence[Kernel], target: Target) -> str:
    """The machine code of the kernels."""
    compilation = Compilation(llvm_text(kernels, target), target)
    try:
        return compilation.assembly()
    finally:
        compilation.close()
