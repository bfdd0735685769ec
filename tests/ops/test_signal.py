"""Fourier transforms, windows and mel weights: onnxruntime, their functions, types and edges."""

import ml_dtypes
import numpy as np
import onnx.reference
import pytest

from sardonyx.dims import symbol
from sardonyx.dtypes import DataType
from sardonyx.errors import InferenceError
from sardonyx.ops.fact import of_array, tensor, unknown
from sardonyx.ops.signal import DFT, STFT, HannWindow, MelWeightMatrix
from tests.ops.one_node import inferred, one_node, run_converted, run_here, run_there, same

WINDOWS = ["HannWindow", "HammingWindow", "BlackmanWindow"]
NEAR = {"rtol": 1e-4, "atol": 1e-4}


def draw(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def scalar(value, dtype=np.int64):
    return np.asarray(value, dtype)


def as_complex(x):
    return x[..., 0] + 1j * x[..., 1]


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("axis", [0, 1, -2, -3])
@pytest.mark.parametrize("length", [None, 4, 9])
@pytest.mark.parametrize("inverse", [0, 1])
def test_dft(parts, axis, length, inverse):
    inputs = {
        "x": draw(3, 6, 5, parts),
        "n": None if length is None else scalar(length),
        "axis": scalar(axis),
    }
    content = one_node("DFT", inputs, ["y"], opset=20, inverse=inverse)
    (result,) = run_here(content, inputs)
    signal = inputs["x"][..., 0] if parts == 1 else as_complex(inputs["x"])
    place = axis if axis >= 0 else axis + 1
    expected = (np.fft.ifft if inverse else np.fft.fft)(signal, n=length, axis=place)
    np.testing.assert_allclose(as_complex(result), expected, **NEAR)
    fixed = dict(inputs)
    del fixed["axis"]
    older = one_node("DFT", fixed, ["y"], opset=17, axis=axis, inverse=inverse)
    same(run_here(older, fixed), [result])
    if length is None:
        assert inferred(older) == [f"float[{','.join(map(str, result.shape))}]"]
    same(run_converted(older, fixed, 16), [result], **NEAR)


@pytest.mark.parametrize("size", [7, 8])
@pytest.mark.parametrize("length", [None, 5, 10, 11])
def test_one_sided_dft_and_back(size, length):
    inputs = {"x": draw(2, size, 1), "n": None if length is None else scalar(length)}
    content = one_node("DFT", inputs, ["y"], opset=17, onesided=1)
    (spectrum,) = run_here(content, inputs)
    expected = np.fft.rfft(inputs["x"][..., 0], n=length, axis=1)
    np.testing.assert_allclose(as_complex(spectrum), expected, **NEAR)
    same(run_converted(content, inputs, 16), [spectrum], **NEAR)
    back = {"x": spectrum, "n": scalar(length or size)}
    content = one_node("DFT", back, ["y"], opset=17, onesided=1, inverse=1)
    (signal,) = run_here(content, back)
    kept = min(size, length or size)
    np.testing.assert_allclose(signal[:, :kept], inputs["x"][:, :kept], **NEAR)
    same(run_converted(content, back, 16), [signal], **NEAR)


def test_inverse_one_sided_dft_is_even_by_default():
    inputs = {"x": draw(2, 5, 2)}
    content = one_node("DFT", inputs, ["y"], opset=17, onesided=1, inverse=1)
    (signal,) = run_here(content, inputs)
    np.testing.assert_allclose(signal[..., 0], np.fft.irfft(as_complex(inputs["x"])), **NEAR)
    assert inferred(content) == ["float[2,8,1]"]
    same(run_converted(content, inputs, 16), [signal], **NEAR)


def test_dft_axis_defaults_differ():
    inputs = {"x": draw(2, 3, 4, 1)}
    old = run_here(one_node("DFT", inputs, ["y"], opset=17), inputs)
    new = run_here(one_node("DFT", inputs, ["y"], opset=20), inputs)
    np.testing.assert_allclose(as_complex(old[0]), np.fft.fft(inputs["x"][..., 0], axis=1), **NEAR)
    np.testing.assert_allclose(as_complex(new[0]), np.fft.fft(inputs["x"][..., 0], axis=2), **NEAR)
    content = one_node("DFT", inputs, ["y"], opset=20)
    for opset in (19, 17, 16):
        same(run_converted(content, inputs, opset), new, **NEAR)


@pytest.mark.parametrize("axis", [0, 1, 2, -2, -3, -4])
def test_dft_with_a_computed_axis_goes_down(axis):
    inputs = {"x": draw(2, 3, 4, 1), "n": None, "axis": scalar(axis)}
    content = one_node("DFT", inputs, ["y"], opset=20)
    same(run_converted(content, inputs, 17), run_here(content, inputs), **NEAR)


@pytest.mark.parametrize("dtype", [np.float16, np.float64, ml_dtypes.bfloat16])
def test_dft_types(dtype):
    x = draw(2, 8, 1, dtype=dtype)
    result = DFT.reference(x, inverse=0, onesided=0)
    assert result.dtype == dtype
    exact = np.fft.fft(x[..., 0].astype(np.float64))
    np.testing.assert_allclose(
        as_complex(result.astype(np.float64)), exact, rtol=2.0**-6, atol=2.0**-5
    )


def test_double_dft_stays_precise_when_it_goes_down():
    inputs = {"x": draw(2, 9, 2, dtype=np.float64)}
    content = one_node("DFT", inputs, ["y"], opset=17)
    same(run_converted(content, inputs, 16), run_here(content, inputs), rtol=1e-12, atol=1e-12)


def test_dft_inference():
    n, t = symbol("n"), symbol("t")
    x, run = tensor(DataType.FLOAT, (n, t, 1)), {"inverse": 0, "onesided": 0}
    assert DFT.infer(x, **run).shape == (n, t, 2)
    assert DFT.infer(x, **run | {"onesided": 1}).shape == (n, t // 2 + 1, 2)
    assert DFT.infer(x, **run | {"onesided": 1, "inverse": 1}).shape == (n, 2 * t - 2, 1)
    assert DFT.infer(x, of_array(scalar(16)), **run).shape == (n, 16, 2)
    assert DFT.infer(x, unknown(0), **run).shape == (n, None, 2)
    assert DFT.infer(x, None, of_array(scalar(0)), **run).shape == (n, t, 2)
    assert DFT.infer(x, None, unknown(0), **run).shape == (n, t, 2)
    assert DFT.infer(x, None, unknown(0), **run | {"onesided": 1}).shape == (None, None, 2)
    for wrong in (2, -1, 5):
        with pytest.raises(InferenceError):
            DFT.infer(x, None, of_array(scalar(wrong)), **run)
    with pytest.raises(InferenceError):
        DFT.infer(tensor(None, (3,)), **run)


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("window", [False, True])
@pytest.mark.parametrize("length", [None, 8])
@pytest.mark.parametrize("step", [2, 3])
def test_stft(parts, window, length, step):
    inputs = {
        "x": draw(2, 21, parts),
        "step": scalar(step),
        "window": draw(8, seed=1) if window else None,
        "length": None if length is None else scalar(length),
    }
    onesided = int(parts == 1)
    content = one_node("STFT", inputs, ["y"], opset=17, onesided=onesided)
    result = run_here(content, inputs)
    frames = 8 if length or window else 21
    starts = range(0, 21 - frames + 1, step)
    signal = inputs["x"][..., 0] if parts == 1 else as_complex(inputs["x"])
    weights = inputs["window"] if window else np.ones(frames)
    cut = np.stack([signal[:, start : start + frames] * weights for start in starts], axis=1)
    expected = (np.fft.rfft if onesided else np.fft.fft)(cut)
    np.testing.assert_allclose(as_complex(result[0]), expected, **NEAR)
    if window and length:
        same(result, run_there(content, inputs), **NEAR)
    same(run_converted(content, inputs, 16), result, **NEAR)


def test_stft_inference():
    n, t = symbol("n"), symbol("t")
    x, step = tensor(DataType.FLOAT, (n, t, 1)), of_array(scalar(4))
    length = of_array(scalar(16))
    assert STFT.infer(x, step, None, length, onesided=1).shape == (n, (t - 16) // 4 + 1, 9, 2)
    window = tensor(DataType.FLOAT, (16,))
    assert STFT.infer(x, step, window, onesided=0).shape == (n, (t - 16) // 4 + 1, 16, 2)
    assert STFT.infer(x, unknown(0), unknown(1), onesided=0).shape == (n, None, None, 2)
    assert STFT.infer(x, step, onesided=0).shape == (n, 1, t, 2)
    with pytest.raises(InferenceError):
        STFT.infer(tensor(None, (n, t)), step, onesided=1)


@pytest.mark.parametrize("op_type", WINDOWS)
@pytest.mark.parametrize("periodic", [0, 1])
@pytest.mark.parametrize("size", [2, 7, 16])
def test_windows(op_type, periodic, size):
    inputs = {"size": scalar(size)}
    content = one_node(op_type, inputs, ["y"], opset=17, periodic=periodic)
    result = run_here(content, inputs)
    same(result, run_there(content, inputs), atol=1e-6)
    same(run_converted(content, inputs, 16), result, atol=1e-6)


@pytest.mark.parametrize("kind", [kind for kind in DataType if kind.name in (
    "FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16",
    "UINT32", "UINT64",
)])  # fmt: skip
@pytest.mark.parametrize("op_type", WINDOWS)
def test_window_types(op_type, kind):
    inputs = {"size": scalar(8, np.int32)}
    content = one_node(op_type, inputs, ["y"], opset=17, output_datatype=int(kind))
    (result,) = run_here(content, inputs)
    assert result.dtype == kind.numpy and result.shape == (8,)
    assert float(result[4]) == pytest.approx(1)


def test_window_inference():
    run = {"output_datatype": 11, "periodic": 1}
    n = symbol("n")
    fact = HannWindow.infer(tensor(DataType.INT64, ()).with_value(np.array(n, object)), **run)
    assert (fact.dtype, fact.shape) == (DataType.DOUBLE, (n,))
    assert HannWindow.infer(unknown(0), **run).shape == (None,)
    content = one_node("HannWindow", {"size": scalar(0)}, ["y"], opset=17)
    assert run_here(content, {"size": scalar(0)})[0].shape == (0,)


def mel(bands=8, length=64, rate=8192, low=0.0, high=4096.0):
    return {
        "bands": scalar(bands), "length": scalar(length), "rate": scalar(rate),
        "low": scalar(low, np.float32), "high": scalar(high, np.float32),
    }  # fmt: skip


@pytest.mark.parametrize("options", [
    {}, {"bands": 20, "length": 512, "rate": 16000, "high": 8000.0}, {"low": 20.0, "high": 2000.0},
    {"bands": 40, "length": 64}, {"bands": 1},
])  # fmt: skip
def test_mel_weights(options):
    inputs = mel(**options)
    content = one_node("MelWeightMatrix", inputs, ["y"], opset=17)
    result = run_here(content, inputs)
    model = onnx.load_from_string(content)
    same(result, onnx.reference.ReferenceEvaluator(model).run(None, inputs))
    same(run_converted(content, inputs, 16), result)
    assert result[0].max() == 1


def test_mel_weights_types_and_inference():
    for kind in (DataType.DOUBLE, DataType.FLOAT16, DataType.BFLOAT16, DataType.INT32):
        result = MelWeightMatrix.reference(*mel().values(), output_datatype=int(kind))
        assert result.dtype == kind.numpy and result.shape == (33, 8)
    facts = [of_array(item) for item in mel().values()]
    assert MelWeightMatrix.infer(*facts, output_datatype=1).shape == (33, 8)
    assert MelWeightMatrix.infer(*[unknown(0)] * 5, output_datatype=1).shape == (None, None)
