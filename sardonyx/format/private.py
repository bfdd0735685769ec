"""Models that do not depend on what becomes of the files they were read from."""

import mmap
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from sardonyx.errors import SardonyxError
from sardonyx.format.opened import FilePart, Stored, as_part, content_of
from sardonyx.format.runs import Run
from sardonyx.format.storage import ExternalData, PackedData, RawData, StringData
from sardonyx.format.wire import Buffer
from sardonyx.graph import ArrayData, Model
from sardonyx.graph.stored_list import StoredList

Open = Callable[[str, int, int | None], Buffer]


class PrivateExternalData(ExternalData):
    """External data that is read into memory of our own when it is used."""


def hold_private(model: Model) -> None:
    """Let a model read weights that lie in mapped files when it uses them, in place.

    What is read is in memory of our own, and is what the file was when the model was loaded: else
    there is an error. Files of external data are opened now.
    """
    openers: dict[int, Open] = {}
    for tensor in model.tensors():
        data: Any = tensor.data
        if isinstance(data, RawData | PackedData | StringData):
            tensor.data = replace(data, stored=as_part(data.stored))
        elif type(data) is ExternalData:
            reader = openers.setdefault(id(data.open), _private(data.open))
            tensor.data = PrivateExternalData(data.entries, reader)
            _pin(data)
        elif isinstance(data, ArrayData) and _is_mapped(data.values):
            tensor.data = ArrayData(np.array(data.values))
    _change_runs(model, as_part)


def keep_in_memory(model: Model) -> None:
    """Read all weights that still lie in files now, in place; what cannot be read stays there."""
    for tensor in model.tensors():
        data: Any = tensor.data
        if isinstance(getattr(data, "stored", None), FilePart):
            data.stored.keep()
        elif isinstance(data, ExternalData):
            try:
                tensor.data = ArrayData(tensor.numpy())
            except SardonyxError:
                continue
    _change_runs(model, _kept)


def _kept(stored: Stored) -> Stored:
    if isinstance(stored, FilePart):
        stored.keep()
    return stored


def _change_runs(model: Model, change: Callable[[Stored], Stored]) -> None:
    """Change where the long lists of attributes are stored."""
    for graph in model.graphs():
        for node in graph.nodes:
            for name, attribute in list(node.attributes.items()):
                if not isinstance(attribute.value, StoredList):
                    continue
                run = attribute.value.stored
                if isinstance(run, Run) and (stored := change(run.stored)) is not run.stored:
                    changed = StoredList(Run(stored, run.count, run.item))
                    node.set_attribute(name, attribute.with_value(changed))


def _private(open_mapped: Open) -> Open:
    """Opens slices of files as parts of them, which are read."""
    parts: dict[tuple[str, int, int | None], Stored] = {}

    def open_part(location: str, offset: int, length: int | None) -> Buffer:
        key = location, offset, length
        if key not in parts:
            parts[key] = as_part(open_mapped(location, offset, length))
        return content_of(parts[key])

    return open_part


def _pin(data: ExternalData) -> None:
    """Open a file of external data, so that it is known as it is now."""
    try:
        data.open(data.location, 0, 0)
    except SardonyxError:
        return  # whoever uses the data gets the error


def _is_mapped(array: Any) -> bool:
    """True for an array in a file that the caller mapped."""
    holder: Any = array
    while isinstance(holder, np.ndarray):
        holder = holder.base
    holder = holder.obj if isinstance(holder, memoryview) else holder
    return isinstance(holder, mmap.mmap)
