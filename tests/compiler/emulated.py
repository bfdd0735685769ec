"""A session with two threads gives the reference's results, in the process and in its child.

Run by `test_aarch64`; it says its machine, its target, and whether LLVM was needed.
"""

import os
import platform
import sys

import numpy as np

import sardonyx as sx
from sardonyx.compiler.host import host_target
from sardonyx.compiler.threads import POOL
from tests.compiler.sharing import feeds, shared_model


def main() -> None:
    """Compare, here and in a child, and say what did it."""
    model, given = shared_model(), feeds()
    options = sx.SessionOptions()
    options.intra_op_num_threads = 2
    session = sx.InferenceSession(model, options)
    [expected] = sx.evaluate(model, given)
    np.testing.assert_allclose(session.run(None, given)[0], expected, rtol=1e-3, atol=1e-3)
    assert POOL.workers == 1
    loaded = "llvmlite" in sys.modules
    child = os.fork()
    if child == 0:
        np.testing.assert_allclose(session.run(None, given)[0], expected, rtol=1e-3, atol=1e-3)
        os._exit(0 if POOL.workers == 1 else 1)
    assert os.waitpid(child, 0)[1] == 0
    print(platform.machine(), host_target().name, "llvm" if loaded else "cached")


if __name__ == "__main__":
    main()
