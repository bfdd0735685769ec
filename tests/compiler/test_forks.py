"""Forks while other threads work: what a child must not inherit."""

import importlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from sardonyx.compiler.forks import FORKS
from sardonyx.record import once

FORK = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")


def in_child(work: Callable[[], object]) -> int:
    """The status of a child that does something, killed where that takes a minute."""
    child = os.fork()
    if not child:
        import signal

        signal.alarm(60)
        work()
        os._exit(0)
    return os.waitpid(child, 0)[1]


@FORK
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_can_import_what_another_thread_was_importing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "imported_slowly.py").write_text("import time\ntime.sleep(0.5)\n")
    monkeypatch.syspath_prepend(tmp_path)
    thread = threading.Thread(target=importlib.import_module, args=("imported_slowly",))
    thread.start()
    while "imported_slowly" not in sys.modules:
        pass
    assert in_child(lambda: importlib.import_module("imported_slowly")) == 0
    thread.join()


@FORK
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_can_compute_what_another_thread_was_computing() -> None:
    begun, over = threading.Event(), threading.Event()

    class Slow:
        @once
        def found(self) -> int:
            if threading.current_thread() is thread:
                begun.set()
                over.wait(60)
            return 1

    thread = threading.Thread(target=lambda: Slow().found)
    thread.start()
    assert begun.wait(60)
    assert in_child(lambda: Slow().found) == 0
    over.set()
    thread.join()


@FORK
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_work_that_never_pauses_does_not_keep_forks_waiting() -> None:
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            with FORKS.held_off(), FORKS.held_off():
                over.wait(0.01)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert in_child(lambda: FORKS.held_off().__enter__()) == 0
    over.set()
    for thread in threads:
        thread.join()


@pytest.mark.slow
@FORK
def test_a_thousand_children_of_busy_processes() -> None:
    command = [sys.executable, "-m", "tests.compiler.processes.fork_importing", "1000"]
    assert subprocess.run(command, cwd=Path(__file__).parents[2], check=False).returncode == 0
