"""Files read and written without surprises: no links are followed, no half-written file is seen."""

import os
import stat
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import IO, Self

from sardonyx.compat.onnx._errors import ValidationError

_HAS_FOLDER_HANDLES = os.open in os.supports_dir_fd
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_BINARY = getattr(os, "O_BINARY", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)


@dataclass(frozen=True, slots=True)
class Place:
    """A file: a trusted folder, folders inside it that must not be links, and a name."""

    base: str
    parents: tuple[str, ...]
    name: str

    def path(self) -> str:
        """The path, for messages and for systems without folder handles."""
        return os.path.join(self.base, *self.parents, self.name)


def place_inside(base_dir: str | os.PathLike[str], location: str, tensor_name: str) -> Place:
    """Where a tensor's external data lies; ValidationError if `location` may leave `base_dir`."""
    what = f"external data of tensor {tensor_name!r}"
    if not location:
        raise ValidationError(f"{what} has no location")
    if os.path.isabs(location) or os.path.splitdrive(location)[0]:
        raise ValidationError(f"{what} is at the absolute path {location!r}; make it relative")
    normal = os.path.normpath(location)
    if ".." in normal or "\0" in location:
        raise ValidationError(f"{what} is at {location!r}, which may lie outside {base_dir!r}")
    if normal == os.curdir or location.endswith(tuple(filter(None, (os.sep, os.altsep)))):
        raise ValidationError(f"{what} is at {location!r}, which is a folder")
    *parents, name = normal.split(os.sep)
    return Place(os.fspath(base_dir) or os.curdir, tuple(parents), name)


def place_of(path: str) -> Place:
    """The file a path names, behind any links."""
    base, name = os.path.split(os.path.realpath(path))
    return Place(base or os.curdir, (), name)


class _Folder:
    """An open folder; names in it are reached through its handle where the system allows."""

    def __init__(self, place: Place) -> None:
        self._path = place.base
        self._handle: int | None = None
        if not _HAS_FOLDER_HANDLES:
            self._path = os.path.join(place.base, *place.parents)
            if os.path.realpath(self._path) != os.path.join(
                os.path.realpath(place.base), *place.parents
            ):
                raise OSError(f"{self._path} goes through a link")
            return
        handle = os.open(place.base, _FOLDER)
        for part in place.parents:
            try:
                inner = os.open(part, _FOLDER | _NO_FOLLOW, dir_fd=handle)
            finally:
                os.close(handle)
            handle = inner
        self._handle = handle

    def _at(self, name: str) -> str:
        return name if self._handle is not None else os.path.join(self._path, name)

    def open(self, name: str, flags: int, mode: int = 0o666) -> int:
        """A handle of the file `name`, which must not be a link."""
        if not _NO_FOLLOW and os.path.islink(self._at(name)):
            raise OSError(f"{self._at(name)} is a link")
        flags |= _NO_FOLLOW | _NO_WAIT | _BINARY
        return os.open(self._at(name), flags, mode, dir_fd=self._handle)

    def replace(self, source: str, target: str) -> None:
        """Rename `source` to `target`."""
        at = self._at
        os.replace(at(source), at(target), src_dir_fd=self._handle, dst_dir_fd=self._handle)

    def remove(self, name: str) -> None:
        """Delete the file `name`."""
        os.unlink(self._at(name), dir_fd=self._handle)

    def close(self) -> None:
        """Give the handle back."""
        if self._handle is not None:
            os.close(self._handle)


@contextmanager
def _folder(place: Place) -> Iterator[_Folder]:
    opened = _Folder(place)
    try:
        yield opened
    finally:
        opened.close()


def _open_handle(place: Place, flags: int) -> int:
    """A handle of a regular file that has no second name anywhere."""
    try:
        with _folder(place) as folder:
            handle = folder.open(place.name, flags)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise ValidationError(f"{place.path()!r} cannot be opened safely: {error}") from error
    status = os.fstat(handle)
    if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
        return handle
    os.close(handle)
    if stat.S_ISREG(status.st_mode):
        raise ValidationError(
            f"{place.path()!r} has several hard links: copy it to a file of its own"
        )
    raise ValidationError(f"{place.path()!r} is not a regular file")


def _open_plain(place: Place, flags: int, mode: str) -> IO[bytes]:
    return os.fdopen(_open_handle(place, flags), mode)


def open_for_reading(place: Place, tensor_name: str) -> IO[bytes]:
    """A tensor's external data file; ValidationError if it is missing, a link or a device."""
    try:
        return _open_plain(place, os.O_RDONLY, "rb")
    except FileNotFoundError as error:
        raise ValidationError(
            f"external data of tensor {tensor_name!r} is missing: there is no file {place.path()!r}"
        ) from error


@dataclass(slots=True)
class _Staged:
    """A file under way: new content beside it, or an old file that grows at its end.

    `old_size` is None if there was no such file before.
    """

    place: Place
    temporary: str | None
    old_size: int | None
    replaced: bool = False

    @property
    def current(self) -> Place:
        """Where the content is before the commit."""
        name = self.temporary or self.place.name
        return Place(self.place.base, self.place.parents, name)


@dataclass(slots=True)
class StagedFiles:
    """Writes that take effect together when the `with` block ends, or not at all if it raises."""

    _staged: dict[Place, _Staged] = field(default_factory=dict)
    _undo: list[Callable[[], None]] = field(default_factory=list)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self._roll_back()
            return
        try:
            self._commit()
        except BaseException:
            self._roll_back()
            raise

    def on_failure(self, undo: Callable[[], None]) -> None:
        """Call `undo` if the writes are given up, while `read` still works."""
        self._undo.append(undo)

    def replace(self, place: Place, content: bytes) -> None:
        """Give a file new content; one that exists keeps its permissions.

        ValueError if something else is already on its way into the same file.
        """
        path = os.path.realpath(place.path())
        others = (other.path() for other in self._staged if other.name == place.name)
        if path in map(os.path.realpath, others):
            raise ValueError(f"{path!r} cannot hold two things: choose another location for one")
        status = _status(place)
        if status is not None and not os.access(place.path(), os.W_OK):
            raise PermissionError(f"{place.path()!r} may not be written")
        if status is not None and not stat.S_ISREG(status.st_mode):
            with open(place.path(), "wb") as special:
                special.write(content)
            return
        staged = self._create(place, None if status is None else status.st_size)
        with self._reopen(staged) as file:
            if status is not None and hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), stat.S_IMODE(status.st_mode))
            file.write(content)

    def size(self, place: Place) -> int:
        """The bytes a file has by now; 0 if there is none."""
        if place in self._staged:
            with self._reopen(self._staged[place]) as file:
                return file.seek(0, os.SEEK_END)
        try:
            with _open_plain(place, os.O_RDWR, "r+b") as file:
                return file.seek(0, os.SEEK_END)
        except FileNotFoundError:
            return 0

    def append(self, place: Place, content: bytes) -> None:
        """Add to the end of a file, new or old; no link is followed."""
        staged = self._staged.get(place) or self._find(place)
        with self._reopen(staged) as file:
            file.seek(0, os.SEEK_END)
            file.write(content)

    def read(self, place: Place, offset: int, length: int) -> bytes:
        """A part of a file that was staged."""
        with self._reopen(self._staged[place]) as file:
            file.seek(offset)
            return file.read(length)

    def _find(self, place: Place) -> _Staged:
        try:
            with _open_plain(place, os.O_RDWR, "r+b") as file:
                staged = _Staged(place, None, file.seek(0, os.SEEK_END))
        except FileNotFoundError:
            return self._create(place, None)
        self._staged[place] = staged
        return staged

    def _create(self, place: Place, old_size: int | None) -> _Staged:
        staged = _Staged(place, f".{uuid.uuid4().hex}.partial", old_size)
        with _folder(place) as folder:
            os.close(folder.open(staged.current.name, os.O_RDWR | os.O_CREAT | os.O_EXCL))
        self._staged[place] = staged
        return staged

    def _reopen(self, staged: _Staged) -> IO[bytes]:
        return _open_plain(staged.current, os.O_RDWR, "r+b")

    def _commit(self) -> None:
        for place, staged in self._staged.items():
            if staged.temporary is not None:
                with _folder(place) as folder:
                    folder.replace(staged.temporary, place.name)
                staged.temporary = None
                staged.replaced = staged.old_size is not None

    def _roll_back(self) -> None:
        with ExitStack() as last_first:
            for staged in self._staged.values():
                last_first.callback(self._discard, staged)
            for undo in self._undo:
                last_first.callback(undo)

    def _discard(self, staged: _Staged) -> None:
        """Remove what was written of a file, unless it already took an old one's place."""
        if staged.temporary is not None or staged.old_size is None:
            with _folder(staged.place) as folder:
                folder.remove(staged.current.name)
        elif not staged.replaced:
            with self._reopen(staged) as file:
                file.truncate(staged.old_size)


def _status(place: Place) -> os.stat_result | None:
    try:
        return os.stat(place.path())
    except FileNotFoundError:
        return None
