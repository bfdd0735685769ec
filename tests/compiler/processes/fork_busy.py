"""Children made while other threads run the model find a pool that works."""

import os
import threading

from tests.compiler.sharing import run

expected = run(2)
over = threading.Event()


def work() -> None:
    """Run until the end, and check every result."""
    while not over.is_set():
        assert run(2) == expected


workers = [threading.Thread(target=work) for _ in range(2)]
for worker in workers:
    worker.start()
statuses = []
for _ in range(10):
    child = os.fork()
    if not child:
        os._exit(0 if all(run(2) == expected for _ in range(5)) else 1)
    statuses.append(os.waitpid(child, 0)[1])
over.set()
for worker in workers:
    worker.join()
assert statuses == [0] * 10
