"""Nodes that hand on an input."""

import pytest

from sardonyx.passes.drop_identities import drop_identities
from tests.passes.cases import becomes, model_of, run_function, stays

MATRIX = "(float[n,3] x) => (float[n,3] y)"

DROPPED = [
    ("a = Identity(x)", ()),
    ("a = Dropout(x)", ()),
    ("a = Cast<to=1>(x)", ()),
    ("a = CastLike(x, x)", ()),
    ("a = Reshape(x, s)", ("int64[2] s = {-1, 3}",)),
    ("a = Flatten<axis=1>(x)", ()),
    ("a = Expand(x, s)", ("int64[2] s = {1, 3}",)),
    ("a = Tile(x, s)", ("int64[2] s = {1, 1}",)),
    ("a = Slice(x, b, e, s)", ("int64[1] b = {0}", "int64[1] e = {100}", "int64[1] s = {1}")),
    ("a = Pad(x, p)", ("int64[4] p = {0, 0, 0, 0}",)),
    ("a = Transpose<perm=[0, 1]>(x)", ()),
    ("a = Concat<axis=0>(x)", ()),
    ("a = Sum(x)", ()),
    ("a = Split<axis=1, num_outputs=1>(x)", ()),
    ("a = Clip(x)", ()),
    ("a = Add(x, z)", ("float z = {0}",)),
    ("a = Add(z, x)", ("float[3] z = {0, 0, 0}",)),
    ("a = Sub(x, z)", ("float z = {0}",)),
    ("a = Mul(x, z)", ("float[1] z = {1}",)),
    ("a = Div(x, z)", ("float z = {1}",)),
    ("a = Pow(x, z)", ("float z = {1}",)),
    ("a = Where(c, x, x)", ("bool[1] c = {1}",)),
]


@pytest.mark.parametrize(("node", "constants"), DROPPED, ids=[item[0] for item in DROPPED])
def test_dropped(node: str, constants: tuple[str, ...]) -> None:
    becomes(model_of(MATRIX, f"{node} y = Neg(a)", *constants), ["Neg"], drop_identities)


KEPT = [
    ("a = Cast<to=11>(x) y = Cast<to=1>(a)", ()),
    ("a = Transpose<perm=[1, 0]>(x) y = Transpose<perm=[1, 0]>(a)", ()),
    ("a = Slice(x, b, e, s, t) y = Neg(a)",
     ("int64[1] b = {-1}", "int64[1] e = {-100}", "int64[1] s = {1}", "int64[1] t = {-1}")),
    ("a = Pad(x, p) y = Neg(a)", ("int64[4] p = {0, 1, 0, -1}",)),
    ("a = Sub(z, x) y = Neg(a)", ("float z = {0}",)),
    ("a = Div(z, x) y = Neg(a)", ("float z = {1}",)),
    ("a = Pow(z, x) y = Neg(a)", ("float z = {1}",)),
    ("a = Add(x, z) y = Neg(a)", ("float[3] z = {0, 1, 0}",)),
    ("a = Mul(x, z) y = Neg(a)", ("float z = {2}",)),
    ("y = Where(c, x, z)", ("bool[3] c = {1, 0, 1}", "float z = {1}")),
]  # fmt: skip


@pytest.mark.parametrize(("body", "constants"), KEPT, ids=[item[0] for item in KEPT])
def test_kept(body: str, constants: tuple[str, ...]) -> None:
    stays(model_of(MATRIX, body, *constants), "", drop_identities)


def test_a_neutral_element_that_broadcasts_is_kept() -> None:
    model = model_of("(float[3] x) => (float[2,3] y)", "y = Add(x, z)", "float[2,1] z = {0, 0}")
    stays(model, "", drop_identities)
    scalar = model_of("(float x) => (float[1] y)", "y = Add(x, z)", "float[1] z = {0}")
    stays(scalar, "", drop_identities)
    inner = model_of("(float x) => (float[1] y)", "a = Add(x, z) y = Neg(a)", "float[1] z = {0}")
    stays(inner, "", drop_identities)


@pytest.mark.parametrize(("shape", "kept"), [("", False), ("[1]", True), ("[1,1]", True)])
def test_neutral_elements_where_no_shape_is_known(shape: str, kept: bool) -> None:
    body = f"z = Constant<value = float{shape} {{0}}>() a = Add(x, z) y = Neg(a)"
    twin, _ = run_function(body, drop_identities)
    assert ("Add" in [node.op_type for node in twin.functions[0].graph.nodes]) is kept


def test_training_dropout_is_kept() -> None:
    model = model_of(MATRIX, "a = Dropout(x, r, t) y = Neg(a)", "float r = {0.0}", "bool t = {1}")
    stays(model, "", drop_identities)


def test_a_returned_copy_of_an_input_is_kept() -> None:
    stays(model_of(MATRIX, "y = Identity(x)"), "", drop_identities)


def test_a_returned_copy_of_a_node_goes() -> None:
    result = becomes(model_of(MATRIX, "a = Neg(x) y = Identity(a)"), ["Neg"], drop_identities)
    assert result.graph.outputs[0].name == "y"


def test_subgraphs() -> None:
    model = model_of(
        "(bool c, float[3] x) => (float[3] y)",
        """y = If (c) <
             then_branch = t () => (float[3] p) { a = Identity(x) p = Neg(a) },
             else_branch = e () => (float[3] q) { q = Identity(x) }
           >""",
    )
    becomes(model, ["If", "Neg", "Identity"], drop_identities)
