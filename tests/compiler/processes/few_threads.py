"""One thread, or little work, starts no workers; nor does compiling."""

from sardonyx.compiler.threads import POOL
from tests.compiler.sharing import feeds, program, run

alone = run(1)
program(2).run(feeds(1))
assert POOL.workers == POOL.asked == 0
assert run(2) == alone
assert POOL.workers == 1
