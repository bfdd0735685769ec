"""Einsum against onnxruntime and NumPy, in all its notations and types."""

import ml_dtypes
import numpy as np
import pytest

from sardonyx.dims import symbol
from sardonyx.dtypes import DataType
from sardonyx.errors import InferenceError
from sardonyx.ops.einsum import Einsum
from sardonyx.ops.fact import tensor, unknown
from tests.ops.one_node import inferred, one_node, run_converted, run_here, run_there, same

CASES = [
    ("ij->ji", [(2, 3)]),
    ("ij", [(2, 3)]),
    ("ji", [(2, 3)]),
    ("ii->i", [(3, 3)]),
    ("ii", [(3, 3)]),
    ("...ii->...i", [(2, 3, 3)]),
    ("ij,jk->ik", [(2, 3), (3, 4)]),
    ("ij, jk", [(2, 3), (3, 4)]),
    ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
    ("...ij,...jk->...ik", [(2, 1, 3, 4), (2, 5, 4, 2)]),
    ("i...j,k...j->ik...", [(2, 3, 4), (5, 3, 4)]),
    ("i,j->ij", [(2,), (3,)]),
    ("i,i->", [(3,), (3,)]),
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)]),
    ("Ab,bA->A", [(2, 3), (3, 2)]),
    ("bhwc,hkc->bhwk", [(2, 3, 4, 5), (3, 6, 5)]),
    (",->", [(), ()]),
    ("ij->", [(0, 3)]),
]


@pytest.mark.parametrize(("equation", "shapes"), CASES)
def test_equations(equation, shapes):
    draw = np.random.default_rng(0)
    inputs = {
        f"x{i}": np.asarray(draw.normal(size=shape), np.float32) for i, shape in enumerate(shapes)
    }
    content = one_node("Einsum", inputs, ["y"], equation=equation)
    result = run_here(content, inputs)
    expected = np.einsum(equation.replace(" ", ""), *inputs.values())
    same(result, [np.asarray(expected, np.float32)], atol=1e-5)
    if 0 not in shapes[0]:
        same(result, run_there(content, inputs), atol=1e-5)
    text = ",".join(map(str, result[0].shape))
    assert inferred(content) == [f"float[{text}]"]


def test_ellipsis_that_the_output_leaves_out_is_summed():
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    np.testing.assert_array_equal(Einsum.reference(x, equation="...i->i"), x.sum((0, 1)))


@pytest.mark.parametrize(
    "dtype",
    [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64,
     np.float16, np.float64, ml_dtypes.bfloat16],
)  # fmt: skip
def test_types(dtype):
    a = np.array([[100, 50], [3, 4]]).astype(dtype)
    for operands in ([a], [a, a], [a, a, a]):
        terms = ",".join(["ij", "jk", "kl"][: len(operands)])
        with np.errstate(over="ignore"):
            result = Einsum.reference(*operands, equation=f"{terms}->i")
        assert result.dtype == dtype
        exact = np.einsum(f"{terms}->i", *(item.astype(np.int64) for item in operands))
        if np.dtype(dtype).kind in "iu":
            np.testing.assert_array_equal(result, exact.astype(dtype))
        elif len(operands) == 1:
            np.testing.assert_array_equal(result.astype(np.int64), exact)


def test_symbolic_sizes():
    n, h = symbol("n"), symbol("h")
    a, b = tensor(DataType.FLOAT, (n, h, 4)), tensor(DataType.FLOAT, (n, None, 4))
    assert Einsum.infer(a, b, equation="bqd,bkd->bqk").shape == (n, h, None)
    assert Einsum.infer(a, b, equation="...qd,...kd->...qk").shape == (n, h, None)
    assert Einsum.infer(a, unknown(None), equation="bqd,kd->bqk").shape == (n, h, None)
    assert Einsum.infer(a, unknown(None), equation="...d,...d->...").shape is None
    assert Einsum.infer(tensor(None, (1, n)), tensor(None, (3, n)), equation="ij,ij->i").shape == (
        3,
    )


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (4, 5)]),
        ("ij->i", [(2,)]),
        ("ij->ik", [(2, 3)]),
        ("ij->ii", [(2, 3)]),
        ("i1->i", [(2, 3)]),
        ("ij,jk->ik", [(2, 3)]),
    ],
)
def test_contradictions(equation, shapes):
    with pytest.raises(InferenceError):
        Einsum.infer(*(tensor(DataType.FLOAT, shape) for shape in shapes), equation=equation)


def test_bfloat16_goes_down_through_float():
    inputs = {"a": np.ones((2, 3), ml_dtypes.bfloat16), "b": np.ones((3, 2), ml_dtypes.bfloat16)}
    content = one_node("Einsum", inputs, ["y"], opset=28, equation="ij,jk->ik")
    same(run_converted(content, inputs, 17), run_here(content, inputs))


def test_downgrade_keeps_the_equation():
    inputs = {"a": np.ones((2, 3), np.float32), "b": np.ones((3, 2), np.float32)}
    content = one_node("Einsum", inputs, ["y"], opset=28, equation="ij,jk->ik")
    same(run_converted(content, inputs, 17), run_here(content, inputs))
