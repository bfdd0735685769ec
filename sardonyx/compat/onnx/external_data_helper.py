"""Tensors whose bytes lie in files beside the model."""

import os
import re
import sys
import uuid
import warnings
from collections.abc import Iterable, Iterator
from functools import partial
from typing import IO, Any

from sardonyx.compat.onnx._errors import ValidationError
from sardonyx.compat.onnx._staging import Place, StagedFiles, open_for_reading, place_inside
from sardonyx.compat.onnx.onnx_ml_pb2 import AttributeProto, TensorProto

_KEYS = ("location", "offset", "length", "checksum", "basepath")
_MOST_UNKNOWN_KEYS = 10
_LONGEST_KEY = 100
_LARGEST_GAP = 64 * 1024


class ExternalDataInfo:
    """What a tensor says about its external data; keys ONNX does not define are left out.

    >>> from sardonyx.compat.onnx import TensorProto, external_data_helper
    >>> tensor = TensorProto(raw_data=b"1234")
    >>> external_data_helper.set_external_data(tensor, "weights.bin", offset=16, length=4)
    >>> info = external_data_helper.ExternalDataInfo(tensor)
    >>> info.location, info.offset, info.length
    ('weights.bin', 16, 4)
    """

    def __init__(self, tensor: Any) -> None:
        entries = {entry.key: entry.value for entry in tensor.external_data}
        self.location: str = entries.get("location", "")
        self.offset = _size(tensor, "offset", entries.get("offset"))
        self.length = _size(tensor, "length", entries.get("length"))
        self.checksum: str | None = entries.get("checksum")
        self.basepath: str = entries.get("basepath", "")
        _warn_of_unknown_keys(tensor)


def _size(tensor: Any, key: str, text: str | None) -> int | None:
    if text is None:
        return None
    size = int(text)
    if size < 0:
        raise ValueError(
            f"external data of tensor {tensor.name!r} has {key} {size}: it must be non-negative"
        )
    return size


def _warn_of_unknown_keys(tensor: Any) -> None:
    unknown = [entry.key for entry in tensor.external_data if entry.key not in _KEYS]
    if not unknown:
        return
    shown = ", ".join(repr(key[:_LONGEST_KEY]) for key in unknown[:_MOST_UNKNOWN_KEYS])
    more = len(unknown) - _MOST_UNKNOWN_KEYS
    warnings.warn(
        f"external data of tensor {tensor.name!r} has unknown keys, which are ignored: {shown}"
        + (f" and {more} more" if more > 0 else "")
        + f"; known are {', '.join(_KEYS)}",
        stacklevel=3,
    )


def _read_part(file: IO[bytes], info: ExternalDataInfo, tensor_name: str) -> bytes:
    """The bytes `info` points at; ValueError, before memory is taken, if the file is too short."""
    size, offset = os.fstat(file.fileno()).st_size, info.offset or 0
    if offset > size:
        raise ValueError(
            f"external data of tensor {tensor_name!r}: the offset {offset} exceeds file size "
            f"{size} of {info.location!r}"
        )
    available = size - offset
    if info.length is not None and info.length > available:
        raise ValueError(
            f"external data of tensor {tensor_name!r}: the length {info.length} exceeds available "
            f"data, {available} bytes after offset {offset} of {info.location!r}"
        )
    file.seek(offset)
    return file.read(available if info.length is None else info.length)


def _read_external_data_bytes(tensor: Any, base_dir: str) -> bytes:
    """The bytes of a tensor's external data; the tensor stays as it is."""
    info = ExternalDataInfo(tensor)
    place = place_inside(base_dir, info.location, tensor.name)
    with open_for_reading(place, tensor.name) as file:
        return _read_part(file, info, tensor.name)


def load_external_data_for_tensor(tensor: Any, base_dir: str) -> None:
    """Move a tensor's external data into the tensor.

    The file must be a plain one inside `base_dir`: absolute paths, `..`, links of both kinds and
    devices raise ValidationError; an offset or length past the file's end raises ValueError.

    >>> import os, tempfile
    >>> from sardonyx.compat.onnx import TensorProto, external_data_helper
    >>> tensor = TensorProto(name="w", raw_data=b"1234")
    >>> external_data_helper.set_external_data(tensor, "weights.bin")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     external_data_helper.save_external_data(tensor, folder)
    ...     tensor.ClearField("raw_data")
    ...     external_data_helper.load_external_data_for_tensor(tensor, folder)
    >>> tensor.raw_data
    b'1234'
    """
    tensor.raw_data = _read_external_data_bytes(tensor, base_dir)
    tensor.data_location = TensorProto.DEFAULT
    del tensor.external_data[:]


def load_external_data_for_model(model: Any, base_dir: str) -> None:
    """Move the external data of every tensor of a model into the model.

    >>> from sardonyx.compat.onnx import ModelProto, external_data_helper
    >>> external_data_helper.load_external_data_for_model(ModelProto(), ".")
    """
    for tensor in _get_all_tensors(model):
        if uses_external_data(tensor):
            load_external_data_for_tensor(tensor, base_dir)


def set_external_data(
    tensor: Any,
    location: str,
    offset: int | None = None,
    length: int | None = None,
    checksum: str | None = None,
    basepath: str | None = None,
) -> None:
    """Mark a tensor with raw data as stored in the file `location`; nothing is written yet.

    >>> from sardonyx.compat.onnx import TensorProto, external_data_helper
    >>> tensor = TensorProto(raw_data=b"1234")
    >>> external_data_helper.set_external_data(tensor, "weights.bin", offset=16)
    >>> [(entry.key, entry.value) for entry in tensor.external_data]
    [('location', 'weights.bin'), ('offset', '16')]
    """
    if not tensor.HasField("raw_data"):
        raise ValueError(f"tensor {tensor.name!r} has no raw data that could be stored elsewhere")
    mark_external(
        tensor,
        location=location,
        offset=None if offset is None else int(offset),
        length=None if length is None else int(length),
        checksum=checksum,
        basepath=basepath,
    )


def mark_external(tensor: Any, **entries: Any) -> None:
    """Replace a tensor's external data entries by those that are not None."""
    del tensor.external_data[:]
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        if value is not None:
            tensor.external_data.add(key=key, value=str(value))


def convert_model_to_external_data(
    model: Any,
    all_tensors_to_one_file: bool = True,
    location: str | None = None,
    size_threshold: int = 1024,
    convert_attribute: bool = False,
) -> None:
    """Mark the tensors with enough raw data as external; saving the model then writes the files.

    Without `location` the one file gets a random name; otherwise each tensor gets a file named
    after it. Tensors in attributes are included only with `convert_attribute`.

    >>> import numpy as np
    >>> from sardonyx.compat.onnx import external_data_helper, helper, numpy_helper
    >>> weight = numpy_helper.from_array(np.zeros(1000, np.float32), "w")
    >>> model = helper.make_model(helper.make_graph([], "g", [], [], [weight]))
    >>> external_data_helper.convert_model_to_external_data(model, location="model.data")
    >>> model.graph.initializer[0].external_data[0].value
    'model.data'
    """
    if all_tensors_to_one_file and location:
        if os.path.isabs(location):
            raise ValueError(f"location {location!r} must be relative to the model's folder")
        if os.path.exists(location):
            raise FileExistsError(f"there is already a file {location!r}")
    shared = location or f"{uuid.uuid4()}.data"
    tensors = _get_all_tensors(model) if convert_attribute else _get_initializer_tensors(model)
    for tensor in tensors:
        # onnx measures the bytes object, whose header counts towards the threshold.
        if tensor.HasField("raw_data") and sys.getsizeof(tensor.raw_data) >= size_threshold:
            own = tensor.name if _is_valid_filename(tensor.name) else str(uuid.uuid4())
            set_external_data(tensor, shared if all_tensors_to_one_file else own)


def convert_model_from_external_data(model: Any) -> None:
    """Undo the marks of `convert_model_to_external_data` on tensors that hold their data.

    >>> from sardonyx.compat.onnx import external_data_helper, helper
    >>> model = helper.make_model(helper.make_graph([], "g", [], []))
    >>> external_data_helper.convert_model_from_external_data(model)
    """
    for tensor in _get_all_tensors(model):
        if uses_external_data(tensor):
            if not tensor.HasField("raw_data"):
                raise ValueError(f"tensor {tensor.name!r} must be loaded first: it has no raw data")
            del tensor.external_data[:]
            tensor.data_location = TensorProto.DEFAULT


def save_external_data(tensor: Any, base_path: str) -> None:
    """Write a tensor's raw data at the end of the file its `external_data` names, inside a folder.

    The entries are completed with offset and length; the tensor keeps its raw data. An offset
    given beforehand may leave a gap of at most 64 KiB.

    >>> import tempfile
    >>> from sardonyx.compat.onnx import TensorProto, external_data_helper
    >>> tensor = TensorProto(name="w", raw_data=b"1234")
    >>> external_data_helper.set_external_data(tensor, "weights.bin")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     external_data_helper.save_external_data(tensor, folder)
    >>> external_data_helper.ExternalDataInfo(tensor).length
    4
    """
    with StagedFiles() as staged:
        _stage_tensor(tensor, base_path, staged)


def _stage_tensor(tensor: Any, base_path: str, staged: StagedFiles) -> tuple[Place, int, int]:
    """Append a tensor's raw data to its file; gives the file, the offset and the length."""
    info = ExternalDataInfo(tensor)
    if not tensor.HasField("raw_data"):
        raise ValidationError(f"tensor {tensor.name!r} has no raw data to write")
    place = place_inside(base_path, info.location, tensor.name)
    try:
        size = staged.size(place)
        gap = 0 if info.offset is None else info.offset - size
        if not 0 <= gap <= _LARGEST_GAP:
            raise ValidationError(
                f"external data of tensor {tensor.name!r} cannot start at {info.offset}: "
                f"{info.location!r} ends at {size} and a gap is at most {_LARGEST_GAP} bytes"
            )
        if gap:
            staged.append(place, bytes(gap))
        content = tensor.raw_data
        staged.append(place, content)
    except OSError as error:
        raise ValidationError(
            f"external data of tensor {tensor.name!r} cannot be written: {error}"
        ) from error
    set_external_data(tensor, info.location, size + gap, len(content))
    return place, size + gap, len(content)


def write_external_data_tensors(model: Any, filepath: str) -> Any:
    """Write every tensor marked as external to its file in the folder `filepath`.

    Their raw data is cleared and the model returned. If anything fails, no file has changed and
    all tensors are as before.

    >>> import numpy as np, tempfile
    >>> from sardonyx.compat.onnx import external_data_helper, helper, numpy_helper
    >>> weight = numpy_helper.from_array(np.zeros(1000, np.float32), "w")
    >>> model = helper.make_model(helper.make_graph([], "g", [], [], [weight]))
    >>> external_data_helper.convert_model_to_external_data(model, location="model.data")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model = external_data_helper.write_external_data_tensors(model, folder)
    >>> model.graph.initializer[0].HasField("raw_data")
    False
    """
    with StagedFiles() as staged:
        stage_model_tensors(model, filepath, staged)
    return model


def stage_model_tensors(model: Any, folder: str, staged: StagedFiles) -> None:
    """As `write_external_data_tensors`, as part of a larger set of writes."""
    for tensor in _get_all_tensors(model):
        if uses_external_data(tensor) and tensor.HasField("raw_data"):
            entries = {entry.key: entry.value for entry in tensor.external_data}
            place, offset, length = _stage_tensor(tensor, folder, staged)
            staged.on_failure(partial(_restore, staged, tensor, entries, (place, offset, length)))
            tensor.ClearField("raw_data")


def _restore(
    staged: StagedFiles, tensor: Any, entries: dict[str, str], written: tuple[Place, int, int]
) -> None:
    tensor.raw_data = staged.read(*written)
    mark_external(tensor, **entries)


def _get_all_tensors(onnx_model_proto: Any) -> Iterator[Any]:
    """All initializers and attribute tensors, those of inner graphs and functions included."""
    yield from _get_initializer_tensors(onnx_model_proto)
    yield from _get_attribute_tensors(onnx_model_proto)


def _inner_graphs(node: Any) -> Iterable[Any]:
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.g
        elif attribute.type == AttributeProto.GRAPHS:
            yield from attribute.graphs


def _initializers(graph: Any) -> Iterator[Any]:
    yield from graph.initializer
    for node in graph.node:
        for inner in _inner_graphs(node):
            yield from _initializers(inner)


def _get_initializer_tensors(onnx_model_proto: Any) -> Iterator[Any]:
    """The initializers of a model's graph and of the graphs inside it."""
    yield from _initializers(onnx_model_proto.graph)


def _attribute_tensors(graph_or_function: Any) -> Iterator[Any]:
    for node in graph_or_function.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
        for inner in _inner_graphs(node):
            yield from _attribute_tensors(inner)


def _get_attribute_tensors(onnx_model_proto: Any) -> Iterator[Any]:
    """The tensors in the attributes of a model's nodes and of its functions' nodes."""
    yield from _attribute_tensors(onnx_model_proto.graph)
    for function in onnx_model_proto.functions:
        yield from _attribute_tensors(function)


def _is_valid_filename(filename: str) -> bool:
    """True for a name that is one file on every system."""
    return re.fullmatch(r'[^<>:;,?"*|/\\\0]+', filename) is not None and ".." not in filename


def uses_external_data(tensor: Any) -> bool:
    """True if a tensor's data is marked as stored in a file.

    >>> from sardonyx.compat.onnx import TensorProto, external_data_helper
    >>> external_data_helper.uses_external_data(TensorProto(raw_data=b"1234"))
    False
    """
    external: bool = tensor.data_location == TensorProto.EXTERNAL
    return external


def remove_external_data_field(tensor: Any, field_key: str) -> None:
    """Delete the entry `field_key` from a tensor's external data.

    >>> from sardonyx.compat.onnx import TensorProto, external_data_helper
    >>> tensor = TensorProto(raw_data=b"1234")
    >>> external_data_helper.set_external_data(tensor, "weights.bin", checksum="abc")
    >>> external_data_helper.remove_external_data_field(tensor, "checksum")
    >>> len(tensor.external_data)
    1
    """
    for index in reversed(range(len(tensor.external_data))):
        if tensor.external_data[index].key == field_key:
            del tensor.external_data[index]
