"""The functions of the `onnxruntime` module."""

import platform
from logging import getLogger
from typing import Any

from sardonyx.compat.onnxruntime.errors import InvalidArgument, NoSuchFile
from sardonyx.compat.onnxruntime.version import VERSION
from sardonyx.runtime.defaults import PROCESS, set_seed
from sardonyx.runtime.options import SEVERITIES
from sardonyx.runtime.providers import CPU
from sardonyx.version import VERSION as OWN_VERSION

_log = getLogger("sardonyx")


def get_available_providers() -> list[str]:
    """The providers a session can use.

    >>> get_available_providers()
    ['CPUExecutionProvider']
    """
    return [CPU]


get_all_providers = get_available_providers


def get_device() -> str:
    """The device models run on: `CPU`."""
    return "CPU"


def get_version_string() -> str:
    """The version whose API this is."""
    return VERSION


def get_build_info() -> str:
    """What this is."""
    return f"sardonyx {OWN_VERSION}, with the API of onnxruntime {VERSION}"


def set_default_logger_severity(severity: int) -> None:
    """Log from this severity on: 0 verbose, 1 info, 2 warning, 3 error, 4 fatal."""
    if severity not in range(len(SEVERITIES)):
        raise InvalidArgument(f"there is no severity {severity}", hint="use 0 to 4")
    _log.setLevel(SEVERITIES[severity])


def set_default_logger_verbosity(verbosity: int) -> None:
    """Accepted: there is one level of verbosity."""
    _log.debug("set_default_logger_verbosity(%s) has no effect", verbosity)


def set_global_thread_pool_sizes(
    intra_op_num_threads: int = 0, inter_op_num_threads: int = 0
) -> None:
    """Threads of sessions made from now on that do not say how many; 0 for all."""
    if intra_op_num_threads < 0:
        raise InvalidArgument(f"a session cannot have {intra_op_num_threads} threads")
    PROCESS.threads = int(intra_op_num_threads)


def enable_telemetry_events() -> None:
    """Accepted: nothing is ever reported to anybody."""


def disable_telemetry_events() -> None:
    """Accepted: nothing is ever reported to anybody."""


def has_collective_ops() -> bool:
    """Whether several machines can run one model together."""
    return False


def create_and_register_allocator(memory_info: Any, arena_configuration: Any) -> None:
    """Accepted: memory is planned here, not allocated piece by piece."""
    _log.info("allocators have no effect")


def create_and_register_allocator_v2(
    provider_type: str, memory_info: Any, options: Any = None, arena_configuration: Any = None
) -> None:
    """Accepted: memory is planned here, not allocated piece by piece."""
    _log.info("allocators have no effect")


def register_execution_provider_library(registration_name: str, library_path: str) -> None:
    """Libraries of providers for onnxruntime cannot be loaded."""
    raise InvalidArgument(
        f"the provider library '{library_path}' cannot be used here",
        hint="models run on the CPU; custom operators: SessionOptions.register_operators",
    )


def unregister_execution_provider_library(registration_name: str) -> None:
    """There is none to take back."""
    raise NoSuchFile(f"no provider library is registered as '{registration_name}'")


def preload_dlls(
    cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: str | None = None
) -> None:
    """Accepted: no libraries are needed."""
    _log.debug("preload_dlls has nothing to load")


def print_debug_info() -> None:
    """Print what runs here, on what."""
    print(get_build_info())
    print(f"{platform.platform()}, {platform.machine()}, Python {platform.python_version()}")


__all__ = [
    "create_and_register_allocator",
    "create_and_register_allocator_v2",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "get_version_string",
    "has_collective_ops",
    "preload_dlls",
    "print_debug_info",
    "register_execution_provider_library",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_global_thread_pool_sizes",
    "set_seed",
    "unregister_execution_provider_library",
]
