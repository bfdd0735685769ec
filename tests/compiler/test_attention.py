"""Attention as one kernel: which spellings of it are found, sizes at the edges, threads, limits."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sardonyx as sx
from benchmarks.slice import peer_session
from sardonyx.compiler.program import Program, compile_model
from tests.compiler.native import LOWER
from tests.compiler.test_meaning import run_by_meaning

HEAD = '<ir_version: 10, opset_import: ["": 21]>'
INPUTS = "g (float[b,h,s,20] q, float[b,h,t,20] k, float[b,h,t,17] v, float[b,1,1,t] m)"
SCORES = """
    c = Constant<value_float = 0.25>()
    turned = Transpose<perm = [0, 1, 3, 2]>(k)
    products = MatMul(q, turned)
    scaled = Mul(products, c)
    scores = Add(scaled, m)
"""
PLAIN = f"""{INPUTS} => (float[b,h,s,17] y) {{ {SCORES}
    p = Softmax<axis = -1>(scores)
    y = MatMul(p, v)
}}"""
LAST = "last = Constant<value_ints = [-1]>()"
SPELLINGS = {
    "softmax of operators": f"""{INPUTS} => (float[b,h,s,17] y) {{ {SCORES} {LAST}
        best = ReduceMax(scores, last) shifted = Sub(scores, best) powers = Exp(shifted)
        total = ReduceSum(powers, last) p = Div(powers, total) y = MatMul(p, v) }}""",
    "both sides scaled": f"""{INPUTS} => (float[b,h,s,17] y) {{
        c = Constant<value_float = 0.5>() turned = Transpose<perm = [0, 1, 3, 2]>(k)
        query = Mul(q, c) key = Mul(turned, c) products = MatMul(query, key)
        scores = Add(products, m) p = Softmax<axis = -1>(scores) y = MatMul(p, v) }}""",
    "without NaN": f"""{INPUTS} => (float[b,h,s,17] y) {{ {SCORES}
        zero = Constant<value_float = 0.0>() p = Softmax<axis = -1>(scores)
        n = IsNaN(p) w = Where(n, zero, p) y = MatMul(w, v) }}""",
    "keys that were turned": """g (float[b,h,s,20] q, float[b,h,20,t] k, float[b,h,t,17] v,
        float[b,1,1,t] m) => (float[b,h,s,17] y) { c = Constant<value_float = 0.25>()
        products = MatMul(q, k) scaled = Mul(products, c) scores = Add(scaled, m)
        p = Softmax<axis = -1>(scores) y = MatMul(p, v) }""",
}
NEAR_MISSES = {
    "the weights are a result": f"""{INPUTS} => (float[b,h,s,17] y, float[b,h,s,t] p) {{ {SCORES}
        p = Softmax<axis = -1>(scores) y = MatMul(p, v) }}""",
    "the products are read again": f"""{INPUTS} => (float[b,h,s,17] y, float[b,h,s,t] z) {{
        {SCORES} p = Softmax<axis = -1>(scores) y = MatMul(p, v) z = Exp(products) }}""",
    "another axis": f"""{INPUTS} => (float[b,h,s,17] y) {{ {SCORES}
        p = Softmax<axis = 2>(scores) y = MatMul(p, v) }}""",
}


def compiled(text: str, **options: Any) -> Program:
    return compile_model(sx.load_text(HEAD + text), **options)


def feeds_of(queries: int, keys: int, seed: int = 0) -> dict[str, NDArray[np.float32]]:
    random = np.random.default_rng(seed)
    shapes = {"q": (2, 3, queries, 20), "k": (2, 3, keys, 20), "v": (2, 3, keys, 17)}
    feeds = {name: random.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    mask = np.where(random.random((2, 1, 1, keys)) < 0.3, -np.inf, 0).astype(np.float32)
    mask[0, ..., :1] = 0
    mask[1, ..., : keys - 1] = -np.inf
    return feeds | {"m": mask}


def expected(feeds: dict[str, NDArray[np.float32]]) -> NDArray[np.float64]:
    q, k, v, m = (feeds[name].astype(np.float64) for name in "qkvm")
    with np.errstate(invalid="ignore"):
        scores = q @ k.swapaxes(-1, -2) * 0.25 + m
        powers = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
        weights: NDArray[np.float64] = powers / powers.sum(-1, keepdims=True)
        return weights @ v


def is_fused(program: Program) -> bool:
    return any(row.kernel.startswith("attention") for row in program.explain())


@pytest.mark.parametrize("name", SPELLINGS)
def test_other_spellings_are_the_same_kernel(name: str) -> None:
    program = compiled(SPELLINGS[name], threads=1)
    assert program.kernels == 1 and is_fused(program)
    for queries, keys in [(1, 300), (5, 9), (40, 70)]:
        feeds = feeds_of(queries, keys)
        wanted = expected(feeds)
        if "NaN" in name:
            wanted = np.nan_to_num(wanted)
        if "turned" in name:
            feeds["k"] = np.ascontiguousarray(feeds["k"].swapaxes(-1, -2))
        np.testing.assert_allclose(program.run(feeds)[0], wanted, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_what_needs_the_weights_is_computed_apart(name: str) -> None:
    model = sx.load_text(HEAD + NEAR_MISSES[name])
    program = compile_model(model, threads=1)
    assert not is_fused(program)
    feeds = feeds_of(5, 5) | {"m": np.zeros((2, 1, 1, 5), np.float32)}
    for found, wanted in zip(program.run(feeds), sx.evaluate(model, feeds), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", [None, *LOWER])
def test_sizes_at_the_edges_on_any_number_of_threads(target: str | None) -> None:
    one, two = (compiled(PLAIN, target=target, threads=count) for count in (1, 2))
    assert is_fused(one)
    for queries in (0, 1, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 65):
        for keys in (1, 2, 7, 8, 9, 63, 64, 65, 257):
            feeds = feeds_of(queries, keys, queries * keys)
            found = one.run(feeds)[0]
            np.testing.assert_allclose(found, expected(feeds), rtol=2e-5, atol=2e-6)
            assert found.tobytes() == two.run(feeds)[0].tobytes()


def test_a_known_number_of_queries_needs_one_variant() -> None:
    for queries in (1, 6, 40):
        program = compiled(PLAIN.replace("h,s,", f"h,{queries},"), threads=1)
        feeds = feeds_of(queries, 37)
        np.testing.assert_allclose(program.run(feeds)[0], expected(feeds), rtol=2e-5, atol=2e-6)


def test_without_keys_the_result_is_zero() -> None:
    program = compiled(PLAIN, threads=1)
    for queries in (1, 5, 40):
        assert not program.run(feeds_of(queries, 0))[0].any()


@pytest.mark.parametrize("queries", [2, 5, 40])
def test_infinities_and_nan_go_where_they_go_in_the_reference(queries: int) -> None:
    model = sx.load_text(HEAD + PLAIN)
    program = compile_model(model, threads=1)
    for number in (np.nan, np.inf, -np.inf):
        feeds = feeds_of(queries, 70)
        feeds["q"][0, 1, 1, 3] = number
        feeds["v"][1, 2, 69, 4] = number
        with np.errstate(all="ignore"):
            wanted = sx.evaluate(model, feeds)[0]
        np.testing.assert_allclose(program.run(feeds)[0], wanted, rtol=1e-4, atol=1e-5)
    feeds = feeds_of(queries, 70) | {"m": np.full((2, 1, 1, 70), -np.inf, np.float32)}
    assert np.isnan(program.run(feeds)[0]).all()


@pytest.mark.parametrize("queries", [1, 3, 9])
def test_its_loops_mean_what_they_compute(queries: int) -> None:
    model = sx.load_text(HEAD + PLAIN)
    program = compile_model(model, target="generic", threads=1)
    feeds = {name: array[:1, :1] for name, array in feeds_of(queries, 67).items()}
    (found,) = run_by_meaning(model, "generic", feeds)
    np.testing.assert_allclose(found, program.run(feeds)[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("queries", "keys"), [(1, 700), (9, 300), (70, 300)])
def test_it_is_as_exact_as_another_runtime(queries: int, keys: int) -> None:
    model = sx.load_text(HEAD + PLAIN)
    program, session = compile_model(model, threads=1), peer_session(model, 1)
    feeds = feeds_of(queries, keys) | {"m": np.zeros((2, 1, 1, keys), np.float32)}
    wanted = expected(feeds)
    errors = [
        np.sqrt(np.square(found - wanted).mean())
        for found in (program.run(feeds)[0], session.run(None, feeds)[0])
    ]
    assert errors[0] <= 1.2 * errors[1]


@pytest.mark.parametrize("letter", ["m", "d"])
@pytest.mark.parametrize("mask", ["float[{0}, {1}] m", "bool[{0}, {1}, {2}, {3}] m"])
def test_dimensions_of_their_own_names(letter: str, mask: str) -> None:
    """Also names that kernels give to their memories."""
    names = [f"{letter}{place}" for place in range(16)]
    given = [f"float[{', '.join(names[at : at + 4])}] {x}" for at, x in ((4, "q"), (8, "k"))]
    inputs = ", ".join([*given, f"float[{', '.join(names[12:])}] v", mask.format(*names)])
    model = sx.load_text(f"""<ir_version: 10, opset_import: ["": 23]>
        g ({inputs}) => (float[a, b, c, e] y) {{ y = Attention (q, k, v, m) }}""")
    random = np.random.default_rng(0)
    feeds: dict[str, Any] = {
        name: random.normal(size=(2, 3, size, 8)).astype(np.float32)
        for name, size in (("q", 4), ("k", 6), ("v", 6))
    }
    masks = random.normal(size=(4, 6)).astype(np.float32)
    feeds["m"] = masks if mask.startswith("float") else (masks > -0.5)[None, None]
    (found,) = compile_model(model, threads=1).run(feeds)
    np.testing.assert_allclose(found, sx.evaluate(model, feeds)[0], rtol=1e-4, atol=1e-5)
