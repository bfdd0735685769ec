"""Small models that ask for unbounded time or memory end soon: with a result, or our errors."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sardonyx as sx
from tests.scale.children import outcome
from tests.scale.hostile import CASES

ROOT = Path(__file__).parents[2]
WORK_LIMIT = 1 << 32
"""Elementary operations that a run may take: a few seconds."""


def _session(provider: str) -> Callable[[bytes], object]:
    def call(content: bytes) -> object:
        options = sx.SessionOptions()
        options.add_session_config_entry("sardonyx.cache", "off")
        options.add_session_config_entry("sardonyx.work_limit", str(WORK_LIMIT))
        session = sx.InferenceSession(content, options, providers=[provider])
        return session.run(None, {item.name: _fed(item) for item in session.get_inputs()})

    return call


def _fed(item: Any) -> Any:
    shape = [size if isinstance(size, int) else 3 for size in item.shape or ()]
    if "string" in item.type:
        return np.full(shape, "a" * 2000 + "x", object)
    kinds = {"tensor(int64)": np.int64, "tensor(bool)": np.bool_}
    return np.ones(shape, kinds.get(item.type, np.float32))


CALLS: dict[str, Callable[[bytes], object]] = {
    "check": lambda content: sx.find_problems(sx.load(content)),
    "infer": lambda content: sx.infer_shapes(sx.load(content)),
    "simplify": lambda content: sx.simplify(sx.load(content)),
    "convert": lambda content: sx.convert_opset(sx.load(content), 17),
    "summarize": lambda content: sx.summarize(sx.load(content)),
    "view": lambda content: sx.render_html(sx.load(content)),
}


SECONDS = 20
"""Of a slow processor, for whatever ends by itself or by a limit."""


SAMPLED = 5
"""Every so many of the models are tried in a short run of the tests."""


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=[pytest.mark.slow] if number % SAMPLED else [])
     for number, case in enumerate(CASES)],
)  # fmt: skip
def test_it_ends(case: str) -> None:
    content = CASES[case]().SerializeToString()
    calls = CALLS | {name: _session(f"{name}ExecutionProvider") for name in ("CPU", "Reference")}
    wrong = {}
    for name, call in calls.items():
        found = outcome(lambda call=call: call(content), SECONDS)
        if (found != "done" and not found.split(":")[0].endswith("Error")) or found.startswith(
            "foreign"
        ):
            wrong[name] = found
    assert not wrong


OPTIMIZED = """
import numpy as np
import sardonyx as sx
from tests.scale.broken import BROKEN
if __debug__:
    raise SystemExit("assertions are on")
for name, make in BROKEN.items():
    for provider in ("CPU", "Reference"):
        try:
            session = sx.InferenceSession(
                make().SerializeToString(), providers=[f"{provider}ExecutionProvider"])
            session.run(None, {item.name: np.ones(2, np.float32) for item in session.get_inputs()})
            print(name, provider, "ran")
        except sx.SardonyxError as error:
            print(name, provider, type(error).__name__)
"""


def test_broken_models_without_assertions() -> None:
    """Under `python -O` what is wrong with a model is an error, too, and nothing waits for it."""
    done = subprocess.run(
        [sys.executable, "-O", "-c", OPTIMIZED], capture_output=True, text=True, timeout=120,
        cwd=ROOT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 2 * 9
    assert not [line for line in lines if line.endswith("ran")]
