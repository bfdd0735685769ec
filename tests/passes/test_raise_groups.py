"""Normalization of groups that was written out."""

import pytest

from sardonyx.passes.raise_groups import raise_groups
from tests.passes.cases import becomes, model_of, stays, weights

SIGNATURE = "(float[b,4,h,w] x) => (float[b,4,h,w] y)"
BODY = """
  r = Reshape(x, s) i = InstanceNormalization<epsilon=0.001>(r, one, zero) t = Shape(x)
  o = Reshape(i, t) m = Mul(o, g) y = Add(m, c)
"""
PARTS = (
    "int64[3] s = {0, 2, -1}", "float[2] one = {1.0, 1.0}", "float[2] zero = {0.0, 0.0}",
    weights("g", 4, 1, 1), weights("c", 4, 1, 1),
)  # fmt: skip


def changed(place: int, text: str) -> tuple[str, ...]:
    return (*PARTS[:place], text, *PARTS[place + 1 :])


def test_groups() -> None:
    model = model_of(SIGNATURE, BODY, *PARTS, opset=21)
    result = becomes(model, ["GroupNormalization"], raise_groups)
    node = result.graph.nodes[0]
    assert node.attribute("num_groups") == 2
    assert node.attribute("epsilon") == pytest.approx(0.001)


def test_not_before_opset_21() -> None:
    stays(model_of(SIGNATURE, BODY, *PARTS, opset=20), "", raise_groups)


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        (changed(1, "float[2] one = {1.0, 2.0}"), "groups are scaled"),
        (changed(2, "float[2] zero = {0.0, 1.0}"), "groups are scaled"),
        (changed(3, weights("g", 1)), "one for each channel"),
        (changed(4, weights("c", 1, 1, 1, 1)), "one for each channel"),
    ],
)
def test_near_misses(parts: tuple[str, ...], reason: str) -> None:
    stays(model_of(SIGNATURE, BODY, *parts, opset=21), reason, raise_groups)


def test_another_shape_afterwards() -> None:
    signature = "(float[2,4,3,5] x) => (float[2,4,5,3] y)"
    body = BODY.replace("t = Shape(x)", "")
    parts = (*PARTS, "int64[4] t = {2, 4, 5, 3}")
    stays(model_of(signature, body, *parts, opset=21), "does not come back", raise_groups)


def test_a_value_between_is_read_elsewhere() -> None:
    signature = SIGNATURE.replace(" y)", " y, float[b,4,h,w] m)")
    stays(model_of(signature, BODY, *PARTS, opset=21), "", raise_groups)


def test_subgraphs() -> None:
    shape = "float[2,4,3,5]"
    inner = BODY.replace("y =", "z =")
    model = model_of(
        f"(bool k, {shape} x) => ({shape} y)",
        f"""y = If (k) <
             then_branch = p () => ({shape} z) {{ {inner} }},
             else_branch = e () => ({shape} n) {{ n = Neg(x) }}
           >""",
        *PARTS, opset=21,
    )  # fmt: skip
    becomes(model, ["If", "GroupNormalization", "Neg"], raise_groups)
