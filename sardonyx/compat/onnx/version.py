"""The version under the module name older releases had; `onnx.__version__` is the same."""

import warnings

from sardonyx.compat.onnx import __version__ as version

__all__ = ["git_version", "version"]

warnings.warn("onnx.version is deprecated: use onnx.__version__", DeprecationWarning, stacklevel=2)

git_version = ""
