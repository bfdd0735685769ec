"""The modules as a whole: names, signatures, examples, imports and pickles."""

import doctest
import importlib
import inspect
import pickle
import subprocess
import sys
import warnings
from types import ModuleType
from typing import Any

import onnx as real
import pytest

from sardonyx.compat import onnx as ours

MODULES = (
    "",
    ".helper",
    ".numpy_helper",
    ".external_data_helper",
    ".model_container",
    ".serialization",
)
MESSAGE_MODULES = (
    ".onnx_pb",
    ".onnx_ml_pb2",
    ".onnx_data_pb",
    ".onnx_data_pb2",
    ".onnx_operators_pb",
    ".onnx_operators_ml_pb2",
)
OWN = (
    "_attributes",
    "_elements",
    "_errors",
    "_files",
    "_make",
    "_mapping",
    "_narrow",
    "_printable",
    "_representation",
    "_staging",
    "_tensors",
    "_types",
    "_versions",
    "external_data_helper",
    "helper",
    "mapping",
    "model_container",
    "numpy_helper",
    "serialization",
    "subbyte",
)
NOT_SERVED = {"gen_proto", "onnx_cpp2py_export"}
"""The script that generates protobuf sources, and the compiled extension."""


def public(module: ModuleType) -> dict[str, Any]:
    """What a module defines itself, or re-exports from its own package."""
    return {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (not isinstance(value, ModuleType) or value.__name__.startswith("onnx."))
        and not getattr(value, "__module__", "onnx").startswith(
            ("typing", "collections", "itertools")
        )
        and name not in {"annotations", "TYPE_CHECKING", "c_checker", "onnx_checker", "ext_data"}
    }


def functions() -> list[tuple[str, str]]:
    """Every public function of onnx, and every method of its classes, with its module."""
    found = []
    for suffix in MODULES:
        module = importlib.import_module(f"onnx{suffix}")
        for name, value in public(module).items():
            if inspect.isfunction(value) or hasattr(value, "__wrapped__"):
                found.append((suffix, name))
            elif inspect.isclass(value) and value.__module__ == f"onnx{suffix}":
                found += [
                    (suffix, f"{name}.{method}")
                    for method in vars(value)
                    if inspect.isfunction(vars(value)[method])
                    and (not method.startswith("_") or method == "__init__")
                ]
    return found


def find(package: str, suffix: str, path: str) -> Any:
    value = importlib.import_module(f"{package}{suffix}")
    for name in path.split("."):
        value = getattr(value, name)
    return value


def shape(function: Any) -> list[tuple[str, Any, Any]]:
    """The parameters without their annotations."""
    parameters = inspect.signature(function).parameters.values()
    return [(item.name, item.kind, item.default) for item in parameters]


def test_there_are_functions_to_compare() -> None:
    assert len(functions()) >= 90


@pytest.mark.parametrize(("suffix", "path"), functions())
def test_signatures(suffix: str, path: str) -> None:
    if path.startswith("ProtoSerializer.__init__"):
        pytest.skip("typing gives protocols this method")
    assert shape(find("sardonyx.compat.onnx", suffix, path)) == shape(find("onnx", suffix, path))


@pytest.mark.parametrize("suffix", (*MODULES, *MESSAGE_MODULES))
def test_names(suffix: str) -> None:
    module = importlib.import_module(f"sardonyx.compat.onnx{suffix}")
    expected = set(public(importlib.import_module(f"onnx{suffix}"))) - NOT_SERVED
    submodules = {name for name in expected if isinstance(getattr(real, name, None), ModuleType)}
    if suffix == ".external_data_helper":
        expected -= set(MESSAGES)
    missing = {name for name in expected - submodules if not hasattr(module, name)}
    assert not {name for name in missing if not name.startswith("onnx_dot_")}


def test_constants() -> None:
    for name, value in vars(real.onnx_ml_pb2).items():
        if isinstance(value, int):
            assert getattr(ours.onnx_pb, name, getattr(ours.onnx_ml_pb2, name)) == value
    assert ours.__version__ == real.__version__
    assert ours.ONNX_ML == real.ONNX_ML
    for name in ("Version", "OperatorStatus"):
        assert getattr(ours, name).items() == getattr(real, name).items()
    assert ours.TensorProto.DataType.items() == real.TensorProto.DataType.items()


MESSAGES = sorted(
    name
    for name in real.__all__
    if hasattr(getattr(real, name), "DESCRIPTOR") and name[0].isupper()
)


@pytest.mark.parametrize(
    "name", [name for name in MESSAGES if name not in ("Version", "OperatorStatus")]
)
def test_messages(name: str) -> None:
    def fields(package: Any) -> dict[str, tuple[Any, ...]]:
        return {
            field.name: (field.number, field.type, field.is_repeated, field.default_value or None)
            for field in getattr(package, name).DESCRIPTOR.fields
        }

    assert fields(ours) == fields(real)
    assert getattr(ours, name).DESCRIPTOR.full_name == f"onnx.{name}"


@pytest.mark.parametrize("name", OWN)
def test_examples(name: str) -> None:
    module = importlib.import_module(f"sardonyx.compat.onnx.{name}")
    with warnings.catch_warnings():
        result = doctest.testmod(module)
    assert result.failed == 0


@pytest.mark.parametrize(
    ("suffix", "path"), [found for found in functions() if "." not in found[1]]
)
def test_every_function_has_an_example(suffix: str, path: str) -> None:
    assert ">>>" in (find("sardonyx.compat.onnx", suffix, path).__doc__ or "")


def test_examples_of_the_package() -> None:
    assert doctest.testmod(ours).failed == 0


@pytest.mark.parametrize(
    "message",
    [
        ours.ModelProto(ir_version=3),
        ours.TensorShapeProto.Dimension(dim_param="n"),
        ours.TypeProto.Tensor(elem_type=1),
        ours.SequenceProto(name="s"),
        ours.OperatorSetProto(domain="d"),
    ],
    ids=lambda message: type(message).__qualname__,
)
def test_messages_can_be_pickled(message: Any) -> None:
    again = pickle.loads(pickle.dumps(message))
    assert type(again) is type(message)
    assert again == message


def test_unknown_names_are_ordinary_errors() -> None:
    with pytest.raises(AttributeError, match="nothing"):
        _ = ours.nothing
    with pytest.raises(ImportError):
        from sardonyx.compat.onnx import nothing  # noqa: F401
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("sardonyx.compat.onnx.nothing")
    assert {"helper", "load", "checker"} <= set(dir(ours))


def run(program: str) -> str:
    """What a new interpreter prints for `program`."""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_submodules_are_imported_when_used() -> None:
    program = (
        "import sys; from sardonyx.compat import onnx; "
        "before = 'sardonyx.compat.onnx.helper' in sys.modules; onnx.helper.make_node; "
        "print(before, 'sardonyx.compat.onnx.helper' in sys.modules, 'onnx' in sys.modules)"
    )
    assert run(program) == "False True False"


def test_installed_as_onnx() -> None:
    program = (
        "from sardonyx import compat; compat.install(); compat.install(); "
        "import onnx, onnx.helper; from onnx.numpy_helper import to_array; "
        "from sardonyx.compat.onnx import helper; "
        "print(onnx.__name__, onnx.helper is helper, onnx.__spec__.name, helper.__spec__.name)"
    )
    names = "sardonyx.compat.onnx True sardonyx.compat.onnx sardonyx.compat.onnx.helper"
    assert run(program) == names


def test_installed_too_late() -> None:
    program = (
        "import onnx; from sardonyx import compat\n"
        "try: compat.install()\n"
        "except ImportError as error: print(error)"
    )
    assert "already imported" in run(program)
