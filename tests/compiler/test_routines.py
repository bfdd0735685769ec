"""What routines refuse, and sizes that only a run tells."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sardonyx as sx
from sardonyx.compiler.program import compile_model
from sardonyx.errors import EvaluationError, SardonyxError
from tests.compiler.cases_recurrent import layer


@pytest.mark.parametrize("lengths", [[5, 1, 1], [1, -1, 1]])
def test_lengths_outside_of_the_sequence_are_refused(lengths: list[int]) -> None:
    model, feeds = layer("GRU", "outside", lengths=lengths).model(symbolic=False)
    with pytest.raises(EvaluationError):
        compile_model(model, threads=1).run(feeds)


@pytest.mark.parametrize("op_type", ["RNN", "GRU", "LSTM"])
def test_steps_of_a_layer_do_not_depend_on_threads(op_type: str) -> None:
    model, feeds = layer(
        op_type, "wide", batch=3, hidden=272, direction="bidirectional", lengths=[4, 2, 3]
    ).model(symbolic=True)  # fmt: skip
    alone, *others = (compile_model(model, threads=threads).run(feeds) for threads in (1, 2, 5))
    for results in others:
        for found, wanted in zip(results, alone, strict=True):
            assert found.tobytes() == wanted.tobytes()


def refused(text: str, **feeds: NDArray[Any]) -> None:
    """The reference and the program both refuse a feed."""
    model = sx.load_text(f'<ir_version: 10, opset_import: ["": 21]>{text}')
    with pytest.raises(SardonyxError):
        sx.evaluate(model, feeds)
    with pytest.raises(SardonyxError):
        compile_model(model, threads=1).run(feeds)


@pytest.mark.parametrize("count", [4, 20])
def test_more_elements_than_there_are_cannot_be_taken(count: int) -> None:
    refused(
        f"g (float[n] x) => (float[m] y) <int64[1] k = {{{count}}}> {{ y, i = TopK(x, k) }}",
        x=np.arange(3, dtype=np.float32),
    )


@pytest.mark.parametrize("size", [0, 2])
def test_a_condition_beyond_the_end_is_refused(size: int) -> None:
    refused(
        "g (float[n] x, bool[m] c) => (float[k] y) { y = Compress(x, c) }",
        x=np.zeros(size, np.float32),
        c=np.array([False, False, True]),
    )


def test_a_region_of_an_image_that_is_not_there_is_refused() -> None:
    refused(
        "g (float[1,1,4,4] x, float[1,4] r, int64[1] b) => (float[1,1,1,1] y) "
        "{ y = RoiAlign(x, r, b) }",
        x=np.zeros((1, 1, 4, 4), np.float32),
        r=np.ones((1, 4), np.float32),
        b=np.array([1]),
    )


def test_kernels_go_on_with_a_size_that_a_run_has_told() -> None:
    model = sx.load_text(
        '<ir_version: 10, opset_import: ["": 21]>'
        "g (float[n] x) => (float[m] y, int64[1] s) {"
        " p = NonZero(x) q = Transpose(p) v = GatherND(x, q) w = Mul(v, v)"
        " y = Neg(w) s = Shape(y) }"
    )
    program = compile_model(model, threads=1)
    assert all(row.kernel != "reference" for row in program.explain())
    for count in (3, 0, 5):
        x = np.zeros(9, np.float32)
        x[:count] = np.arange(1, count + 1)
        found, size = program.run({"x": x})
        np.testing.assert_array_equal(found, -(x[:count] ** 2))
        assert size.tolist() == [count]


def test_a_size_is_handed_to_a_loop() -> None:
    model = sx.load_text(
        '<ir_version: 10, opset_import: ["": 21]>'
        "g (float[n] x) => (float[n] y) {"
        " s = Shape(x) zero = Constant<value_int = 0>() c = Gather(s, zero)"
        " one = Constant<value_float = 1.0>() true = Constant<value = bool {1}>()"
        " y = Loop(c, true, x) <body = b (int64 i, bool more, float[n] v) => (bool on, float[n] o)"
        " { on = Identity(more) o = Add(v, one) }> }"
    )
    x = np.arange(4, dtype=np.float32)
    (found,) = compile_model(model, threads=1).run({"x": x})
    np.testing.assert_array_equal(found, x + 4)


def test_branches_inside_of_a_branch_know_the_shapes_that_are_fed() -> None:
    model = sx.load_text(
        '<ir_version: 10, opset_import: ["": 21]>'
        "g (float[n,m] x, bool c) => (float[n,m] y) {"
        " y = If(c) <then_branch = t () => (float[n,m] a) {"
        "  s = Shape<start = 1>(x) two = Constant<value_ints = [2]>() e = Equal(s, two)"
        "  a = If(e) <then_branch = u () => (float[n,m] p) { p = Neg(x) },"
        "   else_branch = v () => (float[n,m] q) { q = Abs(x) }> },"
        "  else_branch = w () => (float[n,m] b) { b = Identity(x) }> }"
    )
    program = compile_model(model, threads=1)
    for width in (2, 3, 2, 4, 5, 6, 7, 2):
        x = np.arange(-2, width * 2 - 2, dtype=np.float32).reshape(2, width)
        (found,) = program.run({"x": x, "c": np.array(True)})
        np.testing.assert_array_equal(found, -x if width == 2 else np.abs(x))
