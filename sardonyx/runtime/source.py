"""A session's model: read when something asks for it, and known by its content until then."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from sardonyx.compiler.cache import Cache
from sardonyx.compiler.digest import digest_model, digest_parts
from sardonyx.format.files import safe_path
from sardonyx.format.storage import ExternalData
from sardonyx.graph import Model
from sardonyx.record import once
from sardonyx.runtime.options import SessionOptions
from sardonyx.runtime.prepare import optimization
from sardonyx.runtime.values import plain


class ModelSource:
    """Where a model comes from: `read` makes it from `given`, a path, bytes or anything else."""

    def __init__(self, given: Any, read: Callable[[], Model], options: SessionOptions) -> None:
        self._given = given
        self._read = read
        self._options = options

    @once
    def model(self) -> Model:
        """The model, as the options want it."""
        return self._read()

    def identity(self, cache: Cache) -> str:
        """What stands for the model in a cache: its whole content, and the options that change it.

        >>> import tempfile
        >>> import sardonyx as sx
        >>> path = "examples/digits.onnx"
        >>> source = ModelSource(path, lambda: sx.load(path), SessionOptions())
        >>> len(source.identity(Cache(Path(tempfile.mkdtemp()))))
        64
        """
        return digest_parts([self._content(cache), *_changes(self._options)])

    def _content(self, cache: Cache) -> str:
        if isinstance(self._given, str | os.PathLike) and Path(self._given).is_file():
            path = Path(self._given)
            return path.suffix + cache.file_digest(path, lambda: self._other_files(path.parent))
        if isinstance(self._given, bytes):
            return hashlib.sha256(self._given).hexdigest()
        return digest_model(self.model)

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
