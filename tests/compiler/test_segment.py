"""What a run says when there is no memory for it."""

import numpy as np
import pytest

from sardonyx.compiler.emit_pool import emit_pool
from sardonyx.compiler.emit_program import Assembly
from sardonyx.compiler.engine import Code, load_code
from sardonyx.compiler.host import host_target
from sardonyx.compiler.image import FIRST_INPUT, NOTHING, STOP, SegmentImage
from sardonyx.compiler.segment import Native, Segment
from sardonyx.compiler.sizes import Code as Plan
from sardonyx.compiler.threads import POOL, Team
from sardonyx.dims import symbol
from sardonyx.dtypes import DataType
from sardonyx.errors import EvaluationError
from sardonyx.loops.build import dense, kernel
from sardonyx.loops.nodes import Cast, Kind, Load, Local, Loop, Store, Whole

FLOAT = DataType.FLOAT
COUNT = 8


def segment(kept: int, pieces: int) -> tuple[Segment, Code]:
    """A call and its code: numbers from 0 on, each by way of memory of a task's own."""
    own, result = dense("own", FLOAT, (kept,)), dense("y", FLOAT, (COUNT,))
    i = symbol("%i")
    body = (
        Local("own", FLOAT, (kept,)),
        Store(own, (0,), Cast(Whole(i), FLOAT)),
        Store(result, (i,), Load(own, (0,))),
    )
    target = host_target()
    with Assembly(target) as assembly:
        assembly.add(kernel([Loop("%i", COUNT, body, Kind.PARALLEL)]))
        code = load_code(tuple(assembly.finish()))
    plan = Plan([], ["pieces"])
    plan.line(f"return (), 64, (({COUNT},),), (({COUNT}, {COUNT}, False),)")
    image = SegmentImage(
        inputs=(), outputs=(0,), dtypes=(int(FLOAT),), constants=(), calls=((0, 0, 1),),
        names=("numbers",), bases=(FIRST_INPUT, NOTHING, NOTHING, NOTHING, STOP),
        offsets=(0, COUNT, pieces, 1, 0), positions=(), chosen=(), symbols=(), source=plan.source(),
        reports=False, waves=(), limit=1, bound=(), sizes=(),
    )  # fmt: skip
    POOL.offer(emit_pool())
    native = Native(code.address("run"), (code.address("kernel0"),), Team(2), str)
    return Segment(image, [], native), code


@pytest.mark.parametrize("pieces", [1, 4])
def test_memory_that_nobody_has_is_an_error(pieces: int) -> None:
    (few, _few_code), (many, _many_code) = segment(3, pieces), segment(1 << 59, pieces)
    assert few.run([], [])[0].tolist() == np.arange(COUNT).tolist()
    for _ in range(2):
        with pytest.raises(EvaluationError, match="no memory"):
            many.run([], [])
    assert few.run([], [])[0].tolist() == np.arange(COUNT).tolist()
