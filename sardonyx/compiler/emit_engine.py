"""LLVM modules to object code, and object code to machine code in memory."""

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import llvmlite
import llvmlite.binding as llvm
from llvmlite.binding import ffi

from sardonyx.compiler import emit_ir as ir
from sardonyx.compiler.host import Host
from sardonyx.compiler.targets import Target, choose_target
from sardonyx.errors import UnsupportedError


@cache
def _initialize() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@cache
def find_host() -> Host:
    """What LLVM says of itself and of this machine."""
    versions = llvmlite.__version__, ".".join(map(str, llvm.llvm_version_info))
    cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    return Host((*versions, llvm.get_default_triple()), cpu, features)


def host_features() -> frozenset[str]:
    """What LLVM says the processor can do."""
    return find_host().abilities


def host_target(name: str | None = None) -> Target:
    """The best target for this machine, or a lower one by name."""
    return choose_target(host_features(), name)


class Compilation:
    """A module on its way to object code, through LLVM.

    Only `run` takes long; several may run at the same time, in as many threads. All else is left to
    the thread that makes them: each step there waits for the interpreter.
    """

    def __init__(self, module: ir.Module | str, target: Target) -> None:
        _initialize()
        self._machine = _machine(target)
        self._module = llvm.parse_assembly(str(module), llvm.create_context())
        self._module.verify()
        self._passes = llvm.create_pass_builder(
            self._machine, llvm.create_pipeline_tuning_options()
        )
        self._pipeline = _pipeline()
        self._optimize = _unlocked("LLVMPY_RunNewModulePassManager")
        self._generate = _unlocked("LLVMPY_TargetMachineEmitToMemory")
        self._problem = ffi.OutputString()
        self._made: Any = None

    def run(self) -> None:
        """Optimize the module and generate its code."""
        self._optimize(self._pipeline, self._module, self._passes)
        self._made = self._generate(self._machine, self._module, 1, self._problem)

    def result(self) -> bytes:
        """The object code that a run made."""
        with self._problem as problem:
            if not self._made:
                raise UnsupportedError(f"LLVM cannot make object code: {problem}")
        try:
            start = ffi.lib.LLVMPY_GetBufferStart(self._made)
            return ctypes.string_at(start, ffi.lib.LLVMPY_GetBufferSize(self._made))
        finally:
            ffi.lib.LLVMPY_DisposeMemoryBuffer(self._made)

    def assembly(self) -> str:
        """The machine code, to be read; in the place of a run."""
        self._optimize(self._pipeline, self._module, self._passes)
        return str(self._machine.emit_assembly(self._module))


def compile_module(module: ir.Module | str, target: Target) -> bytes:
    """Object code of a module."""
    compilation = Compilation(module, target)
    compilation.run()
    return compilation.result()


def _pipeline() -> Any:
    """The passes that kernels need: they come vectorized, with nothing twice or in vain in loops.

    What is left is to keep registers out of memory and to give loops the form that code
    generation works on.
    """
    chosen = llvm.create_new_module_pass_manager()
    chosen.add_sroa_pass()
    chosen.add_simplify_cfg_pass()
    chosen.add_loop_simplify_pass()
    chosen.add_loop_rotate_pass()
    chosen.add_instruction_combine_pass()
    return chosen


def _unlocked(name: str) -> Callable[..., Any]:
    """A function of LLVM without llvmlite's lock around it.

    That lock lets one thread at a time into LLVM. Modules of different contexts do not need it, and
    these two functions are where the time goes.
    """
    getattr(ffi.lib, name)
    return getattr(ffi.lib._lib, name)  # type: ignore[no-any-return]


class Engine:
    """Object code made ready to run; it lives as long as this object."""

    def __init__(self, objects: Sequence[bytes], target: Target) -> None:
        _initialize()
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine(target))
        for content in objects:
            self._engine.add_object_file(llvm.ObjectFileRef.from_data(content))
        self._engine.finalize_object()

    def address(self, name: str) -> int:
        """Where a function begins."""
        return int(self._engine.get_function_address(name))


def _machine(target: Target) -> Any:
    cpu, features = find_host().processor(target)
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=cpu, features=features, opt=3, jit=True
    )
