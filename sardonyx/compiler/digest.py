"""What stands for a model, a compiler and a processor in the names of cached images.

Content is hashed as a whole (SHA-256): no two models share a name, whatever their files are called.
"""

import hashlib
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from sardonyx.compiler.host import host_identity, llvm_identity
from sardonyx.compiler.targets import Target
from sardonyx.format.storage import ExternalData
from sardonyx.format.write import write_model
from sardonyx.graph import Model
from sardonyx.version import VERSION

_NO_PART = frozenset(["__pycache__", "checker", "cli", "compat", "runtime", "viewer"])
"""Folders beside this one that have no part in compiling."""


def digest_parts(parts: Iterable[str]) -> str:
    """One digest of several words, in order.

    >>> digest_parts(["ab", "c"]) == digest_parts(["a", "bc"])
    False
    """
    words = [word.encode() for word in parts]
    joined = b"".join(len(word).to_bytes(8, "little") + word for word in words)
    return hashlib.sha256(joined).hexdigest()


def digest_model(model: Model) -> str:
    """The digest of a model's content, weights in other files included."""
    found = hashlib.sha256()
    for piece in write_model(model).finish():
        found.update(piece)
    for tensor in model.tensors():
        if isinstance(tensor.data, ExternalData):
            found.update(tensor.data.buffer(tensor))
    return found.hexdigest()


def digest_file(path: Path) -> str:
    """The digest of a file's content."""
    with open(path, "rb", buffering=0) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def image_key(identity: str, specialize: bool, target: Target) -> str:
    """The name of a model's image: whatever changes the image changes it."""
    made_by = VERSION, package_identity(Path(__file__).parents[1]), *llvm_identity()
    choices = str(specialize), target.name, str(target.narrow), target.checked
    return digest_parts([identity, *choices, *made_by, *host_identity()])


@cache
def package_identity(root: Path) -> str:
    """What stands for the package at `root`: its installer's record, or else what its files show.

    A record has the digest of every file; a checkout has none, and there another size or time of a
    file means another compiler.
    """
    record = root.parent / f"{root.name}-{VERSION}.dist-info" / "RECORD"
    try:
        return hashlib.sha256(record.read_bytes()).hexdigest()
    except OSError:
        return _states(str(root))


def _states(root: str) -> str:
    """The sizes and times of the files that have a part in compiling."""
    found = []
    waiting = [root]
    while waiting:
        with os.scandir(waiting.pop()) as items:
            for item in items:
                if item.is_dir() and item.name not in _NO_PART:
                    waiting.append(item.path)
                elif item.name.endswith(".py"):
                    status = item.stat()
                    place = item.path[len(root) :]
                    found.append(f"{place} {status.st_size} {status.st_mtime_ns}")
    return digest_parts(sorted(found))
