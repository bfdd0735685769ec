"""Convert models between versions of the default operator set.

>>> from sardonyx.compat import onnx
>>> text = '<ir_version: 7, opset_import: ["": 11]> g (float[2] x) => (float[2] y) { y = Relu(x) }'
>>> converted = onnx.version_converter.convert_version(onnx.parser.parse_model(text), 21)
>>> converted.opset_import[0].version
21
"""

from sardonyx.compat.onnx.onnx_ml_pb2 import ModelProto
from sardonyx.errors import SardonyxError
from sardonyx.format.files import DataFolder
from sardonyx.format.read import read_model
from sardonyx.format.write import write_model
from sardonyx.ops.convert import convert_opset

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
        converted = convert_opset(
            read_model(content, "the model", DataFolder(None).open), target_version
        )
    except SardonyxError as error:
        raise _NotSaidError(str(error)) from error
    return ModelProto.FromString(write_model(converted).joined())
