"""Files on disk: mapped for reading, replaced as a whole for writing."""

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PureWindowsPath
from typing import Any

from sardonyx.errors import ChangedFileError, ExternalDataError, SaveError
from sardonyx.format.opened import FileState, OpenedFile, content_of, file_state, map_opened
from sardonyx.format.pages import let_go
from sardonyx.format.wire import Buffer

_PART = 1 << 24
"""Bytes that are written at a time."""

FileReader = Callable[[Path], Buffer]
"""Gives a file's content: what a user passes to decrypt or decompress on the way in."""


def map_file(path: Path) -> memoryview:
    """A file's content without reading it: pages come in when they are touched."""
    return map_opened(OpenedFile(path))


class LargeFile:
    """A large file to parse: slices of weights are mapped, all around them is read in windows.

    Touching a mapped page can bring in megabytes around it, and a parser touches one beside each
    weight.
    """

    WINDOW = 1 << 16

    def __init__(self, file: OpenedFile) -> None:
        self._mapped = map_opened(file)
        self._file = file
        self._window = b""
        self._start = 0

    def __len__(self) -> int:
        return len(self._mapped)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            start, stop, _ = key.indices(len(self._mapped))
            if stop - start >= self.WINDOW:
                return self._mapped[start:stop]
            if self._start <= start and stop <= self._start + len(self._window):
                return self._window[start - self._start : stop - self._start]
            return os.pread(self._file.descriptor, max(stop - start, 0), start)
        offset = key - self._start
        if not 0 <= offset < len(self._window):
            if not 0 <= key < len(self._mapped):
                raise IndexError(key)
            self._window, self._start = os.pread(self._file.descriptor, self.WINDOW, key), key
            offset = 0
        return self._window[offset]


LARGE = 16 << 20
"""From this size on a file is parsed through windows."""


def open_file(file: OpenedFile) -> Any:
    """A file's content for the parser: mapped, or through windows where it is large."""
    return map_opened(file) if file.size < LARGE or not hasattr(os, "pread") else LargeFile(file)


def open_private(file: OpenedFile) -> Any:
    """A file's content for the parser, in memory; through windows where it is large."""
    if file.size < LARGE or not hasattr(os, "pread"):
        return file.read().data
    return LargeFile(file)


def read_file(path: Path) -> memoryview:
    """A file's content, copied into memory: safe against changes of the file afterwards."""
    return OpenedFile(path).read().data


class DataFolder:
    """The folder of a model, from which its external data is opened."""

    def __init__(self, folder: Path | None, read: FileReader = map_file) -> None:
        self._folder = folder
        self._read = read
        self._files: dict[str, Buffer] = {}
        self._states: dict[str, FileState] = {}

    def size(self, location: str) -> int:
        """The bytes of a file, which must not change from now on until it is opened."""
        status = safe_path(self._folder, location).stat()
        self._states[location] = file_state(status)
        return status.st_size

    def open(self, location: str, offset: int, length: int | None) -> Buffer:
        """A slice of the file at `location`; refused unless inside the folder and the file."""
        content = self._files.get(location)
        if content is None:
            path = safe_path(self._folder, location)
            self._require_known(location, path)
            content = self._files[location] = memoryview(self._read(path))
        size = len(content)
        end = size if length is None else offset + length
        if offset > size or end > size:
            raise ExternalDataError(
                f"external data wants bytes {offset} to {end} of '{location}', which has {size}",
                hint="the data file is cut short or belongs to another model; fetch it again",
            )
        return content_of(content[offset:end])

    def _require_known(self, location: str, path: Path) -> None:
        seen = self._states.get(location)
        if seen is not None and file_state(path.stat()) != seen:
            raise ChangedFileError(
                f"the external data '{location}' changed since the model was opened",
                where=str(path),
                hint="open the model again",
            )


def safe_path(folder: Path | None, location: str) -> Path:
    """Where external data at `location` lies; refused where that could leave the model's folder."""
    hint = "external data must be a plain file inside the model's folder, named by a relative path"
    if folder is None:
        raise ExternalDataError(
            f"the model's data is in '{location}', but the model was not read from a file",
            hint="load it by its path, or pass base_dir= with the folder the data is in",
        )
    parts = location.replace("\\", "/").split("/")
    if not location or "\0" in location:
        raise ExternalDataError(f"external data has the location {location!r}", hint=hint)
    if location.startswith(("/", "\\")) or PureWindowsPath(location).drive:
        raise ExternalDataError(f"external data has the absolute location '{location}'", hint=hint)
    if ".." in parts:
        raise ExternalDataError(
            f"external data at '{location}' leaves the model's folder", hint=hint
        )
    path, mode = folder, 0
    for part in [part for part in parts if part not in ("", ".")]:
        path = path / part
        try:
            mode = os.lstat(path).st_mode
        except OSError as error:
            raise ExternalDataError(
                f"external data '{location}' cannot be opened: {error.strerror}",
                where=str(path),
                hint="the file must lie beside the model; copy it there",
            ) from None
        if stat.S_ISLNK(mode):
            raise ExternalDataError(
                f"external data '{location}' passes through a link", where=str(path), hint=hint
            )
    if not stat.S_ISREG(mode):
        raise ExternalDataError(f"external data '{location}' is not a plain file", hint=hint)
    return path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new file beside `path` that takes its place only when everything has been written."""
    target = Path(os.path.realpath(path))
    staged = target.with_name(f".{target.name}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
    try:
        yield staged
        if target.exists():
            os.chmod(staged, stat.S_IMODE(target.stat().st_mode))
        os.replace(staged, target)
    except OSError as error:
        raise SaveError(f"cannot write '{path}': {error.strerror or error}") from error
    finally:
        staged.unlink(missing_ok=True)


def write_pieces(path: Path, pieces: Iterable[Buffer]) -> None:
    """Write pieces one after the other; memory of mapped files that was read for it goes back."""
    with open(path, "wb", buffering=0) as file:
        for piece in pieces:
            view = memoryview(piece)
            while view.nbytes:
                part = view[: file.write(view[:_PART])]
                view = view[part.nbytes :]
                let_go(part)


def swap_in(
    data: dict[Path, Path], model: Path, staged_model: Callable[[dict[str, str]], Path]
) -> None:
    """Replace a model and its data files; cut off at any moment, a whole pair is on disk.

    `data` maps staged data files to their final places. `staged_model(names)` writes the model with
    the data files' names replaced and returns where. A data file that exists is in use by the model
    that exists, so first a model that names the staged files takes over, then the files move.
    """
    taken = {staged: final for staged, final in data.items() if final.exists()}
    for staged, final in data.items():
        if staged not in taken:
            os.replace(staged, final)
    if taken:
        names = {str(final): str(staged) for staged, final in taken.items()}
        os.replace(staged_model(names), model)
        for staged, final in taken.items():
            link = staged.with_name(staged.name + ".link")
            os.link(staged, link)
            os.replace(link, final)
    os.replace(staged_model({}), model)
    for staged in taken:
        staged.unlink()
