"""Running models: sessions, options, values, providers."""

from sardonyx.runtime.binding import IOBinding
from sardonyx.runtime.options import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    RunOptions,
    SessionOptions,
)
from sardonyx.runtime.providers import get_available_providers
from sardonyx.runtime.session import InferenceSession, ModelMetadata, NodeArg
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
    "SessionOptions",
    "get_available_providers",
]
