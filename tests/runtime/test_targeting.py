"""Which target a session compiles for."""

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.errors import InputError
from sardonyx.runtime.targeting import asked_target


def wanted(name: str) -> sx.SessionOptions:
    options = sx.SessionOptions()
    options.add_session_config_entry("sardonyx.target", name)
    return options


def test_options_come_before_the_environment() -> None:
    assert asked_target(sx.SessionOptions(), {}) is None
    assert asked_target(sx.SessionOptions(), {"SARDONYX_TARGET": "generic"}) == "generic"
    assert asked_target(wanted("generic"), {"SARDONYX_TARGET": "nothing"}) == "generic"


def test_an_unknown_target_is_an_error_and_no_reason_to_run_slowly() -> None:
    with pytest.raises(InputError, match=r"does not run the target 'z80'; it runs: .*generic"):
        sx.InferenceSession("examples/digits.onnx", wanted("z80"))


def test_a_session_compiles_for_the_target(monkeypatch: pytest.MonkeyPatch) -> None:
    pixels = {"pixels": np.load("examples/digits_input.npy")}
    best = sx.InferenceSession("examples/digits.onnx").run(None, pixels)[0]
    monkeypatch.setenv("SARDONYX_TARGET", "generic")
    session = sx.InferenceSession("examples/digits.onnx")
    assert session._runner._program._tables.target == "generic"
    np.testing.assert_allclose(session.run(None, pixels)[0], best, rtol=1e-5)
