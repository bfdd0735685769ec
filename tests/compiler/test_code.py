"""Object code joined into one piece: functions of each other, of the C library, constants."""

import ctypes
import math
import platform
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from sardonyx.compiler.code import Joined, Memory, join_objects, load_code
from sardonyx.compiler.emit_engine import Engine, compile_module, host_target

FIRST = """
define double @first(double %x) {
 %a = call double @second(double %x)
 %b = fadd double %a, 0x3FD5555555555555
 ret double %b
}
declare double @second(double)
"""
SECOND = """
define internal double @hidden(double %x) noinline {
 %a = fmul double %x, 0x4000CCCCCCCCCCCD
 ret double %a
}
define double @second(double %x) {
 %a = call double @hidden(double %x)
 %b = call double @cosh(double %a)
 ret double %b
}
declare double @cosh(double)
"""
KNOWN = sys.platform == "linux" and platform.machine() == "x86_64"
joins = pytest.mark.skipif(not KNOWN, reason="object code is joined for x86-64 on Linux")


def objects(*texts: str) -> list[bytes]:
    return [compile_module(text, host_target()) for text in texts]


def call(address: int, x: float) -> float:
    return float(ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(address)(x))


@pytest.mark.parametrize("order", [(FIRST, SECOND), (SECOND, FIRST)])
def test_objects_find_each_other_and_the_library(order: tuple[str, str]) -> None:
    code = load_code(join_objects(objects(*order)))
    assert math.isclose(call(code.address("first"), 0.5), math.cosh(1.05) + 1 / 3)


@joins
def test_code_runs_wherever_it_lies() -> None:
    joined = join_objects(objects(FIRST, SECOND))
    assert isinstance(joined, Joined)
    assert set(joined.functions) == {"first", "second"}
    assert {name for _, name in joined.outside} == {"cosh"}
    both = Memory(joined), Memory(joined)
    assert both[0].address("first") != both[1].address("first")
    assert call(both[0].address("first"), 1.5) == call(both[1].address("first"), 1.5)


@joins
def test_what_is_not_known_is_left_to_llvm() -> None:
    variable = "@count = internal global i64 7\ndefine ptr @where() {\n ret ptr @count\n}"
    unknown = FIRST.replace("@second", "@no_such_function_anywhere")
    for text in (variable, unknown):
        made = objects(text)
        assert join_objects(made) == tuple(made)
    engine = load_code(tuple(objects(variable)))
    assert isinstance(engine, Engine)
    where = ctypes.CFUNCTYPE(ctypes.c_void_p)(engine.address("where"))()
    assert ctypes.c_int64.from_address(where).value == 7


def test_other_formats_are_left_to_llvm() -> None:
    for content in (b"", b"\x7fELF", b"\xcf\xfa\xed\xfe" + bytes(60)):
        assert join_objects([content]) == (content,)
    (made,) = objects(SECOND)
    other = bytearray(made)
    struct.pack_into("<H", other, 18, 183)
    assert join_objects([bytes(other)]) == (bytes(other),)


@joins
def test_a_program_from_the_cache_does_without_llvm(tmp_path: Path) -> None:
    script = """
import sys
import numpy as np
import sardonyx as sx
model = sx.load_text('<ir_version: 10, opset_import: ["": 21]>'
                     'g (float[n] x) => (float y) { y = ReduceSum<keepdims = 0>(x) }')
options = sx.SessionOptions()
options.intra_op_num_threads = 2
options.add_session_config_entry("sardonyx.cache", sys.argv[1])
session = sx.InferenceSession(model, options)
total = session.run(None, {"x": np.ones(1 << 20, np.float32)})[0]
print(int(total), "llvmlite" in sys.modules)
"""
    said = [
        subprocess.run(
            [sys.executable, "-c", script, str(tmp_path / "cache")],
            capture_output=True, text=True, check=True,
        ).stdout.split()
        for _ in range(2)
    ]  # fmt: skip
    assert said == [["1048576", "True"], ["1048576", "False"]]
