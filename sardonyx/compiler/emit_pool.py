"""The functions of `pool_text` as object code."""

import llvmlite.binding as llvm

from sardonyx.compiler.pool_text import Dialect, pool_text


def emit_pool(dialect: Dialect) -> bytes:
    """The functions as object code, made quickly: what they wait for outweighs what they do."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_triple(dialect.triple).create_target_machine(opt=0, jit=True)
    parsed = llvm.parse_assembly(pool_text(dialect))
    parsed.verify()
    return bytes(machine.emit_object(parsed))
