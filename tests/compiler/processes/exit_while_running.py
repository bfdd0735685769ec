"""The interpreter ends while threads that nobody waits for run the model."""

import threading
import time

from tests.compiler.sharing import run


def work() -> None:
    """Run for ever."""
    while True:
        run(3)


run(3)
for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.3)
