"""Where the system starts no more threads, those that there are do the work."""

import logging
import resource
from pathlib import Path

from sardonyx.compiler.threads import POOL
from tests.compiler.sharing import feeds, program, run

logging.getLogger("sardonyx").setLevel(logging.ERROR)
expected = run(2)
program(64).run(feeds(1))
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
_, hard = resource.getrlimit(resource.RLIMIT_AS)
limit = used + (64 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
if resource.getrlimit(resource.RLIMIT_AS)[0] != limit:
    print("this system, or an emulator, does not limit a process's memory")
    raise SystemExit(77)
assert run(64) == expected
assert 1 <= POOL.workers < 63 == POOL.asked
assert run(64) == expected
