"""Attention alone, beside onnxruntime: its operators one by one, and its own fused operator.

    python -m benchmarks.attention [--threads 1,2] [--runs 40]

Heads of 64 elements, 12 of them; a row for each number of queries and keys. Runs alternate.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import sardonyx as sx
from benchmarks.slice import peer_session
from sardonyx.compiler.program import compile_model

HEAD = '<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]>'
OPERATORS = """g (float[1,12,s,64] q, float[1,12,t,64] k, float[1,12,t,64] v)
    => (float[1,12,s,64] y) {
    c = Constant<value_float = 0.125>() turned = Transpose<perm = [0, 1, 3, 2]>(k)
    products = MatMul(q, turned) scores = Mul(products, c)
    p = Softmax<axis = -1>(scores) y = MatMul(p, v) }"""
FUSED = """g (float[1,s,768] q, float[1,t,768] k, float[1,t,768] v) => (float[1,s,768] y) {
    y = com.microsoft.MultiHeadAttention<num_heads = 12>(q, k, v) }"""
SIZES = ((128, 128), (512, 512), (32, 128), (8, 256), (1, 128), (1, 512), (1, 1024))


def best_times(calls: list[Callable[[], Any]], runs: int) -> list[float]:
    """The shortest time of each call, in milliseconds."""
    best = [float("inf")] * len(calls)
    for _ in range(runs):
        for place, call in enumerate(calls):
            call()
            begin = time.perf_counter()
            call()
            best[place] = min(best[place], (time.perf_counter() - begin) * 1e3)
    return best


def main() -> None:
    """Print one row a size and thread count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--runs", type=int, default=40)
    given = parser.parse_args()
    print("threads queries keys  best ms  operators  fused   ratios")
    for threads in map(int, given.threads.split(",")):
        model = sx.load_text(HEAD + OPERATORS)
        program = compile_model(model, threads=threads)
        apart, fused = (peer_session(sx.load_text(HEAD + text), threads) for text in (
            OPERATORS, FUSED,
        ))  # fmt: skip
        for queries, keys in SIZES:
            random = np.random.default_rng(0)
            lengths = {"q": queries, "k": keys, "v": keys}
            feeds = {
                name: random.standard_normal((1, 12, length, 64), np.float32)
                for name, length in lengths.items()
            }
            packed = {
                name: np.ascontiguousarray(array.swapaxes(1, 2).reshape(1, -1, 768))
                for name, array in feeds.items()
            }
            ours, plain, peer = best_times(
                [
                    partial(program.run, feeds),
                    partial(apart.run, None, feeds),
                    partial(fused.run, None, packed),
                ],
                given.runs,
            )
            print(
                f"{threads:7d} {queries:7d} {keys:4d} {ours:8.3f} {plain:10.3f} {peer:6.3f}", end=""
            )
            print(f"   {ours / plain:.2f} {ours / peer:.2f}", flush=True)


if __name__ == "__main__":
    main()
