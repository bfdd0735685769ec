# mypy: disable-error-code="misc, no-any-return"
"""Text: strings cut into tokens, hashes, embeddings of words, repetitions ruled out."""

from collections.abc import Iterator

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.errors import EvaluationError, InferenceError
from sardonyx.ops.automaton import longest_matches
from sardonyx.ops.fact import Fact, same_size, tensor
from sardonyx.ops.ms_arithmetic import size_of
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array

START, END = "\x02", "\x03"
"""What marks the first and last token of a string."""


def _split(text: str, separator: str) -> Iterator[str]:
    """What stands between separators."""
    start = 0
    for begin, end in longest_matches(separator, text):
        yield text[start:begin]
        start = max(end, begin + 1)
        if begin == end and begin >= len(text):
            return
    yield text[start:]


def _matches(text: str, expression: str) -> Iterator[str]:
    """What an expression matches, one match behind the other."""
    for begin, end in longest_matches(expression, text):
        if end > begin:
            yield text[begin:end]


class Tokenizer(Operator):
    """Strings cut into tokens: at separators, by an expression, or into single characters."""

    domain = "com.microsoft"
    signatures = (
        "1(X: T, mark: int, mincharnum: int, pad_value: string, separators?: strings,"
        " tokenexp?: string) -> Y: T; T: string",
    )

    def infer(
        x: Fact, mark: int, mincharnum: int, pad_value: str, separators: tuple[str, ...] | None,
        tokenexp: str | None,
    ) -> Fact:  # fmt: skip
        if x.rank not in (None, 1, 2):
            raise InferenceError(f"{x} has more than two axes")
        if (separators is None) == (tokenexp is None):
            raise InferenceError("one of separators and tokenexp is needed, not both")
        if x.shape is None or 0 in x.shape:
            return tensor(DataType.STRING, x.shape)
        return tensor(DataType.STRING, (*x.shape, None))

    def reference(
        x: Array, mark: int, mincharnum: int, pad_value: str, separators: tuple[str, ...] | None,
        tokenexp: str | None,
    ) -> Array:  # fmt: skip
        if x.size == 0:
            return x
        rows = [_tokens(str(text), separators, tokenexp, mincharnum) for text in x.reshape(-1)]
        longest = max(map(len, rows))
        if mark and longest:
            rows = [[START, *row, END] for row in rows]
            longest += 2
        result = np.full((x.size, longest), pad_value, object)
        for index, row in enumerate(rows):
            if longest:
                result[index, : len(row)] = row
        return result.reshape(*x.shape, longest)


def _tokens(
    text: str, separators: tuple[str, ...] | None, expression: str | None, least: int
) -> list[str]:
    if separators == ("",) or expression == ".":
        return list(text)
    if expression is not None:
        return [item for item in _matches(text, expression) if len(item) >= least]
    tokens = [text]
    for separator in separators or ():
        pieces = (piece for token in tokens for piece in _split(token, separator))
        tokens = [piece for piece in pieces if piece and len(piece) >= least]
    return tokens


class MurmurHash3(Operator):
    """The 32-bit hash of each element's bytes."""

    domain = "com.microsoft"
    signatures = (
        "1(X: T1, positive: int = 1, seed: int = 0) -> Y: T2; T1: wide double float string;"
        " T2: int32 uint32",
    )

    def infer(x: Fact, positive: int, seed: int) -> Fact:
        return tensor(DataType.UINT32 if positive else DataType.INT32, x.shape)

    def reference(x: Array, positive: int, seed: int) -> Array:
        if x.dtype == object:
            rows = [_hash_text(str(text), seed) for text in x.reshape(-1)]
            result = np.asarray(rows, np.uint32)
        else:
            count = x.dtype.itemsize // 4
            words = np.ascontiguousarray(x).reshape(-1).view(np.uint32).reshape(-1, count)
            none = np.zeros(len(words), np.uint32)
            result = _murmur(words, none, 4 * count, seed)
        return result.reshape(x.shape).view(np.uint32 if positive else np.int32)


def _hash_text(text: str, seed: int) -> int:
    content = text.encode("utf-8", "surrogateescape")
    whole = len(content) // 4 * 4
    words = np.frombuffer(content[:whole], "<u4")[None]
    tail = int.from_bytes(content[whole:], "little")
    return int(_murmur(words, np.asarray([tail], np.uint32), len(content), seed)[0])


def _turn(x: Array, bits: int) -> Array:
    return x << np.uint32(bits) | x >> np.uint32(32 - bits)


def _murmur(words: Array, tail: Array, length: int, seed: int) -> Array:
    """MurmurHash3 (x86, 32 bits) of rows of words and a tail of up to three bytes."""
    first, second = np.uint32(0xCC9E2D51), np.uint32(0x1B873593)
    state = np.full(len(words), seed & 0xFFFFFFFF, np.uint32)
    for column in words.T:
        state = _turn(state ^ _turn(column * first, 15) * second, 13)
        state = state * np.uint32(5) + np.uint32(0xE6546B64)
    state = state ^ _turn(tail * first, 15) * second
    state = state ^ np.uint32(length)
    state = (state ^ state >> np.uint32(16)) * np.uint32(0x85EBCA6B)
    state = (state ^ state >> np.uint32(13)) * np.uint32(0xC2B2AE35)
    return state ^ state >> np.uint32(16)


class NGramRepeatBlock(Operator):
    """Scores of minus infinity for tokens that would complete an n-gram which is already there."""

    domain = "com.microsoft"
    signatures = (
        "1(input_ids: Tid, scores: T, ngram_size: int) -> scores_out: T; Tid: int64; T: float",
    )

    def infer(tokens: Fact, scores: Fact, ngram_size: int) -> Fact:
        same_size(size_of(tokens, 0), size_of(scores, 0), "not one row of scores for each of ids")
        return tensor(scores.dtype, scores.shape)

    def reference(tokens: Array, scores: Array, ngram_size: int) -> Array:
        return block_repeats(tokens, scores, ngram_size)


def block_repeats(tokens: Array, scores: Array, size: int) -> Array:
    """A copy of scores in which tokens that would repeat an n-gram are ruled out.

    >>> block_repeats(np.array([[1, 2, 1]]), np.zeros((1, 4)), 2).tolist()
    [[0.0, 0.0, -inf, 0.0]]
    """
    if size < 1:
        raise EvaluationError(f"n-grams of {size} tokens make no sense")
    result = scores.copy()
    if tokens.shape[1] < size:
        return result
    grams = np.lib.stride_tricks.sliding_window_view(tokens, size, axis=1)
    last = tokens[:, tokens.shape[1] - size + 1 :]
    for row, (found, tail) in enumerate(zip(grams, last, strict=True)):
        ruled_out = found[(found[:, :-1] == tail).all(1), -1]
        result[row, ruled_out] = -np.inf
    return result


class WordConvEmbedding(Operator):
    """Words of characters to vectors: a convolution over embedded characters, tanh, the maximum."""

    domain = "com.microsoft"
    signatures = (
        "1(Sequence: T, W: T1, B: T1, C: T1, char_embedding_size?: int, conv_window_size?: int,"
        " embedding_size?: int) -> Y: T1; T: int32; T1: float",
    )

    def infer(
        words: Fact, weights: Fact, bias: Fact, characters: Fact, char_embedding_size: int | None,
        conv_window_size: int | None, embedding_size: int | None,
    ) -> Fact:  # fmt: skip
        if words.rank not in (None, 2):
            raise InferenceError(f"{words} is not one row of characters for each word")
        filters = same_size(size_of(weights, 0), size_of(bias, 0), "bias does not fit the weights")
        return tensor(weights.dtype, (size_of(words, 0), filters))

    def reference(
        words: Array, weights: Array, bias: Array, characters: Array,
        char_embedding_size: int | None, conv_window_size: int | None, embedding_size: int | None,
    ) -> Array:  # fmt: skip
        longest = words.shape[1]
        width = weights.shape[2]
        if longest < width:
            raise EvaluationError(f"words of {longest} characters do not fit windows of {width}")
        lengths = (words > 0).sum(1)
        embedded = characters[words]
        windows = np.lib.stride_tricks.sliding_window_view(embedded, width, axis=1)
        values = np.tanh(np.einsum("npek,fke->npf", windows, weights[:, 0]) + bias)
        ends = np.maximum(lengths, width) - width
        within = np.arange(values.shape[1]) <= ends[:, None]
        largest = np.where(within[..., None], values, -np.inf).max(1)
        return np.where(lengths[:, None] > 0, largest, 0).astype(weights.dtype)
