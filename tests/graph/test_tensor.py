"""Tensors in memory: every element type, sparse ones, and sizes that make no sense."""

import numpy as np
import pytest

from sardonyx.dtypes import DataType, from_numpy, pack, unpack
from sardonyx.errors import TensorError, UnsupportedError
from sardonyx.format.load import load_tensor
from sardonyx.format.storage import NoData
from sardonyx.format.write import write_tensor
from sardonyx.graph import SparseTensor, Tensor
from sardonyx.graph.tensor import require_array

TYPES = [kind for kind in DataType if kind != DataType.UNDEFINED]


def sample(kind: DataType, count: int) -> np.ndarray:
    if kind == DataType.STRING:
        return np.array([f"text {i} é" for i in range(count)] + [None], object)[:count]
    if kind == DataType.BOOL:
        return np.arange(count) % 2 == 1
    return (np.arange(count) % 3).astype(np.float32).astype(kind.numpy)


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 8, 33])
@pytest.mark.parametrize("kind", TYPES)
def test_every_type_survives_writing_and_reading(kind: DataType, count: int) -> None:
    values = sample(kind, count)
    tensor = Tensor(values, "t", dtype=kind)
    again = load_tensor(write_tensor(tensor, "t").joined())
    assert (again.name, again.dtype, again.shape) == ("t", kind, (count,))
    assert again.numpy().dtype == kind.numpy
    if kind == DataType.STRING:
        assert again.numpy().tolist() == values.tolist()
    else:
        assert again.numpy().tobytes() == values.tobytes()


@pytest.mark.parametrize("bits", [2, 4, 6])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 7, 8, 9, 63, 64, 65])
def test_packing_is_dense_and_reversible(bits: int, count: int) -> None:
    codes = (np.arange(count) * 7 % (1 << bits)).astype(np.uint8)
    packed = pack(codes, bits)
    assert packed.size == (bits * count + 7) // 8
    np.testing.assert_array_equal(unpack(packed, bits, count), codes)


def test_unpacking_too_little() -> None:
    with pytest.raises(TensorError, match="3 elements of 4 bits need 2 bytes, not 1"):
        unpack(np.zeros(1, np.uint8), 4, 3)


def test_strided_and_big_endian_arrays() -> None:
    values = np.arange(12, dtype=">i4").reshape(3, 4)[:, ::2]
    again = load_tensor(write_tensor(Tensor(values), "t").joined())
    np.testing.assert_array_equal(again.numpy(), values)


def test_what_was_read_cannot_be_written_to() -> None:
    again = load_tensor(write_tensor(Tensor(np.zeros(3, np.float32)), "t").joined())
    with pytest.raises(ValueError, match="read-only"):
        again.numpy()[0] = 1
    again.set(np.ones(3, np.float32))
    assert again.numpy().sum() == 3


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((-1,), "negative dimension"),
        ((2**40, 2**40), "claims"),
        ((3,), "needs 3 entries, no data has 0"),
    ],
)
def test_sizes_that_make_no_sense(shape: tuple[int, ...], message: str) -> None:
    tensor = Tensor.stored("t", shape, DataType.FLOAT, NoData())
    with pytest.raises(TensorError, match=message):
        tensor.numpy()


@pytest.mark.parametrize(
    ("shape", "size"), [((), 1), ((0,), 0), ((2, 3), 6), ((2**31, 2**31), 2**62), ((2**62,), 2**62)]
)
def test_sizes_up_to_the_largest(shape: tuple[int, ...], size: int) -> None:
    assert Tensor.stored("t", shape, DataType.FLOAT, NoData()).size == size


@pytest.mark.parametrize("shape", [(2**62 + 1,), (2**31, 2**31 + 1), (2**63,), (3, 2**61)])
def test_sizes_beyond_the_largest(shape: tuple[int, ...]) -> None:
    with pytest.raises(TensorError, match="claims"):
        _ = Tensor.stored("t", shape, DataType.FLOAT, NoData()).size


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((1,) * 64, None),
        ((1,) * 65, "65 dimensions"),
        ((0, 2**58), None),
        ((0, 2**58 + 1), "empty, but too large"),
        ((2**58 + 1,), None),
    ],
)
def test_shapes_that_arrays_have(shape: tuple[int, ...], message: str | None) -> None:
    if message is None:
        require_array("t", shape)
        return
    with pytest.raises(TensorError, match=message):
        require_array("t", shape)


def test_unknown_and_undefined_types() -> None:
    with pytest.raises(UnsupportedError, match="element type 99 is unknown"):
        Tensor.stored("t", (1,), 99, NoData()).numpy()
    with pytest.raises(TensorError, match="UNDEFINED"):
        Tensor.stored("t", (0,), 0, NoData()).numpy()
    with pytest.raises(UnsupportedError, match="datetime64"):
        from_numpy("datetime64[s]")


@pytest.mark.parametrize("indices", [[1, 3], [[0, 1], [1, 1]]])
def test_sparse(indices: list[object]) -> None:
    sparse = SparseTensor(Tensor(np.array([5, 6]), "s"), Tensor(np.array(indices)), (2, 2))
    assert sparse.numpy().tolist() == [[0, 5], [0, 6]] and sparse.name == "s"


@pytest.mark.parametrize("indices", [[1, 4], [-1, 0], [1], [[0, 0, 0], [1, 1, 1]]])
def test_sparse_indices_that_do_not_fit(indices: list[object]) -> None:
    sparse = SparseTensor(Tensor(np.array([5, 6]), "s"), Tensor(np.array(indices)), (2, 2))
    with pytest.raises(TensorError):
        sparse.numpy()
