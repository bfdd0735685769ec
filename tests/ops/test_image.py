"""ImageDecoder through Pillow: formats, pixel formats, damage, and life without Pillow."""

import io
import sys

import numpy as np
import pytest

from sardonyx.dtypes import DataType
from sardonyx.errors import InferenceError, UnsupportedError
from sardonyx.ops.fact import tensor
from sardonyx.ops.image import FORMATS, ImageDecoder
from tests.ops.one_node import inferred, one_node, run_here

Image = pytest.importorskip("PIL.Image")


def picture(mode="RGB", size=(6, 4)):
    pixels = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 3)).astype(np.uint8)
    return Image.fromarray(pixels).convert(mode)


def encoded(image, kind="PNG", **options):
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return np.frombuffer(buffer.getvalue(), np.uint8)


@pytest.mark.parametrize("kind", FORMATS)
def test_formats(kind):
    image = picture()
    options = {"lossless": True} if kind == "WEBP" else {}
    result = ImageDecoder.reference(encoded(image, kind, **options), pixel_format="RGB")
    assert result.dtype == np.uint8 and result.shape == (4, 6, 3)
    if kind != "JPEG":
        np.testing.assert_array_equal(result, np.asarray(image))


def test_pixel_formats():
    image = picture()
    stream = encoded(image)
    rgb = ImageDecoder.reference(stream, pixel_format="RGB")
    np.testing.assert_array_equal(
        ImageDecoder.reference(stream, pixel_format="BGR"), rgb[..., ::-1]
    )
    gray = ImageDecoder.reference(stream, pixel_format="Grayscale")
    np.testing.assert_array_equal(gray[..., 0], np.asarray(image.convert("L")))


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "1", "LA"])
def test_other_modes_become_colours(mode):
    result = ImageDecoder.reference(encoded(picture(mode)), pixel_format="RGB")
    assert result.shape == (4, 6, 3)


@pytest.mark.parametrize("stream", [b"", b"not a picture", bytes(encoded(picture()))[:60]])
def test_what_cannot_be_decoded_is_empty(stream):
    result = ImageDecoder.reference(np.frombuffer(stream, np.uint8), pixel_format="Grayscale")
    assert result.shape == (0, 0, 1) and result.dtype == np.uint8


def test_other_formats_are_not_tried():
    result = ImageDecoder.reference(encoded(picture(), "GIF"), pixel_format="RGB")
    assert result.size == 0


def test_inference():
    inputs = {"x": encoded(picture())}
    assert inferred(one_node("ImageDecoder", inputs, ["y"], opset=20)) == ["uint8[?,?,3]"]
    stream = tensor(DataType.UINT8, (None,))
    assert ImageDecoder.infer(stream, pixel_format="Grayscale").shape == (None, None, 1)
    with pytest.raises(InferenceError):
        ImageDecoder.infer(stream, pixel_format="CMYK")
    with pytest.raises(InferenceError):
        ImageDecoder.infer(tensor(None, (2, 2)), pixel_format="RGB")


def test_without_pillow_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    inputs = {"x": np.zeros(3, np.uint8)}
    with pytest.raises(UnsupportedError, match=r"sardonyx\[image\]"):
        run_here(one_node("ImageDecoder", inputs, ["y"], opset=20), inputs)
