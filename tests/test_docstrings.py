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


PUBLIC = sorted(set(sardonyx.__all__) - {"__version__"})


def parts(name: str) -> dict[str, object]:
    """A public name with what it holds: for a class its methods and properties, inherited ones of
    ours too."""
    value = getattr(sardonyx, name)
    found = {name: value}
    for parent in value.__mro__ if inspect.isclass(value) else ():
        if parent.__module__.split(".")[0] != "sardonyx":
            continue
        for key, item in vars(parent).items():
            plain = getattr(item, "__func__", item)
            if not key.startswith("_") and isinstance(plain, types.FunctionType | property):
                found.setdefault(f"{name}.{key}", plain)
    return found


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_are_documented(name: str) -> None:
    missing = [key for key, value in parts(name).items() if not getattr(value, "__doc__", None)]
    assert missing == []


@pytest.mark.parametrize(
    "name", [name for name in PUBLIC if isinstance(getattr(sardonyx, name), types.FunctionType)]
)
def test_public_functions_have_an_example_that_runs(name: str) -> None:
    function = getattr(sardonyx, name)
    home = importlib.import_module(function.__module__)
    (found,) = doctest.DocTestFinder(recurse=False).find(function, name, module=home)
    assert found.examples, f"{name} has no example"
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    assert runner.run(found).failed == 0
