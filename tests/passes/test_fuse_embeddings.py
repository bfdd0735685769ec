"""Embeddings that are looked up, added and normalized by one operator of onnxruntime."""

import pytest

import sardonyx as sx
from sardonyx.passes.fuse_embeddings import DOMAIN, fuse_embeddings
from tests.passes.cases import becomes, model_of, operators, run_pass, weights
from tests.passes.export_networks import EXPORTERS, FOLDER
from tests.passes.test_fuse_microsoft import agrees

SIGNATURE = """(int64[batch,sequence] i, int64[batch,sequence] t, int64[1,sequence] o)
               => (float[batch,sequence,4] y)"""
FIXED = "(int64[2,3] i, int64[2,3] t, int64[1,3] o) => (float[2,3,4] y)"
TABLES = (
    weights("w", 20, 4), weights("s", 20, 4), weights("p", 20, 4), weights("g", 4),
    weights("c", 4), "int64[1,20] zeros = {" + "0, " * 19 + "0}", "int64[1] zero = {0}",
    "int64[1,20] count = {" + ", ".join(map(str, range(20))) + "}", "int64[1] one = {1}",
    "int64 first = {1}",
)  # fmt: skip
NORM = "y = LayerNormalization(v, g, c)"
THREE = "a = Gather(w, i) e = Gather(s, t) q = Gather(p, o) u = Add(a, e) v = Add(u, q) " + NORM
COUNTED = "m = Shape<start=1>(i) k = Slice(count, zero, m, one) "
TWO = COUNTED + "a = Gather(w, i) q = Gather(p, k) v = Add(a, q) " + NORM
ALIKE = (
    COUNTED
    + """
  z = GatherElements<axis=1>(zeros, k) h = Shape(i) r = Expand(z, h) e = Gather(s, r)
  a = Gather(w, i) q = Gather(p, k) u = Add(a, e) v = Add(q, u) """
    + NORM
)


def embedding(body: str, *before: str, signature: str = SIGNATURE) -> tuple[str | None, ...]:
    """The names of the operator's inputs, in a model that is equal on onnxruntime too."""
    model = model_of(signature, body, *TABLES)
    result = becomes(model, [*before, "EmbedLayerNormalization"], fuse_embeddings)
    result.opsets.setdefault(DOMAIN, 1)
    agrees(model, result)
    node = list(result.graph.nodes)[-1]
    return tuple(value.name if value else None for value in node.inputs)


def test_words_segments_and_places() -> None:
    given = embedding(THREE, "Cast", "Cast", "Cast")
    assert given[2:7] == ("w", "p", "s", "g", "c") and given[1] and given[8]
    narrow = SIGNATURE.replace("int64[batch,sequence] i", "int32[batch,sequence] i")
    expected = ["Cast", "Cast", "EmbedLayerNormalization"]
    becomes(model_of(narrow, THREE, *TABLES), expected, fuse_embeddings)


def test_places_that_count_up_are_not_given() -> None:
    given = embedding(TWO, "Cast")
    assert given[1:] == (None, "w", "p", None, "g", "c")


def test_a_segment_that_is_the_same_everywhere_joins_the_places() -> None:
    given = embedding(ALIKE, "Cast")
    assert given[1] is None and given[3] not in ("p", "s") and given[4] is None


def test_sizes_are_read_from_the_words() -> None:
    body = TWO.replace("m = Shape<start=1>(i)", "h = Shape(a) j = Gather(h, first) "
                       "m = Unsqueeze(j, zero)")  # fmt: skip
    order = "a = Gather(w, i) " + body.replace("a = Gather(w, i) ", "")
    assert embedding(order, "Cast")[2] == "w"


@pytest.mark.parametrize(
    ("change", "body", "reason"),
    [
        (("int64[2,3] t", "int64[1,3] t"), THREE, "not of one shape"),
        (("int64[1,3] o", "int64[1,1] o"), THREE, "another length"),
        (("int64[2,3] i", "int64[3] i"), THREE, "words are of another shape"),
        (("", ""), THREE.replace("(v, g, c)", "<axis=1>(v, x, x)"), "another axis"),
        (("1,3] o", "1,3] o, float[20,4] r"), THREE.replace("(w, i)", "(r, i)"), ""),
        (("", ""), THREE.replace(NORM, "d = LayerNormalization(v, g, c) y = Add(d, v)"), ""),
        (("", ""), THREE.replace(NORM, "d = LayerNormalization(v, g, c) y = Mul(d, a)"), ""),
        (("", ""), THREE.replace("e = Gather(s, t)", "e0 = Gather<axis=1>(s4, t)"
                                 "e = Transpose<perm=[1, 2, 0]>(e0)"), ""),
    ],
)  # fmt: skip
def test_near_misses(change: tuple[str, str], body: str, reason: str) -> None:
    signature = FIXED.replace(*change) if change[0] else FIXED
    model = model_of(signature, body, *TABLES, weights("x", 3, 4), weights("s4", 4, 20))
    result, unit = run_pass(model, fuse_embeddings)
    assert "EmbedLayerNormalization" not in operators(result)
    if reason:
        assert any(reason in item for item in unit.reasons), unit.reasons


@pytest.mark.parametrize("slice", ["count, one, four, one", "count, zero, six, one, two",
                                   "other, zero, three, one"])  # fmt: skip
def test_places_that_do_not_count_up_are_given(slice: str) -> None:
    body = TWO.replace("count, zero, m, one", slice).replace("m = Shape<start=1>(i)", "")
    numbers = [f"int64[1] {name} = {{{at}}}" for name, at in
               (("two", 2), ("three", 3), ("four", 4), ("six", 6))]  # fmt: skip
    model = model_of(FIXED, body, *TABLES, *numbers, "int64[1,4] other = {0, 2, 1, 3}")
    expected = ["Slice", "Cast", "Cast", "EmbedLayerNormalization"]
    becomes(model, expected, fuse_embeddings)


def test_a_table_that_is_longer_than_the_places() -> None:
    short = TWO.replace("count", "few")
    model = model_of(SIGNATURE, short, *TABLES, "int64[1,1] few = {0}")
    assert "EmbedLayerNormalization" not in operators(run_pass(model, fuse_embeddings)[0])


def test_subgraphs() -> None:
    model = model_of(
        "(bool k, int64[2,3] i, int64[1,3] o) => (float[2,3,4] y)",
        """y = If (k) <
             then_branch = f () => (float[2,3,4] z) {
               a = Gather(w, i) q = Gather(p, o) v = Add(a, q) z = LayerNormalization(v, g, c) },
             else_branch = e () => (float[2,3,4] x) { x = Gather(w, i) }
           >""",
        *TABLES,
    )
    becomes(model, ["If", "Cast", "Cast", "EmbedLayerNormalization", "Gather"], fuse_embeddings)


@pytest.mark.parametrize("exporter", EXPORTERS)
@pytest.mark.parametrize("name", ["bert", "distilbert"])
def test_exports(name: str, exporter: str) -> None:
    model = sx.load(FOLDER / f"{name}_{exporter}.onnxtxt")
    small = sx.optimize(model, 3, fusions=DOMAIN)
    assert operators(small).count("EmbedLayerNormalization") == 1
    assert not {"Slice", "GatherElements"} & set(operators(small))
