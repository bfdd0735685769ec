"""Models from text for either module, and the real `onnx` in the place of modules not written yet.

A stand-in is used only while its module does not exist, so the cases here then test that module.
"""

import importlib.util
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import onnx as real
import pytest

from sardonyx.compat import onnx as ours


def _parse(message: Any, parse: Any, text: str) -> Any:
    try:
        return message.FromString(parse(text).SerializeToString())
    except real.parser.ParseError as error:
        pytest.fail(f"the text of this case is wrong: {error}")


def model(o: Any, text: str) -> Any:
    """The model in ONNX's textual syntax as a message of module `o`."""
    return _parse(o.ModelProto, real.parser.parse_model, text)


def graph(o: Any, text: str) -> Any:
    """The graph in ONNX's textual syntax as a message of module `o`."""
    return _parse(o.GraphProto, real.parser.parse_graph, text)


def function(o: Any, text: str) -> Any:
    """The function in ONNX's textual syntax as a message of module `o`."""
    return _parse(o.FunctionProto, real.parser.parse_function, text)


def _to_real(proto: Any) -> Any:
    return real.ModelProto.FromString(proto.SerializeToString())


def _to_ours(proto: Any) -> Any:
    return ours.ModelProto.FromString(proto.SerializeToString())


def _check_model(target: Any, *arguments: Any, **options: Any) -> None:
    is_message = hasattr(target, "SerializeToString")
    real.checker.check_model(_to_real(target) if is_message else target, *arguments, **options)


def _infer_shapes(target: Any, *arguments: Any, **options: Any) -> Any:
    return _to_ours(real.shape_inference.infer_shapes(_to_real(target), *arguments, **options))


def _convert_version(target: Any, version: int) -> Any:
    return _to_ours(real.version_converter.convert_version(_to_real(target), version))


def _function_body(
    domain: str, op_type: str, node: bytes, opset_imports: dict[str, int], *, input_types: Any
) -> bytes | None:
    version = opset_imports[domain]
    try:
        schema = real.defs.get_schema(op_type, version, domain)
    except real.defs.SchemaError:
        return None
    bodies = [each for each in schema.function_opset_versions if each <= version]
    if bodies:
        return schema.get_function_with_opset_version(max(bodies))
    builders = schema.context_dependent_function_opset_versions
    if builders:
        newest = max(each for each in builders if each <= version)
        types = input_types()
        body = schema.get_context_dependent_function_with_opset_version(newest, node, types)
        return body or None
    return None


def _module(name: str, **content: Any) -> ModuleType:
    module = ModuleType(name)
    module.__dict__.update(content)
    return module


def _stand_ins() -> list[ModuleType]:
    package = "sardonyx.compat.onnx"
    return [
        _module(
            f"{package}.checker",
            check_model=_check_model,
            ValidationError=real.checker.ValidationError,
            MAXIMUM_PROTOBUF=real.checker.MAXIMUM_PROTOBUF,
        ),
        _module(
            f"{package}.shape_inference",
            infer_shapes=_infer_shapes,
            infer_shapes_path=real.shape_inference.infer_shapes_path,
        ),
        _module(f"{package}.version_converter", convert_version=_convert_version),
        _module("sardonyx.ops.functions", function_body=_function_body),
    ]


def _is_missing(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is None
    except (ModuleNotFoundError, ValueError):
        return True


@pytest.fixture(autouse=True)
def modules_to_come(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Put a stand-in where a module is missing, for the time of one test."""
    for module in _stand_ins():
        if _is_missing(module.__name__):
            package, _, name = module.__name__.rpartition(".")
            monkeypatch.setitem(sys.modules, module.__name__, module)
            monkeypatch.setattr(sys.modules[package], name, module, raising=False)
    yield
