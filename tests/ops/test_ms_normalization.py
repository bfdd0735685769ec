"""Layer normalization joined with skip connections and embeddings."""

import ml_dtypes
import numpy as np
import pytest

from sardonyx.errors import EvaluationError, InferenceError
from sardonyx.ops.infer import infer_facts
from tests.ops.contrib_case import Draw, check, check_against, node_model, read, run_here

SKIPS = [(2, 3, 8), (1, 3, 8), (3, 8)]


@pytest.fixture
def draw():
    return Draw()


@pytest.mark.parametrize("skip", SKIPS)
@pytest.mark.parametrize("outputs", [1, 4])
@pytest.mark.parametrize("more", [0, 1, 2])
def test_skip_layer_normalization(draw, skip, outputs, more):
    rest = [draw.floats(8) for _ in range(more)]
    inputs = [draw.floats(2, 3, 8), draw.floats(*skip), draw.floats(8), *rest]
    check("SkipLayerNormalization", inputs, {"epsilon": 1e-5}, outputs)


@pytest.mark.parametrize("skip", SKIPS)
@pytest.mark.parametrize("bias", [False, True])
def test_skip_simplified_layer_normalization(draw, skip, bias):
    inputs = [draw.floats(2, 3, 8), draw.floats(*skip), draw.floats(8)]
    inputs += [draw.floats(8)] if bias else []
    attributes = {"epsilon": 1e-6}
    check("SkipSimplifiedLayerNormalization", inputs, attributes, 4, unused=(1, 2))


@pytest.mark.parametrize("op", ["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"])
@pytest.mark.parametrize(("dtype", "atol"), [(np.float16, 1e-2), (ml_dtypes.bfloat16, 4e-2)])
def test_skip_normalization_of_halves(draw, op, dtype, atol):
    inputs = [draw.floats(*shape, dtype=dtype) for shape in ((2, 3, 8), (2, 3, 8), (8,))]
    check(op, inputs, atol=atol)


def test_skip_normalization_of_rows_without_batch(draw):
    inputs = [draw.floats(5, 8), draw.floats(5, 8), draw.floats(8)]
    check("SkipSimplifiedLayerNormalization", inputs)


@pytest.mark.parametrize(("axis", "scale"), [(-1, (8,)), (1, (3, 8)), (0, (2, 3, 8))])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_simplified_layer_normalization(draw, axis, scale, dtype):
    inputs = [draw.floats(2, 3, 8, dtype=dtype), draw.floats(*scale, dtype=dtype)]
    outputs = 2 if dtype == np.float32 else 1
    check("SimplifiedLayerNormalization", inputs, {"axis": axis}, outputs, domain="")


def test_simplified_layer_normalization_under_its_other_domain(draw):
    x, scale = draw.floats(2, 3, 8), draw.floats(8)
    root = np.sqrt(np.square(x.astype(np.float64)).mean(-1, keepdims=True) + 1e-5)
    expected = ((x / root * scale).astype(np.float32), (1 / root).astype(np.float32))
    check_against(expected, "SimplifiedLayerNormalization", [x, scale], outputs=2)


@pytest.mark.parametrize("segments", [False, True])
@pytest.mark.parametrize("positions", [None, 1, 2])
@pytest.mark.parametrize("mask", [False, True])
def test_embed_layer_normalization(draw, segments, positions, mask):
    inputs = [
        draw.whole(0, 5, 2, 3), draw.whole(0, 2, 2, 3) if segments else None, draw.floats(5, 8),
        draw.floats(7, 8), draw.floats(2, 8) if segments else None, draw.floats(8), draw.floats(8),
        np.array([[1, 1, 0], [1, 0, 2]], np.int32) if mask else None,
        None if positions is None else draw.whole(0, 7, positions, 3),
    ]  # fmt: skip
    check("EmbedLayerNormalization", inputs, outputs=3)


def test_embed_layer_normalization_names_ids_outside_a_table(draw):
    words = np.array([[1, 5]], np.int32)
    tables = [None, draw.floats(5, 8), draw.floats(7, 8), None, draw.floats(8), draw.floats(8)]
    with pytest.raises(EvaluationError, match="word id lies outside the 5 rows"):
        run_here("EmbedLayerNormalization", [words, *tables])


def test_contradicting_sizes_are_reported(draw):
    inputs = [draw.floats(2, 3, 8), draw.floats(2, 3, 8), draw.floats(9)]
    model = read(node_model("SkipLayerNormalization", inputs, {}))
    with pytest.raises(InferenceError, match="gamma does not fit"):
        infer_facts(model, strict=True)
