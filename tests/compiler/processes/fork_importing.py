"""Children made while other threads import, compile and run can do all that too.

`python -m tests.compiler.processes.fork_importing 1000` makes as many.
"""

import os
import subprocess
import sys
import time

EACH = 10
"""Children of one process, whose threads import everything once."""
LIMIT = 300.0
"""Seconds after which a child hangs."""
PARENT = """
import os, random, signal, threading, time
import sardonyx

TEXT = '''<ir_version: 10, opset_import: ["": 21]>
g (float[n, 8] x, int64[k] axes) => (float[n, 8] y, float[p, q] s) {
 c = Constant <value_float = %d.0> () a = Mul(x, c) b = Softmax(a) y = Erf(b)
 s = ReduceSum(x, axes) }'''
over = threading.Event()


def work(number):
    import numpy as np

    import sardonyx as sx

    options = sx.SessionOptions()
    options.add_session_config_entry("sardonyx.cache", "off")
    options.intra_op_num_threads = 2
    session = sx.InferenceSession(sx.load_text(TEXT % number), options)
    for rows in (1, 2000, 1):
        feeds = {"x": np.ones((rows, 8), np.float32), "axes": np.array([0])}
        session.run(None, feeds)


def work_on(number):
    while not over.is_set():
        work(number)
        number += 2


threads = [threading.Thread(target=work_on, args=(number,)) for number in range(2)]
for thread in threads:
    thread.start()
children = []
for number in range(EACH):
    time.sleep(random.random() * 0.15)
    child = os.fork()
    if not child:
        signal.alarm(LIMIT)
        work(100 + number)
        os._exit(0)
    children.append(child)
statuses = [os.waitpid(child, 0)[1] for child in children]
over.set()
for thread in threads:
    thread.join()
assert statuses == [0] * EACH, statuses
"""


def main(forks: int) -> None:
    """Make so many children."""
    source = PARENT.replace("EACH", str(EACH)).replace("LIMIT", str(int(LIMIT)))
    for _ in range(-(-forks // EACH)):
        begin = time.monotonic()
        command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", source]
        done = subprocess.run(command, env=os.environ, timeout=20 * LIMIT, check=False)
        assert done.returncode == 0, f"after {time.monotonic() - begin:.0f} s"


main(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
