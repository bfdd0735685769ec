"""Objects become one WebAssembly module that does what they say; what is wrong is refused."""

import struct

import numpy as np
import pytest

from sardonyx.compiler.emit_engine import compile_module
from sardonyx.compiler.emit_wasm import MATH, support_objects
from sardonyx.compiler.host import host_target
from sardonyx.compiler.targets import WASM
from sardonyx.compiler.wasm_link import LARGEST, STACK, Joined, check_memory
from sardonyx.compiler.wasm_object import RELOCATIONS, Reader, WasmObject
from sardonyx.errors import FormatError, SardonyxError, UnsupportedError
from tests.compiler.browser import needs_node, node

SIGNED = [
    (0, "00"), (2, "02"), (-2, "7e"), (63, "3f"), (-64, "40"), (64, "c000"), (-65, "bf7f"),
    (127, "ff00"), (-127, "817f"), (128, "8001"), (-128, "807f"), (-123456, "c0bb78"),
    (2**31 - 1, "ffffffff07"), (-(2**31), "8080808078"), (-1, "ffffffff7f"),
]  # fmt: skip
IMPORTS = {"cbrt": ("Math", "cbrt")}
TEXT = """
@table = private constant [4 x i64] [i64 10, i64 20, i64 30, i64 40]
@third = constant ptr getelementptr (i64, ptr @table, i32 2)
@way = global ptr @double
@count = global i64 5, align 64
declare double @cbrt(double)

define i64 @look(i32 %at) {
 %place = getelementptr i64, ptr @table, i32 %at
 %found = load i64, ptr %place
 ret i64 %found
}
define i64 @look_third() {
 %place = load ptr, ptr @third
 %found = load i64, ptr %place
 ret i64 %found
}
define i64 @double(i64 %x) {
 %sum = add i64 %x, %x
 ret i64 %sum
}
define i64 @by_way(i64 %x) {
 %way = load ptr, ptr @way
 %found = call i64 %way(i64 %x)
 ret i64 %found
}
define ptr @pointer() {
 ret ptr @double
}
define i64 @root(i64 %x) {
 %float = sitofp i64 %x to double
 %found = call double @cbrt(double %float)
 %whole = fptosi double %found to i64
 ret i64 %whole
}
define i64 @stack(i64 %x) {
 %room = alloca [64 x i64]
 %at = and i64 %x, 63
 call void @keep(ptr %room)
 %place = getelementptr i64, ptr %room, i64 %at
 %found = load i64, ptr %place
 ret i64 %found
}
define internal void @keep(ptr %room) noinline {
 %next = getelementptr i64, ptr %room, i64 3
 store volatile i64 77, ptr %next
 ret void
}
"""
OTHER = """
@count = external global i64
@__heap_base = external global i8
declare i64 @double(i64)
define i64 @counted() {
 %before = load i64, ptr @count
 %after = call i64 @double(i64 %before)
 store i64 %after, ptr @count
 ret i64 %after
}
define i64 @free_memory() {
 %found = ptrtoint ptr @__heap_base to i64
 ret i64 %found
}
define internal void @keep(ptr %room) {
 ret void
}
"""
NAMES = [
    "look", "look_third", "by_way", "pointer", "root", "stack", "counted", "free_memory"
]  # fmt: skip


def objects() -> list[bytes]:
    return [compile_module(text, WASM) for text in (TEXT, OTHER)]


@needs_node
def test_calls_data_addresses_and_the_stack() -> None:
    joined = Joined(objects(), IMPORTS, ["counted"])
    assert joined.end > STACK
    place = -(-joined.end // 8) * 8
    module = joined.module(NAMES, [(place, struct.pack("<q", 99))], place + 8)
    calls = [
        ("look", [3]), ("look_third", []), ("by_way", ["21"]), ("pointer", []), ("root", ["27"]),
        ("stack", ["3"]), ("counted", []), ("counted", []), ("free_memory", []),
    ]  # fmt: skip
    found, [content] = node().run(module, [], calls, [(place, 8)])
    assert found == [40, 30, 42, 2, 3, 77, 10, 20, place + 8]
    assert struct.unpack("<q", content) == (99,)


@needs_node
def test_entries_are_in_the_table_from_one_on() -> None:
    module = Joined(objects(), IMPORTS, ["look", "double", "counted"]).module(["pointer"])
    assert node().run(module, [], [("pointer", [])], [])[0] == [2]


def test_functions_that_nobody_has_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="gives WebAssembly the function 'cbrt'"):
        Joined(objects(), {})
    with pytest.raises(UnsupportedError, match="has the function 'absent'"):
        Joined(objects(), IMPORTS, ["absent"])
    with pytest.raises(UnsupportedError, match="has the function 'absent'"):
        Joined(objects(), IMPORTS).module(["absent"])
    with pytest.raises(UnsupportedError, match="has the data 'count'"):
        Joined(objects()[1:], {"double": ("Math", "abs")}).module(["counted"])


def test_two_functions_of_one_name_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="two WebAssembly objects have the function"):
        Joined([*objects(), objects()[1]], IMPORTS)


def test_what_is_no_wasm_object_is_refused() -> None:
    with pytest.raises(FormatError, match="not a WebAssembly object"):
        WasmObject(b"")
    native = compile_module("define void @f() {\n ret void\n}", host_target())
    with pytest.raises(FormatError, match="compile for wasm32"):
        WasmObject(native)


def test_objects_that_are_cut_off_are_refused() -> None:
    content = objects()[0]
    for size in range(len(content)):
        with pytest.raises(FormatError, match=r"not a|ends early|lacks sections"):
            WasmObject(content[:size])


def test_damaged_objects_raise_nothing_else() -> None:
    content, random = objects()[0], np.random.default_rng(0)
    for _ in range(400):
        damaged = bytearray(content)
        for place in random.integers(8, len(content), 2):
            damaged[place] = random.integers(256)
        try:
            Joined([bytes(damaged)], IMPORTS).module(["look"])
        except SardonyxError as error:
            assert str(error)


def test_relocations_of_other_kinds_are_refused() -> None:
    content = bytearray(objects()[0])
    kind = content.index(b"reloc.CODE") + len("reloc.CODE") + 2
    assert content[kind] in RELOCATIONS
    content[kind] = 99
    with pytest.raises(UnsupportedError, match="of the kind 99"):
        WasmObject(bytes(content))


def test_memory_ends_at_four_gibibytes() -> None:
    check_memory(LARGEST)
    with pytest.raises(UnsupportedError, match="needs 4294967297 bytes"):
        check_memory(LARGEST + 1)


def test_only_what_is_called_is_brought_along() -> None:
    assert support_objects(objects()) == []
    text = "declare double @erf(double)\ndefine double @f(double %x) {\n" \
           " %y = call double @erf(double %x)\n ret double %y\n}"  # fmt: skip
    content = compile_module(text, WASM)
    [brought] = support_objects([content])
    assert [item.name for item in WasmObject(brought).outside] == ["exp"]
    assert b"Math" in Joined([content, brought], MATH).module(["f"])


@needs_node
def test_memory_for_kernels_grows_or_is_refused() -> None:
    text = "declare ptr @malloc(i64)\ndefine ptr @take(i64 %size) {\n" \
           " %block = call ptr @malloc(i64 %size)\n ret ptr %block\n}"  # fmt: skip
    content = compile_module(text, WASM)
    joined = Joined([content, *support_objects([content])], {})
    module = joined.module(["take"], end=3 * 65536 + 64)
    sizes = [0, 1, 65536 - 64, 65536, 1 << 20, (1 << 32) + 1, 1 << 62]
    begin = 3 * 65536 + 64
    found, [last] = node().run(
        module, [], [("take", [str(size)]) for size in sizes], [(begin + (1 << 20) - 1, 1)]
    )
    assert found == [begin] * 5 + [0] * 2
    assert last == b"\0"


@pytest.mark.parametrize(("number", "content"), SIGNED)
def test_numbers_with_sign(number: int, content: str) -> None:
    reader = Reader(bytes.fromhex(content) + b"\x01")
    assert reader.signed() == number and reader.more
    assert reader.byte() == 1 and not reader.more


def test_reading_beyond_the_end() -> None:
    reader = Reader(b"\x02ab")
    assert reader.name() == "ab" and not reader.more
    for content, read in ((b"", Reader.byte), (b"\x80", Reader.number), (b"\x03ab", Reader.name)):
        with pytest.raises(FormatError, match="ends early"):
            read(Reader(content))
    assert Reader(b"ab").take(2) == b"ab"
    with pytest.raises(FormatError, match="ends early"):
        Reader(b"ab").take(3)
