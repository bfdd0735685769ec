"""The model messages under their older module name."""

from sardonyx.compat.onnx.onnx_ml_pb2 import *  # noqa: F403
