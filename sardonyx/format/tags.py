"""Tags of the fields, by message: field number and wire type in one, from the field table."""

from types import SimpleNamespace

from sardonyx.format.fields import Field, enums, messages
from sardonyx.format.wire import BYTES, FIXED32, FIXED64, VARINT, varint

_SCALAR_WIRES = {"float": FIXED32, "double": FIXED64, "string": BYTES, "bytes": BYTES}


def wire_kind(field: Field) -> int:
    """The wire type of one element of a field."""
    if field.kind in _SCALAR_WIRES:
        return _SCALAR_WIRES[field.kind]
    return BYTES if field.kind in messages() else VARINT


def _tags(message: str) -> SimpleNamespace:
    rows = messages()[message].fields
    tags = SimpleNamespace(**{row.name: row.number << 3 | wire_kind(row) for row in rows})
    tags.numbers = frozenset(row.number for row in rows)
    return tags


def packed(tag: int) -> int:
    """The tag the same field has in packed encoding."""
    return tag & ~7 | BYTES


def encoded(tag: int) -> bytes:
    """A tag's bytes."""
    return varint(tag)


ATTRIBUTE = _tags("AttributeProto")
DIMENSION = _tags("TensorShapeProto.Dimension")
ENTRY = _tags("StringStringEntryProto")
FUNCTION = _tags("FunctionProto")
GRAPH = _tags("GraphProto")
MAP = _tags("TypeProto.Map")
MODEL = _tags("ModelProto")
NODE = _tags("NodeProto")
OPAQUE = _tags("TypeProto.Opaque")
OPSET = _tags("OperatorSetIdProto")
QUANTIZATION = _tags("TensorAnnotation")
SEGMENT = _tags("TensorProto.Segment")
SEQUENCE = _tags("TypeProto.Sequence")
SHAPE = _tags("TensorShapeProto")
SPARSE = _tags("SparseTensorProto")
TENSOR = _tags("TensorProto")
TENSOR_TYPE = _tags("TypeProto.Tensor")
TRAINING = _tags("TrainingInfoProto")
TYPE = _tags("TypeProto")
VALUE = _tags("ValueInfoProto")

EXTERNAL = enums()["TensorProto.DataLocation"]["EXTERNAL"]
