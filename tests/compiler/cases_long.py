"""Models that would run for seconds or years: one for each kind of kernel."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sardonyx as sx

Feeds = dict[str, NDArray[Any]]
HEAD = '<ir_version: 10, opset_import: ["": 22, "ai.onnx.ml": 3, "com.microsoft": 1]>'
MADE = np.random.default_rng(0)
LATER = 1 << 43
"""Elements that take hours."""


def floats(*shape: int) -> NDArray[np.float32]:
    """Numbers between 0 and 1."""
    return MADE.random(shape, np.float32)


def whole(*numbers: int) -> NDArray[np.int64]:
    """A list of integers."""
    return np.array(numbers, np.int64)


def _range() -> tuple[str, Feeds]:
    text = "g (int64 a, int64 b, int64 c) => (int64 y) { r = Range(a, b, c) y = ReduceSum <keepdims = 0> (r) }"  # noqa: E501
    return text, {"a": np.array(0), "b": np.array(LATER), "c": np.array(1)}


def _filled() -> tuple[str, Feeds]:
    text = "g (int64[1] n) => (float y) { c = ConstantOfShape(n) e = Exp(c) y = ReduceSum <keepdims = 0> (e) }"  # noqa: E501
    return text, {"n": whole(LATER >> 2)}


def _rows() -> tuple[str, Feeds]:
    text = """g (int64[2] n, int64[1] a) => (float[r] y) { c = ConstantOfShape(n)
     y = ReduceLogSumExp <keepdims = 0> (c, a) }"""
    return text, {"n": whole(2, LATER >> 3), "a": whole(1)}


def _map() -> tuple[str, Feeds]:
    text = "g (float[n] x) => (float[n] y) { a = Pow(x, x) b = Erf(a) c = Tan(b) d = Pow(c, b) y = Pow(d, d) }"  # noqa: E501
    return text, {"x": floats(1 << 26)}


def _copy() -> tuple[str, Feeds]:
    text = "g (float[n, m] x, int64[3] r) => (float[a, b, c] y) { e = Expand(x, r) y = Transpose <perm = [2, 0, 1]> (e) }"  # noqa: E501
    return text, {"x": floats(512, 1024), "r": whole(512, 512, 1024)}


def _product() -> tuple[str, Feeds]:
    text = "g (float[m, k] a, float[k, n] b) => (float[m, n] y) { y = MatMul(a, b) }"
    return text, {"a": floats(5000, 5000), "b": floats(5000, 8000)}


def _whole_product() -> tuple[str, Feeds]:
    text = "g (uint8[m, k] a, int8[k, n] b) => (int32[m, n] y) { y = MatMulInteger(a, b) }"
    a, b = MADE.integers(0, 255, (9000, 9000)), MADE.integers(-127, 127, (9000, 9000))
    return text, {"a": a.astype(np.uint8), "b": b.astype(np.int8)}


def _convolution(channels: int, side: int, taps: int, group: int = 1) -> tuple[str, Feeds]:
    pads = [taps // 2] * 4
    text = f"""g (float[1, c, h, w] x, float[{channels}, {channels // group}, {taps}, {taps}] k)
     => (float[1, d, i, j] y) {{ y = Conv <pads = {pads}, group = {group}> (x, k) }}"""
    kernel = floats(channels, channels // group, taps, taps)
    return text, {"x": floats(1, channels, side, side), "k": kernel}


def _pool() -> tuple[str, Feeds]:
    text = "g (float[1, 1, h, w] x) => (float[1, 1, i, j] y) { y = MaxPool <kernel_shape = [201, 201]> (x) }"  # noqa: E501
    return text, {"x": floats(1, 1, 3000, 3000)}


def _attention() -> tuple[str, Feeds]:
    text = """g (float[1, 8, n, 64] q, float[1, 8, n, 64] k, float[1, 8, n, 64] v) =>
     (float[1, 8, n, 64] y) { t = Transpose <perm = [0, 1, 3, 2]> (k) s = MatMul(q, t)
     p = Softmax(s) y = MatMul(p, v) }"""
    return text, {name: floats(1, 8, 16000, 64) for name in "qkv"}


def _recurrent(kind: str, gates: int) -> tuple[str, Feeds]:
    text = f"""g (float[n, 1, 256] x, float[1, {gates * 256}, 256] w,
     float[1, {gates * 256}, 256] r)
     => (float[n, 1, 1, 256] y) {{ y = {kind} <hidden_size = 256> (x, w, r) }}"""
    sides = (1, gates * 256, 256)
    return text, {"x": floats(100_000, 1, 256), "w": floats(*sides), "r": floats(*sides)}


def _sort() -> tuple[str, Feeds]:
    text = f"""g (float[1, {1 << 24}] x) => (float[1, n] y, int64[1, n] i) {{
     k = Constant <value_ints = [{1 << 24}]> () y, i = TopK(x, k) }}"""
    return text, {"x": floats(1, 1 << 24)}


def _unique() -> tuple[str, Feeds]:
    return "g (float[n] x) => (float[m] y) { y = Unique(x) }", {"x": floats(1 << 25)}


def _boxes() -> tuple[str, Feeds]:
    text = """g (float[1, n, 4] boxes, float[1, 1, n] scores, int64[1] most) => (int64[m, 3] y) {
     y = NonMaxSuppression(boxes, scores, most) }"""
    corners = np.arange(200_000, dtype=np.float32)[:, None] * 2 + [0, 0, 1, 1]
    feeds = {"boxes": corners[None].astype(np.float32), "scores": floats(1, 1, 200_000)}
    return text, {**feeds, "most": whole(200_000)}


def _trees() -> tuple[str, Feeds]:
    trees, depth = 256, 6
    leaves = 1 << depth
    inner = leaves - 1
    nodes = 2 * leaves - 1
    ids = [tree for tree in range(trees) for _ in range(nodes)]
    text = f"""g (float[n, 4] x) => (float[n, 1] y) {{ y = ai.onnx.ml.TreeEnsembleRegressor <
     n_targets = 1, nodes_treeids = {ids}, nodes_nodeids = {list(range(nodes)) * trees},
     nodes_featureids = {[at % 4 for at in range(nodes)] * trees},
     nodes_values = {[0.5] * nodes * trees}, nodes_hitrates = {[1.0] * nodes * trees},
     nodes_modes = {(['"BRANCH_LEQ"'] * inner + ['"LEAF"'] * leaves) * trees},
     nodes_truenodeids = {([2 * at + 1 for at in range(inner)] + [0] * leaves) * trees},
     nodes_falsenodeids = {([2 * at + 2 for at in range(inner)] + [0] * leaves) * trees},
     nodes_missing_value_tracks_true = {[0] * nodes * trees},
     target_ids = {[0] * leaves * trees}, target_weights = {[0.25] * leaves * trees},
     target_treeids = {[tree for tree in range(trees) for _ in range(leaves)]},
     target_nodeids = {list(range(inner, nodes)) * trees}> (x) }}""".replace("'", "")
    return text, {"x": floats(1 << 22, 4)}


def _fourier() -> tuple[str, Feeds]:
    text = "g (float[n, 4096, 1] x) => (float[n, 4096, 2] y) { y = DFT(x) }"
    return text, {"x": floats(16384, 4096, 1)}


def _determinant() -> tuple[str, Feeds]:
    return "g (float[n, 2000, 2000] x) => (float[n] y) { y = Det(x) }", {"x": floats(8, 2000, 2000)}


def _scatter() -> tuple[str, Feeds]:
    text = """g (float[n] x, int64[m] i, float[m] u) => (float[n] y) {
     y = ScatterElements <reduction = "add"> (x, i, u) }"""
    places = MADE.integers(0, 1 << 24, 1 << 26)
    return text, {"x": floats(1 << 24), "i": places, "u": floats(1 << 26)}


def _sums() -> tuple[str, Feeds]:
    text = """g (int64[1] n, int64 axis) => (float y) { c = ConstantOfShape(n)
     s = CumSum(c, axis) y = ReduceMax <keepdims = 0> (s) }"""
    return text, {"n": whole(1 << 28), "axis": np.array(0)}


def _body() -> tuple[str, Feeds]:
    text = f"""g (int64 count, bool go, float[n] x) => (float[n] y) {{
     y = Loop(count, go, x) <body = b (int64 i, bool c, float[n] v) => (bool d, float[n] w) {{
      d = Identity(c) far = Constant <value_ints = [{LATER}]> () z = ConstantOfShape(far)
      k = ReduceSum <keepdims = 0> (z) w = Add(v, k) }}> }}"""
    return text, {"count": np.array(3), "go": np.array(True), "x": floats(4)}


def _branch() -> tuple[str, Feeds]:
    text = """g (bool go, float[n] x, int64[1] far) => (float[n] y) {
     y = If(go) <then_branch = t () => (float[n] w) { z = ConstantOfShape(far)
      k = ReduceSum <keepdims = 0> (z) w = Add(x, k) },
      else_branch = e () => (float[n] w) { w = Identity(x) }> }"""
    return text, {"go": np.array(True), "x": floats(4), "far": whole(LATER)}


LONG: dict[str, Callable[[], tuple[str, Feeds]]] = {
    "range": _range,
    "filled": _filled,
    "rows": _rows,
    "map": _map,
    "copy": _copy,
    "product": _product,
    "integers": _whole_product,
    "winograd": lambda: _convolution(256, 400, 3),
    "direct": lambda: _convolution(96, 500, 7),
    "depthwise": lambda: _convolution(64, 512, 31, 64),
    "pool": _pool,
    "attention": _attention,
    "lstm": lambda: _recurrent("LSTM", 4),
    "gru": lambda: _recurrent("GRU", 3),
    "rnn": lambda: _recurrent("RNN", 1),
    "sort": _sort,
    "unique": _unique,
    "boxes": _boxes,
    "trees": _trees,
    "fourier": _fourier,
    "determinant": _determinant,
    "scatter": _scatter,
    "sums": _sums,
    "loop": _body,
    "branch": _branch,
}
"""By the kind of kernel, a model and what to feed."""


def long_model(kind: str) -> tuple[sx.Model, Feeds]:
    """A model whose run takes long, and what to feed."""
    text, feeds = LONG[kind]()
    return sx.load_text(HEAD + text), feeds
