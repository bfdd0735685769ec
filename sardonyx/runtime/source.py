"""A session's model: read when something asks for it, and known by its content until then."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from sardonyx.compiler.cache import Cache, file_state
from sardonyx.compiler.digest import digest_model, digest_parts
from sardonyx.errors import ChangedFileError
from sardonyx.format.files import safe_path
from sardonyx.format.opened import OpenedFile
from sardonyx.format.storage import ExternalData
from sardonyx.graph import Model
from sardonyx.record import once
from sardonyx.runtime.options import SessionOptions
from sardonyx.runtime.prepare import optimization
from sardonyx.runtime.values import plain

_ATTEMPTS = 3
"""How often a file that is being replaced is opened, before that is an error."""


class ModelSource:
    """Where a model comes from: `read` makes it from `given`, a path, bytes or anything else.

    A file is opened at once and stays open: whatever lies at its path later, the model is the one
    that was there, or there is an error.
    """

    def __init__(self, given: Any, read: Callable[[Any], Model], options: SessionOptions) -> None:
        self._path = Path(given) if isinstance(given, str | os.PathLike) else None
        self._given = given if self._path is None else OpenedFile(self._path)
        self._read = read
        self._options = options
        self._states: dict[str, str] = {}
        """Each file as it was when the model's identity was found."""

    @once
    def model(self) -> Model:
        """The model, as the options want it."""
        model = self._read(self._given)
        own = "" if self._path is None else str(self._path.absolute())
        for path, state in self._states.items():
            if path != own and file_state(path) != state:
                raise ChangedFileError(
                    f"'{path}' changed while the model was opened", hint="open the model again"
                )
        return model

    def identity(self, cache: Cache) -> str:
        """What stands for the model in a cache: its whole content, and the options that change it.

        >>> import tempfile
        >>> import sardonyx as sx
        >>> path = "examples/digits.onnx"
        >>> source = ModelSource(path, lambda file: sx.load(path), SessionOptions())
        >>> len(source.identity(Cache(Path(tempfile.mkdtemp()))))
        64
        """
        return digest_parts([self._content(cache), *_changes(self._options)])

    def _content(self, cache: Cache) -> str:
        if self._path is not None:
            return self._path.suffix + self._file_content(self._path, cache)
        if isinstance(self._given, bytes):
            return hashlib.sha256(self._given).hexdigest()
        return digest_model(self.model)

    def _file_content(self, path: Path, cache: Cache) -> str:
        """The digest of the files; of those that are open, though others may be put there."""
        for _ in range(_ATTEMPTS):
            digest, states = cache.digest_files(path, lambda: self._other_files(path.parent))
            if self._given.is_at(path):
                self._states = states
                return digest
            self.__dict__.pop("model", None)
            self._given = OpenedFile(path)
        raise ChangedFileError(f"'{path}' changes all the time", hint="open it when it is complete")

    def _other_files(self, folder: Path) -> list[Path]:
        """The files that weights lie in."""
        places = [
            item.data.location
            for item in self.model.tensors()
            if isinstance(item.data, ExternalData)
        ]
        return [safe_path(folder, place) for place in dict.fromkeys(places)]


def _changes(options: SessionOptions) -> list[str]:
    """All in the options that can make another program of a model."""
    sizes = [f"{key}={size}" for key, size in sorted(options.free_dimensions.items())]
    denoted = [f"{key}:{size}" for key, size in sorted(options.denoted_dimensions.items())]
    constants = []
    for name, given in sorted(options.initializers.items()):
        array = np.asarray(plain(given))
        content = hashlib.sha256(np.ascontiguousarray(array).view(np.uint8).data).hexdigest()
        constants.append(f"{name} {array.dtype} {array.shape} {content}")
    for name, buffer in sorted(options.external_files.items()):
        constants.append(f"{name} {hashlib.sha256(buffer).hexdigest()}")
    return [*map(str, optimization(options)), *sizes, *denoted, *constants]
