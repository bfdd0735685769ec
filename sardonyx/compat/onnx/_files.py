"""Models and tensors to and from files."""

import os
from typing import IO, Any

from sardonyx.compat.onnx import serialization
from sardonyx.compat.onnx._staging import StagedFiles, place_of
from sardonyx.compat.onnx.external_data_helper import (
    convert_model_to_external_data,
    load_external_data_for_model,
    stage_model_tensors,
)
from sardonyx.compat.onnx.onnx_ml_pb2 import ModelProto, TensorProto

_DEFAULT_FORMAT = "protobuf"

Source = IO[bytes] | str | os.PathLike[str]


def _read(f: Any) -> bytes:
    if callable(getattr(f, "read", None)):
        content: bytes = f.read()
        return content
    with open(f, "rb") as file:
        return file.read()


def _write(content: bytes, f: Any, staged: StagedFiles) -> None:
    if callable(getattr(f, "write", None)):
        f.write(content)
    elif isinstance(f, str | os.PathLike) and os.path.basename(f):
        staged.replace(place_of(os.fspath(f)), content)
    else:
        with open(f, "wb") as file:
            file.write(content)


def _path_of(f: Any) -> str | None:
    """The absolute path of a file given by name, or of an open file that knows its name."""
    name = f if isinstance(f, str | os.PathLike) else getattr(f, "name", None)
    if not isinstance(name, str | bytes | os.PathLike):
        return None
    return os.path.abspath(os.fsdecode(name))


def _serializer(fmt: str | None, f: Any = None) -> serialization.ProtoSerializer:
    """The serializer of a format, or else of the file's suffix, or else of binary files."""
    path = _path_of(f)
    if fmt is None and path is not None:
        suffix = os.path.splitext(path)[1]
        fmt = serialization.registry.get_format_from_file_extension(suffix)
    return serialization.registry.get(_DEFAULT_FORMAT if fmt is None else fmt)


def load_model(f: Source, format: str | None = None, load_external_data: bool = True) -> Any:
    """The model in a file, given by path or open for reading.

    The format follows from the suffix unless given; external data is read from the file's folder
    unless `load_external_data` is False.

    >>> import os, tempfile
    >>> from sardonyx.compat import onnx
    >>> model = onnx.helper.make_model(onnx.helper.make_graph([], "g", [], []))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     onnx.save_model(model, os.path.join(folder, "model.onnx"))
    ...     onnx.load_model(os.path.join(folder, "model.onnx")) == model
    True
    """
    model = _serializer(format, f).deserialize_proto(_read(f), ModelProto())
    path = _path_of(f)
    if load_external_data and path:
        load_external_data_for_model(model, os.path.dirname(path))
    return model


def load_tensor(f: Source, format: str | None = None) -> Any:
    """The tensor in a file, given by path or open for reading.

    >>> import io
    >>> from sardonyx.compat import onnx
    >>> onnx.load_tensor(io.BytesIO(onnx.TensorProto(dims=[3]).SerializeToString())).dims
    [3]
    """
    return _serializer(format, f).deserialize_proto(_read(f), TensorProto())


def load_model_from_string(s: bytes | str, format: str = _DEFAULT_FORMAT) -> Any:
    """The model in bytes or, for the text formats, in text.

    >>> from sardonyx.compat import onnx
    >>> onnx.load_model_from_string("ir_version: 8", format="textproto").ir_version
    8
    """
    return _serializer(format).deserialize_proto(s, ModelProto())


def load_tensor_from_string(s: bytes, format: str = _DEFAULT_FORMAT) -> Any:
    """The tensor in bytes or, for the text formats, in text.

    >>> from sardonyx.compat import onnx
    >>> onnx.load_tensor_from_string(onnx.TensorProto(dims=[3]).SerializeToString()).dims
    [3]
    """
    return _serializer(format).deserialize_proto(s, TensorProto())


def save_model(
    proto: Any,
    f: Source,
    format: str | None = None,
    *,
    save_as_external_data: bool = False,
    all_tensors_to_one_file: bool = True,
    location: str | None = None,
    size_threshold: int = 1024,
    convert_attribute: bool = False,
) -> None:
    """Write a model, and with `save_as_external_data` its large tensors into files beside it.

    Files appear complete or not at all: if anything fails, what was there before is untouched and
    the model still holds its tensors. `convert_model_to_external_data` explains the other options.

    >>> import os, tempfile
    >>> from sardonyx.compat import onnx
    >>> model = onnx.helper.make_model(onnx.helper.make_graph([], "g", [], []))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     onnx.save_model(model, os.path.join(folder, "model.textproto"))
    ...     os.listdir(folder)
    ['model.textproto']
    """
    if isinstance(proto, bytes):
        proto = _serializer(_DEFAULT_FORMAT).deserialize_proto(proto, ModelProto())
    if save_as_external_data:
        convert_model_to_external_data(
            proto, all_tensors_to_one_file, location, size_threshold, convert_attribute
        )
    path = _path_of(f)
    with StagedFiles() as staged:
        if path is not None:
            stage_model_tensors(proto, os.path.dirname(path), staged)
        _write(_serializer(format, path).serialize_proto(proto), f, staged)


def save_tensor(proto: Any, f: Source, format: str | None = None) -> None:
    """Write a tensor to a file, given by path or open for writing.

    >>> import io
    >>> from sardonyx.compat import onnx
    >>> file = io.BytesIO()
    >>> onnx.save_tensor(onnx.TensorProto(dims=[3]), file)
    >>> len(file.getvalue())
    2
    """
    serialized = _serializer(format, f).serialize_proto(proto)
    with StagedFiles() as staged:
        _write(serialized, f, staged)
