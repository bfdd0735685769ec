"""A child of a `fork` that Python does not see has no workers, and works alone."""

import ctypes
import os

from tests.compiler.sharing import run

expected = run(3)
child = ctypes.PyDLL(None).fork()
if not child:
    os._exit(0 if all(run(3) == expected for _ in range(5)) else 1)
assert os.waitpid(child, 0)[1] == 0
assert run(3) == expected
