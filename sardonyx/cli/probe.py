"""Whether a target's machine code runs here: tried in a process of its own, which may die of it.

`python -m sardonyx.cli.probe TARGET` compiles a small model for the target and compares results.
"""

import signal
import subprocess
import sys

import numpy as np

import sardonyx as sx
from sardonyx.compiler.host import host_features
from sardonyx.compiler.program import compile_model
from sardonyx.compiler.targets import TARGETS

_MODEL = """<ir_version: 10, opset_import: ["": 21]>
g (float[n,40] x, float[40,33] w) => (float[n,33] y) { p = MatMul(x, w)  y = Softmax(p) }"""
_PATIENCE = 60


def probe_targets() -> dict[str, str]:
    """For each target of this machine's kind: `runs`, or what went wrong.

    >>> probe_targets()["generic"]
    'runs'
    """
    fitting = [target.name for target in TARGETS if host_features().issuperset(target.needs)]
    running = {
        name: subprocess.Popen(
            [sys.executable, "-m", "sardonyx.cli.probe", name],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in fitting
    }
    return {name: _outcome(process) for name, process in running.items()}


def _outcome(process: "subprocess.Popen[str]") -> str:
    try:
        _, said = process.communicate(timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return f"did not end within {_PATIENCE} s"
    if process.returncode < 0:
        return f"died of {signal.Signals(-process.returncode).name}"
    return "runs" if process.returncode == 0 else (said.strip().splitlines() or ["failed"])[-1]


def try_target(name: str) -> bool:
    """True where a model compiled for the target gives the results it should."""
    model = sx.load_text(_MODEL)
    chance = np.random.default_rng(0)
    feeds = {
        "x": chance.standard_normal((13, 40), np.float32),
        "w": chance.standard_normal((40, 33), np.float32),
    }
    (found,) = compile_model(model, target=name).run(feeds)
    return bool(np.allclose(found, sx.evaluate(model, feeds)[0], rtol=1e-4, atol=1e-6))


if __name__ == "__main__":
    sys.exit(0 if try_target(sys.argv[1]) else "gives wrong results")
