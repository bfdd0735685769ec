"""Calls made in a child process that ends when it takes too long or too much memory."""

import os
import resource
import select
import signal
import time
from collections.abc import Callable

from sardonyx.errors import SardonyxError

LONGEST_WAIT = 300
"""Seconds after which a child that waits, and does not compute, is given up."""


def outcome(call: Callable[[], object], seconds: int = 5, memory: int = 8 << 30) -> str:
    """What comes of a call in a child: "done", one of our errors by name, or what went wrong.

    `seconds` are the processor's, so that a busy machine does not matter.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _run(call, writing, seconds, memory)
    os.close(writing)
    try:
        ready, _, _ = select.select([reading], [], [], LONGEST_WAIT)
        text = os.read(reading, 4096).decode() if ready else ""
    finally:
        os.close(reading)
        if not ready:
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    if text:
        return text
    limits = (signal.SIGXCPU, signal.SIGKILL)
    number = os.WTERMSIG(status)
    return "took too long" if number in limits else f"died of signal {number}"


def _run(call: Callable[[], object], writing: int, seconds: int, memory: int) -> None:
    """What the child does, which never returns."""
    used = int(time.process_time())
    resource.setrlimit(resource.RLIMIT_CPU, (used + seconds + 1, used + seconds + 2))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    try:
        call()
        text = "done"
    except SardonyxError as error:
        text = f"{type(error).__name__}: {error}"
    except BaseException as error:  # noqa: BLE001 - what else is raised is what is looked for
        text = f"foreign {type(error).__name__}: {error}"
    os.write(writing, text.encode()[:4096])
    os._exit(0)
