"""The graph: models as objects, safe to change, without operators or bytes."""

from sardonyx.graph.attribute import Attribute, AttributeType
from sardonyx.graph.graph import Declaration, Graph, Outputs, QuantizationAnnotation
from sardonyx.graph.model import Function, FunctionKey, Model, Opsets, TrainingInfo
from sardonyx.graph.node import Node, Use, Value
from sardonyx.graph.nodes import NodeList
from sardonyx.graph.tensor import ArrayData, Data, SparseTensor, Tensor
from sardonyx.graph.types import (
    Dimension,
    MapType,
    OpaqueType,
    OptionalType,
    SequenceType,
    Shape,
    SparseTensorType,
    TensorType,
    Type,
)

__all__ = [
    "ArrayData",
    "Attribute",
    "AttributeType",
    "Data",
    "Declaration",
    "Dimension",
    "Function",
    "FunctionKey",
    "Graph",
    "MapType",
    "Model",
    "Node",
    "NodeList",
    "OpaqueType",
    "Opsets",
    "OptionalType",
    "Outputs",
    "QuantizationAnnotation",
    "SequenceType",
    "Shape",
    "SparseTensor",
    "SparseTensorType",
    "Tensor",
    "TensorType",
    "TrainingInfo",
    "Type",
    "Use",
    "Value",
]
