"""What one provider refuses the other refuses too, whoever of them notices it."""

from typing import Any

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.errors import SardonyxError

PROVIDERS = ("CPUExecutionProvider", "ReferenceExecutionProvider")
Feeds = dict[str, Any]


def _session(inputs: str, outputs: str, body: str, provider: str, opset: int = 24) -> Any:
    text = f'<ir_version: 10, opset_import: ["": {opset}]> g ({inputs}) => ({outputs}) {{ {body} }}'
    options = sx.SessionOptions()
    options.log_severity_level = 4
    options.add_session_config_entry("sardonyx.cache", "off")
    return sx.InferenceSession(sx.to_bytes(sx.load_text(text)), options, [provider])


def _floats(*shape: int) -> Any:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def _list(*items: int) -> Any:
    return np.array(items, np.int64)


NINE, SQUARE = _floats(9), _floats(3, 3)
REFUSED: list[tuple[str, str, str, list[Feeds]]] = [
    ("float[n] x, int64[1] s", "float[m] y", "y = Reshape(x, s)", [{"x": NINE, "s": _list(1)}]),
    ("float[9] x, int64[1] s", "float[9] y", "y = Reshape(x, s)", [{"x": NINE, "s": _list(3)}]),
    ("bool x, int64[1] s", "int64[1] y", "a = Reshape(x, s) y = Shape(a)",
     [{"x": np.array(True), "s": _list(0)}]),
    ("float[9] x, int64[1] s, int64[2] t", "float[a,b] y", "a = Reshape(x, s) y = Reshape(a, t)",
     [{"x": NINE, "s": _list(4), "t": _list(3, 3)}]),
    ("float[3,3] x, int64[2] s", "float[a,b] y", "a = Exp(x) b = Expand(a, s) y = Sub(b, a)",
     [{"x": SQUARE, "s": _list(1, 2)}, {"x": SQUARE, "s": _list(-1, 3)},
      {"x": SQUARE, "s": _list(0, 1)}]),
    ("float[n] x, int64[1] s", "float[m] y", "y = Split<axis = 0>(x, s)",
     [{"x": NINE, "s": _list(5)}]),
    ("float[a,b,c,d] x", "float[e,f,g,h] y", "y = GlobalMaxPool(x)",
     [{"x": _floats(1, 2, 0, 7)}, {"x": _floats(1, 2, 7, 0)}]),
    ("float[a,b,c,d] x", "int64[4] y", "a = GlobalMaxPool(x) y = Shape(a)",
     [{"x": _floats(1, 2, 0, 7)}]),
    ("float[a,b,c,d] x", "float[e,f,g,h] y", "y = SpaceToDepth<blocksize = 2>(x)",
     [{"x": _floats(1, 4, 3, 0)}, {"x": _floats(1, 4, 0, 3)}, {"x": _floats(1, 4, 3, 3)}]),
    ("float[a,b,c,d] x", "float[e,f,g,h] y", "y = DepthToSpace<blocksize = 2>(x)",
     [{"x": _floats(1, 3, 3, 0)}, {"x": _floats(1, 3, 3, 3)}]),
    ("float[n] x, int64[k] p", "float[m] y", 'y = Pad<mode = "edge">(x, p)',
     [{"x": _floats(0), "p": _list(-1, 3)}, {"x": _floats(0), "p": _list(0, 3)}]),
    ("float[a,b,c] x, int64 s, int64 l", "float[e,f,g,h] y", "y = STFT(x, s, , l)",
     [{"x": _floats(1, 1, 1), "s": np.int64(1), "l": np.int64(2)},
      {"x": _floats(1, 2, 1), "s": np.int64(1), "l": np.int64(4)}]),
    ("float[a,b,c] x, int64[2] i, int64[2] k", "float[e,f,g,h] y", "y = Col2Im(x, i, k)",
     [{"x": _floats(1, 4, 7), "i": _list(2, 2), "k": _list(2, 1)},
      {"x": _floats(1, 4, 0), "i": _list(1, 2), "k": _list(2, 2)},
      {"x": _floats(1, 4, 0), "i": _list(2**52, 2), "k": _list(2, 2)},
      {"x": _floats(1, 3, 1), "i": _list(2, 2), "k": _list(2, 2)}]),
    ("float[a,b] x, int64[c,d] i, float[c,d] u", "float[e,f] y", "y = ScatterElements(x, i, u)",
     [{"x": _floats(1, 1), "i": np.zeros((0, 2), np.int64), "u": _floats(0, 2)}]),
    ("float[a,b,c,d] x, float[e,f,g,h] u, int64[k] w", "float[l,m,n,o] y",
     "y = TensorScatter(x, u, w)",
     [{"x": _floats(2, 1, 4, 5), "u": _floats(2, 1, 3, 5), "w": _list(0, 2)},
      {"x": _floats(2, 1, 4, 5), "u": _floats(2, 1, 3, 5), "w": _list(0, -3)}]),
]  # fmt: skip


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case[2])
def test_what_does_not_fit_is_refused(
    case: tuple[str, str, str, list[Feeds]], provider: str
) -> None:
    session = _session(*case[:3], provider)
    for feeds in case[3]:
        with pytest.raises(SardonyxError):
            session.run(None, feeds)


WORDS = [
    ("uint8[n] x, uint8[n] y", "uint8[n] z", 'z = BitShift<direction = "none">(x, y)'),
    ("float[n] x", "float[n] z", 'z = Gelu<approximate = "NOTSET">(x)'),
    ("float[1,1,n,m] x, float[1,1,2,2] w", "float[1,1,a,b] z",
     'z = ConvTranspose<auto_pad = "SAME">(x, w)'),
    ("float[n] x, float[1] s", "float[m] z", 'z = Resize<nearest_mode = "round">(x, , s)'),
]  # fmt: skip


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("case", WORDS, ids=lambda case: case[2])
def test_a_word_that_is_no_choice_is_refused(case: tuple[str, str, str], provider: str) -> None:
    feeds: Feeds = {"x": np.uint8([4]), "y": np.uint8([1])} if "uint8" in case[0] else {}
    feeds = feeds or {"x": _floats(1, 1, 3, 3) if "w" in case[0] else _floats(3)}
    feeds |= {"w": _floats(1, 1, 2, 2)} if " w" in case[0] else {}
    feeds |= {"s": np.float32([2])} if " s" in case[0] else {}
    with pytest.raises(SardonyxError, match="is not one of"):
        _session(*case, provider).run(None, feeds)


RUN: list[tuple[str, str, str, Feeds]] = [
    ("float[a,b,c,d] x", "float[e,f,g,h] y", "y = LRN<size = 3>(x)", {"x": _floats(5, 0, 5, 5)}),
    ("float[n] x, int64[1] s", "float[m] y", "y = Reshape(x, s)", {"x": NINE, "s": _list(-1)}),
    ("float[3,3] x, int64[2] s", "float[a,b] y", "y = Expand(x, s)",
     {"x": SQUARE, "s": _list(1, 3)}),
    ("float[n] x, int64[k] p", "float[m] y", 'y = Pad<mode = "edge">(x, p)',
     {"x": _floats(0), "p": _list(0, 0)}),
    ("float[a,b,c] x, int64[2] i, int64[2] k", "float[e,f,g,h] y", "y = Col2Im(x, i, k)",
     {"x": _floats(1, 4, 1), "i": _list(2, 2), "k": _list(2, 2)}),
    ("float[a,b,c,d] x, float[e,f,g,h] u, int64[k] w", "float[l,m,n,o] y",
     "y = TensorScatter(x, u, w)",
     {"x": _floats(2, 0, 4, 5), "u": _floats(2, 0, 3, 5), "w": _list(0, 9)}),
    ("float[a,b,c] x, int64[d,e,2] i", "float[h,f,g] y", "y = GatherND(x, i)",
     {"x": _floats(2, 3, 0), "i": np.full((1, 1, 2), -(2**33))}),
    ("float[a,b,c] x, int64[d,e,2] i, float[h,f,g] u", "float[k,l,m] y", "y = ScatterND(x, i, u)",
     {"x": _floats(2, 3, 0), "i": np.full((1, 1, 2), 9), "u": _floats(1, 1, 0)}),
]  # fmt: skip


_LOOP = """s, y = Loop<body = b (int64 i, bool c, float[n] a) => (bool d, float[n] e, float[k] z)
    { d = Identity(c) e = Add(a, x) z = Concat<axis = 0>(e, x) }>(t, , x)"""
_SCAN = """s, y = Scan<num_scan_inputs = 1, body = b (float[n] a, float[n] e) =>
    (float[n] f, float[k] z) { f = Add(a, e) z = Concat<axis = 0>(f, e) }>(t, x)"""
_UNTYPED = """s, a = Loop<body = b (i, c, a) => (d, e, z)
    { d = Identity(c) e = Add(a, x) z = Identity(a) }>(t, , x) y = Abs(a)"""
NO_ROUND: list[tuple[str, str, str, Feeds, tuple[int, ...]]] = [
    ("int64 t, float[n] x", "float[m,k] y", _LOOP, {"t": np.int64(0), "x": NINE}, (0, 18)),
    ("int64 t, float[n] x", "float[m,k] r", f"{_LOOP} r = Add(y, y)",
     {"t": np.int64(-3), "x": NINE}, (0, 18)),
    ("float[n] t, float[r,n] x", "float[m,k] y", _SCAN,
     {"t": NINE, "x": _floats(0, 9)}, (0, 18)),
    ("int64 t, float16 x", "y", _UNTYPED, {"t": np.int64(0), "x": np.float16(1)}, (0,)),
]  # fmt: skip


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("case", NO_ROUND, ids=lambda case: case[2][:24])
def test_no_round_gives_no_rows_of_their_size(
    case: tuple[str, str, str, Feeds, tuple[int, ...]], provider: str
) -> None:
    (found,) = _session(*case[:3], provider).run(None, case[3])
    assert found.shape == case[4]
    assert found.dtype == case[3]["x"].dtype


@pytest.mark.parametrize("case", RUN, ids=lambda case: case[2])
def test_what_fits_runs(case: tuple[str, str, str, Feeds]) -> None:
    compiled, reference = (_session(*case[:3], name).run(None, case[3])[0] for name in PROVIDERS)
    assert compiled.shape == reference.shape
    np.testing.assert_array_equal(compiled, reference)
