"""Programs made for the contents of small inputs."""

import threading
from typing import Any

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.compiler import specialize
from sardonyx.compiler.program import compile_model
from sardonyx.compiler.specialize import Specialized, Variants
from sardonyx.graph import SparseTensorType
from sardonyx.runtime.sparse import SparseValue

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


PADDED_SUM = """<ir_version: 10, opset_import: ["": 21]>
    g (float[a,b] x, float[b,c] w, int64[1] axis) => (float[m,n] y) {
      p = MatMul (x, w)
      e = Exp (p)
      y = ReduceMean <keepdims = 1> (e, axis)
    }"""


def test_what_ran_before_changes_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that were dropped come back as they were."""
    monkeypatch.setattr(specialize, "MOST_VARIANTS", 2)
    generator = np.random.default_rng(1)
    x, w = (generator.normal(size=shape).astype(np.float32) for shape in ((37, 300), (300, 29)))
    lists = [np.array(axis, np.int64) for axis in ([0], [1], [-1], [-2])]
    model = sx.load_text(PADDED_SUM)
    model.graph.outputs[0].declared = None

    def results(program: Specialized, order: list[int]) -> dict[int, bytes]:
        fed = {"x": x, "w": w}
        found = {place: program.run(fed | {"axis": lists[place]})[0].tobytes() for place in order}
        assert not {"reference"} & {row.kernel for row in program.explain()}
        return found

    alone = {}
    for place in range(len(lists)):
        alone |= results(compile_model(model, threads=1), [place])
    program = compile_model(model, threads=1)
    for order in ([0, 1, 2, 3], [3, 1], [2, 0, 3], [1]):
        assert results(program, order).items() <= alone.items()


def test_many_contents_are_all_compiled() -> None:
    x = np.arange(20, dtype=np.float32).reshape(4, 5)
    wanted = [
        np.array(size, np.int64) for size in ((7, 3), (2, 31), (4, 5), (9, 9), (5, 5), (1, 8))
    ]
    run(FILL, *({"x": x, "wanted": size} for size in wanted))


def test_a_large_content_runs_the_general_program_first_and_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(specialize, "LARGEST_CONTENT", 3)
    model = sx.load_text(RESHAPE)
    model.graph.outputs[0].declared = None
    program = compile_model(model, threads=1)
    x = np.ones((1, 1), np.float32)
    for _ in range(2):
        program.run({"x": x, "shape": np.ones(4, np.int64)})
        assert {row.kernel for row in program.explain()} == {"reference"}
        program.run({"x": x, "shape": np.ones(3, np.int64)})
        assert not {row.kernel for row in program.explain()} & {"reference"}


def test_threads_share_what_one_of_them_makes() -> None:
    made: list[Any] = []
    waiting = threading.Barrier(4)

    class Made:
        constant_bytes = 0

    def make(contents: Any) -> Made:
        made.append(Made())
        return made[-1]

    variants, found = Variants(make), []

    def ask() -> None:
        waiting.wait()
        found.append(variants.get(("k",), {}))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1 and found == made * 4


def test_a_program_that_cannot_be_made_is_tried_again() -> None:
    attempts = iter([False, True])

    class Made:
        constant_bytes = 0

    def make(contents: Any) -> Made:
        if not next(attempts):
            raise sx.InputError("not this time")
        return Made()

    variants = Variants(make)
    with pytest.raises(sx.InputError):
        variants.get(("k",), {})
    assert isinstance(variants.get(("k",), {}), Made)


def test_only_so_many_bytes_of_constants_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(specialize, "MOST_BYTES", 25)

    class Made:
        constant_bytes = 10

    made: list[Any] = []
    variants = Variants(lambda contents: made.append(contents) or Made())
    for key in ("a", "b", "a", "c", "a", "b"):
        variants.get((key,), {"k": key})
    assert [item["k"] for item in made] == ["a", "b", "c", "b"]
    assert variants.constant_bytes == 20


def test_each_thread_hears_of_its_own_run() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    program = compile_model(sx.load_text(FILL), threads=1)
    program.run({"x": x, "wanted": np.array([2, 3])})
    mine = program.latest()

    def other() -> None:
        program.run({"x": x, "wanted": np.array([7, 7])})
        assert program.latest() is not mine

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert program.latest() is mine


def test_sparse_outputs_stay_sparse() -> None:
    model = sx.load_text(RESHAPE)
    model.graph.outputs[0].declared = SparseTensorType(sx.DataType.FLOAT, (6,))
    session = sx.InferenceSession(sx.to_bytes(model))
    x = np.array([[0, 1, 0], [0, 0, 2]], np.float32)
    (y,) = session.run(None, {"x": x, "shape": np.array([6], np.int64)})
    assert isinstance(y, SparseValue)
    assert y.dense().tolist() == [0, 1, 0, 0, 0, 2]
