"""Operators on text."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from sardonyx.errors import EvaluationError, InferenceError, SardonyxError
from tests.ops.direct import inferred, run
from tests.ops.one_node import one_node, run_here, run_there, same


def texts(*items: Any) -> Any:
    """An array of texts."""
    return np.array(items, object)


def test_concat() -> None:
    inputs = {"x": texts(["a", "é"], ["", "d"]), "y": texts("x", "y")}
    content = one_node("StringConcat", inputs, ["z"], 20)
    same(run_here(content, inputs), run_there(content, inputs))
    scalar = run("StringConcat", np.array("a", object), np.array("b", object))
    assert (scalar.shape, scalar.item()) == ((), "ab")
    assert inferred("g (string[n,1] x, string[m] y) => (z) { z = StringConcat(x, y) }") == [
        "string[n,m]"
    ]
    with pytest.raises(InferenceError, match="do not broadcast"):
        inferred("g (string[3] x, string[2] y) => (z) { z = StringConcat(x, y) }")


@pytest.mark.parametrize("delimiter", [None, "", ",", "ab", " "])
@pytest.mark.parametrize("limit", [None, 0, 1, 5])
def test_split(delimiter: str | None, limit: int | None) -> None:
    inputs = {"x": texts([" a  b,c ", "abab"], ["", ",,"])}
    how = {
        name: item
        for name, item in (("delimiter", delimiter), ("maxsplit", limit))
        if item is not None
    }
    content = one_node("StringSplit", inputs, ["y", "n"], 20, **how)
    theirs = ReferenceEvaluator(onnx.load_from_string(content)).run(None, inputs)
    same(run_here(content, inputs), theirs)


def test_split_shapes_and_nothing() -> None:
    pieces, counts = run("StringSplit", np.zeros((2, 0), object), outputs=2)
    assert (pieces.shape, counts.shape, counts.dtype) == ((2, 0, 0), (2, 0), np.int64)
    text = "g (string[n,2] x) => (y, c) { y, c = StringSplit(x) }"
    assert inferred(text) == ["string[n,2,?]", "int64[n,2]"]


def test_full_match() -> None:
    inputs = {"x": texts(["www.google.com", "google"], ["www.x.com", ""])}
    content = one_node("RegexFullMatch", inputs, ["y"], 20, pattern=r"www\.[\w.-]+\.com")
    same(run_here(content, inputs), run_there(content, inputs))
    assert run("RegexFullMatch", texts("", "a")).tolist() == [True, False]
    assert inferred("g (string[n] x) => (y) { y = RegexFullMatch(x) }") == ["bool[n]"]
    with pytest.raises(EvaluationError, match="not one of RE2's"):
        run("RegexFullMatch", texts("a"), pattern="(?=a)")


@pytest.mark.parametrize("action", ["NONE", "LOWER", "UPPER"])
@pytest.mark.parametrize("sensitive", [0, 1])
@pytest.mark.parametrize("stopwords", [None, ["monday"], ["Monday", "tuesday", "friday"]])
@pytest.mark.parametrize("rows", [False, True])
def test_normalizer(action: str, sensitive: int, stopwords: list[str] | None, rows: bool) -> None:
    words = texts("monday", "Monday", "tuesday")
    inputs = {"x": words[None] if rows else words}
    how: dict[str, Any] = {
        "case_change_action": action,
        "is_case_sensitive": sensitive,
        "locale": "C",
    }
    if stopwords is not None:
        how["stopwords"] = stopwords
    content = one_node("StringNormalizer", inputs, ["y"], 10, **how)
    same(run_here(content, inputs), run_there(content, inputs))


def test_everything_dropped() -> None:
    assert run("StringNormalizer", texts("a"), stopwords=["A"]).tolist() == [""]
    assert run("StringNormalizer", texts(["a", "b"]), stopwords=["a", "b"]).tolist() == [[""]]
    with pytest.raises(EvaluationError, match="a row of texts"):
        run("StringNormalizer", texts(["a"], ["b"]))


def test_normalizer_shapes() -> None:
    assert inferred("g (string[n] x) => (y) { y = StringNormalizer(x) }") == ["string[n]"]
    text = 'g (string[1,n] x) => (y) { y = StringNormalizer<stopwords=["a"]>(x) }'
    assert inferred(text) == ["string[1,?]"]
    with pytest.raises(InferenceError, match="'TITLE' is not one of"):
        inferred('g (string[n] x) => (y) { y = StringNormalizer<case_change_action="TITLE">(x) }')


POOL = {"ngram_counts": [0, 4], "ngram_indexes": [0, 1, 2, 3, 4, 5, 6]}


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("least", "most", "skip"), [(1, 1, 0), (1, 2, 0), (2, 2, 5), (1, 2, 1)])
@pytest.mark.parametrize("batch", [False, True])
def test_tfidf(mode: str, weighted: bool, least: int, most: int, skip: int, batch: bool) -> None:
    rows = np.int32([[1, 1, 3, 3, 3, 7], [8, 6, 7, 5, 6, 8]])
    inputs = {"x": rows if batch else rows.reshape(-1)}
    how: dict[str, Any] = {
        **POOL, "mode": mode, "min_gram_length": least, "max_gram_length": most,
        "max_skip_count": skip, "pool_int64s": [2, 3, 5, 4, 5, 6, 7, 8, 6, 7],
    }  # fmt: skip
    if weighted:
        how["weights"] = [0.5, 1, 2, 3, 4, 5, 6]
    content = one_node("TfIdfVectorizer", inputs, ["y"], 9, **how)
    same(run_here(content, inputs), run_there(content, inputs))


def test_tfidf_of_texts() -> None:
    inputs = {"x": texts("a", "b", "a", "b", "c")}
    how = {
        "ngram_counts": [0, 2], "ngram_indexes": [1, 0, 3], "mode": "TF", "min_gram_length": 1,
        "max_gram_length": 2, "max_skip_count": 1, "pool_strings": ["a", "c", "a", "b"],
    }  # fmt: skip
    content = one_node("TfIdfVectorizer", inputs, ["y"], 9, **how)
    (result,) = run_here(content, inputs)
    assert result.tolist() == [1, 2, 0, 2]
    same([result], run_there(content, inputs))
    (empty,) = run_here(content, {"x": np.zeros(5, object)})
    assert empty.tolist() == [0, 0, 0, 0]


def test_tfidf_shapes() -> None:
    attributes = """max_gram_length=1, max_skip_count=0, min_gram_length=1, mode="TF",
        ngram_counts=[0], ngram_indexes=[0, 4], pool_int64s=[1, 2]"""
    text = f"g (int64[SHAPE] x) => (y) {{ y = TfIdfVectorizer<{attributes}>(x) }}"
    assert inferred(text.replace("SHAPE", "n,m")) == ["float[n,5]"]
    assert inferred(text.replace("SHAPE", "m")) == ["float[5]"]
    with pytest.raises(InferenceError, match="rows of tokens"):
        inferred(text.replace("SHAPE", "1,2,3"))


@pytest.mark.parametrize(("least", "most"), [(0, 2), (-1000, 2), (3, 2)])
def test_grams_of_no_tokens(least: int, most: int) -> None:
    x = np.zeros((1, 4), np.int32)
    with pytest.raises(SardonyxError, match=f"no n-gram has {least} to {most} tokens"):
        run("TfIdfVectorizer", x, mode="TF", max_skip_count=0, min_gram_length=least,
            max_gram_length=most, ngram_counts=[0], ngram_indexes=[0], pool_int64s=[1])  # fmt: skip
