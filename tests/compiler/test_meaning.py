"""The kernels of whole programs, run by the interpreter: same results, and never out of bounds."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sardonyx as sx
from sardonyx.compiler.build import Step
from sardonyx.compiler.compile import build_parts
from sardonyx.compiler.forms import Source
from sardonyx.compiler.host import host_target
from sardonyx.compiler.kernels.reader import Packed, Place, Status
from sardonyx.compiler.program import compile_model
from sardonyx.compiler.targets import Target
from sardonyx.dims import Expression, Size
from sardonyx.loops import interpret
from sardonyx.loops.nodes import symbols
from sardonyx.ops.catalog import standard
from tests.compiler.case import Case, ints, normal

CASES = [
    Case("Softmax", (normal(2, 5),)),
    Case("Softmax", (normal(2, 3, 4),), {"axis": 1}, label="across"),
    Case("LayerNormalization", (normal(2, 6), normal(6), normal(6))),
    Case("Gelu", (normal(3, 5),)),
    Case("MatMul", (normal(3, 4), normal(4, 5)), fixed=(1,), label="low"),
    Case("MatMul", (normal(13, 2), normal(2, 3)), label="high"),
    Case("MatMul", (normal(2, 3, 2), normal(2, 2, 3)), label="batches"),
    Case("Gemm", (normal(5, 3), normal(4, 3), normal(4)), {"transB": 1}, fixed=(1, 2)),
    Case("Transpose", (normal(17, 18),)),
    Case("Concat", (normal(2, 3), normal(1, 3)), {"axis": 0}),
    Case("Gather", (normal(4, 3), np.array([3, -1, 0]))),
    Case("ReduceMean", (normal(2, 3, 4), ints(0, 2)), fixed=(1,)),
    Case("Conv", (normal(1, 2, 4, 5), normal(3, 2, 3, 3)), {"pads": [1, 1, 1, 1]}, fixed=(1,)),
    Case("Conv", (normal(1, 3, 4, 5), normal(3, 1, 2, 2)), {"group": 3}, fixed=(1,), label="depth"),
    Case("MaxPool", (normal(1, 2, 4, 5),), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    Case(
        "MaxPool",
        (normal(1, 2, 4, 5),),
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]},
        outputs=2,
        label="indices",
    ),
    Case("DFT", (normal(2, 12, 1), None, np.asarray(1)), fixed=(2,), symbolic=False),
    Case("DFT", (normal(1, 17, 2), None, np.asarray(1)), fixed=(2,), symbolic=False, label="chirp"),
    Case(
        "TfIdfVectorizer",
        (np.array([[1, 2, 1, 2], [2, 2, 1, 0]]),),
        {
            "min_gram_length": 1,
            "max_gram_length": 2,
            "max_skip_count": 1,
            "mode": "TF",
            "ngram_counts": [0, 1],
            "ngram_indexes": [0, 1, 2],
            "pool_int64s": [2, 1, 2, 2, 1],
        },
    ),
]


def run_by_meaning(
    model: sx.Model, target: Target | str | None, feeds: dict[str, NDArray[Any]]
) -> list[NDArray[Any]]:
    """Interpret every call of a program of one step."""
    chosen = target if isinstance(target, Target) else host_target(target)
    (step,) = build_parts(model, chosen, standard()).built.steps
    assert isinstance(step, Step)
    sizes: dict[str, int] = {}
    memories: dict[Place, NDArray[Any]] = {}
    for form in step.inputs:
        assert isinstance(form, Source)
        memories[form] = np.ascontiguousarray(feeds[form.value.name])
        for size, number in zip(form.shape, memories[form].shape, strict=True):
            if symbols(size) == {str(size)}:
                sizes[str(size)] = number

    def known(size: Size) -> int:
        value = size.substitute(sizes) if isinstance(size, Expression) else size
        assert isinstance(value, int)
        return value

    def memory(place: Place) -> NDArray[Any]:
        if place not in memories:
            if isinstance(place, Packed):
                memories[place] = np.ascontiguousarray(place.make())
            elif isinstance(place, Source):
                assert place.constant is not None
                memories[place] = np.ascontiguousarray(place.constant)
            elif isinstance(place, Status):
                memories[place] = np.zeros(1, np.int64)
            else:
                memories[place] = np.zeros([known(size) for size in place.shape], place.dtype.numpy)
        return memories[place]

    for call in step.calls:
        given = dict(zip(call.kernel.memories, map(memory, call.places), strict=True))
        interpret(call.kernel, {name: array.reshape(-1) for name, array in given.items()}, sizes)
    return [memories[form] for form in step.outputs]


@pytest.mark.parametrize("target", ["generic", None])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_kernels_mean_what_they_compute(case: Case, target: str | None) -> None:
    symbolic = case.symbolic and case.op_type not in ("Conv", "MaxPool")
    model, feeds = case.model(symbolic)
    program = compile_model(model, target=target, threads=1)
    expected = sx.evaluate(model, feeds)
    for found, native, wanted in zip(
        run_by_meaning(model, target, feeds), program.run(feeds), expected, strict=True
    ):
        np.testing.assert_allclose(found.reshape(wanted.shape), wanted, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(native, wanted, rtol=1e-4, atol=1e-5)
