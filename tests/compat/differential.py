"""Run the same call on the real `onnx` and on `sardonyx.compat.onnx`, and compare what happens."""

import enum
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx as real
from google.protobuf.message import Message

from sardonyx.compat import onnx as ours

Call = Callable[[Any, Path], Any]


def outcome(call: Call, module: Any, folder: Path) -> Any:
    """A comparable description of what `call` returns or raises on `module`."""
    folder.mkdir()
    try:
        return describe(call(module, folder))
    except Exception as error:  # noqa: BLE001 - any exception is an outcome to compare
        return ("raises", [kind.__name__ for kind in type(error).__mro__])


def describe(value: Any) -> Any:
    """Messages, arrays, enumerations and containers of them as plain comparable data."""
    match value:
        case Message():
            return (value.DESCRIPTOR.full_name, value.SerializeToString(deterministic=True))
        case np.ndarray():
            content = value.tolist() if value.dtype == object else value.tobytes()
            return ("array", str(value.dtype), value.shape, content)
        case np.dtype():
            return ("dtype", str(value))
        case np.generic():
            return ("scalar", str(value.dtype), value.tobytes())
        case enum.Enum():
            return ("enum", value.name, describe(value.value))
        case dict():
            return {describe_key(key): describe(item) for key, item in value.items()}
        case set() | frozenset():
            return ("set", sorted(map(repr, value)))
        case list() | tuple():
            return (type(value).__name__, [describe(item) for item in value])
        case float():
            return ("float", np.float64(value).tobytes())
        case None | bool() | int() | str() | bytes():
            return value
    if hasattr(type(value), "DESCRIPTOR") or type(value).__name__.startswith("Repeated"):
        return ("repeated", [describe(item) for item in value])
    raise TypeError(f"the harness cannot compare {type(value)}: describe it in the case")


def describe_key(key: Any) -> Any:
    """A dictionary key as comparable data."""
    return ("enum", key.name) if isinstance(key, enum.Enum) else key


def assert_same(call: Call, folder: Path) -> None:
    """Fail unless both modules return equal things, or raise exceptions of the same classes."""
    expected = outcome(call, real, folder / "real")
    actual = outcome(call, ours, folder / "ours")
    assert actual == expected
