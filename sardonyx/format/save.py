"""Write models: whole or not at all, in one file or with weights beside it."""

import os
import re
from collections.abc import Iterable
from hashlib import sha1
from logging import getLogger
from pathlib import Path
from typing import Any, BinaryIO

from sardonyx.boundary import public
from sardonyx.dtypes import DataType
from sardonyx.errors import SaveError
from sardonyx.format.files import replacing, swap_in, write_pieces
from sardonyx.format.forms import Form, form_of, from_protobuf
from sardonyx.format.storage import (
    EmbeddedData,
    ExternalData,
    NoData,
    PackedData,
    RawData,
    StringData,
)
from sardonyx.format.wire import Buffer
from sardonyx.format.write import Pieces, array_bytes, write_model, write_tensor
from sardonyx.graph import ArrayData, Data, Model, Tensor
from sardonyx.record import record

LARGEST_MESSAGE = 2**31 - 1
"""Protobuf's limit: no reader accepts a larger single file."""
ALIGNMENT = 4096
"""Offsets in data files are multiples of this, so that they can be mapped."""

_log = getLogger("sardonyx")


@record
class ExternalOptions:
    """How weights are put beside the model: `location` is a file, or a folder if it ends in `/`."""

    location: str
    threshold: int = 1024
    attributes: bool = False
    checksums: bool = False


@public("writing the model")
def save(
    model: Model,
    target: str | os.PathLike[str] | BinaryIO,
    *,
    format: str | None = None,
    external_data: str | os.PathLike[str] | bool | None = None,
    size_threshold: int = 1024,
    external_attributes: bool = False,
    checksums: bool = False,
) -> None:
    """Write a model; an existing file is replaced only when the new one is complete.

    `external_data` puts weights of at least `size_threshold` bytes beside the model: True into
    `<name>.data`, a file name into that file, a name that ends in `/` into one file each in that
    folder. Without it the model is one file, unless that would be over protobuf's 2 GiB.
    `external_attributes` moves tensors in attributes too, `checksums` adds SHA-1 sums.

    >>> import tempfile
    >>> import sardonyx as sx
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model = sx.load("examples/digits.onnx")
    ...     save(model, f"{folder}/copy.onnx", external_data="copy.bin")
    ...     sorted(os.listdir(folder))
    ['copy.bin', 'copy.onnx']
    """
    path = Path(target) if isinstance(target, str | os.PathLike) else None
    form = form_of(format, path)
    options = _options(external_data, path, size_threshold, external_attributes, checksums)
    with _Changed(_embedded_tensors(model)):
        if options is None:
            options = _needed(model, path, form)
        if options is not None:
            if path is None:
                raise SaveError("external data needs a path to save to, not an open file")
            _save_external(model, path, form, options)
            return
        pieces = _pieces(model, form)
    if path is None:
        for piece in pieces:
            target.write(piece)  # type: ignore[union-attr]
        return
    with replacing(path) as staged:
        write_pieces(staged, pieces)


@public("writing the model")
def to_bytes(model: Model) -> bytes:
    """A model as the bytes of one file.

    >>> import sardonyx as sx
    >>> sx.load(to_bytes(sx.load("examples/digits.onnx"))).opset
    21
    """
    with _Changed(_embedded_tensors(model)):
        return write_model(model).joined()


@public("writing the text")
def to_text(model: Model) -> str:
    """A model in ONNX's textual syntax, exact: `load_text` gives the same model back.

    >>> from sardonyx.format.load import load_text
    >>> text = to_text(load_text('<ir_version: 10, opset_import: ["": 21]>'
    ...                          'agraph (float[N] x) => (float[N] y) { y = Relu(x) }'))
    >>> "y = Relu (x)" in text
    True
    """
    return from_protobuf(to_bytes(model), Form.ONNXTXT, "ModelProto")


@public("writing the tensor")
def save_tensor(tensor: Tensor, target: str | os.PathLike[str]) -> None:
    """Write a tensor by itself, as test data is.

    >>> import tempfile
    >>> from sardonyx.format.load import load_tensor
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_tensor(Tensor([1.5, 2.5]), f"{folder}/t.pb")
    ...     load_tensor(f"{folder}/t.pb").numpy().tolist()
    [1.5, 2.5]
    """
    with replacing(Path(target)) as staged:
        write_pieces(staged, write_tensor(tensor, tensor.name).finish())


def _options(
    external: Any, path: Path | None, threshold: int, attributes: bool, checksums: bool
) -> ExternalOptions | None:
    if external is None or external is False:
        return None
    if external is True:
        external = f"{path.name if path else 'model'}.data"
    location = os.fspath(external)
    parts = location.replace("\\", "/").split("/")
    if os.path.isabs(location) or ".." in parts or not location.strip("/"):
        raise SaveError(
            f"external data cannot go to '{location}'",
            hint="give a name relative to the model's own folder, without '..'",
        )
    return ExternalOptions(location, threshold, attributes, checksums)


def _needed(model: Model, path: Path | None, form: Form) -> ExternalOptions | None:
    """The options that a model too large for one file is saved with, or None."""
    size = sum(tensor.nbytes for tensor in model.tensors())
    if size + (1 << 24) < LARGEST_MESSAGE or write_model(model).size <= LARGEST_MESSAGE:
        return None
    if path is None or form is not Form.PROTOBUF:
        raise SaveError(
            f"the model has {size} bytes of weights, over protobuf's limit of 2 GiB",
            hint="save it to a path in binary form; the weights then go into a file beside it",
        )
    _log.warning(
        "%s would be over 2 GiB, which no reader accepts: the weights go into %s.data beside it.",
        path, path.name,
    )  # fmt: skip
    return ExternalOptions(f"{path.name}.data")


def _pieces(model: Model, form: Form) -> Iterable[Buffer]:
    pieces: Pieces = write_model(model)
    if form is Form.PROTOBUF:
        return pieces.finish()
    return [from_protobuf(pieces.joined(), form, "ModelProto").encode()]


class _Changed:
    """Tensors with other data for a while: the model is the user's, and is left as it was."""

    def __init__(self, changes: Iterable[tuple[Tensor, Data]]) -> None:
        self._changes = list(changes)
        self._before = [tensor.data for tensor, _ in self._changes]

    def __enter__(self) -> None:
        for tensor, data in self._changes:
            tensor.data = data

    def __exit__(self, *_: object) -> None:
        for (tensor, _data), data in zip(self._changes, self._before, strict=True):
            tensor.data = data


def _embedded_tensors(model: Model) -> Iterable[tuple[Tensor, Data]]:
    """Weights that lie in other files, as if they lay in this one."""
    for tensor in model.tensors():
        if isinstance(tensor.data, ExternalData):
            yield tensor, EmbeddedData(tensor.data.buffer(tensor))


def _save_external(model: Model, path: Path, form: Form, options: ExternalOptions) -> None:
    model_path = Path(os.path.realpath(path))
    folder = model_path.parent
    plan = _plan(model, options)
    mark = f".{os.getpid()}.{os.urandom(4).hex()}.tmp"
    staged = {folder / f"{name}{mark}": folder / name for name in plan}
    model_staged = model_path.with_name(f".{model_path.name}{mark}")

    def write(names: dict[str, str]) -> Path:
        moved = {str(final.relative_to(folder)): str(Path(names[str(final)]).relative_to(folder))
                 for final in staged.values() if str(final) in names}  # fmt: skip
        with _Changed(_external_tensors(plan, moved, options)):
            write_pieces(model_staged, _pieces(model, form))
        return model_staged

    try:
        for (name, tensors), place in zip(plan.items(), staged, strict=True):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            write_pieces(place, _aligned(tensors))
        swap_in(staged, model_path, write)
    except OSError as error:
        raise SaveError(f"cannot write '{path}': {error.strerror or error}") from error
    finally:
        for leftover in (*staged, model_staged):
            leftover.unlink(missing_ok=True)


Plan = dict[str, list[tuple[Tensor, Buffer]]]
"""Data files by name, each with the tensors it holds, in order."""


def _plan(model: Model, options: ExternalOptions) -> Plan:
    constants = {id(value.tensor) for graph in model.graphs() for value in graph.initializers}
    plan: Plan = {}
    used: set[str] = set()
    for position, tensor in enumerate(model.tensors()):
        if id(tensor) not in constants and not options.attributes:
            continue
        if tensor.element in (DataType.STRING, DataType.UNDEFINED):
            continue
        content = raw_bytes(tensor)
        if content is None or len(content) < options.threshold:
            continue
        plan.setdefault(_file_name(options.location, tensor, position, used), []).append(
            (tensor, content)
        )
    return plan


def _file_name(location: str, tensor: Tensor, position: int, used: set[str]) -> str:
    if not location.endswith(("/", "\\")):
        return location
    plain = re.sub(r"[^\w.-]", "_", tensor.name)[:100].lstrip(".") or f"tensor_{position}"
    name = plain
    while name.lower() in used:
        name = f"{plain}_{position}"
        position += 1
    used.add(name.lower())
    return location.replace("\\", "/") + name


def raw_bytes(tensor: Tensor) -> Buffer | None:
    """A tensor's elements in raw storage; None where it has none stored."""
    match tensor.data:
        case RawData(buffer):
            return buffer
        case ArrayData(values):
            return array_bytes(values)
        case PackedData():
            return array_bytes(tensor.numpy())
        case NoData() | StringData():
            return None
    return None


def _aligned(tensors: list[tuple[Tensor, Buffer]]) -> Iterable[Buffer]:
    position = 0
    for _, content in tensors:
        gap = -position % ALIGNMENT
        if gap:
            yield bytes(gap)
        yield content
        position += gap + len(content)


def _external_tensors(
    plan: Plan, moved: dict[str, str], options: ExternalOptions
) -> Iterable[tuple[Tensor, Data]]:
    for name, tensors in plan.items():
        position = 0
        for tensor, content in tensors:
            position += -position % ALIGNMENT
            entries = [
                ("location", moved.get(name, name)),
                ("offset", str(position)),
                ("length", str(len(content))),
            ]
            if options.checksums:
                entries.append(("checksum", sha1(content).hexdigest()))
            yield tensor, ExternalData(tuple(entries), _not_open)
            position += len(content)


def _not_open(location: str, offset: int, length: int | None) -> Buffer:
    raise SaveError(f"'{location}' is being written")
