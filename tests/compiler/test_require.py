"""Sizes that forms rely on become agreements, or leave the node to its reference."""

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.compiler.derive import Definitions
from sardonyx.compiler.forms import (
    Axis,
    Contraction,
    Form,
    Gather,
    Join,
    NotLowered,
    Reshape,
    View,
    constant,
)
from sardonyx.compiler.lowerings import Agreement
from sardonyx.compiler.program import compile_model
from sardonyx.compiler.require import requirements
from sardonyx.dims import symbol
from sardonyx.dtypes import DataType
from sardonyx.errors import SardonyxError

FLOAT = DataType.FLOAT
N = symbol("n")
NONE = Definitions()
TABLE = constant(np.zeros((2, 3), np.float32))
OPEN = Form((N, 3), FLOAT)


@pytest.mark.parametrize(
    "form",
    [
        View((2, 4), FLOAT, TABLE, (Axis(0), Axis(1))),
        View((2,), FLOAT, TABLE, (Axis(0), Axis(None, 3))),
        View((2, 3), FLOAT, TABLE, (Axis(0, -1), Axis(1))),
        View((2, 3), FLOAT, TABLE, (Axis(0), Axis(1, 1, -1))),
        Reshape((7,), FLOAT, TABLE),
        Join((2, 7), FLOAT, (TABLE, TABLE), 1),
        Gather((2, 2), FLOAT, TABLE, constant(np.zeros(1, np.int64)), 1),
        Contraction((2, 3), FLOAT, TABLE, TABLE, 3),
    ],
)
def test_numbers_that_do_not_fit_are_refused(form: Form) -> None:
    with pytest.raises(NotLowered):
        requirements([form], {TABLE}, NONE)


def test_empty_views_may_begin_anywhere() -> None:
    assert requirements([View((0, 3), FLOAT, TABLE, (Axis(0, 2), Axis(1)))], {TABLE}, NONE) == []


def test_sizes_known_later_are_agreements() -> None:
    assert requirements([Reshape((6,), FLOAT, OPEN)], {OPEN}, NONE) == [Agreement(N * 3, 6)]
    (pair,) = requirements([View((3,), FLOAT, OPEN, (Axis(None, 4), Axis(0)))], {OPEN}, NONE)
    assert pair.right == 0


@pytest.mark.parametrize("rows", [1, 3, 17])
def test_updates_that_do_not_fit_a_scatter_are_an_error(rows: int) -> None:
    model = sx.load_text(
        '<ir_version: 10, opset_import: ["": 21]> g (float[a,b] x, int64[c,d] i, float[e,f] u)'
        " => (float[a,b] y) { y = ScatterElements<axis = 1>(x, i, u) }"
    )
    session = sx.InferenceSession(model)
    feeds = {
        "x": np.zeros((2, 5), np.float32),
        "i": np.zeros((2, 2), np.int64),
        "u": np.ones((rows, 2), np.float32),
    }
    with pytest.raises(SardonyxError):
        session.run(None, feeds)


@pytest.mark.parametrize(
    ("inputs", "call", "shapes"),
    [
        ("float[a,b] x, float[c,d] y", "SwiGLU(x, y)", [(2, 4), (1, 4)]),
        ("float[a,b] x, float[c] y", "Gemm(x, x, y)", [(2, 2), (3,)]),
        ("float[a,b,c] x, int64[d,e] y", "SoftmaxCrossEntropyLoss(x, y)", [(3, 5, 2), (3, 1)]),
        ("float[a,b,c] x, int64[d,e] y", "NegativeLogLikelihoodLoss(x, y)", [(1, 5, 2), (3, 2)]),
        ("float[a,b,c,d] x, float[e,f,g,h] y", "GridSample(x, y)", [(1, 1, 3, 3), (1, 2, 2, 3)]),
        ("float[a,b,c] x, float y", "LpPool<kernel_shape = [3]>(x)", [(1, 1, 2), ()]),
        ("float[a,b] x, float y", "ArgMin<axis = 1>(x)", [(2, 0), ()]),
        ("float[a] x, int64[b] y", "Gather(x, y)", [(0,), (2,)]),
        ("float[a] x, int64[b] y", "GatherElements(x, y)", [(0,), (2,)]),
        ("float[a,b] x, float[c,d] y", 'Einsum<equation = "ij,jk">(x, y)', [(2, 3), (2, 4)]),
        ("float[a,b,c] x, int64[4] y", "AffineGrid(x, y)", [(2, 2, 3), (4,)]),
        ("float[a,b,c] x, int64[d] y", "TensorScatter(x, x, y)", [(2, 3, 4), (1,)]),
        ("float x, int64[a] y", "Range(y, y, y)", [(), (2,)]),
        ("float[a,b,c] x, int64[2] y", "Col2Im(x, y, y)", [(1, 5, 5), (2,)]),
        ("float[a] x, float[1] y", "Resize(x, , y)", [(2,), (1,)]),
        ("float[a] x, int64[1] y", "Resize(x, , , y)", [(0,), (1,)]),
        (
            "float[a,b,c,d] x, float y",
            "ConvTranspose<pads = [2, 2, 2, 2]>(x, x)",
            [(1, 1, 1, 1), ()],
        ),
        (
            "float[a,b,c,d] x, int64[e,f,g,h] y",
            "MaxUnpool<kernel_shape = [2, 2], strides = [2]>(x, y)",
            [(1, 1, 2, 2), (1, 1, 2, 2)],
        ),
    ],
)
def test_shapes_that_do_not_fit_are_an_error_everywhere(
    inputs: str, call: str, shapes: list[tuple[int, ...]]
) -> None:
    kind = "int64" if "ArgMin" in call else "float"
    model = sx.load_text(
        f'<ir_version: 14, opset_import: ["": 28]> g ({inputs}) => ({kind} z) {{ z = {call} }}'
    )
    second = np.zeros(shapes[1], np.int64 if "int64" in inputs else np.float32)
    if ", , , y" in call or "Grid(" in call or "Col2Im" in call:
        second += 4
    feeds = {"x": np.zeros(shapes[0], np.float32), "y": second}
    for provider in ("CPUExecutionProvider", "ReferenceExecutionProvider"):
        with pytest.raises(SardonyxError):
            sx.InferenceSession(model, providers=[provider]).run(None, feeds)


@pytest.mark.parametrize(
    ("equation", "left", "right"),
    [
        ("ij,jk->ik", (3, 1), (5, 4)),
        ("ij,jk->ik", (3, 5), (1, 4)),
        ("bij,bjk->bik", (1, 3, 5), (4, 5, 2)),
        ("bij,bjk->bik", (4, 3, 1), (1, 5, 2)),
        ("i...j,k...j->ik...", (2, 1, 4), (5, 3, 4)),
        ("i,i->", (1,), (17,)),
    ],
)
def test_indices_of_size_1_repeat_whatever_is_declared(
    equation: str, left: tuple[int, ...], right: tuple[int, ...]
) -> None:
    sizes = [",".join("?" * len(shape)) for shape in (left, right)]
    model = sx.load_text(
        f'<ir_version: 10, opset_import: ["": 21]> g (float[{sizes[0]}] x, float[{sizes[1]}] y)'
        f' => (z) {{ z = Einsum<equation = "{equation}">(x, y) }}'
    )
    x, y = (np.random.default_rng(0).random(shape, np.float32) for shape in (left, right))
    program = compile_model(model, threads=1)
    assert "reference" not in {row.kernel for row in program.explain()}
    (found,) = program.run({"x": x, "y": y})
    np.testing.assert_allclose(found, np.einsum(equation, x, y), rtol=1e-5)


@pytest.mark.parametrize("name", ["SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"])
@pytest.mark.parametrize(("label", "runs"), [(-1, False), (5, False), (7, True), (4, True)])
def test_labels_are_classes_or_ignored(name: str, label: int, runs: bool) -> None:
    model = sx.load_text(
        '<ir_version: 10, opset_import: ["": 21]> g (float[a,b] x, int32[c] y) => (float z)'
        f" {{ z = {name}<ignore_index = 7>(x, y) }}"
    )
    feeds = {"x": np.zeros((2, 5), np.float32), "y": np.int32([label, 0])}
    for provider in ("CPUExecutionProvider", "ReferenceExecutionProvider"):
        session = sx.InferenceSession(model, providers=[provider])
        if runs:
            assert np.isfinite(session.run(None, feeds)[0])
        else:
            with pytest.raises(SardonyxError):
                session.run(None, feeds)


def test_axes_out_of_range_are_an_error() -> None:
    model = sx.load_text(
        '<ir_version: 10, opset_import: ["": 21]> g (float[a,b] x) => (float[a,b] y)'
        " { y = LogSoftmax<axis = -1000>(x) }"
    )
    with pytest.raises(SardonyxError):
        sx.InferenceSession(model).run(None, {"x": np.zeros((2, 5), np.float32)})


def test_odd_lists_and_types_are_left_to_the_reference() -> None:
    """A list where one number belongs, and an element type that is none."""
    header = '<ir_version: 10, opset_import: ["": 21]> g (float[a,b] x) =>'
    for text in (
        "(float[c,d] y) { y, i = TopK(x, k) k = Constant<value_ints = [1,2]>() }",
        "(float[a,b] y) { y = EyeLike<dtype = 0>(x) }",
    ):
        session = sx.InferenceSession(sx.load_text(f"{header} {text}"))
        try:
            session.run(None, {"x": np.zeros((2, 5), np.float32)})
        except SardonyxError as error:
            assert error.what


@pytest.mark.parametrize("axis", [2, -1, 3, -4])
@pytest.mark.parametrize("length", [8, "n"])
def test_the_axis_of_a_transform_holds_a_signal(axis: int, length: int | str) -> None:
    """The last axis has real and imaginary parts, whatever is known of the others."""
    graph = sx.Graph("transform")
    x = graph.add_input("x", sx.TensorType(sx.DataType.FLOAT, (2, length, 2)))
    op = sx.Builder(graph, opset=20)
    graph.outputs.append(op.DFT(x, None, np.array(axis)))
    model = sx.Model(graph, sx.Opsets({"": 20}), ir_version=10)
    with pytest.raises(sx.SardonyxError, match=f"axis {axis if abs(axis) > 2 else 2} "):
        compile_model(model, threads=1).run({"x": np.ones((2, 8, 2), np.float32)})
