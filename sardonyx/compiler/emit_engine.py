"""LLVM modules to object code, and object code to machine code in memory."""

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import llvmlite.binding as llvm
from llvmlite.binding import ffi

from sardonyx.compiler import emit_ir as ir
from sardonyx.compiler.forks import FORKS
from sardonyx.compiler.link import LINKS
from sardonyx.compiler.processors import MACHINE
from sardonyx.compiler.relocations import MACHINES
from sardonyx.compiler.targets import Target
from sardonyx.errors import UnsupportedError

FORKS.take(ffi.lib._lock)
_SYSTEMS = {"wasm32": "unknown-unknown"}
"""What LLVM calls a machine's system, where that is not Linux."""


@cache
def _initialize() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@cache
def _initialize_all() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def llvm_features() -> frozenset[str]:
    """What LLVM says the processor can do."""
    found = llvm.get_host_cpu_features()
    return frozenset(name for name, present in found.items() if present)


class Compilation:
    """A module on its way to object code, through LLVM.

    Only `run` takes long; several may run at the same time, in as many threads. All else is left to
    the thread that makes them: each step there waits for the interpreter.
    """

    def __init__(
        self, module: ir.Module | str, target: Target, machines: list[Any] | None = None
    ) -> None:
        """`machines` that earlier runs left there are taken; they take time to make."""
        self._machines = [] if machines is None else machines
        with FORKS.held_off():
            _initialize()
            self._machine = self._machines.pop() if self._machines else _machine(target)
            self._context = llvm.create_context()
            self._module = llvm.parse_assembly(str(module), self._context)
            self._module.verify()
            if target.machine == "wasm32":  # where passes must not take addresses for 64 bits
                self._module.data_layout = str(self._machine.target_data)
            tuning = llvm.create_pipeline_tuning_options()
            self._passes = llvm.create_pass_builder(self._machine, tuning)
            self._pipeline = _pipeline()
        self._optimize = _unlocked("LLVMPY_RunNewModulePassManager")
        self._generate = _unlocked("LLVMPY_TargetMachineEmitToMemory")
        self._problem = ffi.OutputString()
        self._made: Any = None

    def run(self) -> None:
        """Optimize the module and generate its code."""
        with FORKS.held_off():
            self._optimize(self._pipeline, self._module, self._passes)
            self._made = self._generate(self._machine, self._module, 1, self._problem)
            self._passes.close()
            self._module.close()
        self._machines.append(self._machine)

    def result(self) -> bytes:
        """The object code that a run made."""
        with FORKS.held_off(), self._problem as problem:
            if not self._made:
                raise UnsupportedError(f"LLVM cannot make object code: {problem}")
            try:
                start = ffi.lib.LLVMPY_GetBufferStart(self._made)
                return ctypes.string_at(start, ffi.lib.LLVMPY_GetBufferSize(self._made))
            finally:
                ffi.lib.LLVMPY_DisposeMemoryBuffer(self._made)

    def close(self) -> None:
        """Let go of what LLVM holds, modules before their context, which a collector may not do."""
        with FORKS.held_off():
            for item in (self._pipeline, self._passes, self._module, self._machine, self._context):
                item.close()

    def assembly(self) -> str:
        """The machine code, to be read; in the place of a run."""
        with FORKS.held_off():
            self._optimize(self._pipeline, self._module, self._passes)
            return str(self._machine.emit_assembly(self._module))


def compile_module(module: ir.Module | str, target: Target) -> bytes:
    """Object code of a module."""
    compilation = Compilation(module, target)
    try:
        compilation.run()
        return compilation.result()
    finally:
        compilation.close()


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
    machine = target.machine or MACHINE
    if machine == MACHINE:
        kind = llvm.Target.from_default_triple()
    else:
        _initialize_all()
        kind = llvm.Target.from_triple(f"{machine}-{_SYSTEMS.get(machine, 'unknown-linux-gnu')}")
    model = MACHINES[machine].model if LINKS and machine in MACHINES else "jitdefault"
    return kind.create_target_machine(cpu=cpu, features=features, opt=3, codemodel=model, jit=True)
