"""A process that may use one processor does not spin, and two threads still agree with one."""

import ctypes
import os

os.sched_setaffinity(0, list(os.sched_getaffinity(0))[:1])

from sardonyx.compiler.pool_record import POOL_SPIN  # noqa: E402
from sardonyx.compiler.processors import available_processors  # noqa: E402
from sardonyx.compiler.threads import POOL  # noqa: E402
from tests.compiler.sharing import run  # noqa: E402

assert available_processors() == 1
assert ctypes.c_int64.from_address(POOL.address + POOL_SPIN).value == 0
expected = run(1)
assert all(run(3) == expected for _ in range(20))
