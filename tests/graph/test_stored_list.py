"""Lists that are left as they are stored."""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from sardonyx.graph.stored_list import StoredList, StoredText
from sardonyx.record import record

LONG = (*range(1 << 12, 3 << 12), 7)


@record
class Kept:
    """Items in memory."""

    items: Sequence[Any]
    item: type

    @property
    def count(self) -> int:
        return len(self.items)

    def array(self) -> Any:
        kinds = {int: np.int64, float: np.float64}
        return np.array(self.items, kinds.get(self.item, object))


def stored(items: Sequence[Any], kind: type = int) -> StoredList:
    return StoredList(Kept(tuple(items), kind))


@pytest.mark.parametrize("items", [(), (1,), (1, 2, 3), LONG])
def test_equal_to_the_tuple_of_its_items(items: tuple[int, ...]) -> None:
    found = stored(items)
    assert found == items and items == found and found == stored(items)
    assert hash(found) == hash(items) and repr(found) == repr(items)
    assert tuple(found) == items and len(found) == len(items)
    assert found != (*items, 1) and found != (*items[:-1], -1)
    assert found != list(items)


@pytest.mark.parametrize("other", [(), (1, 2), (1, 2, 4), (0, 2, 3), (1, 2, 3, 4)])
def test_not_equal_to_others(other: tuple[int, ...]) -> None:
    assert stored((1, 2, 3)) != other
    assert stored((1, 2, 3)) != stored(other)


def test_items_slices_and_sums() -> None:
    found = stored((1.5, 2.5, 3.5), float)
    assert type(found[0]) is float and found[-1] == 3.5 and found[1:] == (2.5, 3.5)
    more = (4.5,)
    assert found + more == (1.5, 2.5, 3.5, 4.5) and more + found == (4.5, 1.5, 2.5, 3.5)
    with pytest.raises(TypeError):
        operator.add(found, [4.5])


def test_arrays_are_copies_only_where_asked() -> None:
    found = stored((1, 2, 3))
    assert np.array(found).tolist() == [1, 2, 3]
    assert found[0] == 1
    np.array(found)[0] = 9
    np.asarray(found, copy=True)[0] = 9
    assert found[0] == 1
    assert np.shares_memory(np.asarray(found), np.asarray(found))
    assert np.asarray(found, np.float32).dtype == np.float32


def test_equal_texts_are_decoded_once() -> None:
    found = StoredList(StoredText(Kept((b"ab", b"\xff", b"ab"), bytes)))
    assert found == ("ab", "\udcff", "ab") and len(found) == 3
    assert found[0] is found[2]
