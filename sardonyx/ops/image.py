"""Pictures in files of common formats, decoded to tensors."""

import io
from typing import Any

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.errors import InferenceError, UnsupportedError
from sardonyx.ops.fact import Fact, tensor
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array

FORMATS = ("BMP", "JPEG", "JPEG2000", "TIFF", "PNG", "WEBP", "PPM")
"""What a picture may be stored as, in Pillow's words."""

_MODES = {"RGB": "RGB", "BGR": "RGB", "Grayscale": "L"}


class ImageDecoder(Operator):
    """Decodes the bytes of a picture to [height, width, channels]; empty where that fails."""

    signatures = (
        "20(encoded_stream: T1, pixel_format: string = 'RGB') -> image: T2; T1: uint8; T2: uint8",
    )

    def infer(stream: Fact, pixel_format: str) -> Fact:
        if stream.shape is not None and len(stream.shape) != 1:
            raise InferenceError(f"the encoded stream must be a vector, not {stream}")
        return tensor(DataType.UINT8, (None, None, _channels(pixel_format)))

    def reference(stream: Array, pixel_format: str) -> Array:
        channels = _channels(pixel_format)
        pillow = _pillow()
        try:
            picture = pillow.open(io.BytesIO(stream.tobytes()), formats=FORMATS)
            pixels: Array = np.asarray(picture.convert(_MODES[pixel_format]), np.uint8)
        except (OSError, ValueError, SyntaxError, pillow.DecompressionBombError):
            return np.empty((0, 0, channels), np.uint8)
        pixels = pixels.reshape(*pixels.shape[:2], channels)
        return np.ascontiguousarray(pixels[:, :, ::-1]) if pixel_format == "BGR" else pixels


def _channels(pixel_format: str) -> int:
    if pixel_format not in _MODES:
        raise InferenceError(f"pixel_format is '{pixel_format}', not one of {', '.join(_MODES)}")
    return len(_MODES[pixel_format])


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise UnsupportedError(
            "ImageDecoder needs Pillow to decode pictures",
            hint="install it with: pip install 'sardonyx[image]'",
        ) from None
    return Image
