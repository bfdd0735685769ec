"""Operators that move, select or generate elements."""

import numpy as np
import onnx.parser
import pytest

from sardonyx.errors import InferenceError
from sardonyx.ops.infer import infer_facts
from tests.ops.contrib_case import Draw, check, check_against, node_model, read


@pytest.fixture
def draw():
    return Draw()


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
@pytest.mark.parametrize("pads", [[1, 0, 1, 2], [0, -1, 1, 2]])
@pytest.mark.parametrize("row", [False, True])
def test_pad(draw, mode, pads, row):
    inputs = [draw.floats(3, 4), np.array([pads] if row else pads)]
    inputs += [np.array([2.5], np.float32)] if row else []
    check("Pad", inputs, {"mode": mode}, constants=(1,))


@pytest.mark.parametrize("x", [[2, 1, 1, 3, 4, 3, np.nan, np.nan], [], [-0.0, 0.0, 2]])
def test_unique(x):
    check("Unique", [np.array(x, np.float32)], None, 3, dynamic=True)


def test_unique_strings():
    x = np.array(["b", "a", "b", "c", "a"], object)
    parts = (np.array(["b", "a", "c"], object), np.array([0, 1, 0, 2, 1]), np.array([2, 2, 1]))
    check_against(parts, "Unique", [x], None, 3, dynamic=True)


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.int64, np.float32, np.float64])
@pytest.mark.parametrize(
    ("numbers", "rank"), [((2, 11, 3), 0), ((2, 7), 1), ((9, 2, -2), 0), ((5, 2, 1), 0)]
)
def test_range(dtype, numbers, rank):
    inputs = [np.full((1,) * rank, value, dtype) for value in numbers]
    check("Range", inputs, constants=(0, 1, 2))


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("rank", [0, 1])
def test_expand_dims(draw, axis, rank):
    inputs = [draw.floats(3, 4), np.full((1,) * rank, axis, np.int32)]
    check("ExpandDims", inputs, constants=(1,))


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("k", [None, 1, -1, 9])
def test_trilu(draw, upper, k):
    inputs = [draw.floats(2, 3, 4), *([] if k is None else [np.array(k)])]
    check("Trilu", inputs, {"upper": upper})


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("indices", [[[0, 1], [1, -1]], [[[0]], [[1]]], [1, 2, 3]])
def test_gather_nd(draw, dtype, indices):
    check("GatherND", [draw.floats(2, 3, 4), np.array(indices, dtype)])


def test_values_are_followed_through_ranges_and_new_axes():
    proto = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]>'
        "g (float[n, 3] x) => (y) {"
        "  count = Constant<value = int64 {4}>()"
        "  start = Constant<value = int64 {2}>()"
        "  places = com.microsoft.Range(start, count)"
        "  y = Reshape(x, places)"
        "}"
    )
    model = read(proto)
    assert model.graph is not None
    facts = infer_facts(model)
    assert str(facts[model.graph.outputs[0]]) == "float[2,3]"


@pytest.mark.parametrize(
    ("op", "inputs", "outputs"),
    [
        ("Unique", [np.zeros((2, 2), np.float32)], 3),
        ("Trilu", [np.zeros(2, np.float32)], 1),
        ("GatherND", [np.zeros((2, 2), np.float32), np.zeros((1, 3), np.int64)], 1),
    ],
)
def test_contradictions_are_reported(op, inputs, outputs):
    with pytest.raises(InferenceError):
        infer_facts(read(node_model(op, inputs, {}, outputs)), strict=True)
