"""A child starts workers of its own, also a child's child, and the parent keeps its own."""

import os

from sardonyx.compiler.threads import POOL
from tests.compiler.sharing import run

expected = run(2)
for depth in range(3):
    assert POOL.workers == 1
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        assert run(2) == expected and POOL.workers == 1
        raise SystemExit(os.waitstatus_to_exitcode(status))
    assert POOL.workers == 0
    assert all(run(2) == expected for _ in range(depth * 10 + 1))
