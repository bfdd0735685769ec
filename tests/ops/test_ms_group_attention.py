"""Attention with shared keys, its cache, and rotary embeddings."""

import ml_dtypes
import numpy as np
import pytest

from sardonyx.errors import EvaluationError
from tests.ops.contrib_case import Draw, assert_close, check, check_inference, run_here, run_there

BATCH, LENGTH, HEADS, GROUPS, SIZE = 2, 3, 4, 2, 16
OPTIONS = [
    {},
    {"local_window_size": 2},
    {"softcap": 5.0},
    {"smooth_softmax": 1},
    {"scale": 0.2},
    {"causal": 0},
]


@pytest.fixture
def draw():
    return Draw()


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("shape", [(2, 3, 16), (2, 2, 3, 8)])
@pytest.mark.parametrize("positions", [[[0, 1, 2], [4, 2, 1]], [3]])
@pytest.mark.parametrize("part", [False, True])
def test_rotary_embedding(draw, interleaved, shape, positions, part):
    half = 2 if part else 4
    inputs = [draw.floats(*shape), np.array(positions), draw.floats(7, half), draw.floats(7, half)]
    attributes = {"interleaved": interleaved, "scale": 1.0}
    attributes |= {"num_heads": 2, "rotary_embedding_dim": 4} if part else {}
    check("RotaryEmbedding", inputs, attributes)


def test_rotary_embedding_of_a_ragged_batch(draw):
    positions = np.array([[0, 1, 2, 3, 0, 1, 2, 0, 1]])
    inputs = [draw.floats(1, 9, 16), positions, draw.floats(7, 4), draw.floats(7, 4)]
    check("RotaryEmbedding", inputs, {"is_packed_batching": 1})


@pytest.mark.parametrize(("dtype", "atol"), [(np.float16, 5e-3), (ml_dtypes.bfloat16, 5e-2)])
def test_rotary_embedding_of_halves(draw, dtype, atol):
    x, caches = draw.floats(2, 3, 16), [draw.floats(7, 4), draw.floats(7, 4)]
    (exact,) = run_here("RotaryEmbedding", [x, np.array([2]), *caches])
    narrow = [item.astype(dtype) for item in (x, *caches)]
    (found,) = run_here("RotaryEmbedding", [narrow[0], np.array([2]), *narrow[1:]])
    assert_close(found, exact.astype(dtype), rtol=0.05, atol=atol)


def test_rotary_embedding_names_positions_outside_the_cache(draw):
    inputs = [draw.floats(1, 3, 8), np.array([5]), draw.floats(7, 4), draw.floats(7, 4)]
    with pytest.raises(EvaluationError, match="outside the 7 rows"):
        run_here("RotaryEmbedding", inputs)


def new_tokens(draw, length=LENGTH, batch=BATCH, *, packed=False):
    if packed:
        return [draw.floats(batch, length, (HEADS + 2 * GROUPS) * SIZE), None, None]
    return [
        draw.floats(batch, length, HEADS * SIZE), draw.floats(batch, length, GROUPS * SIZE),
        draw.floats(batch, length, GROUPS * SIZE),
    ]  # fmt: skip


def cache(draw, length, batch=BATCH):
    return [draw.floats(batch, GROUPS, length, SIZE) for _ in range(2)]


def lengths(totals):
    return [np.array(totals, np.int32) - 1, np.array(max(totals), np.int32)]


def check_group(inputs, outputs=3, **attributes):
    attributes = {"num_heads": HEADS, "kv_num_heads": GROUPS, **attributes}
    return check("GroupQueryAttention", inputs, attributes, outputs, constants=(6,))


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("packed", [False, True])
def test_prompt(draw, options, packed):
    inputs = [*new_tokens(draw, packed=packed), None, None, *lengths([3, 3])]
    check_group(inputs, **options)


def test_prompt_into_a_larger_buffer(draw):
    check_group([*new_tokens(draw), *cache(draw, 6), *lengths([3, 3])])


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize(("buffer", "totals"), [(6, [5, 5]), (5, [6, 4]), (6, [6, 2])])
def test_one_more_token(draw, options, buffer, totals):
    check_group([*new_tokens(draw, 1), *cache(draw, buffer), *lengths(totals)], **options)


@pytest.mark.parametrize("options", OPTIONS)
def test_several_more_tokens(draw, options):
    inputs = [*new_tokens(draw, 3, 1), *cache(draw, 5, 1), *lengths([8])]
    check_group(inputs, **options)


def test_no_new_keys_at_all(draw):
    query, key, value = new_tokens(draw, 1)
    empty = [key[:, :0], value[:, :0]]
    check_group([query, *empty, *cache(draw, 6), *lengths([6, 4])])


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("positions", [False, True])
@pytest.mark.parametrize("prompt", [False, True])
def test_rotation(draw, interleaved, positions, prompt):
    angles = [draw.floats(12, SIZE // 2) for _ in range(2)]
    if prompt:
        given = np.array([[4, 5, 6], [1, 2, 3]])
        inputs = [*new_tokens(draw), None, None, *lengths([3, 3]), *angles]
    else:
        given = np.array([[7], [1]])
        inputs = [*new_tokens(draw, 1), *cache(draw, 6), *lengths([5, 3]), *angles]
    inputs += [given] if positions else []
    check_group(inputs, do_rotary=1, rotary_interleaved=interleaved)


@pytest.mark.parametrize("bias", [(1, HEADS), (BATCH, 1), (1, 1)])
@pytest.mark.parametrize("softcap", [0.0, 2.0])
def test_bias_for_scores(draw, bias, softcap):
    shift = draw.floats(*bias, LENGTH, LENGTH)
    inputs = [*new_tokens(draw), None, None, *lengths([3, 3]), None, None, None, shift]
    check_group(inputs, softcap=softcap)


def test_sinks(draw):
    inputs = [*new_tokens(draw), None, None, *lengths([3, 3]), *[None] * 4, draw.floats(HEADS)]
    check_group(inputs)


@pytest.mark.parametrize("qk_output", [1, 2])
def test_scores_are_given_out(draw, qk_output):
    bias = draw.floats(1, 1, LENGTH, LENGTH)
    inputs = [*new_tokens(draw), None, None, *lengths([3, 3]), None, None, None, bias]
    check_group(inputs, 4, softcap=2.0, qk_output=qk_output)


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("kind", ["PER_TENSOR", "PER_CHANNEL"])
@pytest.mark.parametrize("prompt", [False, True])
def test_quantized_cache(draw, bits, kind, prompt):
    scale = np.array([0.02], np.float32)
    if kind == "PER_CHANNEL":
        scale = np.abs(draw.floats(1, GROUPS, 1, SIZE)) * 0.02 + 0.001
    scale = (scale * (1 if bits == 8 else 8)).astype(np.float32)
    dtype, width = (np.int8, SIZE) if bits == 8 else (np.uint8, SIZE // 2)
    past = [draw.codes(dtype, BATCH, GROUPS, 6, width) for _ in range(2)]
    totals = [3, 3] if prompt else [5, 3]
    inputs = [*new_tokens(draw, 3 if prompt else 1), *past, *lengths(totals), *[None] * 5]
    check_group(
        [*inputs, scale, scale], k_quant_type=kind, v_quant_type=kind, kv_cache_bit_width=bits
    )


def test_float8_cache_holds_scaled_keys(draw):
    scale = np.array([0.5], np.float32)
    tokens = new_tokens(draw)
    past = [item.astype(ml_dtypes.float8_e4m3fn) for item in cache(draw, 4)]
    inputs = [*tokens, *past, *lengths([3, 3]), *[None] * 5, scale, scale]
    attributes = {"num_heads": HEADS, "kv_num_heads": GROUPS, "kv_cache_bit_width": 8}
    attributes |= {"k_quant_type": "PER_TENSOR", "v_quant_type": "PER_TENSOR"}
    found = run_here("GroupQueryAttention", inputs, attributes, 3)
    heads = tokens[1].reshape(BATCH, LENGTH, GROUPS, SIZE).swapaxes(1, 2)
    expected = (heads / 0.5).astype(ml_dtypes.float8_e4m3fn)
    np.testing.assert_array_equal(
        found[1][:, :, :3].astype(np.float32), expected.astype(np.float32)
    )


def resident(total, capacity, window):
    freed = capacity - window + 1
    return total if total <= capacity else total - freed * -(-(total - capacity) // freed)


@pytest.mark.parametrize("capacity", [4, 6])
@pytest.mark.parametrize("total", [3, 4, 5, 6, 7, 8, 9, 10])
def test_sliding_cache(draw, capacity, total):
    totals = [total, total - 2]
    inputs = [*new_tokens(draw, 1), *cache(draw, capacity), *lengths(totals)]
    attributes = {"num_heads": HEADS, "kv_num_heads": GROUPS}
    attributes |= {"sliding_window_cache": 1, "local_window_size": 4}
    found = run_here("GroupQueryAttention", inputs, attributes, 3)
    expected = run_there("GroupQueryAttention", inputs, attributes, 3, [np.dtype(np.float32)] * 3)
    assert_close(found[0], expected[0])
    for row, length in enumerate(totals):
        kept = resident(length, capacity, 4)
        assert_close(found[1][row, :, :kept], expected[1][row, :, :kept])
        assert_close(found[2][row, :, :kept], expected[2][row, :, :kept])
    check_inference("GroupQueryAttention", inputs, attributes, 3, found, constants=(6,))


def test_normalized_queries_and_keys(draw):
    query, key, value = new_tokens(draw)
    weights = [draw.floats(SIZE), draw.floats(SIZE)]

    def normalized(x, heads, weight):
        parts = x.reshape(BATCH, LENGTH, heads, SIZE)
        root = np.sqrt(np.square(parts).mean(-1, keepdims=True) + 1e-6)
        return (parts / root * weight).reshape(x.shape).astype(np.float32)

    attributes = {"num_heads": HEADS, "kv_num_heads": GROUPS}
    rest = [None, None, *lengths([3, 3])]
    inputs = [query, key, value, *rest, *[None] * 7, *weights]
    found = run_here("GroupQueryAttention", inputs, attributes)
    changed = [normalized(query, HEADS, weights[0]), normalized(key, GROUPS, weights[1]), value]
    expected = run_here("GroupQueryAttention", [*changed, *rest], attributes)
    assert_close(found[0], expected[0])


def test_half_precision(draw):
    inputs = [*new_tokens(draw, 1), *cache(draw, 6)]
    inputs = [item.astype(np.float16) for item in inputs] + lengths([5, 3])
    attributes = {"num_heads": HEADS, "kv_num_heads": GROUPS}
    check("GroupQueryAttention", inputs, attributes, 3, constants=(6,), atol=5e-3)


@pytest.mark.parametrize("rank", [3, 4])
def test_a_position_alone_is_where_all_rows_begin(draw, rank):
    x = draw.floats(2, 3, 16) if rank == 3 else draw.floats(2, 2, 3, 8)
    caches = [draw.floats(9, 4), draw.floats(9, 4)]
    (found,) = run_here("RotaryEmbedding", [x, np.array(4), *caches])
    (expected,) = run_here("RotaryEmbedding", [x, np.array([4]), *caches])
    np.testing.assert_array_equal(found, expected)
    assert not np.array_equal(found[..., 0, :], found[..., 1, :])
