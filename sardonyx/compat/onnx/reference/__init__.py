"""Run models, functions and single nodes on the reference implementation of every operator.

>>> import numpy as np
>>> from sardonyx.compat import onnx
>>> text = '<ir_version: 10, opset_import: ["": 21]> g (float[2] x) => (y) { y = Neg(x) }'
>>> evaluator = onnx.reference.ReferenceEvaluator(onnx.parser.parse_model(text))
>>> evaluator.run(None, {"x": np.array([1, 2], np.float32)})[0].tolist()
[-1.0, -2.0]
"""

from sardonyx.compat.onnx.reference.reference_evaluator import ReferenceEvaluator

__all__ = ["ReferenceEvaluator"]
