"""Convert models between versions of the default operator set.

>>> from sardonyx.compat import onnx
>>> text = '<ir_version: 7, opset_import: ["": 11]> g (float[2] x) => (float[2] y) { y = Relu(x) }'
>>> converted = onnx.version_converter.convert_version(onnx.parser.parse_model(text), 21)
>>> converted.opset_import[0].version
21
"""

from sardonyx.compat.onnx.onnx_ml_pb2 import ModelProto
from sardonyx.dims import HIDDEN
from sardonyx.errors import SardonyxError
from sardonyx.format.files import DataFolder
from sardonyx.format.read import read_model
from sardonyx.format.write import write_model
from sardonyx.graph import Model, TensorType, Value
from sardonyx.ops.convert import convert_opset
from sardonyx.ops.fact import to_type
from sardonyx.ops.infer import infer_facts

__all__ = ["ConvertError", "convert_version"]


class ConvertError(Exception):
    """A model cannot be said in the version asked for.

    >>> issubclass(ConvertError, RuntimeError)
    False
    """


class _NotSaidError(ConvertError, RuntimeError):
    """What is raised: also a RuntimeError, which is what onnx documents."""


def convert_version(model: ModelProto, target_version: int) -> ModelProto:
    """The model in `target_version` of the default operator set, higher or lower than its own.

    Raises a ConvertError that is also a RuntimeError, with each node that cannot be said in that
    version; so too where there is no such version.

    >>> from sardonyx.compat import onnx
    >>> text = '<ir_version: 7, opset_import: ["": 20]> g (float[2] x) => (y) { y = Gelu(x) }'
    >>> [node.op_type for node in convert_version(onnx.parser.parse_model(text), 19).graph.node][-1]
    'Mul'
    """
    if not isinstance(model, ModelProto):
        raise TypeError(f"convert_version takes a ModelProto, not {type(model).__name__}")
    if not isinstance(target_version, int):
        raise TypeError(f"target_version must be a number, not {type(target_version).__name__}")
    content = memoryview(model.SerializeToString())
    try:
        source = read_model(content, "the model", DataFolder(None).open)
        inputs = _fix_constants(source)
        converted = convert_opset(source, target_version)
    except SardonyxError as error:
        raise _NotSaidError(str(error)) from error
    _restore_inputs(converted, inputs)
    _complete_outputs(converted)
    return ModelProto.FromString(write_model(converted).joined())


def _fix_constants(model: Model) -> list[Value]:
    """Take constants for what they hold, though a caller could feed others; returns all inputs."""
    graph = model.graph
    if graph is None:
        return []
    inputs = graph.inputs
    graph.inputs = [value for value in inputs if value.tensor is None]
    return inputs


def _restore_inputs(model: Model, inputs: list[Value]) -> None:
    """Let constants be inputs again that were, in the old order, used or not."""
    graph = model.graph
    if graph is None:
        return
    known = {value.name: value for value in (*graph.initializers, *graph.inputs)}
    for value in inputs:
        if value.name not in known and value.tensor is not None:
            known[value.name] = graph.add_initializer(value.tensor.copy(), value.name)
            known[value.name].declared = value.declared
    graph.inputs = [known[value.name] for value in inputs]


def _complete_outputs(model: Model) -> None:
    """Declare shapes of outputs that have none, where they can be inferred."""
    graph = model.graph
    if graph is None or all(_has_shape(value) for value in graph.outputs):
        return
    facts = infer_facts(model)
    for value in graph.outputs:
        if not _has_shape(value) and value in facts:
            value.declared = to_type(facts[value], HIDDEN) or value.declared


def _has_shape(value: Value) -> bool:
    kind = value.type
    return kind is not None and (not isinstance(kind, TensorType) or kind.shape is not None)
