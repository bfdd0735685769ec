"""LLVM modules to object code, and object code to machine code in memory."""

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import llvmlite.binding as llvm
from llvmlite.binding import ffi

from sardonyx.compiler import emit_ir as ir
from sardonyx.compiler.forks import FORKS
from sardonyx.compiler.targets import Target
from sardonyx.errors import UnsupportedError

FORKS.take(ffi.lib._lock)


@cache
def _initialize() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def llvm_features() -> frozenset[str]:
    """What LLVM says the processor can do."""
    found = llvm.get_host_cpu_features()
    return frozenset(name for name, present in found.items() if present)


def compile_module(module: ir.Module | str, target: Target, *, optimize: int = 2) -> bytes:
    """Object code of a module; several may be compiled at the same time, in as many threads."""
    with FORKS.held_off():
        machine, parsed = _optimized(module, target, optimize)
        with ffi.OutputString() as problem:
            made = _unlocked("LLVMPY_TargetMachineEmitToMemory")(machine, parsed, 1, problem)
            if not made:
                raise UnsupportedError(f"LLVM cannot make object code: {problem}")
        try:
            start = ffi.lib.LLVMPY_GetBufferStart(made)
            return ctypes.string_at(start, ffi.lib.LLVMPY_GetBufferSize(made))
        finally:
            ffi.lib.LLVMPY_DisposeMemoryBuffer(made)


def assembly_of(module: ir.Module | str, target: Target) -> str:
    """A module's machine code, to be read."""
    machine, parsed = _optimized(module, target, 2)
    return str(machine.emit_assembly(parsed))


def _optimized(module: ir.Module | str, target: Target, level: int) -> tuple[Any, Any]:
    """A machine, and a module as it goes to code generation."""
    _initialize()
    machine = _machine(target)
    parsed = llvm.parse_assembly(str(module), llvm.create_context())
    parsed.verify()
    tuning = llvm.create_pipeline_tuning_options(speed_level=level)
    tuning.loop_vectorization = False
    tuning.slp_vectorization = False
    tuning.loop_unrolling = False
    passes = llvm.create_pass_builder(machine, tuning)
    _unlocked("LLVMPY_RunNewModulePassManager")(passes.getModulePassManager(), parsed, passes)
    return machine, parsed


def _unlocked(name: str) -> Callable[..., Any]:
    """A function of LLVM without llvmlite's lock around it.

    That lock lets one thread at a time into LLVM. Modules of different contexts do not need it, and
    these two functions are where the time goes.
    """
    getattr(ffi.lib, name)
    return getattr(ffi.lib._lib, name)  # type: ignore[no-any-return]


class Engine:
    """Object code that LLVM made ready to run; it lives as long as this object."""

    def __init__(self, objects: Sequence[bytes]) -> None:
        with FORKS.held_off():
            _initialize()
            machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
            self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
            for content in objects:
                self._engine.add_object_file(llvm.ObjectFileRef.from_data(content))
            self._engine.finalize_object()

    def address(self, name: str) -> int:
        """Where a function begins."""
        return int(self._engine.get_function_address(name))


def _processor(target: Target) -> tuple[str, str]:
    """The processor's name and features, in LLVM's words."""
    if target.cpu:
        return target.cpu, target.features
    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def _machine(target: Target) -> Any:
    cpu, features = _processor(target)
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=cpu, features=features, opt=3, jit=True
    )
