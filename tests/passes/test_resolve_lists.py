"""Lists whose elements are known."""

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.passes.pipeline import CLEAN, run_pipeline
from sardonyx.passes.resolve_lists import resolve_lists
from tests.passes.cases import becomes, model_of, stays

PLACES = ("int64 zero = {0}", "int64 one = {1}", "int64 last = {-1}", "int64 beyond = {2}")
PAIR = "(float[2,n] x, float[2,n] z) => (float[?,?] y)"


@pytest.mark.parametrize("place", ["zero", "one", "last"])
def test_an_element(place: str) -> None:
    body = f"s = SequenceConstruct(x, z) e = SequenceAt(s, {place}) y = Neg(e)"
    becomes(model_of(PAIR, body, *PLACES), ["Neg"], resolve_lists)


def test_an_element_that_is_not_there_stays() -> None:
    body = "s = SequenceConstruct(x, z) e = SequenceAt(s, beyond) y = Neg(e)"
    model = model_of(PAIR, body, *PLACES)
    assert len(list(run_pipeline(model, (resolve_lists,)).graph.nodes)) == 3


def test_a_place_that_is_fed_stays() -> None:
    signature = "(float[2,n] x, int64 at) => (float[2,n] y)"
    stays(
        model_of(signature, "s = SequenceConstruct(x, x) y = SequenceAt(s, at)"), "", resolve_lists
    )


def test_inserted_and_erased() -> None:
    body = """a = SequenceEmpty() b = SequenceInsert(a, x) c = SequenceInsert(b, z, zero)
              d = SequenceInsert(c, x, last) e = SequenceErase(d, one) f = SequenceErase(e)
              g = SequenceAt(f, zero) y = Neg(g)"""
    becomes(model_of(PAIR, body, *PLACES), ["Neg"], resolve_lists)


def test_joined_and_stacked() -> None:
    body = "s = SequenceConstruct(x, z) y = ConcatFromSequence<axis=-1>(s)"
    becomes(model_of(PAIR, body), ["Concat"], resolve_lists)
    stacked = model_of(
        "(float[2,n] x, float[2,n] z) => (float[?,?,?] y)",
        "s = SequenceConstruct(x, z) y = ConcatFromSequence<axis=-1, new_axis=1>(s)",
    )
    becomes(stacked, ["Unsqueeze", "Unsqueeze", "Concat"], resolve_lists)


def test_length() -> None:
    body = "s = SequenceConstruct(x, x, x) l = SequenceLength(s) y = Neg(l)"
    becomes(model_of("(float[2] x) => (int64 y)", body), ["Neg"], resolve_lists)


@pytest.mark.parametrize(
    "made",
    ["SplitToSequence<axis=0>(x)", "SplitToSequence<axis=-2>(x, two)", "SplitToSequence(x, parts)"],
)
def test_parts(made: str) -> None:
    model = model_of(
        "(float[5,n] x) => (float[?,n] y, float[?,n] z)",
        f"s = {made} y = SequenceAt(s, zero) z = SequenceAt(s, last)",
        *PLACES, "int64 two = {2}", "int64[3] parts = {2, 0, 3}",
    )  # fmt: skip
    becomes(model, ["Split"], resolve_lists)


def test_slices_without_their_axis() -> None:
    model = model_of(
        "(float[2,n] x) => (float[n] y)",
        "s = SplitToSequence<keepdims=0>(x) y = SequenceAt(s, one)",
        *PLACES,
    )
    becomes(model, ["Split", "Squeeze"], resolve_lists)


def test_a_list_that_is_returned_stays() -> None:
    signature = "(float[4,2] x) => (seq(float[?,2]) y)"
    stays(model_of(signature, "y = SplitToSequence<axis=0>(x)"), "", resolve_lists)


def test_optionals() -> None:
    body = "o = Optional(x) a = OptionalGetElement(o) b = OptionalGetElement(a) y = Neg(b)"
    becomes(model_of("(float[2] x) => (float[2] y)", body), ["Neg"], resolve_lists)


def test_an_element_that_is_returned() -> None:
    model = model_of("(float[2] x) => (float[2] y)",
                     "s = SequenceConstruct(x, x) y = SequenceAt(s, one)", *PLACES)  # fmt: skip
    becomes(model, ["Identity"], resolve_lists)


def test_inside_of_a_branch() -> None:
    model = model_of(
        "(bool c, float[2] x) => (float[2] y)",
        """s = SequenceConstruct(x, x)
           y = If (c) <
             then_branch = t () => (float[2] p) { p = SequenceAt(s, one) },
             else_branch = e () => (float[2] q) { q = Neg(x) }
           >""",
        *PLACES,
    )
    becomes(model, ["If", "Identity", "Neg"], resolve_lists)


def test_lists_that_a_loop_made() -> None:
    """A loop of few rounds is written out first, and then its list is known."""
    model = sx.load_text("""<ir_version: 10, opset_import: ["": 20]>
        g (float[2] x) => (float[2,2] y) {
          n = Constant <value_int = 2> ()
          go = Constant <value = bool {1}> ()
          none = SequenceEmpty ()
          s = Loop (n, go, none) <body = b (int64 i, bool c, seq(float[2]) before)
              => (bool d, seq(float[2]) after) {
            d = Identity (c)
            f = Cast <to = 1> (i)
            item = Add (x, f)
            after = SequenceInsert (before, item)
          }>
          y = ConcatFromSequence <axis = 0, new_axis = 1> (s)
        }""")
    small = run_pipeline(model, CLEAN, sx.passes.options.Options(unroll_limit=8))
    assert {node.op_type for node in small.graph.nodes} <= {"Add", "Unsqueeze", "Concat"}
    feeds = {"x": np.float32([1, 2])}
    np.testing.assert_array_equal(sx.evaluate(small, feeds)[0], sx.evaluate(model, feeds)[0])
