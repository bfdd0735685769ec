"""Images kept on disk, so that a model is compiled once on a machine.

For each image there are two files: the image, named by all that decides what it is, and a note that
says when it was last used and that its constants were once found to be as written. A note holds for
one start of the machine and one state of the file; else constants are checked again.
"""

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from logging import getLogger
from pathlib import Path
from typing import Any

from sardonyx.compiler.digest import digest_file, digest_parts
from sardonyx.compiler.forks import HELD
from sardonyx.compiler.image import Image, Wanted
from sardonyx.compiler.image_file import read_image, write_image
from sardonyx.compiler.private_folder import PrivateFolder, beating
from sardonyx.errors import ChangedFileError, FormatError
from sardonyx.record import record

DEFAULT_LIMIT = 2 << 30
"""Bytes that all images together may take."""
LOCKS = 64
"""Files that processes wait on; images share them, by the first letters of their names."""
LONGEST_WAIT = 300.0
"""Seconds to wait for a process that makes the same image, before making it too."""
LONGEST_SILENCE = 4.0
"""Seconds to wait for a process that gives no sign of life, as one that was stopped."""
SETTLED = 2.0
"""Seconds after which a file that did not change is told from a changed one by its time."""
_PAUSE = 0.02
_OLD = 3600.0
_log = getLogger("sardonyx")


@record
class Entry:
    """An image on disk: its name, the model it was made from, its bytes, when it was last used."""

    key: str
    model: str
    size: int
    used: float


class Cache:
    """Images in a folder that only this user may write to; the longest unused make room.

    >>> import tempfile
    >>> cache = Cache(Path(tempfile.mkdtemp()) / "images")
    >>> cache.entries(), cache.clear()
    ([], 0)
    """

    def __init__(self, folder: Path, limit: int = DEFAULT_LIMIT) -> None:
        self.folder = folder
        self.limit = limit
        self._private = PrivateFolder(folder)

    def problem(self) -> str:
        """Why the folder cannot be used, or nothing."""
        return self._private.problem()

    def get(self, key: str, make: Callable[[], Image | Wanted]) -> Image | Wanted:
        """The image called `key`, made and kept where there is none.

        A process that needs an image that another one makes waits for that.
        """
        problem = self.problem()
        if problem:
            _log.warning("the cache %s is not used: %s", self.folder, problem)
            return make()
        found = self.find(key)
        if found is not None:
            return found
        lock = self._wait(f"{int(key[:8], 16) % LOCKS:02d}")
        if lock is None:
            return self.find(key) or self._keep(key, make())
        try:
            with beating(lock):
                return self.find(key) or self._keep(key, make())
        finally:
            HELD.close(lock)

    def _wait(self, name: str) -> int | None:
        """Wait for a lock; None where none can be had, so that the work is done twice at worst."""
        heard = now = time.monotonic()
        end, sign = now + LONGEST_WAIT, 0
        while now < end and now - heard < LONGEST_SILENCE:
            try:
                lock = self._private.lock(name)
                latest = self._private.last_sign(name)
            except OSError:
                return None
            if lock is not None:
                return lock
            time.sleep(_PAUSE)
            now = time.monotonic()
            if latest != sign:
                heard, sign = now, latest
        return None

    def find(self, key: str) -> Image | Wanted | None:
        """An image that is there and whole; its note then says that it was used now."""
        file = self._private.open(f"{key}.image")
        if file is None:
            return None
        with file:
            state = _state(os.fstat(file.fileno()))
            note = self._read_json(f"{key}.note")
            try:
                image = read_image(file, trusted=note.get("state") == state)
            except FormatError as error:
                _log.info("%s: %s", self.folder / f"{key}.image", error)
                return None
        with suppress(OSError):
            if note.get("state") == state:
                os.utime(self.folder / f"{key}.note")
            else:
                self._write_json(f"{key}.note", {"model": image.model, "state": state})
        return image

    def entries(self) -> list[Entry]:
        """What is there, the latest used first.

        >>> Cache(Path("no/such/folder")).entries()
        []
        """
        found = []
        for name, status in self._files():
            key, _, suffix = name.rpartition(".")
            if suffix == "image":
                note = self.folder / f"{key}.note"
                used = note.stat().st_mtime if note.exists() else status.st_mtime
                found.append(
                    Entry(
                        key, self._read_json(f"{key}.note").get("model", ""), status.st_size, used
                    )
                )
        return sorted(found, key=lambda entry: -entry.used)

    def clear(self) -> int:
        """Remove everything; returns how many bytes were freed."""
        freed = 0
        for name, status in self._files():
            if name.endswith((".image", ".note", ".digest", ".tmp", "usage")):
                (self.folder / name).unlink(missing_ok=True)
                freed += status.st_size
        return freed

    def digest_files(
        self, path: Path, others: Callable[[], list[Path]]
    ) -> tuple[str, dict[str, str]]:
        """The digest of a model's file and of the `others` that its weights lie in, and the state
        that each of them has.

        It is remembered for files that do not change: by place, size, times and inode.
        """
        usable = not self.problem()
        name = f"{digest_parts([str(path.absolute())])}.digest"
        known = self._read_json(name) if usable else {}
        states = known.get("files", {})
        if states and all(file_state(item) == state for item, state in states.items()):
            return str(known["digest"]), states
        files = [path, *others()]
        states = {str(item.absolute()): file_state(str(item)) for item in files}
        digest = digest_parts([_digest(item) for item in files])
        if any(file_state(item) != state for item, state in states.items()):
            raise ChangedFileError(
                f"'{path}' or its weights change while they are read",
                hint="open the model when it is complete",
            )
        settled = all(time.time() - item.stat().st_mtime > SETTLED for item in files)
        if usable and settled:
            with suppress(OSError):
                self._write_json(name, {"digest": digest, "files": states})
        return digest, states

    def _keep(self, key: str, image: Image | Wanted) -> Image | Wanted:
        """Write an image; the one on disk, whose memory is shared, takes the place of the given."""
        size = sum(getattr(item, "nbytes", 0) for item in image.constants)
        if size > self.limit:
            _log.info("an image of %d bytes is not kept: the limit is %d", size, self.limit)
            return image
        try:
            with self._private.replacing(f"{key}.image") as file:
                write_image(image, file)
            status = os.lstat(self.folder / f"{key}.image")
            self._write_json(f"{key}.note", {"model": image.model, "state": _state(status)})
            self._make_room(status.st_size, key)
        except OSError as error:
            _log.warning("the cache %s is not used: %s", self.folder, error.strerror or error)
            return image
        return self.find(key) or image

    def _make_room(self, added: int, kept: str) -> None:
        """Remove the longest unused images where all together take too much."""
        total = self._read_json("usage").get("bytes", self.limit) + added
        if total > self.limit:
            wanted = self.limit - self.limit // 10
            entries = [entry for entry in self.entries() if entry.key != kept]
            total = added + sum(entry.size for entry in entries)
            while entries and total > wanted:
                entry = entries.pop()
                for suffix in ("image", "note"):
                    (self.folder / f"{entry.key}.{suffix}").unlink(missing_ok=True)
                total -= entry.size
            for name, status in self._files():
                if name.endswith(".tmp") and time.time() - status.st_mtime > _OLD:
                    (self.folder / name).unlink(missing_ok=True)
        self._write_json("usage", {"bytes": total})

    def _files(self) -> Iterator[tuple[str, os.stat_result]]:
        try:
            names = sorted(os.listdir(self.folder))
        except OSError:
            return
        for name in names:
            try:
                yield name, os.lstat(self.folder / name)
            except OSError:
                continue

    def _read_json(self, name: str) -> dict[str, Any]:
        file = self._private.open(name)
        if file is None:
            return {}
        with file:
            try:
                found = json.loads(file.read())
            except ValueError:
                return {}
        return found if isinstance(found, dict) else {}

    def _write_json(self, name: str, content: dict[str, Any]) -> None:
        with self._private.replacing(name) as file:
            file.write(json.dumps(content).encode())


def _state(found: os.stat_result) -> str:
    """What is another whenever a file's content may be: its times, inode, the machine's start."""
    return f"{_start_of_machine()} {_identity(found)}"


def file_state(path: str) -> str:
    """What is another whenever the file at a path, or its content, may be; nothing for none."""
    try:
        return _identity(os.stat(path))
    except OSError:
        return ""


def _identity(found: os.stat_result) -> str:
    return f"{found.st_dev} {found.st_ino} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}"


def _digest(path: Path) -> str:
    try:
        return digest_file(path)
    except OSError as error:
        raise FormatError(f"cannot read '{path}': {error.strerror}", hint="check it") from None


@cache
def _start_of_machine() -> str:
    """One word as long as the machine runs; where it has none to tell, one for this process."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return os.urandom(8).hex()
