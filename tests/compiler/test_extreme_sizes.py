"""Sizes near the ends of int64: results as the reference has them, or errors, and no crash."""

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.compiler.bounds import Bounds
from sardonyx.compiler.limits import check_bound
from sardonyx.compiler.program import compile_model
from sardonyx.dims import maximum, minimum, symbol
from sardonyx.dtypes import DataType
from sardonyx.errors import EvaluationError, SardonyxError
from sardonyx.loops.build import dense, kernel
from sardonyx.loops.nodes import Binary, Cast, Let, Load, Loop, Store, Whole
from tests.compiler.extreme_sizes import HIGH, LOW, cases, judge, problems

N, M = symbol("n"), symbol("m")


@pytest.mark.parametrize("start", [3, 40])
def test_some_extremes(start: int) -> None:
    assert problems(79, start, 120) == []


@pytest.mark.slow
@pytest.mark.parametrize("start", range(8))
def test_all_extremes(start: int) -> None:
    assert problems(8, start, 1200) == []


@pytest.mark.parametrize("bounds", [(LOW, HIGH, -1), (-7, HIGH, -1), (-(2**31), HIGH, -1),
                                    (LOW, HIGH, 1), (7, LOW, 1)])  # fmt: skip
def test_slices_that_once_wrote_past_their_arrays(bounds: tuple[int, int, int]) -> None:
    start, end, step = bounds
    text = (
        '<ir_version: 10, opset_import: ["": 21]> g (float[h,w] x) => (z)'
        f" <int64[1] p = {{{start}}}, int64[1] q = {{{end}}}, int64[1] a = {{0}},"
        f" int64[1] s = {{{step}}}> {{ y = Slice(x, p, q, a, s) u = Neg(y) z = Transpose(u) }}"
    )
    assert judge(text, {"x": np.arange(24, dtype=np.float32).reshape(3, 8)}) == ""


def test_every_case_is_a_model() -> None:
    assert all(sx.load_text(text).graph is not None for text, _ in list(cases())[::17])


def test_sizes_beyond_64_bits_are_an_error() -> None:
    """Empty arrays may have any size: no kernel runs with one that its places do not hold."""
    model = sx.load_text(
        '<ir_version: 10, opset_import: ["": 21]> g (int8[n,m] x) => (int8[m,n] y)'
        " { y = Transpose(x) }"
    )
    program = compile_model(model, threads=1)
    assert program.run({"x": np.zeros((0, 2**40), np.int8)})[0].shape == (2**40, 0)
    with pytest.raises(EvaluationError, match="m = 1152921504606846976"):
        program.run({"x": np.zeros((0, 2**60), np.int8)})


def bounds_of(*sizes: object) -> Bounds:
    bounds = Bounds({"half": N // 2})
    for size in sizes:
        bounds.note(size)  # type: ignore[arg-type]
    return bounds


def test_limits_are_those_of_64_bits() -> None:
    assert bounds_of(N).limit() == 2**47
    assert bounds_of(N * M).limit() == 2**30
    assert bounds_of(N * 2**40).limit() == 2**21
    assert bounds_of(N + 2**62).limit() == -1
    assert bounds_of(symbol("half") * 8192 * 8192).limit() == 2**36


def test_ranges_know_signs_and_clipping() -> None:
    bounds = bounds_of()
    assert bounds.note(maximum(minimum(N - 2**47, 1), 0)) == ({}, {(): 1.0})
    assert bounds.note(minimum(N, 2**47)) == ({}, {("n",): 1.0})
    assert bounds.note(3 - N) == ({("n",): 1.0}, {(): 3.0})
    assert bounds.note((N - 5) // -4) == ({("n",): 0.25, (): 1.0}, {(): 1.25})
    assert bounds.note(N % 7) == ({}, {(): 7.0})


def test_a_task_taken_apart_is_no_larger_than_its_parts() -> None:
    half = (N + 1) // 2
    found, x = Bounds({}), dense("x", DataType.INT8, (M * half,))
    task, row = symbol("%task"), symbol("%row")
    inner = (Let("%row", Whole(task // half)), Store(x, (row * half,), Cast(Whole(row), x.dtype)))
    found.add(kernel([Loop("%task", M * half, inner)]))
    assert max(map(len, found.most)) == 2
    assert found.most["m", "n"] == 0.5


def test_kernels_are_bounded_by_their_loops() -> None:
    x = dense("x", DataType.FLOAT, (N, M))
    i, j = symbol("%i"), symbol("%j")
    found = Bounds({})
    found.add(kernel([Loop("%i", N, (Loop("%j", M, (Store(x, (i, j), Load(x, (i, j))),)),))]))
    assert found.most == {("n",): 1.0, ("m",): 4.0, ("m", "n"): 4.0, (): 1.0}
    check_bound(found.terms(["n", "m"]), (2**30, 2**29), ("n", "m"))
    with pytest.raises(EvaluationError, match="with n = 1073741824 "):
        check_bound(found.terms(["n", "m"]), (2**30, 2**30), ("n", "m"))


def test_names_of_elements_are_bounded_where_they_are_clipped() -> None:
    x, at = dense("x", DataType.INT64, (N,)), symbol("%at")
    low = Binary("max", Load(x, (0,)), Whole(0))
    clipped = Let("%at", Binary("min", low, Whole(N - 1)))
    narrow = Let("%at", Cast(Cast(Load(x, (0,)), DataType.INT8), DataType.INT64))
    for let, expected in ((clipped, {("n",): 8.0, (): 8.0}), (narrow, {(): 1024.0})):
        found = Bounds({})
        found.add(kernel([let, Store(x, (at,), Whole(1))]))
        assert {name: found.most[name] for name in expected} == expected


@pytest.mark.parametrize("shape", [(1, 1, 0, 4), (1, 1, 4, 0)])
def test_regions_of_images_without_pixels_are_an_error(shape: tuple[int, ...]) -> None:
    model = sx.load_text(
        '<ir_version: 10, opset_import: ["": 21]> g (float[a,b,c,d] x, float[e,4] r, int64[e] i)'
        " => (float[e,b,2,2] z) { z = RoiAlign<output_height = 2, output_width = 2>(x, r, i) }"
    )
    feeds = {"x": np.ones(shape, np.float32), "r": np.float32([[0, 0, 2, 2]]), "i": np.int64([0])}
    for provider in ("CPUExecutionProvider", "ReferenceExecutionProvider"):
        with pytest.raises(SardonyxError):
            sx.InferenceSession(model, providers=[provider]).run(None, feeds)
