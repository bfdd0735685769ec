"""A sign of life where something takes long: a bar on a terminal, else a line in the log."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from logging import INFO
from typing import Any

from sardonyx.runtime.options import SessionOptions

PATIENCE = 1.0
"""Seconds after which a sign is given."""


@contextmanager
def signs_of_life(what: str, options: SessionOptions, patience: float = PATIENCE) -> Iterator[None]:
    """While this is open for longer than `patience`, say that `what` goes on, and at last how long.

    >>> with signs_of_life("compiling", SessionOptions()):
    ...     pass
    """
    done = threading.Event()
    start = time.perf_counter()
    on_terminal = sys.stderr is not None and sys.stderr.isatty()

    def wait() -> None:
        if done.wait(patience):
            return
        if on_terminal:
            _show_bar(what, done)
        else:
            options.say(INFO, "%s takes a while", what)

    teller = threading.Thread(target=wait, daemon=True, name="sardonyx-progress")
    with suppress(RuntimeError):  # no thread is to be had: then nobody tells
        teller.start()
    try:
        yield
    finally:
        done.set()
        if teller.ident is not None:
            teller.join()
        seconds = time.perf_counter() - start
        if seconds >= patience:
            options.say(INFO, "%s took %.1f seconds", what, seconds)


def _show_bar(what: str, done: threading.Event) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns: tuple[Any, ...] = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        bar.add_task(what, total=None)
        done.wait()
