"""Weights of a few bits, quantized in blocks."""

import ml_dtypes
import numpy as np
import pytest

from sardonyx.errors import EvaluationError, InferenceError, UnsupportedError
from sardonyx.ops.infer import infer_facts
from tests.ops.contrib_case import Draw, check, check_against, node_model, read, run_here

ROWS = 6


@pytest.fixture
def draw():
    return Draw()


def quantized(draw, bits, columns, block, *, zeros=None):
    """B, scales and zero points for `ROWS` rows."""
    blocks = -(-columns // block)
    packed = draw.codes(np.uint8, ROWS, blocks, block * bits // 8)
    centre = None
    if zeros == "packed":
        centre = draw.codes(np.uint8, ROWS, -(-blocks * bits // 8))
    elif zeros == "floats":
        centre = np.abs(draw.floats(ROWS, blocks)) * 3
    return packed, draw.floats(ROWS, blocks) * 0.1, centre


KINDS = [(2, None), (2, "packed"), (2, "floats"), (4, None), (4, "packed"), (4, "floats")]


@pytest.mark.parametrize(("bits", "zeros"), [*KINDS, (8, None), (8, "packed")])
@pytest.mark.parametrize(("columns", "block"), [(32, 16), (40, 16), (64, 32), (100, 32)])
def test_mat_mul_n_bits(draw, bits, columns, block, zeros):
    parts = quantized(draw, bits, columns, block, zeros=zeros)
    bias = draw.floats(ROWS) if bits == 4 else None
    inputs = [draw.floats(2, 3, columns), *parts, None, bias]
    attributes = {"K": columns, "N": ROWS, "bits": bits, "block_size": block}
    check("MatMulNBits", inputs, attributes, constants=(1, 2, 3, 5), atol=1e-3)


def test_mat_mul_n_bits_by_its_definition(draw):
    packed, scales, zeros = quantized(draw, 4, 40, 16, zeros="packed")
    x = draw.floats(5, 40)
    expected = np.zeros((5, ROWS))
    for row in range(ROWS):
        for column in range(40):
            block, place = divmod(column, 16)
            code = packed[row, block, place // 2] >> 4 * (place % 2) & 15
            zero = zeros[row, block // 2] >> 4 * (block % 2) & 15
            weight = (int(code) - int(zero)) * float(scales[row, block])
            expected[:, row] += x[:, column] * weight
    attributes = {"K": 40, "N": ROWS, "bits": 4, "block_size": 16}
    inputs = [x, packed, scales, zeros]
    check_against(expected.astype(np.float32), "MatMulNBits", inputs, attributes, atol=1e-4)


def test_mat_mul_n_bits_with_flat_parameters(draw):
    packed, scales, zeros = quantized(draw, 4, 32, 16, zeros="packed")
    inputs = [draw.floats(3, 32), packed, scales.reshape(-1), zeros.reshape(-1)]
    attributes = {"K": 32, "N": ROWS, "bits": 4, "block_size": 16}
    check("MatMulNBits", inputs, attributes, constants=(1, 2, 3), atol=1e-3)


@pytest.mark.parametrize("zeros", [None, "floats"])
def test_mat_mul_n_bits_with_blocks_named_by_columns(draw, zeros):
    parts = quantized(draw, 4, 32, 16, zeros=zeros)
    blocks = draw.generator.permutation(np.repeat([0, 1], 16)).astype(np.int32)
    attributes = {"K": 32, "N": ROWS, "bits": 4, "block_size": 16}
    inputs = [draw.floats(3, 32), *parts, blocks]
    check("MatMulNBits", inputs, attributes, constants=(1, 2, 3, 4), atol=1e-3)


def test_mat_mul_n_bits_of_halves(draw):
    packed, scales, _ = quantized(draw, 4, 32, 16)
    inputs = [draw.floats(3, 32, dtype=np.float16), packed, scales.astype(np.float16)]
    attributes = {"K": 32, "N": ROWS, "bits": 4, "block_size": 16}
    check("MatMulNBits", inputs, attributes, constants=(1, 2), atol=2e-2)


def test_what_cannot_be_read_is_named(draw):
    packed, scales, _ = quantized(draw, 4, 32, 16)
    attributes = {"K": 32, "N": ROWS, "bits": 4, "block_size": 16}
    inputs = [draw.floats(3, 32), packed, scales]
    with pytest.raises(UnsupportedError, match="own layout"):
        run_here("MatMulNBits", inputs, attributes | {"weight_prepacked": 1})
    with pytest.raises(UnsupportedError, match="3 bits"):
        run_here("MatMulNBits", inputs, attributes | {"bits": 3})
    model = read(node_model("MatMulNBits", inputs, attributes | {"K": 48}))
    with pytest.raises(InferenceError, match="32 against 48"):
        infer_facts(model, strict=True)


INDICES = np.array([[0, 4], [-1, 9]])
"""The last one lies outside of five rows."""


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("zeros", [False, True])
def test_gather_from_packed_bytes(draw, bits, zeros):
    each = 8 // bits
    centre = draw.codes(np.uint8, 5, -(-3 // each)) if zeros else None
    inputs = [draw.codes(np.uint8, 5, 40 // each), INDICES, draw.floats(5, 3), centre]
    attributes = {"bits": bits, "block_size": 16}
    check("GatherBlockQuantized", inputs, attributes, constants=(0, 2, 3))


@pytest.mark.parametrize("dtype", [ml_dtypes.uint4, ml_dtypes.int4])
@pytest.mark.parametrize(
    ("gather", "along"), [(0, 1), (1, 0), (0, 0), (1, 1), (0, -1), (2, 1), (-1, -1)]
)
@pytest.mark.parametrize("zeros", [False, True])
def test_gather_from_four_bits(draw, dtype, gather, along, zeros):
    shape = [3, 20, 33]
    blocks = list(shape)
    blocks[along] = -(-blocks[along] // 16)
    centre = draw.codes(dtype, *blocks) if zeros else None
    indices = np.array([[0, 1], [-1, 2]], np.int32)
    inputs = [draw.codes(dtype, *shape), indices, draw.floats(*blocks), centre]
    attributes = {"block_size": 16, "gather_axis": gather, "quantize_axis": along}
    check("GatherBlockQuantized", inputs, attributes, constants=(0, 2, 3))


@pytest.mark.parametrize(
    "dtype",
    [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float4_e2m1fn],
)
@pytest.mark.parametrize(("block", "scales"), [(16, (5, 3)), (0, (5, 1)), (0, (1, 1))])
def test_gather_from_narrow_floats(draw, dtype, block, scales):
    inputs = [draw.floats(5, 40).astype(dtype), INDICES, draw.floats(*scales)]
    check("GatherBlockQuantized", inputs, {"block_size": block}, constants=(0, 2))


def test_scales_must_cover_the_table(draw):
    inputs = [draw.codes(np.uint8, 5, 40), INDICES, draw.floats(5, 2)]
    with pytest.raises(EvaluationError, match="2 scales do not cover 40"):
        run_here("GatherBlockQuantized", inputs, {"bits": 8, "block_size": 16})
