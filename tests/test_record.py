"""Records compare, print, copy and match as frozen dataclasses do."""

import copy
import math
import pickle
from dataclasses import dataclass, field, fields, replace

import pytest

from sardonyx.record import entity, record


@record
class Point:
    """A record."""

    x: float
    y: tuple[int, ...] = ()
    note: str = field(default="", compare=False, repr=False)


@record
class Single:
    """A record of one field."""

    value: object


@record
class Named:
    """A record with words of its own."""

    name: str

    def __repr__(self) -> str:
        return self.name

    def __hash__(self) -> int:
        return 7


@record
class Empty:
    """A record of nothing."""


@entity
class Room:
    """An entity."""

    size: int
    beside: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Frozen:
    """What a record stands for."""

    x: float
    y: tuple[int, ...] = ()


def test_records_are_equal_by_what_they_hold() -> None:
    assert Point(1.0) == Point(1.0, ()) == Point(1, (), "other")
    assert hash(Point(1.0)) == hash(Point(1))
    assert Point(1.0) != Point(1.0, (2,))
    assert Empty() == Empty()
    assert len({Empty(), Empty()}) == 1


def test_records_of_different_classes_differ() -> None:
    assert Single(()) != Empty()
    assert Point(1.0) != Frozen(1.0)
    assert Single(1) != 1


@pytest.mark.parametrize("other", [math.nan, float("nan")])
def test_nan_is_compared_as_in_a_tuple(other: float) -> None:
    assert (Single(math.nan) == Single(other)) == ((math.nan,) == (other,))
    assert (Point(math.nan) == Point(other)) == (Frozen(math.nan) == Frozen(other))


def test_entities_are_equal_to_themselves_alone() -> None:
    room = Room(3)
    assert room != Room(3)
    assert {room: 1}[room] == 1
    assert room.beside is not Room(3).beside


def test_words() -> None:
    assert repr(Point(1.0, (2,))) == "Point(x=1.0, y=(2,))"
    assert repr(Room(3)) == "Room(size=3, beside=[])"
    assert repr(Named("a")) == "a"
    assert hash(Named("a")) == 7


def test_copies() -> None:
    point = Point(1.0, (2,), "here")
    assert replace(point, x=2.0) == Point(2.0, (2,))
    for twin in (copy.copy(point), copy.deepcopy(point), pickle.loads(pickle.dumps(point))):
        assert twin == point
        assert twin.note == "here"
    assert [item.name for item in fields(point)] == ["x", "y", "note"]


def test_records_match_by_position() -> None:
    match Point(1.0, (2,)):
        case Point(x, (y,)):
            assert (x, y) == (1.0, 2)


def test_a_record_has_no_other_fields() -> None:
    with pytest.raises(AttributeError):
        Point(1.0).z = 2  # type: ignore[attr-defined]
