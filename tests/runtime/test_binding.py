"""Inputs and outputs bound to memory."""

import ml_dtypes
import numpy as np
import pytest

import sardonyx as sx
from sardonyx.errors import InputError, UnsupportedError

PROVIDERS = ["ReferenceExecutionProvider", "CPUExecutionProvider"]
TEXT = ('<ir_version: 10, opset_import: ["": 21]> g (float[n,3] x) => '
        "(float[n,3] y, int64[2] s, bfloat16[n,3] b)"
        "{ y = Neg(x) s = Shape(x) b = Cast<to = 16>(x) }")  # fmt: skip
X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(params=PROVIDERS)
def session(request: pytest.FixtureRequest) -> sx.InferenceSession:
    return sx.InferenceSession(sx.load_text(TEXT), providers=[request.param])


def test_memory_that_is_there_already(session: sx.InferenceSession) -> None:
    binding = session.io_binding()
    binding.bind_cpu_input("x", X)
    place = np.full((2, 3), 99, np.float32)
    narrow = np.zeros((2, 3), ml_dtypes.bfloat16)
    binding.bind_output("y", "cpu", 0, np.float32, place.shape, place.ctypes.data)
    binding.bind_output("b", "cpu", 0, 16, narrow.shape, narrow.ctypes.data)
    binding.bind_output("s")
    for factor in (1, 2):
        binding.bind_cpu_input("x", X * np.float32(factor))
        session.run_with_iobinding(binding)
        np.testing.assert_array_equal(place, -X * factor)
        np.testing.assert_array_equal(narrow.astype(np.float32), X * factor)
    outputs = binding.get_outputs()
    assert outputs[0].data_ptr() == place.ctypes.data and len(outputs) == 3
    assert binding.copy_outputs_to_cpu()[2].tolist() == [2, 3]
    assert [value.shape() for value in binding.get_outputs_as_ortvaluevector()] == [
        [2, 3], [2, 3], [2],
    ]  # fmt: skip


def test_one_value_as_input_and_output(session: sx.InferenceSession) -> None:
    state = sx.OrtValue.ortvalue_from_numpy(X.copy())
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", state)
    binding.bind_ortvalue_output("y", state)
    for turn in range(1, 4):
        session.run_with_iobinding(binding)
        np.testing.assert_array_equal(state.numpy(), X * (-1) ** turn)


def test_nothing_bound_fetches_everything(session: sx.InferenceSession) -> None:
    binding = session.io_binding()
    binding.bind_input("x", "cpu", 0, np.float32, [2, 3], X.ctypes.data)
    session.run_with_iobinding(binding)
    assert len(binding.get_outputs()) == 3
    binding.clear_binding_inputs()
    binding.clear_binding_outputs()
    binding.synchronize_inputs()
    binding.synchronize_outputs()
    with pytest.raises(InputError, match="'x' is missing"):
        session.run_with_iobinding(binding)


def test_empty_memory(session: sx.InferenceSession) -> None:
    binding = session.io_binding()
    binding.bind_input("x", "cpu", 0, np.float32, [0, 3], 0)
    binding.bind_output("y", "cpu", 0, np.float32, [0, 3], 0)
    session.run_with_iobinding(binding)
    assert binding.copy_outputs_to_cpu()[0].shape == (0, 3)


def test_what_cannot_be_bound(session: sx.InferenceSession) -> None:
    binding = session.io_binding()
    address = X.ctypes.data
    for arguments, text in (
        (("x", "cpu", 0, None, [2, 3], address), "needs its element type"),
        (("x", "cpu", 0, np.float32, None, address), "needs its element type"),
        (("x", "cpu", 0, np.float32, [2, -3], address), "cannot hold"),
        (("x", "cpu", 0, np.float32, [2, 3], 0), "address"),
        (("x", "cpu", 0, object, [2, 3], address), "cannot hold"),
    ):
        with pytest.raises(InputError, match=text):
            binding.bind_input(*arguments)
    with pytest.raises(UnsupportedError, match="no device 'cuda'"):
        binding.bind_output("y", "cuda")
    binding.bind_cpu_input("x", X)
    for shape, kind in (((3, 2), np.float32), ((2, 3), np.float64)):
        place = np.zeros(shape, kind)
        binding.bind_output("y", "cpu", 0, kind, shape, place.ctypes.data)
        with pytest.raises(InputError, match="output 'y' does not fit what it is bound to"):
            session.run_with_iobinding(binding)
    frozen = np.zeros((2, 3), np.float32)
    frozen.setflags(write=False)
    binding.bind_ortvalue_output("y", sx.OrtValue(frozen))
    with pytest.raises(InputError, match="read-only"):
        session.run_with_iobinding(binding)


def _copied(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The shapes of results that are copied into bound memory from now on."""
    shapes: list[tuple[int, ...]] = []
    copy = sx.OrtValue.update_inplace

    def record(self: sx.OrtValue, array: np.ndarray) -> None:
        shapes.append(array.shape)
        copy(self, array)

    monkeypatch.setattr(sx.OrtValue, "update_inplace", record)
    return shapes


def test_results_are_computed_where_they_are_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    copied = _copied(monkeypatch)
    text = (
        '<ir_version: 10, opset_import: ["": 21]> g (float[n,3] x) => (float[n,3] y, float[n,3] z)'
        "{ y = Neg(x) s = Cast<to = 8>(y) v = Cast<to = 1>(s) z = Add(v, v) }"
    )
    for source in (TEXT, text):
        session = sx.InferenceSession(sx.load_text(source))
        binding = session.io_binding()
        places = [np.full((2, 3), 99, np.float32), np.full((2, 3), 7, ml_dtypes.bfloat16)]
        binding.bind_ortvalue_output("y", sx.OrtValue(places[0]))
        if source is TEXT:
            binding.bind_ortvalue_output("b", sx.OrtValue(places[1]))
        for factor in (1, 2, 3):
            binding.bind_cpu_input("x", X * np.float32(factor))
            session.run_with_iobinding(binding)
            np.testing.assert_array_equal(places[0], -X * factor)
        assert binding.get_outputs()[0].numpy() is places[0]
    assert copied == []


def test_memory_that_is_read_or_bound_twice_is_written_at_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copied = _copied(monkeypatch)
    text = (
        '<ir_version: 10, opset_import: ["": 21]> g (float[n,3] x) => (float[n,3] y, float[n,3] z)'
        "{ y = Neg(x) z = Add(x, x) }"
    )
    session = sx.InferenceSession(sx.load_text(text))
    memory = np.zeros(12, np.float32)
    memory[:6] = X.reshape(-1)
    shifted = memory[3:9].reshape(2, 3)
    binding = session.io_binding()
    binding.bind_cpu_input("x", memory[:6].reshape(2, 3))
    binding.bind_ortvalue_output("y", sx.OrtValue(shifted))
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(shifted, -X)
    assert copied == [(2, 3)]
    binding = session.io_binding()
    binding.bind_cpu_input("x", X)
    for name in "yz":
        binding.bind_ortvalue_output(name, sx.OrtValue(shifted))
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(shifted, X * 2)
    assert copied == [(2, 3)] * 2
