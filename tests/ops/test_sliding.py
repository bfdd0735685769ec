"""Windows over images: where they stand, and what no convolution or pool takes."""

from typing import Any

import numpy as np
import pytest

from sardonyx.dims import symbol
from sardonyx.errors import InferenceError, SardonyxError
from sardonyx.graph import Node
from sardonyx.ops.sliding import drop_trivial, output_sizes, slide
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


@pytest.mark.parametrize(
    ("size", "kernel", "options", "pads", "overhang", "outputs"),
    [
        (5, 3, {}, (0, 0), 0, 3),
        (5, 3, {"strides": (2,)}, (0, 0), 0, 2),
        (6, 3, {"strides": (2,)}, (0, 0), 0, 2),
        (6, 3, {"strides": (2,), "ceil_mode": 1}, (0, 0), 1, 3),
        (6, 3, {"strides": (2,), "ceil_mode": 1, "auto_pad": "VALID"}, (0, 0), 0, 2),
        (5, 3, {"pads": (2, 1)}, (2, 1), 0, 6),
        (5, 3, {"pads": (2, 1), "auto_pad": "VALID"}, (0, 0), 0, 3),
        (5, 3, {"pads": (1, 1), "auto_pad": ""}, (1, 1), 0, 5),
        (5, 2, {"dilations": (3,)}, (0, 0), 0, 2),
        (4, 2, {"dilations": (3,)}, (0, 0), 0, 1),
        (5, 4, {"auto_pad": "SAME_UPPER"}, (1, 2), 0, 5),
        (5, 4, {"auto_pad": "SAME_LOWER"}, (2, 1), 0, 5),
        (5, 1, {"auto_pad": "SAME_UPPER", "strides": (2,)}, (0, 0), 0, 3),
        (6, 1, {"auto_pad": "SAME_UPPER", "strides": (3,)}, (0, 0), 0, 2),
        (3, 3, {}, (0, 0), 0, 1),
    ],
)
def test_where_windows_stand(
    size: int, kernel: int, options: Any, pads: Any, overhang: int, outputs: int
) -> None:
    found = slide((size,), (kernel,), **options)
    assert (found.pads, found.overhang, found.outputs) == ((pads,), (overhang,), (outputs,))
    assert output_sizes((size,), (kernel,), **options) == (outputs,)
    image = np.arange(1, size + 1)
    windows = found.windows(found.pad(image))
    step, spread = options.get("strides", (1,))[0], options.get("dilations", (1,))[0]
    at = np.arange(outputs)[:, None] * step + np.arange(kernel) * spread - pads[0]
    inside = (at >= 0) & (at < size)
    assert windows.tolist() == np.where(inside, image[np.clip(at, 0, size - 1)], 0).tolist()
    assert found.positions(0).tolist() == at.tolist()


@pytest.mark.parametrize(
    ("size", "kernel", "options", "message"),
    [
        ((2,), (3,), {}, "reaches over 3 does not fit size 2"),
        ((3,), (2,), {"dilations": (3,)}, "reaches over 4 does not fit size 3"),
        ((5, 5), (3,), {}, "kernel_shape has 1 axes, the image 2"),
        ((5,), (0,), {}, "positive numbers"),
        ((5,), (1,), {"strides": (0,)}, "strides must be 1 positive"),
        ((5,), (1,), {"strides": (1, 1)}, "strides must be 1 positive"),
        ((5,), (1,), {"dilations": (-1,)}, "dilations must be 1 positive"),
        ((5,), (1,), {"pads": (1,)}, "pads must be 2 numbers"),
        ((5,), (1,), {"pads": (0, -1)}, "pads cannot be negative"),
        ((5,), (1,), {"auto_pad": "SAME"}, "auto_pad is 'SAME'"),
    ],
)
def test_windows_that_cannot_stand(size: Any, kernel: Any, options: Any, message: str) -> None:
    with pytest.raises(InferenceError, match=message):
        output_sizes(size, kernel, **options)


def test_unknown_sizes_of_windows() -> None:
    n = symbol("n")
    assert output_sizes((None, n, 5), (3, None, 3)) == (None, None, 3)
    same = {"auto_pad": "SAME_UPPER", "strides": (2, 1, 2)}
    assert output_sizes((5, n, None), (None, 3, 3), **same) == (3, n, None)
    assert output_sizes((n,), (3,), pads=(1, 1)) == (n,)


@pytest.mark.parametrize(
    ("given", "dropped"), [(None, True), ((1, 1), True), ((1, 2), False), ((2, 1), False)]
)
def test_attributes_that_say_nothing_are_dropped(given: Any, dropped: bool) -> None:
    node = Node("MaxPool", attributes={} if given is None else {"dilations": given})
    assert drop_trivial(node, "dilations") == dropped
    assert ("dilations" in node.attributes) != dropped
