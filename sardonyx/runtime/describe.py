"""What a session tells of its model: inputs, outputs, types as onnxruntime writes them."""

from dataclasses import dataclass

from sardonyx.graph import (
    MapType,
    Model,
    OptionalType,
    SequenceType,
    SparseTensorType,
    TensorType,
    Type,
    Value,
)
from sardonyx.graph.types import element_text


@dataclass(frozen=True, slots=True)
class NodeArg:
    """An input or output of a model: its name, its type as text, and its shape.

    Sizes in `shape` are numbers, names of symbolic dimensions, or None.
    """

    name: str
    type: str
    shape: list[int | str | None]


@dataclass(frozen=True, slots=True)
class ModelMetadata:
    """What a model says about itself."""

    producer_name: str
    graph_name: str
    graph_description: str
    domain: str
    description: str
    version: int
    custom_metadata_map: dict[str, str]


def describe_model(model: Model) -> ModelMetadata:
    """What a model says about itself."""
    graph = model.graph
    assert graph is not None
    return ModelMetadata(
        model.producer_name, graph.name, graph.doc_string, model.domain, model.doc_string,
        model.model_version, dict(model.metadata),
    )  # fmt: skip


def describe_value(value: Value) -> NodeArg:
    """An input or output."""
    type_ = value.type
    shape = list(type_.shape or ()) if isinstance(type_, TensorType) else []
    return NodeArg(value.name, type_text(type_), shape)


def type_text(type_: Type | None) -> str:
    """A type as onnxruntime writes it.

    >>> from sardonyx.dtypes import DataType
    >>> type_text(SequenceType(TensorType(DataType.INT64, (2,))))
    'seq(tensor(int64))'
    """
    match type_:
        case SparseTensorType():
            return f"sparse_tensor({element_text(type_.element)})"
        case TensorType():
            return f"tensor({element_text(type_.element)})"
        case SequenceType():
            return f"seq({type_text(type_.element)})"
        case OptionalType():
            return f"optional({type_text(type_.element)})"
        case MapType():
            return f"map({element_text(type_.key)},{type_text(type_.value)})"
    return ""
