"""Which cache of compiled programs a session uses: as its options say, else the environment."""

import os
import sys
from collections.abc import Mapping
from logging import getLogger
from pathlib import Path

from sardonyx.compiler.cache import DEFAULT_LIMIT, Cache
from sardonyx.errors import InputError
from sardonyx.runtime.options import SessionOptions

FOLDER_ENTRY = "sardonyx.cache"
"""Configuration entry: a folder, or `off`."""
LIMIT_ENTRY = "sardonyx.cache_limit"
"""Configuration entry: bytes that all programs together may take."""
VARIABLE = "SARDONYX_CACHE"
"""Environment variable: a folder, or `off`."""
OFF = "off"
_log = getLogger("sardonyx")


def open_cache(
    options: SessionOptions | None = None, environment: Mapping[str, str] = os.environ
) -> Cache | None:
    """The cache of compiled programs, to list and to clear too; None where it is turned off.

    >>> options = SessionOptions()
    >>> options.add_session_config_entry("sardonyx.cache", "off")
    >>> open_cache(options) is None
    True
    """
    said = _entry(options, FOLDER_ENTRY) or environment.get(VARIABLE, "")
    if said.lower() == OFF:
        return None
    limit = _entry(options, LIMIT_ENTRY) or str(DEFAULT_LIMIT)
    if not limit.isdecimal():
        raise InputError(
            f"the configuration entry {LIMIT_ENTRY} is '{limit}'", hint="give a number of bytes"
        )
    try:
        folder = Path(said) if said else usual_folder(environment)
    except RuntimeError:
        _log.warning("programs are not kept: there is no home folder; set %s to a folder", VARIABLE)
        return None
    return Cache(folder, int(limit))


def usual_folder(environment: Mapping[str, str]) -> Path:
    """Where this system keeps a user's caches.

    >>> usual_folder({"XDG_CACHE_HOME": "/caches"}).as_posix()
    '/caches/sardonyx'
    """
    if sys.platform == "win32":
        return Path(environment.get("LOCALAPPDATA") or Path.home() / "AppData/Local") / "sardonyx"
    if environment.get("XDG_CACHE_HOME"):
        return Path(environment["XDG_CACHE_HOME"]) / "sardonyx"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "sardonyx"
    return Path.home() / ".cache" / "sardonyx"


def _entry(options: SessionOptions | None, key: str) -> str:
    return "" if options is None else options.entry(key)
