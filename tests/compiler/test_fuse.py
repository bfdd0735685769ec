"""What is computed together, how results lie in memory, and where intermediates go."""

import numpy as np

import sardonyx as sx
from sardonyx.compiler.build import Step
from sardonyx.compiler.compile import build_parts
from sardonyx.compiler.host import host_target
from sardonyx.compiler.plan import Lifetime, arrange
from sardonyx.compiler.program import Program, compile_model
from sardonyx.compiler.segment import Segment
from sardonyx.loops import kernel_text
from sardonyx.ops.catalog import standard

HEAD = '<ir_version: 10, opset_import: ["": 21]>'


def compiled(text: str) -> Program:
    return compile_model(sx.load_text(HEAD + text), threads=1)


def kernels(program: Program) -> dict[str, str]:
    """The kernel of each operator."""
    return {row.operator: row.kernel for row in program.explain()}


def test_softmax_with_its_neighbours_is_one_kernel() -> None:
    program = compiled(
        "g (float[n,m] x, float[m] b) => (float[n,m] y) {"
        " a = Add(x, b) s = Softmax<axis = -1>(a) y = Neg(s) }"
    )
    assert program.kernels == 1
    assert set(kernels(program).values()) == {"rows 0"}


def test_softmax_keeps_its_powers_in_the_result() -> None:
    model = sx.load_text(HEAD + "g (float[n,m] x) => (float[n,m] y) { y = Softmax<axis=-1>(x) }")
    (step,) = build_parts(model, host_target(), standard()).built.steps
    assert isinstance(step, Step)
    assert kernel_text(step.calls[0].kernel).splitlines() == [
        "kernel(m0, m1, m, n)",
        "  m0: float[m*n] strides [1]",
        "  m1: float[m*n] strides [1]",
        "  parallel %task in n:",
        "    %i0 := <%task>",
        "    register r0: float[] = -inf",
        "    vector %i1 in m:",
        "      r0[] max= m1[%i0*m+%i1]",
        "    register r1: float[] = 0",
        "    vector %i1 in m:",
        "      m0[%i0*m+%i1] = exp((m1[%i0*m+%i1] - r0[]))",
        "      r1[] add= m0[%i0*m+%i1]",
        "    vector %i1 in m:",
        "      m0[%i0*m+%i1] = (m0[%i0*m+%i1] * reciprocal(r1[]))",
    ]


def test_a_normalisation_built_of_operators_is_one_kernel() -> None:
    program = compiled(
        "g (float[n,8] x) => (float[n,8] y) {"
        " t = Constant<value_ints = [1]>() e = Constant<value_float = 0.00001>()"
        " m = ReduceMean(x, t) d = Sub(x, m) q = Mul(d, d) v = ReduceMean(q, t)"
        " a = Add(v, e) r = Sqrt(a) y = Div(d, r) }"
    )
    assert program.kernels == 1


def test_reductions_along_different_axes_are_apart() -> None:
    program = compiled(
        "g (float[n,n] x) => (float[1,n] y) {"
        " s = Constant<value_ints = [0]>() t = Constant<value_ints = [1]>()"
        " m = ReduceMax(x, t) d = Sub(x, m) y = ReduceSum(d, s) }"
    )
    assert program.kernels == 2


def test_a_product_takes_what_follows_into_its_epilogue() -> None:
    program = compiled(
        "g (float[n,8] x, float[8,6] w, float[n,6] r) => (float[n,6] y) {"
        " p = MatMul(x, w) a = Add(p, r) t = Tanh(a) y = Mul(t, a) }"
    )
    found = kernels(program)
    assert len({found[name] for name in ("MatMul", "Add", "Tanh", "Mul")}) == 1
    assert found["MatMul"].startswith("contraction")


def test_a_result_with_two_readers_is_stored_once() -> None:
    program = compiled(
        "g (float[n,8] x) => (float[n,8] y, float[n,8] z) {"
        " e = Exp(x) y = Softmax(e) z = Softmax<axis = 0>(e) }"
    )
    assert program.kernels == 3


def test_an_expensive_small_value_is_not_computed_again_for_every_row() -> None:
    program = compiled(
        "g (float[n,8] x, float[8] b) => (float[n,8] y) { e = Exp(b) y = Mul(x, e) }"
    )
    assert program.kernels == 2


def test_transposition_before_a_reshape_costs_no_kernel() -> None:
    program = compiled(
        "g (float[b,3,s,4] x, float[b,3,4,5] w) => (float[b,s,15] y) {"
        " c = Constant<value_ints = [0, 0, 15]>() p = MatMul(x, w)"
        " t = Transpose<perm = [0, 2, 1, 3]>(p) r = Reshape(t, c) y = Relu(r) }"
    )
    assert program.kernels == 3
    rng = np.random.default_rng(0)
    feeds = {
        "x": rng.standard_normal((2, 3, 7, 4), np.float32),
        "w": rng.standard_normal((2, 3, 4, 5), np.float32),
    }
    mixed = (feeds["x"] @ feeds["w"]).transpose(0, 2, 1, 3).reshape(2, 7, 15)
    np.testing.assert_allclose(program.run(feeds)[0], np.maximum(mixed, 0), rtol=1e-5, atol=1e-6)


TOKENS = (
    "g (float[b,12,8] x, float[8,4] w, float[4,1,3,3] f) => (float[b,12,4] y) {"
    " p = MatMul(x, w) t = Transpose<perm = [0, 2, 1]>(p)"
    " s = Constant<value_ints = [0, 4, 3, 4]>() i = Reshape(t, s)"
    " c = Conv<group = 4, pads = [1, 1, 1, 1]>(i, f)"
    " q = Constant<value_ints = [0, 4, 12]>() r = Reshape(c, q)"
    " y = Transpose<perm = [0, 2, 1]>(r) }"
)


def test_tokens_become_an_image_and_tokens_again_without_copies() -> None:
    program = compiled(TOKENS)
    assert {row.kernel for row in program.explain() if "Reshape" in row.operator} == {"view"}
    rng = np.random.default_rng(0)
    for batch in (0, 1, 3):
        feeds = {
            "x": rng.standard_normal((batch, 12, 8), np.float32),
            "w": rng.standard_normal((8, 4), np.float32),
            "f": rng.standard_normal((4, 1, 3, 3), np.float32),
        }
        expected = sx.evaluate(sx.load_text(HEAD + TOKENS), feeds)
        np.testing.assert_allclose(program.run(feeds)[0], expected[0], rtol=1e-4, atol=1e-5)


def test_images_reshaped_in_different_ways_are_read_right() -> None:
    text = (
        "g (float[2,3,4,5] x, float[6,3,1,1] f) => (float[2,20,6] y, float[2,6,20] z,"
        " float[2,2,3,20] u, float[2,5,4,6] v) {"
        " c = Conv(x, f) q = Constant<value_ints = [0, 6, 20]>() r = Reshape(c, q)"
        " y = Transpose<perm = [0, 2, 1]>(r) z = Neg(r)"
        " h = Constant<value_ints = [2, 2, 3, 20]>() g = Reshape(c, h) u = Exp(g)"
        " t = Transpose<perm = [0, 3, 2, 1]>(c) v = Abs(t) }"
    )
    program = compiled(text)
    rng = np.random.default_rng(0)
    feeds = {
        "x": rng.standard_normal((2, 3, 4, 5), np.float32),
        "f": rng.standard_normal((6, 3, 1, 1), np.float32),
    }
    expected = sx.evaluate(sx.load_text(HEAD + text), feeds)
    for found, wanted in zip(program.run(feeds), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_parts_that_are_taken_are_computed_where_they_are_joined() -> None:
    program = compiled(
        "g (float[1,16,4,4] x, float[1,16,8,8] y) => (float[1,32,8,8] z) {"
        " s = Constant<value_floats = [1.0, 1.0, 2.0, 2.0]>()"
        ' r = Resize<mode = "nearest">(x, , s) z = Concat<axis = 1>(r, y) }'
    )
    assert program.kernels == 3


def test_equal_kernels_are_compiled_once() -> None:
    program = compiled(
        "g (float[n,8] x, float[8,8] w) => (float[n,8] y) {"
        " a = MatMul(x, w) b = MatMul(a, w) y = MatMul(b, w) }"
    )
    (segment,) = (step for step in program._steps if isinstance(step, Segment))
    assert len(segment.image.calls) == 6
    assert len({kernel for kernel, _, _ in segment.image.calls}) == 2


def placed(
    arrangement: list[tuple[int, list[int]]], sizes: list[int]
) -> tuple[dict[int, int], int]:
    """Offsets of blocks for any sizes, and the bytes they take."""
    offsets: dict[int, int] = {}
    for block, below in arrangement:
        offsets[block] = max((offsets[other] + sizes[other] for other in below), default=0)
    return offsets, max(offset + sizes[block] for block, offset in offsets.items())


def test_what_lives_together_does_not_overlap_whatever_its_size() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        firsts = rng.integers(0, 10, 12)
        lives = [Lifetime(int(at), int(at + rng.integers(0, 4))) for at in firsts]
        typical, sizes = ([int(size) for size in rng.integers(0, 500, 12)] for _ in range(2))
        arrangement = arrange(typical, lives)
        for size in (typical, sizes):
            offsets, _ = placed(arrangement, size)
            for a in range(12):
                for b in range(a):
                    apart = offsets[a] + size[a] <= offsets[b] or offsets[b] + size[b] <= offsets[a]
                    together = lives[a].first <= lives[b].last and lives[b].first <= lives[a].last
                    assert apart or not together


def test_memory_is_used_again() -> None:
    sizes = [640] * 10
    arrangement = arrange(sizes, [Lifetime(step, step + 1) for step in range(10)])
    assert placed(arrangement, sizes)[1] == 1280


def test_a_slice_before_a_reshape_is_no_change_of_order() -> None:
    program = compiled(
        "g (float[4,6] x) => (float[12] y) {"
        " a = Constant<value_ints = [0]>() b = Constant<value_ints = [3]>()"
        " c = Constant<value_ints = [1]>() d = Constant<value_ints = [12]>()"
        " r = Relu(x) s = Slice(r, a, b, c) z = Reshape(s, d) y = Neg(z) }"
    )
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    np.testing.assert_array_equal(program.run({"x": x})[0], -x[:, :3].reshape(12))
