"""What runs at the interpreter's end can still run the model, before and after workers end."""

import atexit
import sys

import sardonyx as sx


def early() -> None:
    """Registered before there was a pool, so that it runs when the pool is closed."""
    from sardonyx.compiler.threads import POOL
    from tests.compiler.sharing import run

    same = run(2) == run(1)
    if POOL.workers or not same:
        sys.exit("the pool is not closed, or the result is another")


atexit.register(early)
assert sx.load
from tests.compiler.sharing import run  # noqa: E402

run(2)
atexit.register(lambda: run(2))
