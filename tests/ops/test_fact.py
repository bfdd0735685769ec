"""What is known of values: facts put together, compared, and at their limits."""

from typing import Any

import numpy as np
import pytest

from sardonyx.dims import symbol
from sardonyx.dtypes import DataType
from sardonyx.errors import InferenceError
from sardonyx.graph import MapType, OptionalType, SequenceType, TensorType, Type
from sardonyx.ops.fact import (
    ASSUMED,
    LARGEST_VALUE,
    Assumptions,
    Fact,
    axis_of,
    broadcast,
    from_type,
    join,
    merge,
    of_array,
    require_room,
    require_sizes,
    same_size,
    tensor,
    to_type,
    unknown,
    without_shape,
)

N, M = symbol("n"), symbol("m")
FLOAT, INT = DataType.FLOAT, DataType.INT64
FLOATS = SequenceType(TensorType(FLOAT, (2,)))


def objects(*items: Any) -> Any:
    return np.array([*items, None], object)[:-1]


def parts(fact: Fact) -> Any:
    return fact.type, fact.dtype, fact.shape


@pytest.fixture
def noted() -> Any:
    found: Assumptions = []
    token = ASSUMED.set(found)
    yield found
    ASSUMED.reset(token)


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (of_array(np.int64([3, -1])), (3, -1)),
        (of_array(np.int64(7)), (7,)),
        (tensor(INT, (2,)), (None, None)),
        (tensor(INT, (LARGEST_VALUE,)), (None,) * LARGEST_VALUE),
        (tensor(INT, (LARGEST_VALUE + 1,)), None),
        (tensor(INT, (N,)), None),
        (tensor(INT, (2, 2)), None),
        (tensor(INT, ()), None),
        (unknown(None), None),
        (tensor(INT, (2,)).with_value(objects(N, None)), (N, None)),
    ],
)
def test_sizes(fact: Fact, expected: Any) -> None:
    assert fact.sizes() == expected


def test_constants_and_scalars() -> None:
    partly = tensor(INT, (2,)).with_value(objects(N, 3))
    assert partly.constant is None and partly.scalar() is None
    texts = Fact(None, DataType.STRING, (1,), objects("a"))
    assert texts.constant is not None and texts.scalar() == "a"
    assert unknown(None).constant is None and unknown(None).scalar() is None
    assert of_array(np.int64([[5]])).scalar() == 5 and of_array(np.int64([5, 6])).scalar() is None
    whole = tensor(INT, (2,)).with_value(objects(4, 3))
    assert whole.constant is not None and whole.constant.dtype == np.int64
    flags = tensor(DataType.BOOL, (2,)).with_value(objects(1, 0))
    assert flags.constant is not None and flags.constant.dtype == bool


@pytest.mark.parametrize(
    ("item", "kept"),
    [(2**63 - 1, True), (2**63, False), (-(2**63), True), (-(2**63) - 1, False), (0, True)],
)
def test_elements_beyond_64_bits_are_not_known(item: int, kept: bool) -> None:
    (found, other) = tensor(INT, (2,)).with_value(objects(item, N)).sizes() or ()
    assert found == (item if kept else None) and other == N


@pytest.mark.parametrize(
    ("declared", "dtype", "shape"),
    [
        (TensorType(FLOAT, ("n", 2, None, "", -1)), FLOAT, (N, 2, None, None, None)),
        (TensorType(FLOAT, None), FLOAT, None),
        (TensorType(FLOAT, (0,)), FLOAT, (0,)),
        (TensorType(DataType.UNDEFINED, ()), None, ()),
        (TensorType(99, ()), None, ()),
        (Type(), None, None),
        (None, None, None),
    ],
)
def test_facts_of_types(declared: Any, dtype: Any, shape: Any) -> None:
    fact = from_type(declared)
    assert (fact.type, fact.dtype, fact.shape) == (None, dtype, shape)


def test_types_of_facts() -> None:
    assert from_type(FLOATS).type == FLOATS and to_type(Fact(FLOATS)) == FLOATS
    assert to_type(Fact()) is None
    assert to_type(tensor(None, ())) == TensorType(None, ())
    assert to_type(tensor(FLOAT, None)) == TensorType(FLOAT, None)
    assert to_type(tensor(FLOAT, (N + 1, 2, None))) == TensorType(FLOAT, ("n+1", 2, None))
    hidden = tensor(FLOAT, (symbol("_a") + N, N, 2))
    assert to_type(hidden, "_") == TensorType(FLOAT, (None, "n", 2))
    assert str(without_shape(OptionalType(FLOATS))) == "optional(seq(float))"
    keyed = MapType(INT, TensorType(FLOAT, (2,)))
    assert without_shape(keyed) is keyed and without_shape(None) is None


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        ([(2, 3), (3,)], (2, 3)),
        ([(2, 1), (1, 3)], (2, 3)),
        ([(), (4,)], (4,)),
        ([], ()),
        ([(0,), (1,)], (0,)),
        ([(N,), (1,)], (N,)),
        ([(None,), (1,)], (None,)),
        ([(None,), (5,)], (5,)),
        ([(5,), (None,)], (5,)),
        ([(None, 2), (3, 1, 1)], (3, None, 2)),
        ([(2,), None], None),
    ],
)
def test_broadcasting(shapes: Any, expected: Any) -> None:
    assert broadcast(*shapes) == expected


def test_shapes_that_do_not_broadcast() -> None:
    message = r"shapes \[2,3\] and \[4\] do not broadcast: 3 against 4"
    with pytest.raises(InferenceError, match=message):
        broadcast((2, 3), (4,))


@pytest.mark.parametrize(
    ("fact", "message"),
    [
        (tensor(FLOAT, (0,)), None),
        (tensor(FLOAT, (2**63 - 1,)), None),
        (tensor(FLOAT, (2**63,)), "a size would be 9223372036854775808"),
        (tensor(FLOAT, (-1,)), "a size would be -1"),
        (tensor(FLOAT, (N - 5, None)), None),
        (unknown(64), None),
        (unknown(65), "65 dimensions, 64 at most"),
        (unknown(None), None),
        (None, None),
    ],
)
def test_sizes_that_tensors_have(fact: Any, message: str | None) -> None:
    if message is None:
        require_sizes(fact)
        return
    with pytest.raises(InferenceError, match=message):
        require_sizes(fact)


@pytest.mark.parametrize("kind", [SequenceType, OptionalType])
def test_types_inside_one_another(kind: Any) -> None:
    deep: Any = TensorType(FLOAT, ())
    for _ in range(48):
        deep = kind(deep)
    require_sizes(Fact(deep))
    with pytest.raises(InferenceError, match="more than 48 types"):
        require_sizes(Fact(kind(deep)))


@pytest.mark.parametrize(
    ("axis", "expected"), [(-3, 0), (-1, 2), (0, 0), (2, 2), (3, None), (-4, None)]
)
def test_axes(axis: int, expected: int | None) -> None:
    if expected is not None:
        assert axis_of(axis, 3) == expected
        return
    with pytest.raises(InferenceError, match=f"side {axis} does not fit rank 3"):
        axis_of(axis, 3, "side")


@pytest.mark.parametrize(
    ("left", "right", "expected", "notes"),
    [
        (2, 2, 2, []),
        (None, 2, 2, []),
        (2, None, 2, []),
        (None, None, None, []),
        (N, None, N, []),
        (None, N, N, []),
        (N, N, N, []),
        (N, 2, 2, [(N, 2)]),
        (2, N, 2, [(2, N)]),
        (N, M, N, [(N, M)]),
    ],
)
def test_the_size_both_have(left: Any, right: Any, expected: Any, notes: Any, noted: Any) -> None:
    assert same_size(left, right, "sizes") == expected
    assert noted == notes


def test_sizes_that_differ() -> None:
    with pytest.raises(InferenceError, match="sizes: 2 against 3"):
        same_size(2, 3, "sizes")
    assert same_size(N, 2, "nobody listens") == 2


def test_room(noted: Any) -> None:
    for room in (0, 1, None, N, N + 3):
        require_room(room, "no room")
    assert noted == []
    with pytest.raises(InferenceError, match="no room"):
        require_room(-1, "no room")
    require_room(N - 3, "no room")
    assert len(noted) == 1 and noted[0][1] == 0


def test_merging() -> None:
    table = tensor(FLOAT, (2, 3))
    for other in (tensor(None, (N, None)), unknown(None), unknown(2), table):
        assert parts(merge(other, table)) == parts(merge(table, other)) == parts(table)
    known = of_array(np.int64([3]))
    for merged in (merge(known, tensor(INT, (1,))), merge(tensor(INT, (1,)), known)):
        assert merged.value is known.value
    assert merge(Fact(FLOATS), Fact()).type == FLOATS and merge(Fact(), Fact(FLOATS)).type == FLOATS
    for other in (tensor(FLOAT, (2,)), unknown(None)):
        assert parts(merge(Fact(FLOATS), other)) == (FLOATS, None, None)
        assert parts(merge(other, Fact(FLOATS))) == (FLOATS, None, None)
    for other, message in (
        (tensor(FLOAT, (2,)), "ranks differ"),
        (tensor(FLOAT, (2, 4)), "sizes differ"),
        (tensor(INT, (2, 3)), "element types differ"),
    ):
        with pytest.raises(InferenceError, match=message):
            merge(tensor(FLOAT, (2, 3)), other)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (tensor(FLOAT, (2, N)), tensor(FLOAT, (2, M)), tensor(FLOAT, (2, None))),
        (tensor(FLOAT, (2,)), tensor(INT, (2,)), tensor(None, (2,))),
        (tensor(FLOAT, (2,)), tensor(FLOAT, (2, 2)), tensor(FLOAT, None)),
        (tensor(FLOAT, None), tensor(FLOAT, (2,)), tensor(FLOAT, None)),
        (tensor(FLOAT, (2,)), tensor(FLOAT, None), tensor(FLOAT, None)),
        (of_array(np.int64([1])), of_array(np.int64([2])), tensor(INT, (1,))),
        (Fact(FLOATS), Fact(FLOATS), Fact(FLOATS)),
        (Fact(FLOATS), Fact(SequenceType(TensorType(FLOAT, (3,)))),
         Fact(SequenceType(TensorType(FLOAT, (None,))))),
        (Fact(FLOATS), Fact(OptionalType(TensorType(FLOAT, (2,)))), Fact()),
        (Fact(FLOATS), tensor(FLOAT, ()), Fact()),
        (tensor(FLOAT, ()), Fact(FLOATS), Fact()),
    ],
)  # fmt: skip
def test_joining(left: Fact, right: Fact, expected: Fact) -> None:
    assert parts(join(left, right)) == parts(expected)
    assert join(left, right).value is None
    assert str(join(left, right)) == str(expected)
