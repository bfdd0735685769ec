"""A model with enough work to share, for tests of threads."""

from functools import cache

import numpy as np

import sardonyx as sx
from sardonyx.compiler.program import Program, compile_model


def shared_model() -> sx.Model:
    """A product and a softmax, large enough for several threads."""
    return sx.load_text(
        '<ir_version: 10, opset_import: ["": 21]>'
        "g (float[n,96] x, float[96,300] w) => (float[n,300] y) {"
        " a = MatMul(x, w) y = Softmax<axis = 1>(a) }"
    )


def feeds(rows: int = 400) -> dict[str, np.ndarray]:
    """Inputs for it."""
    rng = np.random.default_rng(rows)
    return {
        "x": rng.standard_normal((rows, 96), np.float32),
        "w": rng.standard_normal((96, 300), np.float32),
    }


@cache
def program(threads: int) -> Program:
    """The model compiled."""
    return compile_model(shared_model(), threads=threads)


def run(threads: int) -> bytes:
    """The result's bytes."""
    result: np.ndarray = program(threads).run(feeds())[0]
    return result.tobytes()
