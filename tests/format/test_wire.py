"""The wire format at its limits: the last byte that is allowed, and the first that is not."""

import pytest

from sardonyx.format.wire import (
    DEEPEST,
    WireError,
    count_varints,
    decode_varints,
    fields,
    integers,
    read_varint,
    signed,
    varint,
)

NUMBERS = [0, 1, 127, 128, 300, 2**14 - 1, 2**14, 2**32, 2**63 - 1, 2**63, 2**64 - 1]


def walk(content: bytes) -> list[tuple[int, int, int, int]]:
    return list(fields(content, 0, len(content)))


@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_come_back(number: int) -> None:
    content = varint(number)
    assert len(content) == max(1, -(-number.bit_length() // 7))
    assert read_varint(b"\xff" + content + b"\x01", 1, 1 + len(content)) == (
        number,
        1 + len(content),
    )
    assert signed(number) == (number if number < 2**63 else number - 2**64)
    assert varint(signed(number)) == content
    for end in range(len(content)):
        with pytest.raises(WireError, match="ends inside a number at byte 0"):
            read_varint(content, 0, end)


def test_many_numbers_at_once() -> None:
    content = b"".join(map(varint, NUMBERS))
    assert decode_varints(content).tolist() == NUMBERS
    assert count_varints(content) == len(NUMBERS)
    found = [7]
    integers(content, 0, len(content), found)
    assert found == [7, *map(signed, NUMBERS)]
    assert decode_varints(b"").tolist() == [] and count_varints(b"") == 0
    with pytest.raises(WireError, match="ends inside"):
        decode_varints(content + b"\x80")
    with pytest.raises(WireError, match="ends inside"):
        decode_varints(b"\x80")


def test_ten_bytes_and_no_more() -> None:
    ten, eleven = b"\x81" + b"\x80" * 8 + b"\x00", b"\x81" + b"\x80" * 9 + b"\x00"
    assert read_varint(ten, 0, 10) == (1, 10)
    assert decode_varints(ten).tolist() == [1]
    with pytest.raises(WireError, match="more than ten"):
        read_varint(eleven, 0, 11)
    with pytest.raises(WireError, match="more than ten"):
        decode_varints(eleven)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", []),
        (b"\x08\x05", [(8, 5, 2, 0)]),
        (b"\x0a\x00", [(10, 2, 2, 0)]),
        (b"\x0a\x02ab", [(10, 2, 4, 0)]),
        (b"\x0d1234", [(13, 1, 5, 0)]),
        (b"\x0912345678", [(9, 1, 9, 0)]),
        (b"\x0b\x0c", [(11, 1, 2, 0)]),
        (b"\x0b\x10\x01\x11" + bytes(8) + b"\x1d1234\x12\x01a\x13\x14\x0c", [(11, 1, 23, 0)]),
        (b"\x08\x05\x0a\x01a", [(8, 5, 2, 0), (10, 4, 5, 2)]),
        (varint(0x1FFFFFFF << 3) + b"\x05", [(0x1FFFFFFF << 3, 5, 6, 0)]),
    ],
)
def test_fields(content: bytes, expected: list[tuple[int, int, int, int]]) -> None:
    assert walk(content) == expected


@pytest.mark.parametrize(
    ("content", "message", "at"),
    [
        (b"\x07", "number 0", 0),
        (b"\x08", "ends inside a number", 1),
        (b"\x0a\x01", "claims 1 bytes where 0 are left", 0),
        (b"\x0a\x03ab", "claims 3 bytes where 2 are left", 0),
        (b"\x0d123", "ends inside a number", 0),
        (b"\x091234567", "ends inside a number", 0),
        (b"\x0c", "wire type 4", 0),
        (b"\x0e", "wire type 6", 0),
        (b"\x08\x01\x0f", "wire type 7", 2),
        (b"\x0b", "ends inside a number", 1),
        (b"\x0b\x14", "a group ends that did not begin", 1),
        (b"\x0b\x0e", "wire type 6", 1),
        (b"\x0b\x1d123", "ends inside a group", 1),
        (b"\x0b\x111234567", "ends inside a group", 1),
        (b"\x0b\x12\x02a", "ends inside a group", 1),
        (varint(0x20000000 << 3) + b"\x05", "is too large", 0),
    ],
)
def test_fields_that_are_none(content: bytes, message: str, at: int) -> None:
    with pytest.raises(WireError, match=message) as caught:
        walk(content)
    assert caught.value.offset == at


def test_groups_inside_one_another() -> None:
    assert len(walk(b"\x0b" * DEEPEST + b"\x0c" * DEEPEST)) == 1
    with pytest.raises(WireError, match=f"more than {DEEPEST} groups"):
        walk(b"\x0b" * (DEEPEST + 1) + b"\x0c" * (DEEPEST + 1))
