"""Windows over images: what no convolution or pool takes."""

from typing import Any

import numpy as np
import pytest

from sardonyx.errors import InferenceError, SardonyxError
from tests.ops.one_node import inferred, one_node, run_here, run_there

X = np.ones((1, 1, 6, 6), np.float32)
W = np.ones((1, 1, 3, 3), np.float32)


@pytest.mark.parametrize(
    ("op_type", "inputs", "attributes", "said"),
    [
        ("Conv", {"x": X, "w": W}, {"pads": [0, -1, 0, 0]}, r"\[0, -1, 0, 0\]"),
        ("ConvTranspose", {"x": X, "w": W}, {"pads": [-1] * 4}, r"\[-1, -1, -1, -1\]"),
        ("MaxPool", {"x": X}, {"pads": [0, 0, 0, -2], "kernel_shape": [2, 2]}, "negative"),
        ("AveragePool", {"x": X}, {"kernel_shape": [0, 2]}, r"positive numbers, not \[0, 2\]"),
        ("LpPool", {"x": X}, {"kernel_shape": [2, -3]}, r"\[2, -3\]"),
        ("Conv", {"x": X, "w": W[:, :, :0]}, {}, r"\[0, 3\]"),
        ("ConvTranspose", {"x": X, "w": W[:, :, :, :0]}, {}, r"\[3, 0\]"),
    ],
)
def test_negative_pads_and_empty_kernels_are_refused(
    op_type: str, inputs: dict[str, Any], attributes: dict[str, Any], said: str
) -> None:
    content = one_node(op_type, inputs, ["y"], **attributes)
    with pytest.raises(InferenceError, match=said) as raised:
        inferred(content)
    assert f"node of 'y' ({op_type})" in str(raised.value)
    with pytest.raises(SardonyxError, match=said):
        run_here(content, inputs)
    with pytest.raises(Exception, match=r"pads|kernel_shape"):
        run_there(content, inputs)
