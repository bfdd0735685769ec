"""Programs of subgraphs: what they capture keeps its meaning, whatever it is called."""

from typing import Any

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.compiler.program import compile_model

COUNTED = """g (int64[N] xs) => (int64 y) {
  s0 = SequenceEmpty<dtype=7>()  n = Size(xs)  c = Constant<value=bool {1}>()
  s = Loop(n, c, s0)<body = b (int64 i, bool ci, seq(int64[]) st) => (bool co, seq(int64[]) so) {
    co = Identity(ci)  o0 = Constant<value=int64[1] {0}>()  o = Constant<value=int64[1] {9}>()
    j = Unsqueeze(i, o0)  v = Slice(xs, j, o)  w = ReduceSum<keepdims=0>(v)  q = Less(w, w)
    so = If(q)<then_branch = t () => (seq(int64[]) k0) { k0 = Identity(st) },
               else_branch = e () => (seq(int64[]) k1) { k1 = SequenceInsert(st, i) }> }>
  y = SequenceLength(s) }"""
"""A branch captures a sequence and a number; a constant that the body slices by is there too."""

SUMMED = """g (float[N] x) => (float[N] y) {
  n = Constant<value_int = 3>()  c = Constant<value=bool {1}>()  _0 = Constant<value_float = 5.0>()
  y = Loop(n, c, x)<body = b (int64 i, bool ci, float[N] s) => (bool co, float[N] so) {
    co = Identity(ci)  _1 = Constant<value_float = 7.0>()  w = ReduceSum<keepdims=0>(s)
    q = Less(w, _0)
    so = If(q)<
      then_branch = t () => (float[N] k0) { a0 = Add(s, _0)  k0 = Mul(a0, _1) },
      else_branch = e () => (float[N] k1) { _2 = Sub(s, _1)  k1 = Add(_2, _0) }> }> }"""
"""Constants and inner values are called as programs call their inputs, behind a line."""


def model(text: str) -> sx.Model:
    return sx.load_text(f'<ir_version: 10, opset_import: ["": 21]>{text}')


@pytest.mark.parametrize(
    ("text", "feeds"),
    [
        (COUNTED, {"xs": np.arange(5)}),
        (SUMMED, {"x": np.array([1, -2, 3], np.float32)}),
        (SUMMED, {"x": np.array([100, -2, 3], np.float32)}),
    ],
)
def test_captured_values_are_not_swapped(text: str, feeds: dict[str, Any]) -> None:
    source = model(text)
    assert source.graph is not None
    for graph in source.graphs():
        for value in graph.values():
            value.name = value.name.removeprefix("_")
    wanted = sx.evaluate(source, feeds)
    found = compile_model(source, threads=1).run(feeds)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(a, b)
