"""Code for aarch64: what our linker writes into it, read back, and all of it run by an emulator.

The emulated Python comes from `tools/emulate_aarch64.sh` (see CONTRIBUTING).
"""

import os
import struct
import subprocess
from pathlib import Path

import pytest

import sardonyx as sx
from sardonyx.compiler.compile import compile_image
from sardonyx.compiler.emit_engine import compile_module
from sardonyx.compiler.emit_pool import DIALECTS, emit_pool
from sardonyx.compiler.image import Image
from sardonyx.compiler.link import Layout
from sardonyx.compiler.relocations import MACHINES, Relocation
from sardonyx.compiler.targets import NEON, TARGETS, Target
from sardonyx.errors import UnsupportedError
from sardonyx.ops.catalog import standard
from tests.compiler.test_link import OTHER, TEXT

ROOT = Path(__file__).parents[2]
PYTHON = Path(os.environ.get("SARDONYX_TEST_AARCH64") or ROOT / "build/aarch64/usr/bin/python")
AARCH64 = MACHINES["aarch64"]
BEGIN = 0x5555_1234_5000
FAR, NEAR = BEGIN + (1 << 40), BEGIN + (1 << 20)
MODULES = (TEXT, OTHER)
ADDRESSES = """
declare void @away()
define void @here() {
 ret void
}
define void @store(ptr %to) {
 store ptr @here, ptr %to
 %next = getelementptr ptr, ptr %to, i64 1
 store ptr @away, ptr %next
 ret void
}
"""
VECTORS = """
define void @add(ptr %p) {
 %bytes = load <8 x i8>, ptr %p
 %more = add <8 x i8> %bytes, <i8 1, i8 2, i8 3, i8 4, i8 5, i8 6, i8 7, i8 9>
 store <8 x i8> %more, ptr %p
 %q = getelementptr i8, ptr %p, i64 64
 %words = load <4 x i32>, ptr %q
 %sum = add <4 x i32> %words, <i32 1, i32 2, i32 3, i32 70000>
 store <4 x i32> %sum, ptr %q
 ret void
}
"""


class Code:
    """Linked code, and instructions read as the architecture's manual says them."""

    def __init__(self, modules: tuple[str, ...], find: dict[str, int], begin: int = BEGIN) -> None:
        layout = Layout([compile_module(text, NEON) for text in modules], AARCH64)
        self.begin, self.memory = begin, bytearray(layout.size)
        self.functions = layout.write(self.memory, begin, find.__getitem__)

    def word(self, at: int) -> int:
        return struct.unpack_from("<I", self.memory, at - self.begin)[0]

    def double(self, at: int) -> int:
        return struct.unpack_from("<Q", self.memory, at - self.begin)[0]

    def body(self, name: str) -> list[int]:
        """Addresses of a function's instructions, up to its return or last jump."""
        found = [self.functions[name]]
        while self.word(found[-1]) != 0xD65F03C0 and self.word(found[-1]) >> 26 != 0x05:
            found.append(found[-1] + 4)
        return found

    def jumps(self, name: str) -> list[int]:
        """Where calls and the last jump of a function lead to."""
        words = [(at, self.word(at)) for at in self.body(name)]
        return [at + 4 * signed(word, 26) for at, word in words if word >> 26 in (0x05, 0x25)]

    def reads(self, name: str) -> list[tuple[int, int]]:
        """Where a function's pairs of a page and a rest point to, and in units of which size."""
        found, pages = [], {}
        for at in self.body(name):
            word = self.word(at)
            if word & 0x9F000000 == 0x90000000:
                low, high = word >> 29 & 3, signed(word >> 5, 19)
                pages[word & 31] = (at & ~0xFFF) + ((high << 2 | low) << 12)
            elif (page := pages.pop(word >> 5 & 31, None)) is not None:
                load = word >> 24 & 0x3B == 0x39
                vector = word >> 26 & 1 and word >> 23 & 1
                shift = (4 if vector else word >> 30) if load else 0
                found.append((page + ((word >> 10 & 0xFFF) << shift), 1 << shift))
        return found


def signed(bits: int, width: int) -> int:
    return (bits & (1 << width) - 1) - ((bits >> width - 1 & 1) << width)


def test_calls_inside_and_to_what_is_near_are_direct() -> None:
    code = Code(MODULES, {"memset": NEAR, "cbrt": NEAR + 64})
    assert code.jumps("twice") == [code.functions["look"]]
    assert code.jumps("outside") == [code.functions["twice"]]
    assert code.jumps("fill") == [NEAR]
    assert code.jumps("root") == [NEAR + 64]


@pytest.mark.parametrize("where", [FAR, BEGIN - FAR // 2, BEGIN + (1 << 27) + (1 << 16)])
def test_what_is_far_is_called_through_its_entry(where: int) -> None:
    code = Code(MODULES, {"memset": where, "cbrt": where + 64})
    for name, wanted in (("fill", where), ("root", where + 64)):
        [entry] = code.jumps(name)
        assert BEGIN <= entry < BEGIN + len(code.memory) - 15
        assert (code.word(entry), code.word(entry + 4)) == (0x58000050, 0xD61F0200)
        assert code.double(entry + 8) == wanted
    assert code.jumps("twice") == [code.functions["look"]]


def test_constants_and_addresses_are_read_where_they_lie() -> None:
    table = struct.pack("<4d", 1.5, 2.5, 3.5, 4.5)
    code = Code(MODULES, {"memset": FAR, "cbrt": FAR})
    [(at, _)] = code.reads("look")
    assert code.memory[at - BEGIN :][:32] == table
    code = Code((VECTORS,), {})
    (first, eight), (second, sixteen) = sorted(code.reads("add"), key=lambda item: item[1])
    assert (eight, sixteen) == (8, 16)
    assert code.memory[first - BEGIN :][:8] == bytes([1, 2, 3, 4, 5, 6, 7, 9])
    assert code.memory[second - BEGIN :][:16] == struct.pack("<4i", 1, 2, 3, 70000)


@pytest.mark.parametrize("begin", [BEGIN, BEGIN + 0xFF0])
def test_addresses_of_functions_come_from_their_entries(begin: int) -> None:
    code = Code((ADDRESSES,), {"away": FAR}, begin)
    told = {code.double(at) for at, size in code.reads("store") if size == 8}
    assert told == {code.functions["here"], FAR}


def test_what_does_not_fit_is_refused() -> None:
    call, page, load = (AARCH64.relocations[kind] for kind in (283, 275, 299))
    reach = 1 << 27
    assert call.reaches(-reach) and call.reaches(reach - 4)
    assert not call.reaches(reach) and not call.reaches(-reach - 4) and not call.reaches(2)
    assert page.reaches(page.value((1 << 32) - 1, 4095)) and not page.reaches(1 << 32)
    for relocation, value in ((call, reach), (page, 1 << 32), (load, 24)):
        with pytest.raises(UnsupportedError, match="cannot say"):
            relocation.patch(0, value)


def test_a_call_into_a_function_is_refused() -> None:
    content = bytearray(compile_module(OTHER, NEON))
    call = struct.pack("<I", 283)
    at = next(at for at in range(8, len(content), 8) if content[at : at + 4] == call)
    struct.pack_into("<q", content, at + 8, 4)
    with pytest.raises(UnsupportedError, match="kind 283"):
        Layout([bytes(content)], AARCH64)


@pytest.mark.parametrize("kind", AARCH64.relocations)
def test_a_patch_changes_only_its_field_and_can_be_repeated(kind: int) -> None:
    relocation: Relocation = AARCH64.relocations[kind]
    value = 5 << relocation.shift
    low = relocation.patch(0, value)
    assert relocation.patch(low, value) == low
    full = (1 << max(relocation.width, 32)) - 1
    assert (relocation.patch(full, value) ^ low).bit_count() == full.bit_length() - relocation.width
    assert relocation.patch(relocation.patch(full, 0), value) == relocation.patch(full, value)


@pytest.mark.parametrize(
    "target", [item for item in TARGETS if item.machine == "aarch64"], ids=lambda item: item.name
)
def test_models_are_compiled_for_it_and_linked(target: Target) -> None:
    model = sx.load(ROOT / "examples/digits.onnx")
    image = compile_image(model, target, standard(), specialize=False)
    assert isinstance(image, Image)
    objects = [*image.code, emit_pool(DIALECTS["aarch64"])]
    layout = Layout(objects, AARCH64)
    functions = layout.write(bytearray(layout.size), BEGIN, lambda name: FAR)
    assert {"dispatch", "worker", "halt"} < functions.keys()


@pytest.mark.slow
@pytest.mark.skipif(not PYTHON.exists(), reason=f"no emulated Python, {PYTHON}: make aarch64")
def test_sessions_threads_and_the_cache_under_emulation(tmp_path: Path) -> None:
    """The first process compiles, the second has no LLVM; each says its machine and processor."""
    command = [str(PYTHON), "-m", "tests.compiler.emulated"]
    for cpu, target in (("max", "neonbf16"), ("neoverse-n1", "neondot"), ("cortex-a53", "neon")):
        environment = os.environ | {
            "SARDONYX_CACHE": str(tmp_path), "PYTHONPATH": str(ROOT), "QEMU_CPU": cpu,
            "PYTHONDONTWRITEBYTECODE": "1",
        }  # fmt: skip
        told = [
            subprocess.run(
                command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True
            ).stdout.split()
            for _ in range(2)
        ]
        assert told == [["aarch64", target, "llvm"], ["aarch64", target, "cached"]]
