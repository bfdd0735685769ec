"""The operator-set messages under their older module name."""

from sardonyx.compat.onnx.onnx_operators_ml_pb2 import *  # noqa: F403
