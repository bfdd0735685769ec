"""Which target and precision a session compiles for."""

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.errors import InputError
from sardonyx.runtime.targeting import asked_precision, asked_target


def wanted(name: str, entry: str = "sardonyx.target") -> sx.SessionOptions:
    options = sx.SessionOptions()
    options.add_session_config_entry(entry, name)
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


def test_a_session_computes_with_the_precision_asked_for() -> None:
    pixels = {"pixels": np.load("examples/digits_input.npy")[:1]}
    found = {}
    for name in ("highest", "high", "medium"):
        options = wanted(name, "sardonyx.precision")
        assert asked_precision(options) == name
        options.add_free_dimension_override_by_name("batch", 1)
        session = sx.InferenceSession("examples/digits.onnx", options)
        found[name] = session.run(None, pixels)[0]
    np.testing.assert_array_equal(found["high"], found["highest"])
    assert 0 < np.abs(found["medium"] - found["highest"]).max() < 0.05


def test_an_unknown_precision_is_an_error() -> None:
    with pytest.raises(InputError, match=r"no precision 'low'; choose one of: highest, high, med"):
        sx.InferenceSession("examples/digits.onnx", wanted("low", "sardonyx.precision"))
