"""LLVM modules to machine code in memory."""

from functools import cache
from typing import Any

import llvmlite.binding as llvm

from sardonyx.compiler import emit_ir as ir
from sardonyx.compiler.targets import Target, choose_target


@cache
def _initialize() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@cache
def host_features() -> frozenset[str]:
    """What LLVM says the processor can do."""
    found = llvm.get_host_cpu_features()
    return frozenset(name for name, present in found.items() if present)


def host_target(name: str | None = None) -> Target:
    """The best target for this machine, or a lower one by name."""
    return choose_target(host_features(), name)


class Engine:
    """Machine code made from one module; it lives as long as this object."""

    def __init__(self, module: ir.Module | str, target: Target, *, optimize: int = 2) -> None:
        _initialize()
        machine = _machine(target)
        parsed = llvm.parse_assembly(str(module))
        parsed.verify()
        tuning = llvm.create_pipeline_tuning_options(speed_level=optimize)
        tuning.loop_vectorization = False
        tuning.slp_vectorization = False
        tuning.loop_unrolling = False
        passes = llvm.create_pass_builder(machine, tuning)
        passes.getModulePassManager().run(parsed, passes)
        self.machine = machine
        self.module = parsed
        self._engine = llvm.create_mcjit_compiler(parsed, machine)
        self._engine.finalize_object()

    def address(self, name: str) -> int:
        """Where a function begins."""
        return int(self._engine.get_function_address(name))


def _machine(target: Target) -> Any:
    host = not target.cpu
    cpu = llvm.get_host_cpu_name() if host else target.cpu
    features = llvm.get_host_cpu_features().flatten() if host else target.features
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=cpu, features=features, opt=3, jit=True
    )
