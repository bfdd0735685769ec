"""Values outside of runs: NumPy, DLPack both ways without a copy, sequences, maps, sparse."""

import ml_dtypes
import numpy as np
import onnxruntime
import pytest

import sardonyx as sx
from sardonyx.errors import InputError, UnsupportedError
from sardonyx.runtime.sparse import OrtSparseFormat

KINDS = ["float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16",
         "uint32", "uint64", "bool"]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_like_onnxruntimes_values(kind: str) -> None:
    array = np.ones((2, 3), kind)
    mine = sx.OrtValue.ortvalue_from_numpy(array)
    theirs = onnxruntime.OrtValue.ortvalue_from_numpy(array)
    for name in ("shape", "data_type", "element_type", "tensor_size_in_bytes", "device_name",
                 "is_tensor", "is_sparse_tensor", "is_tensor_sequence", "has_value"):  # fmt: skip
        assert getattr(mine, name)() == getattr(theirs, name)(), name
    assert mine.data_ptr() == array.ctypes.data


@pytest.mark.parametrize("kind", KINDS)
def test_dlpack_from_and_to_numpy(kind: str) -> None:
    array = np.ones((2, 3), kind)
    value = sx.OrtValue.from_dlpack(array)
    assert np.shares_memory(value.numpy(), array)
    assert np.shares_memory(np.from_dlpack(value), array)
    capsule = sx.OrtValue.from_dlpack(array.__dlpack__())
    assert np.shares_memory(capsule.numpy(), array)


@pytest.mark.parametrize("kind", [ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, "float32"])
def test_dlpack_with_torch(kind: object) -> None:
    torch = pytest.importorskip("torch")
    array = np.array([1, -2, 3], np.float32).astype(kind)
    tensor = torch.from_dlpack(sx.OrtValue(array))
    assert tensor.float().tolist() == [1, -2, 3] and tensor.data_ptr() == array.ctypes.data
    back = sx.OrtValue.from_dlpack(tensor)
    assert back.numpy().dtype == array.dtype and np.shares_memory(back.numpy(), array)
    tensor[0] = 7
    assert float(back.numpy()[0]) == float(array[0]) == 7


def test_dlpack_that_cannot_be_shared() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(InputError, match="cannot be shared"):
        sx.OrtValue.from_dlpack(torch.ones(2, requires_grad=True))
    with pytest.raises(InputError, match="cannot be shared"):
        sx.OrtValue.from_dlpack(object())


def test_values_keep_memory_alive() -> None:
    value = sx.OrtValue.from_dlpack(np.arange(100000.0))
    assert value.numpy()[-1] == 99999


def test_types_as_text() -> None:
    one = np.ones(2, np.int64)
    assert sx.OrtValue([one]).data_type() == "seq(tensor(int64))"
    assert sx.OrtValue([{1: 0.5}]).data_type() == "seq(map(int64,tensor(float)))"
    assert sx.OrtValue({"a": 0.5}).data_type() == "map(string,tensor(float))"
    assert sx.OrtValue(np.array(["a"])).data_type() == "tensor(string)"
    assert sx.OrtValue(np.ones(1, ml_dtypes.bfloat16)).data_type() == "tensor(bfloat16)"
    assert not sx.OrtValue(None).has_value()


def test_memory_by_shape_and_type() -> None:
    for kind in (np.float32, 1, ml_dtypes.bfloat16, 16):
        value = sx.OrtValue.ortvalue_from_shape_and_type([2, 0, 3], kind)
        assert value.shape() == [2, 0, 3] and value.tensor_size_in_bytes() == 0
    with pytest.raises(UnsupportedError):
        sx.OrtValue.ortvalue_from_shape_and_type([2], np.dtype("V3"))


def test_sparse_tensors() -> None:
    dense = np.array([[0, 5, 0], [6, 0, 0]], np.float32)
    values = np.array([5, 6], np.float32)
    coo = sx.SparseValue.sparse_coo_from_numpy([2, 3], values, np.array([1, 3]))
    pairs = sx.SparseValue.sparse_coo_from_numpy([2, 3], values, np.array([[0, 1], [1, 0]]))
    csr = sx.SparseValue.sparse_csr_from_numpy(
        [2, 3], values, np.array([1, 0]), np.array([0, 1, 2])
    )
    for value in (coo, pairs, csr):
        np.testing.assert_array_equal(value.dense(), dense)
        assert value.data_type() == "sparse_tensor(float)" and value.dense_shape() == [2, 3]
    assert csr.format() is OrtSparseFormat.ORT_SPARSE_CSRC
    assert csr.as_csrc_view().outer().tolist() == [0, 1, 2]
    assert coo.as_coo_view().indices().tolist() == [1, 3]
    held = sx.OrtValue.ort_value_from_sparse_tensor(coo)
    assert held.is_sparse_tensor() and held.shape() == [2, 3] and held.element_type() == 1
    assert held.as_sparse_tensor() is coo
    for call, text in (
        (csr.as_coo_view, "not in the COO"),
        (coo.as_csrc_view, "not in the CSR"),
        (held.numpy, "sparse tensor"),
        (lambda: sx.OrtValue(dense).as_sparse_tensor(), "not a sparse tensor"),
        (lambda: sx.SparseValue.sparse_coo_from_numpy([2, 3], values, np.array([9, 1])), "fit"),
        (lambda: sx.SparseValue.sparse_coo_from_numpy([2], values, np.array([1])), "cannot lie"),
    ):
        with pytest.raises(InputError, match=text):
            call()


@pytest.mark.parametrize("provider", ["ReferenceExecutionProvider", "CPUExecutionProvider"])
def test_sparse_tensors_are_fed(provider: str) -> None:
    model = sx.load_text(
        '<ir_version: 9, opset_import: ["": 17]> g (float[2,3] x) => (float[2,3] y) {y = Neg(x)}'
    )
    values = np.array([5], np.float32)
    value = sx.SparseValue.sparse_coo_from_numpy([2, 3], values, np.array([1]))
    session = sx.InferenceSession(model, providers=[provider])
    for item in (value, sx.OrtValue(value)):
        assert session.run(None, {"x": item})[0].sum() == -5
