"""Running models: sessions, options, values, providers."""

from sardonyx.runtime.binding import IOBinding
from sardonyx.runtime.defaults import set_seed
from sardonyx.runtime.describe import ModelMetadata, NodeArg
from sardonyx.runtime.operators import c_operator, custom_operator
from sardonyx.runtime.options import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    RunOptions,
    SessionOptions,
)
from sardonyx.runtime.profile import RunProfile
from sardonyx.runtime.providers import get_available_providers
from sardonyx.runtime.session import InferenceSession
from sardonyx.runtime.sparse import SparseValue
from sardonyx.runtime.values import OrtValue

__all__ = [
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "ModelMetadata",
    "NodeArg",
    "OrtValue",
    "RunOptions",
    "RunProfile",
    "SessionOptions",
    "SparseValue",
    "c_operator",
    "custom_operator",
    "get_available_providers",
    "set_seed",
]
