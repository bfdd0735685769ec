"""Inputs for a model: made up to fit its types, or read from files."""

import json
import wave
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.boundary import public
from sardonyx.dtypes import DataType
from sardonyx.errors import InputError, SardonyxError
from sardonyx.format.load import load_tensor
from sardonyx.graph import MapType, Model, OptionalType, SequenceType, TensorType, Type, Value
from sardonyx.graph.tensor import require_array
from sardonyx.ops.allocate import require_bytes

FILLS = ("random", "zeros", "ones")
"""The ways in which inputs are made up."""
ARRAYS = (".npy", ".npz")
IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".webp")


def required_inputs(model: Model) -> dict[str, Value]:
    """The inputs that no constant stands for, by name.

    >>> import sardonyx as sx
    >>> list(required_inputs(sx.load("examples/digits.onnx")))
    ['pixels']
    """
    if model.graph is None:
        raise InputError("the model has no graph", hint="the file is empty or damaged")
    constants = set(model.graph.initializers)
    return {value.name: value for value in model.graph.inputs if value not in constants}


@public("making inputs")
def make_inputs(
    model: Model,
    given: Mapping[str, Any] | None = None,
    *,
    fill: str = "random",
    dims: Mapping[str, int] | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """A value for each input: as given, else made up.

    What is given may be a value, or how to make one up: "random", "zeros" or "ones". `dims` has
    sizes of dynamic dimensions, by name, or as `input[axis]` where they have none; 1 otherwise.
    Random floats are normal, random integers 0 or 1.

    >>> import sardonyx as sx
    >>> make_inputs(sx.load("examples/digits.onnx"), dims={"batch": 2})["pixels"].shape
    (2, 64)
    """
    formals = required_inputs(model)
    chosen = dict(given or {})
    unknown = [name for name in chosen if name not in _overridable(model, formals)]
    if unknown:
        raise InputError(
            f"the model has no input '{unknown[0]}'",
            hint=f"its inputs are: {', '.join(formals) or 'none'}",
        )
    sizes = dict(dims or {})
    chance = np.random.default_rng(seed)
    feeds = {}
    for name, value in formals.items():
        how = chosen.pop(name, fill)
        is_fill = isinstance(how, str) and how in FILLS
        feeds[name] = make_up(value, how, sizes, chance) if is_fill else how
    return feeds | chosen


def _overridable(model: Model, formals: Mapping[str, Value]) -> set[str]:
    assert model.graph is not None
    return set(formals) | {value.name for value in model.graph.initializers}


def make_up(
    value: Value, how: str, dims: Mapping[str, int], chance: np.random.Generator
) -> NDArray[Any]:
    """An array that fits an input.

    >>> value = Value("x", TensorType(DataType.INT64, ("n", 2)))
    >>> make_up(value, "ones", {"n": 3}, np.random.default_rng(0)).tolist()
    [[1, 1], [1, 1], [1, 1]]
    """
    kind = value.type
    if not isinstance(kind, TensorType) or not isinstance(kind.element, DataType):
        raise InputError(
            f"the input '{value.name}' is {kind}, which cannot be made up", hint="give a file"
        )
    shape = [
        _chosen_size(size, f"{value.name}[{axis}]", dims)
        for axis, size in enumerate(kind.shape or ())
    ]
    try:
        require_array(value.name, tuple(shape))
        require_bytes(shape, np.dtype(np.float64))
    except SardonyxError as error:
        raise InputError(f"the input '{value.name}' cannot be made up: {error.what}") from None
    if kind.element == DataType.STRING:
        return np.full(shape, "text", object)
    if how != "random":
        return np.full(shape, how == "ones").astype(kind.element.numpy)
    if kind.element.is_float:
        return chance.standard_normal(shape).astype(np.float32).astype(kind.element.numpy)
    return chance.integers(0, 2, shape).astype(kind.element.numpy)


def _chosen_size(size: int | str | None, place: str, dims: Mapping[str, int]) -> int:
    if isinstance(size, int) and size >= 0:
        return size
    named = dims.get(size) if isinstance(size, str) else None
    return named if named is not None else dims.get(place, 1)


def read_input(path: Path, value: Value) -> Any:
    """What a file holds, as an input takes it.

    .npy, .npz (its only array, or the one with the input's name), .pb (a TensorProto), .json;
    images, scaled to 0..1 for floats and to the input's size; .wav sound, from -1 to 1.
    """
    suffix = path.suffix.lower()
    if not path.is_file():
        raise InputError(f"cannot open '{path}'", hint="check the path")
    if suffix == ".pb":
        return load_tensor(path).numpy()
    if suffix == ".json":
        return parse_value(path.read_text(errors="replace"), value.type, f"'{path}'")
    if suffix == ".wav":
        return _fit_sound(_read_sound(path), value)
    if suffix in IMAGES:
        return _read_image(path, value)
    if suffix not in ARRAYS:
        raise InputError(
            f"'{path}' is no kind of file that inputs are read from",
            hint=f"give one of: {' '.join((*ARRAYS, '.pb', '.json', '.wav', *IMAGES))}",
        )
    arrays = read_arrays(path)
    if len(arrays) > 1 and value.name not in arrays:
        raise InputError(
            f"'{path}' holds several arrays and none is called '{value.name}'",
            hint=f"it has: {', '.join(arrays)}",
        )
    return _strings(arrays.get(value.name, next(iter(arrays.values()))))


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of a .npz file by name, or that of a .npy file under no name."""
    try:
        content = np.load(path, allow_pickle=False)
        if isinstance(content, np.lib.npyio.NpzFile):
            arrays = {name: _strings(content[name]) for name in content.files}
        else:
            arrays = {"": _strings(content)}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(
            f"cannot read arrays from '{path}': {error}", hint="give a .npy or .npz file"
        ) from None
    if not arrays:
        raise InputError(f"'{path}' holds no array")
    return arrays


def _strings(array: NDArray[Any]) -> NDArray[Any]:
    return array.astype(object) if array.dtype.kind in "US" else array


def parse_value(text: str, kind: Type | None, source: str = "the text") -> Any:
    """JSON as a value of a type: nested lists as tensors, objects as maps.

    >>> parse_value("[[1, 2]]", TensorType(DataType.FLOAT, (None, 2))).dtype.name
    'float32'
    """
    try:
        return _from_json(json.loads(text), kind)
    except (ValueError, TypeError) as error:
        raise InputError(f"{source} is not a {kind} in JSON: {error}") from None


def _from_json(said: Any, kind: Type | None) -> Any:
    match kind:
        case SequenceType():
            return [_from_json(item, kind.element) for item in said]
        case OptionalType():
            return None if said is None else _from_json(said, kind.element)
        case MapType():
            whole = isinstance(kind.key, DataType) and kind.key.is_integer
            return {(int(key) if whole else key): item for key, item in said.items()}
        case TensorType(element=DataType() as element):
            return np.array(said, element.numpy)
    return np.array(said)


def _read_sound(path: Path) -> NDArray[np.float32]:
    """Samples from -1 to 1, as [frames, channels]."""
    try:
        with wave.open(str(path), "rb") as sound:
            width, channels = sound.getsampwidth(), sound.getnchannels()
            content = sound.readframes(sound.getnframes())
    except (wave.Error, EOFError) as error:
        raise InputError(f"cannot read sound from '{path}': {error}") from None
    if width == 1:
        samples: NDArray[Any] = (np.frombuffer(content, np.uint8).astype(np.float32) - 128) / 128
    elif width in (2, 4):
        kind = np.dtype(f"<i{width}")
        samples = np.frombuffer(content, kind).astype(np.float32) / float(2 ** (8 * width - 1))
    else:
        raise InputError(f"'{path}' has samples of {width} bytes", hint="save it with 16 bits")
    return samples.reshape(-1, channels).astype(np.float32)


def _fit_sound(samples: NDArray[np.float32], value: Value) -> NDArray[Any]:
    """Mono as [frames] with leading ones up to the input's rank, in the input's element type."""
    kind = value.type
    mono: NDArray[Any] = samples.mean(1)
    if not isinstance(kind, TensorType) or not isinstance(kind.element, DataType):
        return mono
    if kind.element.is_integer:
        mono = np.clip(np.round(mono * 32768), -32768, 32767)
    rank = 1 if kind.shape is None else len(kind.shape)
    return mono.reshape((1,) * (rank - 1) + (-1,)).astype(kind.element.numpy)


def _read_image(path: Path, value: Value) -> NDArray[Any]:
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise InputError(
            f"reading '{path}' needs Pillow", hint="install it: pip install 'sardonyx[image]'"
        ) from None
    kind = value.type
    shape = kind.shape if isinstance(kind, TensorType) else None
    if not isinstance(kind, TensorType) or shape is None or not 2 <= len(shape) <= 4:
        raise InputError(
            f"the input '{value.name}' is {kind}, which an image does not fit",
            hint="convert the image to a .npy file yourself",
        )
    last = len(shape) == 4 and shape[-1] in (1, 3, 4) and shape[1] not in (1, 3, 4)
    last = last or (len(shape) == 3 and shape[-1] in (3, 4) and shape[0] not in (1, 3, 4))
    spatial = shape[-3:-1] if last else shape[-2:]
    channels = (shape[-1] if last else shape[-3]) if len(shape) > 2 else 1
    mode = {1: "L", 4: "RGBA"}.get(channels if isinstance(channels, int) else 3, "RGB")
    try:
        with Image.open(path) as opened:
            image = opened.convert(mode)
    except (OSError, UnidentifiedImageError) as error:
        raise InputError(f"cannot read an image from '{path}': {error}") from None
    height, width = (
        size if isinstance(size, int) and size > 0 else own
        for size, own in zip(spatial, (image.height, image.width), strict=True)
    )
    pixels = np.asarray(image.resize((width, height))).reshape(height, width, -1)
    if not last:
        pixels = pixels.transpose(2, 0, 1)
    element = kind.element if isinstance(kind.element, DataType) else DataType.UINT8
    array = pixels / np.float32(255) if element.is_float else pixels
    array = array.reshape((1,) * (len(shape) - 3) + array.shape) if len(shape) > 2 else array[0]
    return array.astype(element.numpy)
