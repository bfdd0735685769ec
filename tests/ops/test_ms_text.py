"""Tokens, hashes, words and repetitions."""

import numpy as np
import pytest

from sardonyx.errors import EvaluationError, InferenceError
from sardonyx.ops.infer import infer_facts
from sardonyx.ops.ms_text import block_repeats
from tests.ops.contrib_case import Draw, check, node_model, read, run_here, run_there


@pytest.fixture
def draw():
    return Draw()


def texts(*items):
    return np.array(items, object)


@pytest.mark.parametrize("mark", [0, 1])
@pytest.mark.parametrize(
    ("x", "how"),
    [
        (["Hello World", "I love science !", "", "  a  b "], {"separators": [" "]}),
        (["Hello World", "añb€"], {"separators": [""]}),
        (["Hello World", "añb€"], {"tokenexp": "."}),
        ([["a,b;c d", "x"]], {"separators": [" ", ",", ";"]}),
        (["abcab xabb", "bb"], {"tokenexp": "a|ab"}),
        (["aXbXXc", "XX"], {"separators": ["X|XX"]}),
        (["ab12 c3", "zz"], {"tokenexp": "[[:alpha:]]+|\\d+"}),
        (["ab12 c3", "zz"], {"tokenexp": "x*"}),
        (["abc", ""], {"separators": ["x*"]}),
        (["  ", " "], {"separators": [" "]}),
        (["", ""], {"separators": [""]}),
        (["Hello my World", "ab abc"], {"separators": [" "], "mincharnum": 3}),
        (["Hello my World", "ab abc"], {"tokenexp": "[a-z]+", "mincharnum": 3}),
        (["ab-cd ef", "a-b-c xyz-w"], {"separators": ["-", " "], "mincharnum": 3}),
    ],
)
def test_tokenizer(mark, x, how):
    attributes = {"mark": mark, "mincharnum": 1, "pad_value": "#", **how}
    check("Tokenizer", [np.array(x, object)], attributes, dynamic=True)


@pytest.mark.parametrize("shape", [(0,), (2, 0)])
def test_no_strings_give_no_tokens(shape):
    x = np.zeros(shape, object)
    attributes = {"mark": 1, "mincharnum": 1, "pad_value": "#", "separators": [" "]}
    (found,) = run_here("Tokenizer", [x], attributes)
    (expected,) = run_there("Tokenizer", [x], attributes, 1, [np.dtype(object)])
    assert found.shape == expected.shape == shape


def test_how_to_find_tokens_must_be_said_once():
    attributes = {"mark": 0, "mincharnum": 1, "pad_value": ""}
    for more in ({}, {"tokenexp": "a", "separators": ["b"]}):
        model = read(node_model("Tokenizer", [texts("a")], attributes | more))
        with pytest.raises(InferenceError, match="separators and tokenexp"):
            infer_facts(model, strict=True)


def test_an_expression_that_is_not_understood_is_named():
    attributes = {"mark": 0, "mincharnum": 1, "pad_value": "", "tokenexp": r"\pL+("}
    with pytest.raises(EvaluationError, match="parenthesis is not closed"):
        run_here("Tokenizer", [texts("a")], attributes)


@pytest.mark.parametrize(
    "x",
    [
        np.array([1, -5, 2**31 - 1], np.int32),
        np.array([1, 2**32 - 1], np.uint32),
        np.array([[1, -7]], np.int64),
        np.array([1, 2**64 - 1], np.uint64),
        np.array([1.5, -0.0, np.inf], np.float32),
        np.array([1.5, 2e300], np.float64),
        texts("a", "", "abc", "abcd", "abcde", "abcdef", "añb€ß"),
    ],
    ids=lambda x: x.dtype.name,
)
@pytest.mark.parametrize("attributes", [{}, {"positive": 0, "seed": 42}, {"seed": -1}])
def test_murmur_hash(x, attributes):
    check("MurmurHash3", [x], attributes)


@pytest.mark.parametrize("size", [1, 2, 3, 12])
def test_repeated_n_grams_are_ruled_out(draw, size):
    tokens = draw.whole(0, 3, 2, 9, dtype=np.int64)
    check("NGramRepeatBlock", [tokens, draw.floats(2, 5)], {"ngram_size": size})


@pytest.mark.parametrize(
    ("tokens", "size", "ruled_out"),
    [
        ([2, 2, 2], 4, []),
        ([2, 2, 2], 3, [2]),
        ([2, 2, 1], 3, []),
        ([1, 2, 1], 2, [2]),
        ([1, 2, 1], 1, [1, 2]),
        ([2], 1, [2]),
        ([2], 2, []),
    ],
)
def test_n_grams_as_long_as_the_tokens(tokens, size, ruled_out):
    inputs = [np.int64([tokens]), np.zeros((1, 4), np.float32)]
    check("NGramRepeatBlock", inputs, {"ngram_size": size})
    scores = block_repeats(*inputs, size)
    assert np.flatnonzero(np.isneginf(scores[0])).tolist() == ruled_out


WORDS = np.array([[1, 2, 3, 4, 0], [5, 0, 0, 0, 0], [1, 2, 0, 3, 4], [6, 5, 4, 3, 2]], np.int32)


def test_word_conv_embedding(draw):
    inputs = [WORDS, draw.floats(4, 1, 2, 3), draw.floats(4), draw.floats(7, 3)]
    check("WordConvEmbedding", inputs)
    sizes = {"embedding_size": 4, "conv_window_size": 2, "char_embedding_size": 3}
    check("WordConvEmbedding", inputs, sizes)


def test_an_empty_word_is_zero(draw):
    inputs = [WORDS * 0, draw.floats(4, 1, 2, 3), draw.floats(4), draw.floats(7, 3)]
    (found,) = run_here("WordConvEmbedding", inputs)
    np.testing.assert_array_equal(found, np.zeros((4, 4), np.float32))
