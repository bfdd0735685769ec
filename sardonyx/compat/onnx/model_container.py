"""Models whose large weights stay outside the message, as arrays, until they are saved."""

import os
from collections.abc import Iterable, Iterator
from typing import Any

from numpy.typing import NDArray

from sardonyx.compat.onnx._elements import (
    array_from_bytes,
    pack_elements,
    tensor_dtype_to_np_dtype,
    tobytes_little_endian,
)
from sardonyx.compat.onnx._files import load_model
from sardonyx.compat.onnx._make import make_model
from sardonyx.compat.onnx._staging import StagedFiles, place_of
from sardonyx.compat.onnx.external_data_helper import (
    _get_all_tensors,
    _read_external_data_bytes,
    mark_external,
    uses_external_data,
)
from sardonyx.compat.onnx.onnx_ml_pb2 import ModelProto, TensorProto
from sardonyx.dtypes import DataType

_FORBIDDEN = str.maketrans("", "", ":/\\;,!")


def make_large_tensor_proto(
    location: str, tensor_name: str, tensor_type: int, shape: tuple[int, ...]
) -> Any:
    """A tensor without data that stands for the large array called `location`.

    >>> from sardonyx.compat.onnx import TensorProto, model_container
    >>> weight = model_container.make_large_tensor_proto("#w", "w", TensorProto.FLOAT, (2, 3))
    >>> weight.external_data[0].value
    '#w'
    """
    tensor = TensorProto()
    tensor.name = tensor_name
    mark_external(tensor, location=location)
    tensor.data_type = tensor_type
    tensor.dims.extend(shape)
    return tensor


def _subgraphs(graph: Any) -> Iterator[Any]:
    for node in graph.node:
        for attribute in node.attribute:
            inner = [attribute.g] if attribute.HasField("g") else []
            for subgraph in [*inner, *attribute.graphs]:
                yield subgraph
                yield from _subgraphs(subgraph)


def _location(tensor: Any) -> str:
    """The location a tensor names; RuntimeError if none."""
    locations = [entry.value for entry in tensor.external_data if entry.key == "location"]
    if not locations:
        raise RuntimeError(f"tensor {tensor.name!r} is external but names no location")
    return str(locations[-1])


class ModelContainer:
    """A model, and beside it the arrays of those tensors that are too large for the message.

    >>> import numpy as np
    >>> from sardonyx.compat.onnx import TensorProto, helper, model_container
    >>> weight = model_container.make_large_tensor_proto("#w", "w", TensorProto.FLOAT, (2, 3))
    >>> graph = helper.make_graph([], "g", [], [], [weight])
    >>> large = model_container.make_large_model(graph, {"#w": np.zeros((2, 3), np.float32)})
    >>> large["#w"].shape
    (2, 3)
    """

    def __init__(self) -> None:
        self.model_proto_: Any | None = None
        self.large_initializers: dict[str, NDArray[Any]] = {}

    def check_model(self) -> None:
        """Check the model, without its large arrays."""
        model = self.model_proto
        from sardonyx.compat.onnx import checker

        checker.check_model(model)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """The large array called `name`; ValueError if there is none."""
        return self._find(name, ValueError)

    def _find(self, name: str, error: type[Exception]) -> NDArray[Any]:
        if name not in self.large_initializers:
            known = ", ".join(sorted(self.large_initializers)) or "none"
            raise error(f"there is no large array {name!r}; those set are: {known}")
        return self.large_initializers[name]

    @property
    def model_proto(self) -> Any:
        """The model; RuntimeError if none was set or loaded."""
        if self.model_proto_ is None:
            raise RuntimeError("the container has no model yet: set model_proto or call load")
        return self.model_proto_

    @model_proto.setter
    def model_proto(self, model_proto: Any) -> None:
        self.model_proto_ = model_proto
        self.graphs_ = list(self.enumerate_graph_protos())

    def enumerate_graph_protos(self) -> Iterable[Any]:
        """The model's graph and every graph inside its nodes."""
        yield self.model_proto.graph
        yield from _subgraphs(self.model_proto.graph)

    def is_in_memory_external_initializer(self, name: str) -> bool:
        """True if a location names an array in memory, which starts with `#`."""
        return name.startswith("#")

    def set_large_initializers(self, large_initializers: dict[str, NDArray[Any]]) -> None:
        """Set all large arrays; each name must start with `#`."""
        for name in large_initializers:
            if not self.is_in_memory_external_initializer(name):
                raise ValueError(f"the name of a large array must start with '#', not be {name!r}")
        self.large_initializers = large_initializers

    def _external_tensors(self, model: Any) -> Iterator[tuple[Any, NDArray[Any]]]:
        """Each tensor that stands for a large array, with that array."""
        for tensor in _get_all_tensors(model):
            if uses_external_data(tensor):
                yield tensor, self._find(_location(tensor), RuntimeError)

    def check_large_initializers(self) -> None:
        """Raise RuntimeError unless every external tensor has its large array."""
        for _ in self._external_tensors(self.model_proto):
            continue

    def save(self, file_path: str, all_tensors_to_one_file: bool = False) -> Any:
        """Write the model and its large arrays, to one file beside it or to one file each.

        A copy of the model that names those files is returned. If writing fails, files that were
        there before stay as they were.
        """
        folder, file_name = os.path.split(file_path)
        if folder and not os.path.exists(folder):
            raise FileNotFoundError(f"there is no folder {folder!r}")
        copy = ModelProto()
        copy.CopyFrom(self.model_proto)
        with StagedFiles() as staged:
            if all_tensors_to_one_file:
                self._stage_together(copy, f"{file_path}.weight", staged)
            else:
                self._stage_apart(copy, folder, os.path.splitext(file_name)[0], staged)
            staged.replace(place_of(file_path), copy.SerializeToString())
        return copy

    def _stage_together(self, model: Any, path: str, staged: StagedFiles) -> None:
        place = place_of(path)
        staged.replace(place, b"")
        offset = 0
        for tensor, array in self._external_tensors(model):
            content = _storage_bytes(array)
            staged.append(place, content)
            mark_external(
                tensor, location=os.path.basename(path), offset=offset, length=len(content)
            )
            offset += len(content)

    def _stage_apart(self, model: Any, folder: str, prefix: str, staged: StagedFiles) -> None:
        seen: dict[str, int] = {}
        for tensor, array in self._external_tensors(model):
            location = _location(tensor)
            name = (f"{prefix}-{location}" if prefix else location).translate(_FORBIDDEN)
            seen[name] = seen.get(name, 0) + 1
            file_name = f"{name}.weight" if seen[name] == 1 else f"{name}_{seen[name]}.weight"
            staged.replace(place_of(os.path.join(folder, file_name)), _storage_bytes(array))
            mark_external(tensor, location=file_name)

    def load(self, file_path: str, load_large_initializers: bool = True) -> None:
        """Read a model and, unless told not to, its large arrays."""
        self.model_proto_ = load_model(file_path, load_external_data=False)
        if load_large_initializers:
            self._load_large_initializers(file_path)

    def _load_large_initializers(self, file_path: str) -> None:
        """Read the large arrays of the model that was loaded from `file_path`."""
        if self.model_proto_ is None:
            raise RuntimeError("the container has no model yet: load it before its large arrays")
        folder = os.path.dirname(file_path)
        arrays: dict[str, NDArray[Any]] = {}
        for index, tensor in enumerate(_get_all_tensors(self.model_proto_)):
            if uses_external_data(tensor):
                raw = _read_external_data_bytes(tensor, folder)
                tensor_dtype_to_np_dtype(tensor.data_type)
                name = f"#t{index}"
                arrays[name] = array_from_bytes(raw, DataType(tensor.data_type), tensor.dims)
                mark_external(tensor, location=name)
        self.large_initializers = arrays


def _storage_bytes(array: NDArray[Any]) -> bytes:
    """What raw storage holds for an array; elements below one byte are packed."""
    bits = _NARROW_BITS.get(array.dtype)
    return tobytes_little_endian(array if bits is None else pack_elements(array, bits))


_NARROW_BITS = {
    kind.numpy: kind.bits for kind in DataType if kind != DataType.UNDEFINED and 0 < kind.bits < 8
}


def make_large_model(
    graph: Any, large_initializers: dict[str, NDArray[Any]] | None = None, **kwargs: Any
) -> ModelContainer:
    """A container with a model around `graph` and its large arrays, each checked to be there.

    >>> from sardonyx.compat.onnx import helper, model_container
    >>> large = model_container.make_large_model(helper.make_graph([], "g", [], []))
    >>> large.model_proto.graph.name
    'g'
    """
    container = ModelContainer()
    container.model_proto = make_model(graph, **kwargs)
    if large_initializers:
        container.set_large_initializers(large_initializers)
        container.check_large_initializers()
    return container
