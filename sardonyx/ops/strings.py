# mypy: disable-error-code="misc, no-any-return"
"""Operators on text."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.errors import EvaluationError, InferenceError
from sardonyx.ops.automaton import full_match
from sardonyx.ops.fact import Fact, broadcast, tensor
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array


def _each(function: Callable[..., Any], dtype: Any, *arrays: Array) -> Array:
    """A function of single elements applied to all of them."""
    return np.asarray(np.frompyfunc(function, len(arrays), 1)(*arrays)).astype(dtype)


class StringConcat(Operator):
    """Texts put one behind the other, with broadcasting."""

    signatures = ("20(X: T, Y: T) -> Z: T; T: string",)

    def infer(x: Fact, y: Fact) -> Fact:
        return tensor(DataType.STRING, broadcast(x.shape, y.shape))

    def reference(x: Array, y: Array) -> Array:
        return _each(lambda left, right: left + right, object, x, y)


class StringSplit(Operator):
    """Texts cut at a delimiter, or at white space; short lists are filled with empty texts."""

    signatures = (
        "20(X: T1, delimiter?: string, maxsplit?: int) -> (Y: T2, Z: T3); T1: string; T2: string; "
        "T3: int64",
    )

    def infer(x: Fact, delimiter: str | None, maxsplit: int | None) -> tuple[Fact, Fact]:
        shape = None if x.shape is None else (*x.shape, None)
        return tensor(DataType.STRING, shape), tensor(DataType.INT64, x.shape)

    def reference(x: Array, delimiter: str | None, maxsplit: int | None) -> tuple[Array, Array]:
        limit = -1 if maxsplit is None else maxsplit
        pieces = [text.split(delimiter or None, limit) for text in x.flat]
        counts = np.array([len(items) for items in pieces], np.int64).reshape(x.shape)
        table = np.full((x.size, counts.max(initial=0)), "", object)
        for row, items in zip(table, pieces, strict=True):
            row[: len(items)] = items
        return table.reshape(*x.shape, table.shape[1]), counts


class RegexFullMatch(Operator):
    """Whether texts match a pattern from beginning to end; the pattern is in RE2's syntax."""

    signatures = ("20(X: T1, pattern?: string) -> Y: T2; T1: string; T2: bool",)

    def infer(x: Fact, pattern: str | None) -> Fact:
        return tensor(DataType.BOOL, x.shape)

    def reference(x: Array, pattern: str | None) -> Array:
        return _each(lambda text: full_match(pattern or "", text), bool, x)


_CASES: dict[str, Callable[[str], str]] = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}


class StringNormalizer(Operator):
    """Texts in upper or lower case, without those that are listed as stop words.

    Case is Unicode's, whatever the locale.
    """

    signatures = (
        "10(X: tensor(string), case_change_action: string = 'NONE', is_case_sensitive: int = 0, "
        "locale?: string, stopwords?: strings) -> Y: tensor(string)",
    )

    def infer(
        x: Fact, case_change_action: str, is_case_sensitive: int, locale: str | None,
        stopwords: tuple[str, ...] | None,
    ) -> Fact:  # fmt: skip
        if case_change_action not in _CASES:
            raise InferenceError(f"'{case_change_action}' is not one of {', '.join(_CASES)}")
        if x.shape is None:
            return tensor(DataType.STRING, None)
        if len(x.shape) not in (1, 2):
            raise InferenceError(f"a row of texts is needed, not {x}")
        return tensor(DataType.STRING, (*x.shape[:-1], None if stopwords else x.shape[-1]))

    def reference(
        x: Array, case_change_action: str, is_case_sensitive: int, locale: str | None,
        stopwords: tuple[str, ...] | None,
    ) -> Array:  # fmt: skip
        if x.ndim not in (1, 2) or (x.ndim == 2 and x.shape[0] != 1):
            raise EvaluationError(f"a row of texts is needed, not the shape {list(x.shape)}")
        key: Callable[[str], str] = str if is_case_sensitive else str.lower
        dropped = set(map(key, stopwords or ()))
        kept = [text for text in x.reshape(-1).tolist() if key(text) not in dropped]
        change = _CASES[case_change_action]
        texts = np.array([change(text) for text in kept] or [""], object)
        return texts.reshape(*x.shape[:-1], -1)


class TfIdfVectorizer(Operator):
    """How often runs of tokens from a pool stand in rows of tokens, as a vector for each row."""

    signatures = (
        "9(X: T, max_gram_length: int, max_skip_count: int, min_gram_length: int, mode: string, "
        "ngram_counts: ints, ngram_indexes: ints, pool_int64s?: ints, pool_strings?: strings, "
        "weights?: floats) -> Y: T1; T: int32 int64 string; T1: float",
    )

    def infer(
        x: Fact, max_gram_length: int, min_gram_length: int, mode: str,
        ngram_indexes: tuple[int, ...], **how: Any,
    ) -> Fact:  # fmt: skip
        if mode not in ("TF", "IDF", "TFIDF"):
            raise InferenceError(f"mode '{mode}' is not one of TF, IDF, TFIDF")
        if not 1 <= min_gram_length <= max_gram_length:
            raise InferenceError(f"no n-gram has {min_gram_length} to {max_gram_length} tokens")
        if x.rank is not None and x.rank > 2:
            raise InferenceError(f"a row or rows of tokens are needed, not {x}")
        if x.shape is None:
            return tensor(DataType.FLOAT, None)
        return tensor(DataType.FLOAT, (*x.shape[:-1], max(ngram_indexes, default=-1) + 1))

    def reference(
        x: Array, max_gram_length: int, max_skip_count: int, min_gram_length: int, mode: str,
        ngram_counts: tuple[int, ...], ngram_indexes: tuple[int, ...],
        pool_int64s: tuple[int, ...] | None, pool_strings: tuple[str, ...] | None,
        weights: tuple[float, ...] | None,
    ) -> Array:  # fmt: skip
        pool = pool_strings if x.dtype == object else pool_int64s
        places = dict(zip(pool_grams(pool or (), ngram_counts), ngram_indexes, strict=False))
        rows = x.reshape(math.prod(x.shape[:-1]), x.shape[-1] if x.ndim else 1)
        counts = np.zeros((len(rows), max(ngram_indexes, default=-1) + 1), np.float32)
        longest = min(max_gram_length, len(ngram_counts), rows.shape[1])
        lengths = range(min_gram_length, longest + 1)
        for row, found in zip(rows.tolist(), counts, strict=True):
            for gram in _runs(row, lengths, max_skip_count):
                if gram in places:
                    found[places[gram]] += 1
        if mode == "IDF":
            counts = np.minimum(counts, 1)
        if mode != "TF" and weights:
            counts = counts * np.array(weights, np.float32)[: counts.shape[1]]
        return counts.reshape(*x.shape[:-1], counts.shape[1])


def pool_grams(pool: tuple[Any, ...], starts: tuple[int, ...]) -> Iterator[tuple[Any, ...]]:
    """The runs a pool lists: those of one token first, then those of two, and so on."""
    for length, (start, end) in enumerate(zip(starts, (*starts[1:], len(pool)), strict=True), 1):
        for first in range(start, end - length + 1, length):
            yield pool[first : first + length]


def _runs(row: list[Any], lengths: range, skips: int) -> Iterator[tuple[Any, ...]]:
    """All runs of tokens of these lengths, with up to so many tokens left out between two."""
    for length in lengths:
        most = 1 if length == 1 else min(skips + 1, (len(row) - 1) // (length - 1))
        for step in range(1, most + 1):
            for first in range(len(row) - step * (length - 1)):
                yield tuple(row[first : first + step * (length - 1) + 1 : step])
