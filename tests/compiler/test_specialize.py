"""Programs made for the contents of small inputs."""

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.compiler.program import compile_model
from sardonyx.compiler.specialize import Specialized

FILL = """<ir_version: 10, opset_import: ["": 21]>
    g (float[a,b] x, int64[2] wanted) => (float[c,d] y) {
      sizes = Shape (x)
      larger = Max (sizes, wanted)
      more = Sub (larger, sizes)
      none = Constant <value_ints = [0, 0]> ()
      pads = Concat <axis = 0> (none, more)
      y = Pad (x, pads)
    }"""
BRANCH = """<ir_version: 10, opset_import: ["": 21]>
    g (float[a,b] x, int64[n] wanted) => (float y) {
      none = Constant <value_int = 0> ()
      count = Size (wanted)
      empty = Equal (count, none)
      shape = If (empty) <
        then_branch = t () => (int64[m] p) { p = Constant <value_ints = [3, 1, 1]> () },
        else_branch = e () => (int64[m] q) { q = Identity (wanted) }
      >
      y = Expand (x, shape)
    }"""


def run(text: str, *feeds: dict[str, np.ndarray]) -> Specialized:
    """Compare with the reference for each set of inputs; nothing may fall back."""
    model = sx.load_text(text)
    model.graph.outputs[0].declared = None
    program = compile_model(model, threads=1)
    assert isinstance(program, Specialized)
    for fed in feeds:
        for found, expected in zip(program.run(fed), sx.evaluate(model, fed), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-6)
        kinds = {row.kernel for row in program.explain()}
        assert not kinds & {"reference", "subgraphs"}, kinds
    return program


@pytest.mark.parametrize("shape", [(5, 30), (40, 2)])
def test_a_tensor_whose_shape_is_asked_for_decides_nothing(shape: tuple[int, int]) -> None:
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    program = run(FILL, *({"x": x, "wanted": np.array(size)} for size in ((7, 3), (2, 31))))
    assert program.wanted == ("wanted",)


def test_contents_that_a_branch_reads_settle_it() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    shapes = [np.array(shape, np.int64) for shape in ((), (2, 3), (4, 1, 3))]
    assert run(BRANCH, *({"x": x, "wanted": shape} for shape in shapes)).wanted == ("wanted",)


def test_numbers_of_a_tensor_decide_nothing() -> None:
    """Few of them might, were they whole; these differ from one run to the next."""
    text = FILL.replace("float[a,b] x", "float[2,3] x")
    assert run(text, {"x": np.ones((2, 3), np.float32), "wanted": np.array([1, 5])}).wanted == (
        "wanted",
    )


RESHAPE = """<ir_version: 10, opset_import: ["": 21]>
    g (float[a,b] x, int64[n] shape) => (float[c] y) { y = Reshape (x, shape) }"""


@pytest.mark.parametrize("shape", [[2, -1], [-1], [3, 2, 1], [0, 2]])
def test_a_fed_shape_is_asked_whatever_is_declared(shape: list[int]) -> None:
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    session = sx.InferenceSession(sx.to_bytes(sx.load_text(RESHAPE)))
    (y,) = session.run(None, {"x": x, "shape": np.array(shape, np.int64)})
    np.testing.assert_array_equal(y, x.reshape([3, 2] if 0 in shape else shape))


def test_a_fed_shape_of_one_element_for_six_is_refused() -> None:
    session = sx.InferenceSession(sx.to_bytes(sx.load_text(RESHAPE)))
    with pytest.raises(sx.InputError, match="a\\*b is 6, but the model needs 1"):
        session.run(None, {"x": np.ones((3, 2), np.float32), "shape": np.zeros(0, np.int64)})
