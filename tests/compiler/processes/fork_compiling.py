"""Children made while another thread compiles, with a cache and without, can compile too."""

import itertools
import os
import tempfile
import threading
from pathlib import Path

import sardonyx as sx
from sardonyx.compiler.cache import Cache
from sardonyx.compiler.program import compile_model

TEXT = """<ir_version: 10, opset_import: ["": 21]>
g (float[n, 8] x) => (float[n, 8] y) { c = Constant <value_float = %d.0> () a = Mul(x, c)
 b = Softmax(a) y = Erf(b) }"""
FOLDER = Path(tempfile.mkdtemp())
over = threading.Event()


def compile_one(number: int, *, kept: bool) -> None:
    """Compile a model that no other number has."""
    cache = Cache(FOLDER) if kept else None
    compile_model(sx.load_text(TEXT % number), threads=1, cache=cache)


def work(*, kept: bool) -> None:
    """Compile one model after another."""
    for number in itertools.count():
        if over.is_set():
            return
        compile_one(number, kept=kept)


compile_one(-1, kept=True)  # what is imported late is there before a fork could cut it off
workers = [threading.Thread(target=work, kwargs={"kept": kept}) for kept in (True, False)]
for worker in workers:
    worker.start()
statuses = []
for number in range(10):
    child = os.fork()
    if not child:
        compile_one(1000 + number, kept=False)
        for other in range(4):
            compile_one(2000 + 10 * number + other, kept=True)
        os._exit(0)
    statuses.append(os.waitpid(child, 0)[1])
over.set()
for worker in workers:
    worker.join()
assert statuses == [0] * 10
