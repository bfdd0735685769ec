"""Every example in a docstring runs, and every public name has one."""

import doctest
import importlib
import inspect
import pkgutil
import types

import pytest

import sardonyx

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(sardonyx.__path__, "sardonyx.")
    if not module.name.startswith("sardonyx.compat.onnx.onnx_")
)


@pytest.mark.parametrize("name", ["sardonyx", *MODULES])
def test_examples_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module(name)
    finder = doctest.DocTestFinder(exclude_empty=True)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for test in finder.find(module, name, extraglobs={}):
        runner.run(test)
    assert runner.failures == 0


@pytest.mark.parametrize("name", sorted(set(sardonyx.__all__) - {"__version__"}))
def test_public_names_are_documented(name: str) -> None:
    value = getattr(sardonyx, name)
    assert inspect.getdoc(value), f"{name} has no docstring"
    if isinstance(value, types.FunctionType):
        assert ">>>" in inspect.getdoc(value), f"{name} has no example"
