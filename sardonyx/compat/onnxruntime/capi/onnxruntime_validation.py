"""What onnxruntime says of its package."""

from sardonyx.compat.onnxruntime.version import VERSION


def check_distro_info() -> None:
    """Accepted: every system that runs Python is supported."""


def get_package_name_and_version_info() -> tuple[str, str, str]:
    """The package's name, the version of its API, and that of CUDA: none."""
    return "onnxruntime", VERSION, ""


def check_training_module() -> tuple[bool, str, str, str]:
    """Whether training is part of the package: it is not; then name, version and CUDA."""
    return (False, *get_package_name_and_version_info())
