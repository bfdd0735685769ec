"""Compare what inlined models compute, where their nodes are our own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx as real
import onnx.shape_inference

from sardonyx.compat import onnx as ours
from tests.compat.differential import outcome


def _results(proto: Any) -> Any:
    """What a model makes of some numbers, or None where it cannot run."""
    rows = {value.name: value.type.tensor_type for value in proto.graph.input}
    feeds = {
        name: (np.arange(4) - 1.5)
        .astype(np.float32)
        .reshape([item.dim_value or 4 for item in kind.shape.dim])
        if kind.elem_type == real.TensorProto.FLOAT
        else np.zeros(1, np.int64)
        for name, kind in rows.items()
    }
    try:
        return ours.reference.ReferenceEvaluator(proto).run(None, feeds)
    except (NotImplementedError, RuntimeError):
        return None


def assert_same_meaning(
    build: Callable[[Any], Any], inline: Any, folder: Path, gone: frozenset[str] = frozenset()
) -> None:
    """Fail unless inlining raises where onnx does, or keeps what a model computes.

    Bodies of operators and converted bodies are our own, so they are not compared node by node;
    but where onnx leaves none of the operators `gone`, neither may we.
    """
    theirs = outcome(lambda o, _: inline(o, build(o)), real, folder / "real")
    mine = outcome(lambda o, _: inline(o, build(o)), ours, folder / "ours")
    before = _results(build(ours))
    if mine[0] == "raises":
        assert theirs[0] == "raises"
        return
    if before is None:
        assert mine == theirs
        return
    after = ours.ModelProto.FromString(mine[1])
    if outcome(lambda o, _: _strictly_inferred(build(o)), real, folder / "types")[0] != "raises":
        _strictly_inferred(real.ModelProto.FromString(mine[1]))
    for left, right in zip(_results(after), before, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-6)
    if theirs[0] != "raises":
        kept = _operators(real.ModelProto.FromString(theirs[1]))
        assert not (_operators(after) & gone) - kept


def _strictly_inferred(proto: Any) -> Any:
    return real.shape_inference.infer_shapes(proto, check_type=True, strict_mode=True)


def _operators(proto: Any) -> set[str]:
    return {node.op_type for node in proto.graph.node}
