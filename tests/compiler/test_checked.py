"""Checked runs notice kernels that touch or use memory they must not, and nothing else."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sardonyx as sx
from sardonyx.compiler import emit_ir as ir
from sardonyx.compiler.checked import CheckedSegment
from sardonyx.compiler.digest import image_key
from sardonyx.compiler.emit_engine import compile_module
from sardonyx.compiler.emit_loops import emit_kernel
from sardonyx.compiler.emit_pool import emit_pool
from sardonyx.compiler.emit_program import Assembly
from sardonyx.compiler.engine import Code, load_code
from sardonyx.compiler.host import host_features
from sardonyx.compiler.image import FIRST_INPUT, FURTHER, NOTHING, STOP, SegmentImage
from sardonyx.compiler.program import Program, compile_model
from sardonyx.compiler.segment import Native
from sardonyx.compiler.sizes import Code as Plan
from sardonyx.compiler.targets import ACCESSES, CHECKS, MEMORY, TARGETS, Target, checking
from sardonyx.compiler.threads import POOL, Team
from sardonyx.dims import symbol
from sardonyx.dtypes import DataType
from sardonyx.errors import AccessError, InputError, UnsupportedError
from sardonyx.loops.build import dense, kernel
from sardonyx.loops.nodes import (
    Buffer,
    Guard,
    Kernel,
    Kind,
    Load,
    Local,
    Loop,
    Pick,
    Statement,
    Store,
    Whole,
)
from sardonyx.runtime.targeting import asked_checks

FLOAT = DataType.FLOAT
SIZE = 40
RUNNABLE = [target for target in TARGETS if host_features().issuperset(target.needs)]
AT, ACROSS = symbol("%i"), symbol("%j")
X, Y = (dense(name, FLOAT, (SIZE,)) for name in "xy")
FEED = np.arange(1, SIZE + 1, dtype=np.float32)


class Tried:
    """One kernel of `x` and `y` as a checked segment, whatever it does."""

    def __init__(self, made: Kernel, target: Target, pieces: int = 1, checked: str = ACCESSES):
        module = ir.Module("program")
        function = emit_kernel(module, "kernel0", made, checking(target, checked))
        with Assembly(target) as assembly:
            self.code: Code = load_code((compile_module(module, target), *assembly.finish()))
        places = {"x": FIRST_INPUT, "y": FIRST_INPUT + 1}
        bases = [places[name] for name in made.memories]
        extent = 1 if made.parallel is None else made.parallel.extent
        assert isinstance(extent, int) and not made.parameters
        ends = [base + len(places) for base in bases]
        further = [NOTHING] * (FURTHER - 1) + [FIRST_INPUT + 2 * len(places)]
        plan = Plan([], ["pieces"])
        plan.line(f"return (), {64 * 8}, (({SIZE},),), ((1, 1, False),)")
        slots = [*bases, NOTHING, NOTHING, NOTHING, STOP, *ends, *further]
        offsets = [0] * len(bases) + [extent, pieces, 1, 0] + [0] * (len(ends) + FURTHER)
        image = SegmentImage(
            inputs=(0,), outputs=(1,), dtypes=(int(FLOAT),), constants=(),
            calls=((0, 0, len(bases)),), names=("tried",), bases=tuple(slots),
            offsets=tuple(offsets), positions=(), chosen=(), symbols=(), source=plan.source(),
            reports=False, waves=(), limit=1, bound=(), sizes=(), checked=checked,
        )  # fmt: skip
        POOL.offer(emit_pool())
        native = Native(self.code.address("run"), (self.code.address("kernel0"),), Team(2), str)
        self.segment = CheckedSegment(image, [], native, (function.accesses,), {})

    def __call__(self) -> NDArray[Any]:
        result: NDArray[Any] = self.segment.run([FEED], [])[0]
        return result


def over(
    extent: int, statements: Sequence[Statement], kind: Kind = Kind.SERIAL, index: str = "%i"
) -> Kernel:
    """A loop over statements."""
    return kernel([Loop(index, extent, tuple(statements), kind)])


ALL = Loop("%k", SIZE, (Store(Y, (symbol("%k"),), Load(X, (symbol("%k"),))),))
EVERY_THIRD = Buffer("x", FLOAT, (SIZE // 3,), (3,))
LARGER = dense("x", FLOAT, (SIZE + 1,))
OWN = dense("own", FLOAT, (8,))
SQUARE = 4


def turned(rows: int, lanes: int) -> Kernel:
    """A square of x copied to y so that its rows are columns, from an offset on."""
    x = Buffer("x", FLOAT, (lanes, lanes), (1, 1))
    y = Buffer("y", FLOAT, (lanes, lanes), (1, 1))
    inner = Loop("%j", lanes, (Store(y, (ACROSS, AT), Load(x, (AT + rows, ACROSS))),), Kind.VECTOR)
    return kernel([ALL, Loop("%i", lanes, (inner,), Kind.TURN)])


WRONG = {
    "reads one beyond": over(SIZE, [Store(Y, (AT,), Load(X, (AT + 1,)))]),
    "reads one below": over(SIZE, [Store(Y, (AT,), Load(X, (AT - 1,)))]),
    "writes one beyond": over(SIZE + 1, [Store(Y, (AT,), Load(X, (0,)))]),
    "writes one below": over(SIZE, [Store(Y, (AT - 1,), Load(X, (AT,)))]),
    "a whole vector beyond": over(SIZE + 8, [Store(Y, (AT,), Load(X, (AT,)))], Kind.VECTOR),
    "a lane beyond": over(SIZE + 1, [Store(Y, (AT,), Load(X, (0,)))], Kind.VECTOR),
    "a lane read beyond": over(SIZE, [Store(Y, (AT,), Load(X, (AT + 1,)))], Kind.VECTOR),
    "a lane read below": over(SIZE, [Store(Y, (AT,), Load(X, (AT - 1,)))], Kind.VECTOR),
    "a wrong stride": over(SIZE // 3 + 2, [Store(Y, (AT,), Load(EVERY_THIRD, (AT,)))]),
    "lanes apart": over(
        SIZE // 3 + 2, [Store(Y, (AT,), Load(EVERY_THIRD, (AT,)))], Kind.VECTOR
    ),
    "lanes written apart": over(
        SIZE // 2 + 1, [Store(Y, (2 * AT,), Load(X, (AT,)))], Kind.VECTOR
    ),
    "lanes backwards": over(
        SIZE, [Store(Y, (AT,), Load(X, (SIZE - 2 - AT,)))], Kind.VECTOR
    ),
    "an element picked beyond": over(
        SIZE + 1, [Store(dense("y", FLOAT, (1,)), (0,), Pick(LARGER, (Whole(AT),)))]
    ),
    "a row picked beyond": over(
        SIZE, [Store(Y, (AT,), Pick(LARGER, (Whole(AT + 1),)))], Kind.VECTOR
    ),
    "lanes picked beyond": over(
        SIZE, [Store(Y, (AT,), Pick(LARGER, (Whole(SIZE - AT),)))], Kind.VECTOR
    ),
    "memory of its own": over(
        9, [Local("own", FLOAT, (8,)), Store(OWN, (AT,), Load(X, (AT,))),
            Store(Y, (AT,), Load(OWN, (AT,)))]
    ),
    "a turned square": turned(SIZE, SQUARE),
    "a guard that is one too wide": over(
        2 * SIZE, [Guard(AT, SIZE + 1, (Store(Y, (AT,), Load(X, (AT,))),))], Kind.VECTOR
    ),
    "an unrolled copy": over(SIZE + 1, [Store(Y, (AT,), Load(X, (0,)))], Kind.UNROLL),
    "once around all addresses": over(SIZE, [Store(Y, (AT,), Load(X, (AT * (1 << 62),)))]),
}  # fmt: skip


@pytest.mark.parametrize("target", RUNNABLE, ids=lambda target: target.name)
@pytest.mark.parametrize("name", WRONG)
def test_an_access_outside_is_an_error(name: str, target: Target) -> None:
    if "square" in name and target.lanes != SQUARE:
        made = turned(SIZE - target.lanes - 1, target.lanes)
    else:
        made = WRONG[name]
    run = Tried(made, target)
    for _ in range(2):
        with pytest.raises(AccessError, match=r"kernel0 of 'tried' (reads|writes|picks) .*, at "):
            run()


def test_the_error_says_what_and_where() -> None:
    run = Tried(WRONG["writes one beyond"], RUNNABLE[0])
    with pytest.raises(AccessError) as raised:
        run()
    assert str(raised.value).startswith(
        "kernel0 of 'tried' writes y[%i], y being float[40], at element 40, which lies outside"
    )
    run = Tried(WRONG["a lane read below"], RUNNABLE[0])
    with pytest.raises(AccessError, match=r"reads x\[%i-1\], .* at element -1,"):
        run()


@pytest.mark.parametrize("pieces", [1, 4])
def test_pieces_of_a_call_stop_too(pieces: int) -> None:
    one = dense("y", FLOAT, (1,))
    body = (Guard(16, AT, (Store(one, (AT + SIZE,), Load(X, (0,))),)),)
    run = Tried(over(SIZE, body, Kind.PARALLEL), RUNNABLE[0], pieces)
    with pytest.raises(AccessError, match="writes y"):
        run()


RIGHT = {
    "one by one": over(SIZE, [Store(Y, (AT,), Load(X, (AT,)))]),
    "in lanes": over(SIZE, [Store(Y, (AT,), Load(X, (AT,)))], Kind.VECTOR),
    "in pieces": over(SIZE, [Store(Y, (AT,), Load(X, (AT,)))], Kind.PARALLEL),
    "picked": over(SIZE, [Store(Y, (AT,), Pick(X, (Whole(AT),)))], Kind.VECTOR),
    "picked where nothing is": over(
        SIZE, [Store(Y, (AT,), Pick(X, (Whole(AT + SIZE),))), Store(Y, (AT,), Load(X, (AT,)))]
    ),
    "through memory of its own": over(
        SIZE, [Local("own", FLOAT, (8,)), Store(OWN, (0,), Load(X, (AT,))),
               Store(Y, (AT,), Load(OWN, (0,)))]
    ),
    "in a guard": over(
        2 * SIZE, [Guard(AT, SIZE, (Store(Y, (AT,), Load(X, (AT,))),))], Kind.VECTOR
    ),
}  # fmt: skip


@pytest.mark.parametrize("target", RUNNABLE, ids=lambda target: target.name)
@pytest.mark.parametrize("checked", [MEMORY, ACCESSES])
@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_runs(name: str, checked: str, target: Target) -> None:
    run = Tried(RIGHT[name], target, 4 if name == "in pieces" else 1, checked)
    assert run().tolist() == FEED.tolist()


UNWRITTEN = {
    "a result without its last": over(SIZE - 1, [Store(Y, (AT,), Load(X, (AT,)))]),
    "every second of a result": over(SIZE // 2, [Store(Y, (2 * AT,), Load(X, (AT,)))]),
    "memory of its own": over(
        SIZE, [Local("own", FLOAT, (8,)), Store(Y, (AT,), Load(OWN, (7,)))]
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNWRITTEN)
def test_what_nobody_wrote_is_noticed(name: str) -> None:
    with pytest.raises(AccessError, match=r"elements of output 0 .* nobody wrote, the first at"):
        Tried(UNWRITTEN[name], RUNNABLE[0])()


def _program(checked: str, threads: int = 1) -> Program:
    text = """<ir_version: 10, opset_import: ["": 21]>
        g (float[n, 8, 12, 12] x, float[8, 8, 3, 3] w) => (float[n, m, 12, 12] y, float[n] z) {
            c = Conv <pads = [1, 1, 1, 1]> (x, w) r = Relu(c) s = Softmax(r) y = Add(s, x)
            a = ReduceMax <keepdims = 0> (r) t = ReduceSum <keepdims = 0> (s)
            q = Shape <start = 0, end = 1> (x) z = Expand(a, q)
        }"""
    program = compile_model(sx.load_text(text), threads=threads, checked=checked)
    assert isinstance(program, Program)
    return program


@pytest.mark.parametrize("threads", [1, 2])
def test_a_checked_program_gives_the_same_results(threads: int) -> None:
    """Also for a batch that is taken in parts, and into arrays of the caller's."""
    random = np.random.default_rng(7)
    plain = _program("", threads)
    for checked in (MEMORY, ACCESSES):
        program = _program(checked, threads)
        for count in (1, 3, 0, 37):
            feeds = {
                "x": random.standard_normal((count, 8, 12, 12), np.float32),
                "w": random.standard_normal((8, 8, 3, 3), np.float32),
            }
            wanted = plain.run(feeds)
            rooms = {"y": np.empty_like(feeds["x"])}
            for found in (program.run(feeds), program.run(feeds, rooms=rooms)):
                for left, right in zip(found, wanted, strict=True):
                    assert left.tobytes() == right.tobytes()
            assert found[0] is rooms["y"]


def test_without_checks_the_code_is_the_same() -> None:
    """The mode is in the target alone: what does not ask for it gets the same text."""
    texts = []
    for checked in ("", MEMORY):
        module = ir.Module("program")
        emit_kernel(module, "kernel0", RIGHT["in lanes"], checking(RUNNABLE[0], checked))
        texts.append(str(module))
    assert texts[0] == texts[1] and "outside" not in texts[0]


def test_who_asks_for_checks() -> None:
    options = sx.SessionOptions()
    assert asked_checks(options, {}) == asked_checks(options, {"SARDONYX_CHECK": "0"}) == ""
    assert asked_checks(options, {"SARDONYX_CHECK": "1"}) == ACCESSES
    assert asked_checks(options, {"SARDONYX_CHECK": "memory"}) == MEMORY
    with pytest.raises(InputError, match="no check of 'yes'; use 1"):
        asked_checks(options, {"SARDONYX_CHECK": "yes"})
    options.add_session_config_entry("sardonyx.check", "memory")
    assert asked_checks(options, {"SARDONYX_CHECK": "1"}) == MEMORY
    with pytest.raises(UnsupportedError, match="no check of 'all'"):
        checking(RUNNABLE[0], "all")


def test_a_session_checks_where_the_environment_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[int] = []
    once = CheckedSegment._once

    def counted(self: CheckedSegment, pattern: int, *more: Any) -> list[Any]:
        runs.append(pattern)
        return once(self, pattern, *more)

    monkeypatch.setattr(CheckedSegment, "_once", counted)
    feeds = {"pixels": np.ones((3, 64), np.float32)}
    plain = sx.InferenceSession("examples/digits.onnx").run(None, feeds)
    assert runs == []
    monkeypatch.setenv("SARDONYX_CHECK", "1")
    checked = sx.InferenceSession("examples/digits.onnx").run(None, feeds)
    assert len(runs) == 2 and runs[0] != runs[1]
    assert plain[0].tobytes() == checked[0].tobytes()


def test_checked_programs_have_a_name_of_their_own_in_the_cache() -> None:
    target = RUNNABLE[0]
    names = {image_key("model", True, checking(target, item)) for item in CHECKS}
    assert len(names) == len(CHECKS)
