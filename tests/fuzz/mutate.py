"""Damage model files in the ways files get damaged, and in the ways attackers do."""

import random
from collections.abc import Iterator
from pathlib import Path

from tests.shared_models import model_paths

HUGE = (
    b"\xff" * 9 + b"\x01",
    b"\x80" * 9 + b"\x02",
    b"\xff\xff\xff\xff\x0f",
    b"\x80\x80\x80\x80\x10",
)


def mutations(seed: int, count: int, corpus: list[bytes] | None = None) -> Iterator[bytes]:
    """`count` damaged files, the same for the same seed."""
    chance = random.Random(seed)
    files = corpus or default_corpus()
    for _ in range(count):
        yield mutate(chance.choice(files), chance)


def mutate(whole: bytes, chance: random.Random) -> bytes:
    """A file with one or more damages."""
    content = bytearray(whole)
    for _ in range(chance.choice((1, 1, 1, 2, 4, 16))):
        content = _MUTATORS[chance.randrange(len(_MUTATORS))](content, chance)
    return bytes(content)


def default_corpus() -> list[bytes]:
    """Small real models where they are present, and the example that comes along."""
    paths = [Path("examples/digits.onnx"), *model_paths()]
    contents = [path.read_bytes() for path in paths if path.exists()]
    return [content for content in contents if len(content) < 200_000]


def _cut(content: bytearray, chance: random.Random) -> bytearray:
    return content[: chance.randrange(len(content) + 1)]


def _flip(content: bytearray, chance: random.Random) -> bytearray:
    for _ in range(chance.choice((1, 1, 2, 8))):
        if content:
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    return content


def _overwrite(content: bytearray, chance: random.Random) -> bytearray:
    if content:
        at = chance.randrange(len(content))
        content[at : at + chance.randrange(1, 9)] = chance.randbytes(chance.randrange(1, 9))
    return content


def _insert_number(content: bytearray, chance: random.Random) -> bytearray:
    at = chance.randrange(len(content) + 1)
    content[at:at] = chance.choice(HUGE)
    return content


def _delete(content: bytearray, chance: random.Random) -> bytearray:
    at = chance.randrange(len(content) + 1)
    del content[at : at + chance.randrange(1, 64)]
    return content


def _repeat(content: bytearray, chance: random.Random) -> bytearray:
    at = chance.randrange(len(content) + 1)
    piece = content[at : at + chance.randrange(1, 200)]
    content[at:at] = piece * chance.randrange(1, 20)
    return content


def _move(content: bytearray, chance: random.Random) -> bytearray:
    at, to = chance.randrange(len(content) + 1), chance.randrange(len(content) + 1)
    piece = content[at : at + chance.randrange(1, 100)]
    content[to : to + len(piece)] = piece
    return content


def _header(content: bytearray, chance: random.Random) -> bytearray:
    tag = chance.randrange(1, 30) << 3 | chance.randrange(8)
    at = chance.randrange(min(64, len(content)) + 1)
    content[at:at] = bytes((tag & 0xFF, chance.randrange(256)))
    return content


_MUTATORS = (_cut, _flip, _flip, _overwrite, _insert_number, _delete, _repeat, _move, _header)
