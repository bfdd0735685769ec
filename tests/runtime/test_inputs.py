"""Inputs that are made up or read from files."""

import json
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.dtypes import DataType
from sardonyx.errors import InputError
from sardonyx.graph import MapType, OptionalType, SequenceType, TensorType, Value
from sardonyx.runtime.inputs import make_inputs, parse_value, read_input, required_inputs

HEAD = '<ir_version: 10, opset_import: ["": 21]>'
FLOAT, UINT8 = DataType.FLOAT, DataType.UINT8


def value(element: DataType, *shape: Any) -> Value:
    return Value("x", TensorType(element, shape))


def model() -> sx.Model:
    return sx.load_text(
        f"{HEAD} g (float[n,2] x, int64[0,?] i, float[2] w, string[n] s) => (float[n,2] y)"
        "<float[2] w = {1, 2}, float u = {3}> { y = Add(x, w) }"
    )


def test_each_input_without_a_default_is_made_up() -> None:
    assert list(required_inputs(model())) == ["x", "i", "s"]
    found = make_inputs(model(), dims={"n": 3, "i[1]": 4, "i[0]": 9})
    assert {name: item.shape for name, item in found.items()} == {
        "x": (3, 2), "i": (0, 4), "s": (3,)
    }  # fmt: skip
    assert make_inputs(model())["x"].shape == (1, 2) and found["s"].tolist() == ["text"] * 3
    assert found["x"].dtype == np.float32 and found["i"].dtype == np.int64


def test_how_inputs_are_made_up() -> None:
    given = make_inputs(model(), {"x": "ones", "w": np.zeros(2, np.float32)}, fill="zeros")
    assert given["x"].tolist() == [[1, 1]] and given["i"].shape == (0, 1)
    assert given["w"].tolist() == [0, 0]
    first, again, other = (make_inputs(model(), seed=seed)["x"] for seed in (1, 1, 2))
    assert np.array_equal(first, again) and not np.array_equal(first, other)
    whole = sx.load_text(f"{HEAD} g (int64[64] x, bool[64] b) => (int64[64] y) {{ y = Neg(x) }}")
    found = make_inputs(whole)
    assert set(found["x"].tolist()) == {0, 1} and set(found["b"].tolist()) == {False, True}


@pytest.mark.parametrize(
    ("text", "given", "message"),
    [
        ("(float[2] x)", {"nowhere": 1}, "no input 'nowhere'"),
        ("(seq(float[2]) x)", {}, "cannot be made up"),
        ("(float[1048576,1048576,1048576] x)", {}, "'x' cannot be made up"),
    ],
)
def test_inputs_that_cannot_be_made_up(text: str, given: dict[str, Any], message: str) -> None:
    made = sx.load_text(f"{HEAD} g {text} => (y) {{ y = Identity(x) }}")
    with pytest.raises(InputError, match=message):
        make_inputs(made, given)


def test_arrays_in_files(tmp_path: Path) -> None:
    one, two = np.arange(3, dtype=np.float32), np.ones(2, np.int64)
    np.save(tmp_path / "a.npy", one)
    np.savez(tmp_path / "one.npz", other=one)
    np.savez(tmp_path / "two.npz", a=two, x=one)
    np.savez(tmp_path / "none.npz", a=two, b=one)
    np.savez(tmp_path / "empty.npz")
    np.save(tmp_path / "s.npy", np.array(["ab", "c"]))
    (tmp_path / "bad.npy").write_bytes(b"nothing")
    for name in ("a.npy", "one.npz", "two.npz"):
        assert np.array_equal(read_input(tmp_path / name, value(FLOAT, 3)), one)
    texts = read_input(tmp_path / "s.npy", value(DataType.STRING, 2))
    assert texts.dtype == object and texts.tolist() == ["ab", "c"]
    for name, message in (
        ("none.npz", "none is called 'x'"), ("empty.npz", "holds no array"),
        ("bad.npy", "cannot read arrays"), ("absent.npy", "cannot open"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=message):
            read_input(tmp_path / name, value(FLOAT, 3))
    (tmp_path / "x.doc").write_text("")
    with pytest.raises(InputError, match="no kind of file"):
        read_input(tmp_path / "x.doc", value(FLOAT, 3))


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("[[1, 2]]", TensorType(FLOAT, (1, 2)), np.array([[1, 2]], np.float32)),
        ("[1, 2]", SequenceType(TensorType(FLOAT, ())), [np.float32(1), np.float32(2)]),
        ("null", OptionalType(TensorType(FLOAT, ())), None),
        ("3", OptionalType(TensorType(DataType.INT64, ())), np.int64(3)),
        ('{"1": 2.5}', MapType(DataType.INT64, TensorType(FLOAT, ())), {1: 2.5}),
        ('{"1": 2.5}', MapType(DataType.STRING, TensorType(FLOAT, ())), {"1": 2.5}),
        ("[1, 2]", None, np.array([1, 2])),
    ],
)
def test_values_in_json(text: str, kind: Any, expected: Any, tmp_path: Path) -> None:
    found = parse_value(text, kind)
    assert repr(found) == repr(expected) or np.array_equal(found, expected)
    assert getattr(found, "dtype", None) == getattr(expected, "dtype", None)
    (tmp_path / "x.json").write_text(text)
    assert json.dumps(str(read_input(tmp_path / "x.json", Value("x", kind)))) == json.dumps(
        str(found)
    )


@pytest.mark.parametrize("text", ["[1, [2]]", "{", '"a"'])
def test_json_that_does_not_fit(text: str) -> None:
    with pytest.raises(InputError, match="is not a float"):
        parse_value(text, TensorType(FLOAT, (2,)))


def write_sound(path: Path, width: int, channels: int, content: bytes) -> Path:
    with wave.open(str(path), "wb") as sound:
        sound.setnchannels(channels)
        sound.setsampwidth(width)
        sound.setframerate(8000)
        sound.writeframes(content)
    return path


@pytest.mark.parametrize(
    ("width", "channels", "content", "expected"),
    [
        (1, 1, bytes([0, 128, 255]), [-1, 0, 127 / 128]),
        (2, 1, np.array([-32768, 0, 16384], "<i2").tobytes(), [-1, 0, 0.5]),
        (2, 2, np.array([-32768, 0, 16384, 16384], "<i2").tobytes(), [-0.5, 0.5]),
        (4, 1, np.array([-(2**31), 2**30], "<i4").tobytes(), [-1, 0.5]),
    ],
)
def test_sound(
    width: int, channels: int, content: bytes, expected: list[float], tmp_path: Path
) -> None:
    path = write_sound(tmp_path / "s.wav", width, channels, content)
    found = read_input(path, value(FLOAT, "n"))
    assert found.dtype == np.float32 and found.tolist() == expected
    assert read_input(path, value(FLOAT, 1, 1, None)).shape == (1, 1, len(expected))
    assert read_input(path, Value("x", TensorType(FLOAT, None))).shape == (len(expected),)
    whole = read_input(path, value(DataType.INT16, "n"))
    assert whole.tolist() == [min(round(number * 32768), 32767) for number in expected]


def test_sound_that_is_not_read(tmp_path: Path) -> None:
    path = write_sound(tmp_path / "s.wav", 3, 1, bytes(6))
    with pytest.raises(InputError, match="samples of 3 bytes"):
        read_input(path, value(FLOAT, "n"))
    path.write_bytes(b"nothing")
    with pytest.raises(InputError, match="cannot read sound"):
        read_input(path, value(FLOAT, "n"))


def image(tmp_path: Path) -> Path:
    """Two rows of three pixels: red, green, blue; white, black, grey."""
    module = pytest.importorskip("PIL.Image")
    pixels = np.array(
        [[[255, 0, 0], [0, 255, 0], [0, 0, 255]], [[255] * 3, [0] * 3, [51] * 3]], np.uint8
    )
    module.fromarray(pixels).save(tmp_path / "i.png")
    return tmp_path / "i.png"


@pytest.mark.parametrize(
    ("shape", "expected", "place"),
    [
        ((2, 3), (2, 3), None),
        (("h", "w"), (2, 3), None),
        ((3, "h", "w"), (3, 2, 3), 0),
        (("h", "w", 3), (2, 3, 3), -1),
        ((2, 3, 4), (2, 3, 4), -1),
        ((1, "h", "w"), (1, 2, 3), None),
        ((3, "h", 3), (3, 2, 3), 0),
        ((4, "h", 3), (4, 2, 3), 0),
        (("c", 2, 1), (3, 2, 1), 0),
        (("n", 3, "h", "w"), (1, 3, 2, 3), 1),
        (("n", "h", "w", 3), (1, 2, 3, 3), -1),
        ((1, 4, "h", "w"), (1, 4, 2, 3), 1),
        ((1, 1, 2, 3), (1, 1, 2, 3), None),
        ((1, 2, 3, 1), (1, 2, 3, 1), None),
        ((1, 3, 2, 3), (1, 3, 2, 3), 1),
        ((1, 3, 4, 6), (1, 3, 4, 6), 1),
        ((1, 3, -1, 0), (1, 3, 2, 3), 1),
        ((1, "c", "h", "w"), (1, 3, 2, 3), 1),
    ],
    ids=str,
)
def test_images_fit_the_input(
    shape: tuple[Any, ...], expected: tuple[int, ...], place: int | None, tmp_path: Path
) -> None:
    path = image(tmp_path)
    whole = read_input(path, value(UINT8, *shape))
    assert whole.shape == expected and whole.dtype == np.uint8
    floats = read_input(path, value(FLOAT, *shape))
    np.testing.assert_array_equal(floats, whole.astype(np.float32) / np.float32(255))
    same = expected[-3:] in ((2, 3, 3), (3, 2, 3), (2, 3, 4), (4, 2, 3))
    if place is not None and same:
        red = np.moveaxis(whole, place, 0)[0].reshape(-1)
        assert red.tolist() == [255, 0, 0, 255, 0, 51]


def test_images_that_do_not_fit(tmp_path: Path) -> None:
    path = image(tmp_path)
    for kind in (value(FLOAT, 3), value(FLOAT, 1, 1, 3, 2, 3), Value("x", TensorType(FLOAT, None)),
                 Value("x", SequenceType(TensorType(FLOAT, (2, 3))))):  # fmt: skip
        with pytest.raises(InputError, match="does not fit"):
            read_input(path, kind)
    path.write_bytes(b"nothing")
    with pytest.raises(InputError, match="cannot read an image"):
        read_input(path, value(FLOAT, 2, 3))
