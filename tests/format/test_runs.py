"""Long lists of attributes stay as they are stored, and behave like tuples."""

import copy
import math
import pickle
import struct
from typing import Any

import numpy as np
import onnx
import pytest

import sardonyx as sx
from sardonyx.errors import FormatError
from sardonyx.format.runs import LONG, Run
from sardonyx.format.wire import varint
from sardonyx.graph import Attribute, AttributeType, Model
from sardonyx.graph.stored_list import StoredList, StoredText

INTS, FLOATS, STRINGS = 8, 7, 9


def framed(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def with_attribute(content: bytes, kind: AttributeType) -> bytes:
    """A model of one node with one attribute that has these fields."""
    attribute = framed(1, b"items") + content + varint(20 << 3) + varint(kind)
    node = framed(1, b"x") + framed(2, b"y") + framed(4, b"Op") + framed(5, attribute)
    graph = framed(1, node) + framed(2, b"g")
    return b"\x08\x0a" + framed(7, graph) + framed(8, b"\x0a\x00\x10\x15")


def items(content: bytes, kind: AttributeType) -> Any:
    return sx.load(with_attribute(content, kind)).graph.nodes[0].attributes["items"].value


def unpacked_ints(values: Any) -> bytes:
    return b"".join(varint(INTS << 3) + varint(value) for value in values)


def unpacked_floats(values: Any) -> bytes:
    return b"".join(varint(FLOATS << 3 | 5) + struct.pack("<f", value) for value in values)


def strings(values: Any) -> bytes:
    return b"".join(framed(STRINGS, value) for value in values)


WHOLE = [0, 1, -1, 127, 128, -128, 2**31, -(2**31), 2**63 - 1, -(2**63)]
BROKEN = [0.0, -0.0, 1.5, math.inf, -math.inf, 2.0**-149, 3.25]
TEXTS = [b"", b"LEAF", b"BRANCH_LEQ", "é".encode(), b"\xff", b"x" * 200]
COUNTS = [0, 1, 2, 30, 51, 52, 85, 102, 103, 256, 257, 4095, 4096, 4097, 20_000]


def cycled(values: list[Any], count: int) -> tuple[Any, ...]:
    return tuple(values[place % len(values)] for place in range(count))


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize(
    ("values", "write", "kind"),
    [(WHOLE, unpacked_ints, AttributeType.INTS), (BROKEN, unpacked_floats, AttributeType.FLOATS),
     (TEXTS, strings, AttributeType.STRINGS)],
)  # fmt: skip
def test_lists_of_any_length(values: list, write: Any, kind: AttributeType, count: int) -> None:
    expected = cycled(values, count)
    content = write(expected)
    found = items(content, kind)
    assert isinstance(found, StoredList) is (len(content) >= LONG)
    assert found == expected
    assert expected == found
    assert tuple(found) == expected
    assert len(found) == count
    data = with_attribute(content, kind)
    assert sx.to_bytes(sx.load(data)) == sx.to_bytes(sx.load(onnx_bytes(data)))
    assert content in sx.to_bytes(sx.load(data))


def onnx_bytes(data: bytes) -> bytes:
    return onnx.ModelProto.FromString(data).SerializeToString()


@pytest.mark.parametrize("count", [0, 1, 60, 127, 128, 129, 5000])
def test_packed_lists_are_the_same_lists(count: int) -> None:
    whole, broken = cycled(WHOLE, count), cycled(BROKEN, count)
    packed = framed(INTS, b"".join(map(varint, whole)))
    assert items(packed, AttributeType.INTS) == whole
    data = with_attribute(packed, AttributeType.INTS)
    assert unpacked_ints(whole) in sx.to_bytes(sx.load(data))
    packed = framed(FLOATS, struct.pack(f"<{count}f", *broken))
    assert items(packed, AttributeType.FLOATS) == broken
    data = with_attribute(packed, AttributeType.FLOATS)
    assert unpacked_floats(broken) in sx.to_bytes(sx.load(data))


def test_a_list_in_several_pieces() -> None:
    whole, broken = cycled(WHOLE, 300), cycled(BROKEN, 300)
    packed = framed(INTS, b"".join(map(varint, whole)))
    other = framed(13, b"doc")
    for first in (packed, unpacked_ints(whole)):
        for second in (packed, other + unpacked_ints(whole)):
            assert items(first + second, AttributeType.INTS) == whole + whole
    packed = framed(FLOATS, struct.pack("<300f", *broken))
    found = items(unpacked_floats(broken) + packed, AttributeType.FLOATS)
    assert found == broken + broken
    texts = cycled(TEXTS, 300)
    found = items(strings(texts) + other + strings(texts), AttributeType.STRINGS)
    assert found == texts + texts


def test_a_list_of_another_kind_than_declared_is_kept() -> None:
    content = unpacked_ints(range(400)) + unpacked_floats(range(400))
    data = with_attribute(content, AttributeType.FLOATS)
    assert items(content, AttributeType.FLOATS) == tuple(map(float, range(400)))
    assert unpacked_ints(range(400)) in sx.to_bytes(sx.load(data))


def test_numbers_with_superfluous_bytes() -> None:
    content = b"".join(varint(INTS << 3) + bytes((0x80 | place % 100, 0x80, 0))
                       for place in range(400))  # fmt: skip
    assert items(content, AttributeType.INTS) == cycled(list(range(100)), 400)


@pytest.mark.parametrize(
    ("content", "kind"),
    [(unpacked_ints(range(400)) + b"\x40" + b"\xff" * 10 + b"\x01", AttributeType.INTS),
     (unpacked_ints(range(400)) + b"\x40", AttributeType.INTS),
     (framed(INTS, b"\x01" * 600 + b"\x80"), AttributeType.INTS),
     (framed(INTS, b"\x01" * 600 + b"\xff" * 10 + b"\x01"), AttributeType.INTS),
     (framed(FLOATS, bytes(602)), AttributeType.FLOATS),
     (unpacked_floats(range(400)) + b"\x3d\x00", AttributeType.FLOATS),
     (strings([b"text"] * 400) + b"\x4a\x7f", AttributeType.STRINGS),
     (strings([b"text"] * 400) + b"\x4a" + b"\xff" * 11, AttributeType.STRINGS)],
)  # fmt: skip
def test_damaged_lists_are_refused(content: bytes, kind: AttributeType) -> None:
    attribute = framed(1, b"items") + varint(20 << 3) + varint(kind) + content
    node = framed(2, b"y") + framed(4, b"Op") + framed(5, attribute)
    with pytest.raises(FormatError):
        sx.load(b"\x08\x0a" + framed(7, framed(1, node)) + framed(8, b"\x10\x15"))


def test_a_stored_list_behaves_like_a_tuple() -> None:
    expected = cycled(WHOLE, 1000)
    found = items(unpacked_ints(expected), AttributeType.INTS)
    assert found[0] == 0
    assert found[-1] == expected[-1]
    assert type(found[3]) is int
    assert found[2:7] == expected[2:7]
    assert found[::-1] == expected[::-1]
    assert found + expected == expected + found == expected + expected
    grown = [1]
    grown += found
    assert grown == [1, *expected]
    with pytest.raises(TypeError):
        [1] + found  # noqa: RUF005 - what a tuple would not do either
    assert 128 in found
    assert found.index(127) == 3
    assert hash(found) == hash(expected)
    assert repr(found) == repr(expected)
    assert found != expected[:-1]
    assert found != list(expected)
    assert found != cycled(WHOLE[1:], 1000)
    with pytest.raises(IndexError):
        found[1000]
    with pytest.raises(TypeError):
        found[0] = 1
    for copied in (copy.copy(found), copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert copied == expected
        assert pickle.loads(pickle.dumps(copied)) == expected


def test_a_stored_list_as_an_array() -> None:
    found = items(unpacked_ints(WHOLE * 100), AttributeType.INTS)
    assert np.asarray(found).dtype == np.int64
    assert np.array_equal(np.array(found, np.uint8), np.array(WHOLE * 100).astype(np.uint8))
    assert found[0] == 0
    changed = np.array(found)
    changed += 1
    assert found[0] == 0
    floats = items(unpacked_floats([0.1] * 200), AttributeType.FLOATS)
    assert np.asarray(floats).dtype == np.float64
    assert floats[0] == float(np.float32(0.1))


def test_nan_keeps_its_bits_and_is_equal_to_nothing() -> None:
    content = b"".join(b"\x3d" + bytes((place % 256, 1, 0x80, 0x7F)) for place in range(300))
    data = with_attribute(content, AttributeType.FLOATS)
    model = sx.load(data)
    found = model.graph.nodes[0].attributes["items"].value
    assert all(map(math.isnan, found))
    assert found != tuple(found)
    assert content in sx.to_bytes(model)


def test_attributes_take_stored_lists_over() -> None:
    found = items(unpacked_ints(range(300)), AttributeType.INTS)
    assert Attribute("items", found).value is found
    assert Attribute("items", found, AttributeType.INTS).with_value(found).value is found
    floats = Attribute("items", found, AttributeType.FLOATS).value
    assert type(floats) is tuple
    assert type(floats[1]) is float


def test_a_changed_list_is_a_tuple_again() -> None:
    data = with_attribute(unpacked_ints(range(300)), AttributeType.INTS)
    model = sx.load(data)
    node = model.graph.nodes[0]
    node.set_attribute("items", [*node.attribute("items"), 7])
    assert sx.load(sx.to_bytes(model)).graph.nodes[0].attribute("items") == (*range(300), 7)
    data = with_attribute(unpacked_ints([*range(300), 7]), AttributeType.INTS)
    assert sx.to_bytes(model) == sx.to_bytes(sx.load(data))


def test_text_and_copies_have_the_whole_list() -> None:
    model = sx.load(with_attribute(unpacked_floats([0.5, -2.0] * 100), AttributeType.FLOATS))
    again = sx.load_text(sx.to_text(model))
    assert again.graph.nodes[0].attribute("items") == (0.5, -2.0) * 100
    twin: Model = sx.load(sx.to_bytes(model))
    assert sx.to_bytes(twin) == sx.to_bytes(model)


def test_strings_as_text() -> None:
    stored = Run(strings(TEXTS * 2), 2 * len(TEXTS), bytes)
    expected = tuple(str(item, "utf-8", "surrogateescape") for item in TEXTS * 2)
    found = StoredList(StoredText(stored))
    assert found == expected
    assert type(found[1]) is str
    assert found[1] is found[1 + len(TEXTS)]


def test_runs_are_told_apart() -> None:
    first, second = (Run(unpacked_ints(range(3)), 3, int) for _ in range(2))
    assert first == second
    assert hash(first) == hash(second)
    assert first != Run(unpacked_ints([0, 1, 3]), 3, int)


def test_lists_in_a_mapped_file(tmp_path: Any) -> None:
    data = with_attribute(unpacked_ints(range(60_000)), AttributeType.INTS)
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    model = sx.load(path)
    assert model.graph.nodes[0].attribute("items") == tuple(range(60_000))
    sx.save(model, path)
    assert sx.load(path).graph.nodes[0].attribute("items") == tuple(range(60_000))
    assert model.graph.nodes[0].attribute("items")[-1] == 59_999


def test_equal_nodes_with_long_lists_are_merged() -> None:
    lists = [list(range(200)), list(range(200)), [*range(199), 300]]
    calls = " ".join(
        f"y{place} = ai.onnx.ml.OneHotEncoder<cats_int64s = {values}>(x)"
        for place, values in enumerate(lists)
    )
    model = sx.load_text(
        '<ir_version: 10, opset_import: ["": 21, "ai.onnx.ml": 4]> '
        f"g (int64[n] x) => (float[n,200] z) {{ {calls} z = Sum(y0, y1, y2) }}"
    )
    kept = [node.op_type for node in sx.simplify(model).graph.nodes]
    assert kept == ["OneHotEncoder", "OneHotEncoder", "Sum"]
    feed = {"x": np.array([3, 199, 300])}
    assert np.array_equal(*(sx.evaluate(item, feed)[0] for item in (model, sx.simplify(model))))
