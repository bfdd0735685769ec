"""Which masks let every query see the keys up to its own place, and no other."""

import numpy as np
import pytest

from sardonyx.ops.catalog import standard
from sardonyx.passes.know_values import Knowledge
from sardonyx.passes.options import Options
from sardonyx.passes.pipeline import make_units
from sardonyx.passes.prepare_model import prepare_model
from sardonyx.passes.read_causal import is_causal
from sardonyx.passes.read_scores import Addend
from tests.passes.cases import model_of

LENGTHS = "s = Shape<start=0, end=1>(x) l = Squeeze(s, i0) ss = Concat<axis=0>(s, s)"
RANGES = f"{LENGTHS} r = Range(z, l, o) c = Unsqueeze(r, i0) q = Unsqueeze(r, i1)"
ONES = f"{LENGTHS} f = ConstantOfShape<value=bool[1] {{1}}>(ss)"
TRIANGLE = ", ".join(str(int(column <= row)) for row in range(6) for column in range(4))
NUMBERS = (
    "int64 z = {0}", "int64 o = {1}", "int64 t = {2}", "int64[1] i0 = {0}", "int64[1] i1 = {1}",
    "int64[3] four = {1, 6, 4}", "int64[2] turned = {4, 6}",
    *(f"int64[2] i{a}{b} = {{{a}, {b}}}" for a, b in ("00", "01", "10", "11", "12", "21")),
    f"bool[6,4] tri = {{{TRIANGLE}}}", f"int64[6,4] counts = {{{TRIANGLE.replace('1', '3')}}}",
    f"bool[4,4] full = {{{', '.join('1' * 16)}}}", "bool[3] flat = {1, 1, 1}",
    "int64[1,4] columns = {0, 1, 2, 3}", "int64[4,1] rows = {0, 1, 2, 3}",
    "int64[4,1] later = {1, 2, 3, 4}", "float low = {-inf}", "float zero = {0}",
)  # fmt: skip

CONDITIONS = [
    ("w = Identity(tri)", True),
    ("w = Identity(counts)", True),
    ("w = Identity(full)", False),
    ("w = Identity(flat)", False),
    (f"{ONES} w = Trilu<upper=0>(f)", True),
    (f"{ONES} w = Trilu<upper=0>(f, z)", True),
    (f"{ONES} w = Trilu<upper=0>(f, o)", False),
    (f"{ONES} w = Trilu(f)", False),
    (f"{LENGTHS} f = ConstantOfShape(ss) w = Trilu<upper=0>(f)", False),
    (f"{LENGTHS} f = Expand(i1, ss) w = Trilu<upper=0>(f)", True),
    (f"{LENGTHS} f = Expand(i0, ss) w = Trilu<upper=0>(f)", False),
    (f"{ONES} g = Cast<to=6>(f) h = Trilu<upper=0>(g) w = Cast<to=9>(h)", True),
    (f"{ONES} g = Not(f) w = Trilu<upper=0>(g)", False),
    (f"{LENGTHS} w = Slice(tri, i00, ss)", True),
    (f"{LENGTHS} w = Slice(tri, i00, ss, i01, i11)", True),
    (f"{LENGTHS} w = Slice(tri, i10, ss)", False),
    (f"{LENGTHS} w = Slice(tri, i01, ss)", False),
    (f"{LENGTHS} w = Slice(tri, i00, ss, i01, i21)", False),
    (f"{LENGTHS} w = Slice(tri, i00, ss, i01, i12)", False),
    (f"{LENGTHS} w = Slice(tri, ss, ss)", False),
    (f"{LENGTHS} w = Slice(full, i00, ss)", False),
    (f"{ONES} g = Trilu<upper=0>(f) w = Unsqueeze(g, i0)", True),
    (f"{ONES} g = Trilu<upper=0>(f) w = Unsqueeze(g, i1)", False),
    (f"{RANGES} w = LessOrEqual(c, q)", True),
    (f"{RANGES} w = LessOrEqual(q, c)", False),
    (f"{RANGES} w = GreaterOrEqual(q, c)", True),
    (f"{RANGES} w = GreaterOrEqual(c, q)", False),
    (f"{RANGES} w = Less(c, q)", False),
    (f"{RANGES} w = LessOrEqual(columns, q)", True),
    (f"{RANGES} w = LessOrEqual(c, rows)", True),
    (f"{RANGES} w = LessOrEqual(c, later)", False),
    (f"{RANGES} w = LessOrEqual(c, q1)".replace("q =", "q1 =").replace("i1)", "i10)"), False),
    (f"{RANGES} w = LessOrEqual(c, q)".replace("Range(z", "Range(o"), False),
    (f"{RANGES} w = LessOrEqual(c, q)".replace("l, o)", "l, t)"), False),
]
ADDED = [
    ("float[2,2] w = {0, -inf, 0, 0}", True),
    ("float[2,2] w = {0, -1e30, 0, 0}", True),
    ("float[2,2] w = {0, -1e29, 0, 0}", False),
    (f"float16[2,2] w = {{0, {np.float16(-6e4).view(np.uint16)}, 0, 0}}", True),
    (f"float16[2,2] w = {{0, {np.float16(-5e4).view(np.uint16)}, 0, 0}}", False),
    ("float[2,2] w = {0, -inf, -inf, 0}", False),
    ("float[2,2] w = {0, 0, 0, 0}", False),
    ("float[2,2] w = {0, -inf, 0, 1}", False),
    ("float[2] w = {0, -inf}", False),
    ("int64[2,2] w = {0, -9223372036854775808, 0, 0}", False),
]


def causal(body: str, *numbers: str, fill: float | None = None, keeps: bool = True) -> bool:
    model = model_of("(float[n] x) => (y)", f"{body} y = Identity(w)", *numbers)
    twin = prepare_model(model, Options(), standard())
    (unit,) = make_units(twin, Options(), Knowledge(standard()), standard())
    value = unit.graph.nodes[-1].inputs[0]
    assert value is not None
    return is_causal(unit, Addend(value, fill, keeps))


@pytest.mark.parametrize(("body", "expected"), CONDITIONS)
def test_conditions(body: str, expected: bool) -> None:
    assert causal(body, *NUMBERS, fill=-1e38) is expected
    assert not causal(body, *NUMBERS, fill=-1e38, keeps=False)


@pytest.mark.parametrize(("numbers", "expected"), ADDED)
def test_numbers_that_are_added(numbers: str, expected: bool) -> None:
    assert causal("", numbers) is expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("w = Where(k, zero, low)", True),
        ("w = Where(k, low, zero)", False),
        ("w = Where(k, low, low)", False),
        ("w = Where(k, zero, zero)", False),
        ("w = Add(x, zero)", False),
    ],
)
def test_choices_that_are_added(body: str, expected: bool) -> None:
    triangle = f"{ONES} k = Trilu<upper=0>(f) "
    assert causal(triangle + body, *NUMBERS) is expected
    assert not causal(triangle.replace("<upper=0>", "") + body, *NUMBERS)


@pytest.mark.parametrize(
    "step",
    [
        "{} = Cast<to=9>({})",
        "{} = Unsqueeze({}, i0)",
        "{} = Slice({}, i00, ss)",
    ],
)
@pytest.mark.parametrize(("steps", "expected"), [(8, True), (30, False)])
def test_only_so_many_steps_are_followed(step: str, steps: int, expected: bool) -> None:
    chain = [step.format(f"c{at + 1}", f"c{at}") for at in range(steps)]
    body = f"{ONES} c0 = Trilu<upper=0>(f) {' '.join(chain)} w = Cast<to=9>(c{steps})"
    assert causal(body, *NUMBERS, fill=-1e38) is expected
