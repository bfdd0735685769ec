"""Open models, tensors and functions from wherever they come."""

import os
from collections.abc import Callable
from logging import getLogger
from pathlib import Path
from typing import Any

from sardonyx.boundary import callers_code, public
from sardonyx.errors import FormatError, UnsupportedError
from sardonyx.format.fields import IR_VERSION, messages
from sardonyx.format.files import (
    DataFolder,
    FileReader,
    map_file,
    open_file,
    open_private,
    read_file,
)
from sardonyx.format.forms import Form, form_of
from sardonyx.format.opened import OpenedFile
from sardonyx.format.private import hold_private
from sardonyx.format.read import read_model, read_tensor_bytes
from sardonyx.format.storage import ExternalData
from sardonyx.format.tags import wire_kind
from sardonyx.format.wire import BYTES, Buffer, fields
from sardonyx.graph import Model, Tensor

Source = Any
"""A path, a file object, bytes, or an object with `SerializeToString` (a protobuf message)."""

_log = getLogger("sardonyx")


@public("reading the model")
def load(
    source: Source,
    *,
    format: str | None = None,
    base_dir: str | os.PathLike[str] | None = None,
    reader: FileReader | None = None,
    mapped: bool = True,
    external_data: bool = True,
) -> Model:
    """Open a model. Weights stay in the mapped file, or in external data files, until used.

    `format` is "protobuf", "textproto", "json" or "onnxtxt", by default what the suffix says.
    `reader(path)` returns the content of the model's files in place of reading them: to decrypt or
    decompress. `mapped=False` copies the file into memory, for files that others may change.
    `base_dir` is where external data lies, by default the model's own folder; with
    `external_data=False` it is not looked at until a weight is used.

    >>> import sardonyx as sx
    >>> model = sx.load("examples/digits.onnx")
    >>> model.opset, len(model.graph.nodes)
    (21, 4)
    """
    path = _path(source)
    read = _guarded(reader) if reader else map_file if mapped else read_file
    if path is None:
        content = _content(source)
    else:
        content = open_file(OpenedFile(path)) if read is map_file else read(path).cast("B")
    folder = Path(base_dir) if base_dir is not None else path.parent if path is not None else None
    return _read(content, path, DataFolder(folder, read), format, external_data)


def load_opened(file: OpenedFile, *, external_data: bool = True) -> Model:
    """The model in an open file as sessions hold it: what they compute with is in memory.

    Weights of large files, and external data, are read when they are used, by calls that notice
    when a file has changed since it was opened.
    """
    data = DataFolder(file.path.parent)
    model = _read(open_private(file), file.path, data, None, external_data)
    hold_private(model)
    file.require_unchanged()
    return model


def _read(
    content: Any, path: Path | None, data: DataFolder,
    format: str | None, external_data: bool,
) -> Model:  # fmt: skip
    name = f"'{path}'" if path is not None else "the model"
    form = form_of(format, path)
    if form is not Form.PROTOBUF:
        from sardonyx.format.forms import to_protobuf

        content = memoryview(to_protobuf(content[:], form, "ModelProto", name))
    if len(content) == 0:
        raise FormatError(f"{name} is empty", hint="the download or export did not finish")
    model = read_model(content, name, data.open)
    _require_known(model, content, name)
    if external_data:
        _check_external(model, data)
    return model


@public("reading the tensor")
def load_tensor(source: Source, *, base_dir: str | os.PathLike[str] | None = None) -> Tensor:
    """Open a tensor stored by itself, as test data is.

    >>> load_tensor(b"\\x08\\x02\\x10\\x07\\x4a\\x10" + bytes(16)).numpy().tolist()
    [0, 0]
    """
    path = _path(source)
    content = map_file(path) if path is not None else _content(source)
    folder = Path(base_dir) if base_dir is not None else path.parent if path is not None else None
    name = f"'{path}'" if path is not None else "the tensor"
    return read_tensor_bytes(content, name, DataFolder(folder).open)


@public("reading the text")
def load_text(text: str) -> Model:
    """A model from ONNX's textual syntax.

    >>> model = load_text('<ir_version: 10, opset_import: ["": 21]>'
    ...                   'agraph (float[N] x) => (float[N] y) { y = Relu(x) }')
    >>> [node.op_type for node in model.graph.nodes]
    ['Relu']
    """
    return load(text.encode(), format="onnxtxt")


def _path(source: Source) -> Path | None:
    return Path(source) if isinstance(source, str | os.PathLike) else None


def _guarded(reader: FileReader) -> Callable[[Path], memoryview]:
    """A caller's reader, whose errors are the caller's."""

    def read(path: Path) -> memoryview:
        with callers_code():
            return memoryview(reader(path))

    return read


def _content(source: Source) -> memoryview:
    if isinstance(source, bytes | bytearray | memoryview):
        return memoryview(bytes(source) if isinstance(source, bytearray) else source).cast("B")
    serialize: Callable[[], bytes] | None = getattr(source, "SerializeToString", None)
    if serialize is not None:
        with callers_code():
            return memoryview(serialize())
    read = getattr(source, "read", None)
    if read is None:
        raise FormatError(
            f"a model cannot be read from a {type(source).__name__}",
            hint="give a path, an open file, bytes, or a protobuf message",
        )
    with callers_code():
        content = read()
    if isinstance(content, str):
        raise FormatError("the file is open in text mode", hint="open it with mode 'rb'")
    try:
        return memoryview(content).cast("B")
    except TypeError:
        raise FormatError(
            f"the file gave a {type(content).__name__}, not bytes", hint="open it with mode 'rb'"
        ) from None


def _require_known(model: Model, content: Buffer, name: str) -> None:
    if model.ir_version <= IR_VERSION:
        return
    unknown = find_unknown(content, 0, len(content), "ModelProto")
    if unknown:
        raise UnsupportedError(
            f"{name} has IR version {model.ir_version} and the unknown field {unknown}",
            hint=f"this version of sardonyx knows IR up to {IR_VERSION}; update it",
        )
    _log.warning(
        "%s has IR version %d; the newest known is %d. Nothing in it is unknown, so it is used.",
        name, model.ir_version, IR_VERSION,
    )  # fmt: skip


def find_unknown(buffer: Buffer, start: int, end: int, message: str) -> str:
    """The path of the first field that the field table does not have, or nothing."""
    table = {row.number: row for row in messages()[message].fields}
    for tag, a, b, _ in fields(buffer, start, end):
        row = table.get(tag >> 3)
        if row is None:
            return f"{message}.{tag >> 3}"
        if row.kind in messages() and tag & 7 == BYTES == wire_kind(row):
            inner = find_unknown(buffer, a, b, row.kind)
            if inner:
                return inner
    return ""


def _check_external(model: Model, folder: DataFolder) -> None:
    """Refuse unsafe, missing or short external data before anything uses it."""
    sizes: dict[str, int] = {}
    for tensor in model.tensors():
        data = tensor.data
        if not isinstance(data, ExternalData):
            continue
        if data.location not in sizes:
            sizes[data.location] = folder.size(data.location)
        data.require_inside(tensor, sizes[data.location])
