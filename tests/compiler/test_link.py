"""Code that our own linker puts into memory does what LLVM's does."""

import ctypes
import subprocess
import sys
from collections.abc import Callable

import pytest

from sardonyx.compiler.emit_engine import Engine, compile_module
from sardonyx.compiler.engine import load_code
from sardonyx.compiler.host import host_features, host_target
from sardonyx.compiler.link import LINKS, Linked
from sardonyx.compiler.targets import TARGETS
from sardonyx.errors import UnsupportedError

TEXT = """
@table = private constant [4 x double] [double 1.5, double 2.5, double 3.5, double 4.5]
declare ptr @memset(ptr, i32, i64)
declare double @cbrt(double)

define double @look(i64 %at) {
 %place = getelementptr [4 x double], ptr @table, i64 0, i64 %at
 %found = load double, ptr %place
 ret double %found
}

define double @twice(i64 %at) {
 %one = call double @look(i64 %at)
 %sum = fadd double %one, %one
 ret double %sum
}

define double @root(double %x) {
 %found = call double @cbrt(double %x)
 ret double %found
}

define void @fill(ptr %place, i64 %count) {
 %same = call ptr @memset(ptr %place, i32 7, i64 %count)
 ret void
}
"""
OTHER = """
declare double @twice(i64)
define double @outside(i64 %at) {
 %found = call double @twice(i64 %at)
 %sum = fadd double %found, 1.0
 ret double %sum
}
"""
VARIABLE = """
@count = global i64 5
define i64 @get() {
 %found = load i64, ptr @count
 ret i64 %found
}
"""
RISC_V = 243
NUMBER = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int64)
ROOT = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)
FILL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
GET = ctypes.CFUNCTYPE(ctypes.c_int64)

fitting = [target.name for target in TARGETS if host_features().issuperset(target.needs)]
links = pytest.mark.skipif(not LINKS, reason="LLVM links on this system")


@links
@pytest.mark.parametrize("link", [Linked, Engine])
@pytest.mark.parametrize("name", fitting)
def test_constants_calls_and_functions_of_the_process(link: Callable, name: str) -> None:
    target = host_target(name)
    code = link([compile_module(TEXT, target), compile_module(OTHER, target)])
    assert [NUMBER(code.address("look"))(at) for at in range(4)] == [1.5, 2.5, 3.5, 4.5]
    assert NUMBER(code.address("twice"))(1) == 5.0
    assert NUMBER(code.address("outside"))(2) == 8.0
    assert ROOT(code.address("root"))(27.0) == pytest.approx(3.0)
    memory = (ctypes.c_uint8 * 8)()
    FILL(code.address("fill"))(ctypes.addressof(memory), 5)
    assert list(memory) == [7] * 5 + [0] * 3


@links
def test_a_name_that_is_not_there_has_no_address() -> None:
    assert Linked([compile_module(TEXT, host_target())]).address("absent") == 0
    assert Linked([]).address("absent") == 0


@links
def test_what_it_cannot_link_goes_to_llvm() -> None:
    content = compile_module(VARIABLE, host_target())
    with pytest.raises(UnsupportedError, match="variables"):
        Linked([content])
    code = load_code([content])
    assert isinstance(code, Engine)
    assert GET(code.address("get"))() == 5


@links
def test_other_machines_code_and_unknown_functions_are_refused() -> None:
    content = bytearray(compile_module(TEXT, host_target()))
    content[18:20] = RISC_V.to_bytes(2, "little")
    with pytest.raises(UnsupportedError, match="of this kind"):
        Linked([bytes(content)])
    unknown = compile_module(TEXT.replace("cbrt", "no_such_function"), host_target())
    with pytest.raises(UnsupportedError, match="no_such_function"):
        Linked([unknown])


@links
def test_code_cannot_be_written() -> None:
    script = (
        "import ctypes\n"
        "from tests.compiler.test_link import TEXT, Linked, compile_module, host_target\n"
        "code = Linked([compile_module(TEXT, host_target())])\n"
        "print('linked', flush=True)\n"
        "ctypes.c_uint8.from_address(code.address('look')).value = 0\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert done.stdout == b"linked\n" and done.returncode < 0


@links
def test_a_program_from_the_cache_does_not_load_llvm(tmp_path: object) -> None:
    script = (
        "import sys, numpy, sardonyx as sx\n"
        "session = sx.InferenceSession('examples/digits.onnx')\n"
        "item = session.get_inputs()[0]\n"
        "shape = [size if isinstance(size, int) else 64 for size in item.shape]\n"
        "session.run(None, {item.name: numpy.zeros(shape, numpy.float32)})\n"
        "print('llvmlite' in sys.modules)\n"
    )
    command = [sys.executable, "-c", script]
    environment = {"SARDONYX_CACHE": str(tmp_path), "PYTHONPATH": ":".join(sys.path)}
    told = [subprocess.run(command, env=environment, capture_output=True, check=True).stdout
            for _ in range(2)]  # fmt: skip
    assert told == [b"True\n", b"False\n"]
