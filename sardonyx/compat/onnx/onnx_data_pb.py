"""The value messages under their older module name."""

from sardonyx.compat.onnx.onnx_data_pb2 import *  # noqa: F403
