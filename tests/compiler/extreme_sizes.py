"""Operators whose sizes a model or a feed can steer, with numbers near the ends of int64.

`python -m tests.compiler.extreme_sizes STEP START` runs every STEP-th case from START on, in memory
that ends at a page nobody may touch, and prints what differs between kernels and references.
"""

import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sardonyx as sx
from tests.fuzz.guard import guard_segments

LOW, HIGH = -(2**63), 2**63 - 1
EXTREMES = (
    LOW, LOW + 1, -(2**62), -(2**32), -(2**31), -7, -1, 0, 1, 7, 2**31 - 1, 2**31, 2**32, 2**62,
    HIGH,
)  # fmt: skip
MOST_MEMORY = 4 << 30
"""What a child may take, so that results nobody has memory for are refused at once."""
MATRIX, IMAGE, SIGNAL, COLUMNS = (3, 8), (2, 3, 8, 8), (1, 16, 1), (1, 12, 4)
PIXELS = (1, 1, 2, 2)
Lists = Callable[[int], tuple[Any, ...]]
"""The integer inputs p, q, ... of a call for an extreme."""

BY_INPUTS: tuple[tuple[tuple[int, ...], str, Lists], ...] = (
    (MATRIX, "y = Slice(x, p, q) z = Neg(y)", lambda v: ([v, v], [LOW, HIGH])),
    (MATRIX, "y = Slice(x, p, q) z = Neg(y)", lambda v: ([LOW, 0], [HIGH, v])),
    (
        MATRIX,
        "y = Slice(x, p, q) u = Neg(y) t = Transpose(u) z = Add(t, t)",
        lambda v: ([7, 2], [v, v]),
    ),
    (MATRIX, "y = Slice(x, p, q, r, s) z = Neg(y)",
     lambda v: ([v, -7], [HIGH] * 2, [0, 1], [-1] * 2)),
    (MATRIX, "y = Slice(x, p, q, r, s) z = Neg(y)",
     lambda v: ([HIGH, -1], [LOW] * 2, [1, 0], [v, -1])),
    (MATRIX, "z = Pad(x, p)", lambda v: ([v, 0, 0, 0],)),
    (MATRIX, "z = Pad(x, p)", lambda v: ([v, 0, max(-v, -HIGH) if v > LOW else HIGH, 1],)),
    (MATRIX, 'z = Pad<mode = "reflect">(x, p)', lambda v: ([0, v, 0, 0],)),
    (MATRIX, 'z = Pad<mode = "wrap">(x, p)', lambda v: ([0, v, 0, -v if v > LOW else 5],)),
    (MATRIX, 'z = Pad<mode = "edge">(x, p)', lambda v: ([0, v, 0, -v if v > LOW else 5],)),
    (MATRIX, "z, y = Split<axis = 1>(x, p)", lambda v: ([v, 8 - v if v > -HIGH + 8 else 0],)),
    (MATRIX, "z = Gather<axis = 1>(x, p)", lambda v: ([v, 0],)),
    (MATRIX, "z = Gather<axis = 1>(x, p)", lambda v: (v,)),
    (MATRIX, "z = GatherElements<axis = 1>(x, p)", lambda v: ([[v, 0]],)),
    (MATRIX, "z = GatherND(x, p)", lambda v: ([[v, 0], [0, v]],)),
    (MATRIX, "z = Range(p, q, r)", lambda v: (0, v, 1)),
    (MATRIX, "z = Range(p, q, r)", lambda v: (v, 7, 2**62)),
    (MATRIX, "z = Range(p, q, r)", lambda v: (HIGH, LOW, v)),
    (MATRIX, "z = ConstantOfShape(p)", lambda v: ([v, 0],)),
    (MATRIX, "z = ConstantOfShape(p)", lambda v: ([v, v],)),
    (MATRIX, "y = ConstantOfShape(p) z = ReduceSum(y)", lambda v: ([max(v, -7), 2**40],)),
    (MATRIX, "z = Expand(x, p)", lambda v: ([v, 1, 1],)),
    (MATRIX, "h = Shape(x) k = Add(h, p) z = Expand(x, k)", lambda v: ([v, v],)),
    (MATRIX, "z = Tile(x, p)", lambda v: ([v, v],)),
    (MATRIX, "z = Reshape(x, p)", lambda v: ([v, -1],)),
    (MATRIX, "z = Reshape(x, p)", lambda v: ([v, v, 4],)),
    (MATRIX, "h = Shape(x) k = Mul(h, p) j = Div(k, p) z = Reshape(x, j)", lambda v: ([v, v],)),
    (MATRIX, "z = Trilu(x, p)", lambda v: (v,)),
    (MATRIX, "z = Trilu<upper = 0>(x, p)", lambda v: (v,)),
    (MATRIX, "z, y = TopK(x, p)", lambda v: ([v],)),
    (MATRIX, "z = CenterCropPad(x, p)", lambda v: ([v, 3],)),
    (MATRIX, "z = ReverseSequence<batch_axis = 0, time_axis = 1>(x, p)", lambda v: ([v, 1, 2],)),
    (MATRIX, "z = CumSum(x, p)", lambda v: (v,)),
    (MATRIX, "h = Shape(x) z = Add(h, p)", lambda v: (v,)),
    (MATRIX, "h = Shape(x) z = Mul(h, p)", lambda v: (v,)),
    (MATRIX, "h = Shape(x) g = Sub(p, h) k = Add(g, h) z = Mul(k, h)", lambda v: (v,)),
    (MATRIX, "h = Shape(x) z = Div(h, p)", lambda v: (v,)),
    (MATRIX, "h = Shape(x) k = Sub(h, p) y = Slice(x, k, q) z = Neg(y)",
     lambda v: ([v] * 2, [99] * 2)),
    (MATRIX, "y = Cast<to = 7>(x) d = Constant<value_floats = [0.0, 1.0]>() z = OneHot(y, p, d)",
     lambda v: (v,)),
    (IMAGE, "z = Resize(x, , , p)", lambda v: ([2, 3, v, 8],)),
    (IMAGE, 'z = Resize<mode = "linear">(x, , , p)', lambda v: ([2, 3, 8, v],)),
    (SIGNAL, "z = DFT(x, p)", lambda v: (v,)),
    (SIGNAL, "z = STFT(x, p, , q)", lambda v: (v, 4)),
    (SIGNAL, "z = STFT(x, p, , q)", lambda v: (2, v)),
    (SIGNAL, "z = HannWindow(p)", lambda v: (v,)),
    (COLUMNS, "z = Col2Im(x, p, q)", lambda v: ([v, 2], [2, 2])),
    (COLUMNS, "z = Col2Im(x, p, q)", lambda v: ([3, 3], [v, 2])),
    (PIXELS, "z = MaxUnpool<kernel_shape = [2, 2], strides = [2, 2]>(x, p, q)",
     lambda v: ([[[[0, 3], [9, 15]]]], [1, 1, v, 4])),
)  # fmt: skip
"""Of each case the shape of x, the nodes, and the lists."""

BY_ATTRIBUTES = (
    "Conv<pads = [V, 0, 0, 0]>(x, w)",
    "Conv<strides = [V, V]>(x, w)",
    "Conv<dilations = [V, 1], pads = [V, 0, V, 0]>(x, w)",
    "ConvTranspose<strides = [V, 1]>(x, u)",
    "ConvTranspose<output_padding = [V, 0]>(x, u)",
    "ConvTranspose<output_shape = [V, 10]>(x, u)",
    "MaxPool<kernel_shape = [V, 2]>(x)",
    "MaxPool<kernel_shape = [2, 2], strides = [V, V], ceil_mode = 1>(x)",
    "MaxPool<kernel_shape = [2, 2], dilations = [V, 1]>(x)",
    "AveragePool<kernel_shape = [2, 2], pads = [V, 0, 0, 0], count_include_pad = 1>(x)",
    "LpPool<kernel_shape = [2, 2], strides = [V, 1]>(x)",
    "LRN<size = V>(x)",
    "DepthToSpace<blocksize = V>(x)",
    "SpaceToDepth<blocksize = V>(x)",
    "Flatten<axis = V>(x)",
    "Split<num_outputs = V>(x)",
    "RoiAlign<sampling_ratio = V>(x, r, i)",
    "RoiAlign<output_height = V, sampling_ratio = 1>(x, r, i)",
    "MaxRoiPool<pooled_shape = [V, 1]>(x, b)",
)
_ONES = ",".join(["1"] * 54)
_WEIGHTS = (
    f"<float[2,3,3,3] w = {{{_ONES}}}, float[3,2,3,3] u = {{{_ONES}}}, float[1,4] r = {{0,0,5,5}},"
    " int64[1] i = {0}, float[1,5] b = {0,0,0,5,5}>"
)
Case = tuple[str, dict[str, NDArray[Any]]]
"""A model as text, and what is fed."""


def cases() -> Iterator[Case]:
    """Every call with every extreme, as constants and as feeds, with fixed and open sizes."""
    for shape, nodes, lists in BY_INPUTS:
        for value in EXTREMES:
            given = dict(
                zip("pqrs", (np.array(item, np.int64) for item in lists(value)), strict=False)
            )
            for is_open in (False, True):
                for fed in (False, True):
                    yield _by_inputs(shape, nodes, given, is_open, fed)
    for call in BY_ATTRIBUTES:
        for value in EXTREMES:
            for is_open in (False, True):
                text = f"g ({_image(IMAGE, is_open)}) => (z) {_WEIGHTS} {{ z = {call} }}"
                yield _model(text.replace("V", str(value))), {"x": _numbers(IMAGE)}


def _by_inputs(
    shape: tuple[int, ...], nodes: str, given: dict[str, NDArray[Any]], is_open: bool, fed: bool
) -> Case:
    types = [f"int64[{','.join(map(str, item.shape))}] {name}" if item.ndim else f"int64 {name}"
             for name, item in given.items()]  # fmt: skip
    contents = [f"{{{','.join(map(str, item.ravel()))}}}" for item in given.values()]
    constants = ", ".join(f"{left} = {right}" for left, right in zip(types, contents, strict=True))
    inputs = ", ".join([_image(shape, is_open), *(types if fed else ())])
    text = f"g ({inputs}) => (z) {'' if fed else f'<{constants}>'} {{ {nodes} }}"
    return _model(text), {"x": _numbers(shape)} | (given if fed else {})


def _image(shape: tuple[int, ...], is_open: bool) -> str:
    names = [f"n{axis}" if is_open else size for axis, size in enumerate(shape)]
    if shape == SIGNAL:
        names[-1] = 1
    return f"float[{','.join(map(str, names))}] x"


def _model(graph: str) -> str:
    return f'<ir_version: 10, opset_import: ["": 21]> {graph}'


def _numbers(shape: tuple[int, ...]) -> NDArray[Any]:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def judge(text: str, feeds: dict[str, NDArray[Any]]) -> str:
    """What is wrong with a case, if anything is."""
    model = sx.load_text(text)
    found: list[Any] = []
    for provider in ("ReferenceExecutionProvider", "CPUExecutionProvider"):
        try:
            found.append(sx.InferenceSession(model, providers=[provider]).run(None, feeds)[0])
        except sx.SardonyxError as error:
            found.append(error)
        except Exception as error:  # noqa: BLE001 - what is not ours is what is looked for
            return f"{provider}: {type(error).__name__}: {error}"
    expected, made = found
    if isinstance(expected, sx.SardonyxError):
        lacks = "allocate" in expected.what or "memory" in expected.what
        return (
            "" if lacks or isinstance(made, sx.SardonyxError) else f"{expected}, but {made.shape}"
        )
    if isinstance(made, sx.SardonyxError):
        return f"{expected.shape}, but {made}"
    if expected.shape != made.shape or expected.dtype != made.dtype:
        return f"{expected.shape}, but {made.shape}"
    same = np.allclose(expected, made, rtol=1e-4, atol=1e-5, equal_nan=True)
    return "" if same else "other numbers"


def problems(step: int, start: int, seconds: float) -> list[str]:
    """What a child says of every so many cases, and how it ended where it did not come through."""
    command = [sys.executable, "-m", "tests.compiler.extreme_sizes", str(step), str(start)]
    try:
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired as error:
        said = error.stdout.decode() if isinstance(error.stdout, bytes) else error.stdout or ""
        return ["took too long", *said.splitlines()[-1:]]
    lines = ended.stdout.splitlines()
    if ended.returncode:
        return [f"ended with {ended.returncode}", *lines[-1:], *ended.stderr.splitlines()[-5:]]
    return [line for line in lines if not line.startswith("at ")]


def main() -> None:
    """Run cases, each announced before it begins."""
    step, start = map(int, sys.argv[1:3])
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    guard_segments()
    for number, (text, feeds) in enumerate(cases()):
        if number % step == start:
            print(f"at {number} {text}", flush=True)
            wrong = judge(text, feeds)
            if wrong:
                print(f"{text}: {wrong}", flush=True)


if __name__ == "__main__":
    main()
