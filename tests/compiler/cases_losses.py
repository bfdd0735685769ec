"""Cases of losses: reductions, weights, ignored labels, types."""

import numpy as np

from tests.compiler.case import Case, normal

_SCORES = normal(3, 5, 2, 17)
_LABELS = np.random.default_rng(8).integers(0, 5, (3, 2, 17))
_WEIGHTS = np.linspace(0.5, 2, 5, dtype=np.float32)
_NAMES = {"NegativeLogLikelihoodLoss": 1, "SoftmaxCrossEntropyLoss": 2}

CASES: list[Case] = [
    Case(name, inputs, {"reduction": reduction} | ignored, outputs=outputs,
         label=f"{reduction}-{len(inputs)}-{ignored.get('ignore_index')}")
    for name, outputs in _NAMES.items()
    for inputs in ((_SCORES, _LABELS), (_SCORES, _LABELS.astype(np.int32), _WEIGHTS))
    for reduction in ("none", "sum", "mean")
    for ignored in ({}, {"ignore_index": 2}, {"ignore_index": -(2**40)})
]  # fmt: skip
CASES += [
    Case(name, (_SCORES.astype(kind)[:, :, 0, 0].copy(), _LABELS[:, 0, 0].copy()), label=kind,
         outputs=outputs, rtol=2e-3)
    for name, outputs in _NAMES.items()
    for kind in ("float16", "float64")
]  # fmt: skip
