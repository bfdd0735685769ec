"""A drop-in for the `onnxruntime` package: the same names over sardonyx's runtime.

>>> from sardonyx.compat import onnxruntime as ort
>>> session = ort.InferenceSession("examples/digits.onnx", providers=["CPUExecutionProvider"])
>>> [argument.name for argument in session.get_outputs()]
['probabilities']
"""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from logging import getLogger
from typing import Any

from sardonyx import runtime
from sardonyx.compat.onnxruntime import capi
from sardonyx.compat.onnxruntime.capi.onnxruntime_pybind11_state import translated
from sardonyx.errors import SardonyxError
from sardonyx.runtime import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    IOBinding,
    ModelMetadata,
    NodeArg,
    OrtValue,
    RunOptions,
    SessionOptions,
)

__version__ = "1.31.1"
"""The version whose API this is."""

_log = getLogger("sardonyx")
_SEVERITIES = {0: 10, 1: 20, 2: 30, 3: 40, 4: 50}


def _in_their_classes(call: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(call)
    def wrapped(*arguments: Any, **options: Any) -> Any:
        try:
            return call(*arguments, **options)
        except SardonyxError as error:
            raise translated(error) from error

    return wrapped


class InferenceSession(runtime.InferenceSession):
    """A session whose errors are of onnxruntime's classes."""

    def __init__(
        self,
        path_or_bytes: Any,
        sess_options: SessionOptions | None = None,
        providers: Sequence[Any] | None = None,
        provider_options: Sequence[dict[Any, Any]] | None = None,
        **kwargs: Any,
    ) -> None:
        _in_their_classes(super().__init__)(
            path_or_bytes, sess_options, providers, provider_options, **kwargs
        )

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
        **options: Any,
    ) -> Any:
        """Run the model; see `sardonyx.InferenceSession.run`."""
        return _in_their_classes(super().run)(output_names, input_feed, run_options, **options)

    def get_providers(self) -> list[str]:
        """The providers in use, by the names onnxruntime's users know."""
        return ["CPUExecutionProvider"]


def get_available_providers() -> list[str]:
    """The providers a session can use.

    >>> get_available_providers()
    ['CPUExecutionProvider']
    """
    return ["CPUExecutionProvider"]


get_all_providers = get_available_providers


def get_device() -> str:
    """The device models run on: `CPU`."""
    return "CPU"


def get_version_string() -> str:
    """The version whose API this is."""
    return __version__


def get_build_info() -> str:
    """What this is."""
    from sardonyx.version import VERSION

    return f"sardonyx {VERSION}, with the API of onnxruntime {__version__}"


def set_default_logger_severity(severity: int) -> None:
    """Log from this severity on: 0 verbose, 1 info, 2 warning, 3 error, 4 fatal."""
    _log.setLevel(_SEVERITIES[severity])


def set_default_logger_verbosity(verbosity: int) -> None:
    """Accepted: there is one level of verbosity."""
    _log.debug("set_default_logger_verbosity(%s) has no effect", verbosity)


def enable_telemetry_events() -> None:
    """Accepted: nothing is ever reported to anybody."""


def disable_telemetry_events() -> None:
    """Accepted: nothing is ever reported to anybody."""


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
    "capi",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "get_version_string",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
]
