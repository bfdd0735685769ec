"""Work for other threads, which is done here where no thread is to be had."""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from typing import TypeVar

Made = TypeVar("Made")


def submit(pool: Executor, work: Callable[[], Made]) -> Future[Made]:
    """Give work to a pool; who needs the result should `cancel` first, and do it if that helped.

    A system that starts no more threads, or an interpreter about to end, leaves it waiting.
    """
    future: Future[Made] = Future()

    def run() -> None:
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(work())
            except BaseException as error:  # noqa: BLE001 - whoever asks for the result gets it
                future.set_exception(error)

    with suppress(RuntimeError):
        pool.submit(run)
    return future
