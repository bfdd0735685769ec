"""How near each kernel of a profile comes to what this machine can do at best."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sardonyx.compiler.emit_limits import Reading, multiply_add_rate
from sardonyx.graph import Model, Node, TensorType, Value
from sardonyx.ops.cost import estimate_costs
from sardonyx.ops.evaluate import Evaluator
from sardonyx.ops.fact import Fact
from sardonyx.ops.infer import infer_facts
from sardonyx.passes.summarize import with_sizes
from sardonyx.runtime.options import SessionOptions
from sardonyx.runtime.prepare import fix_constants, optimize_model
from sardonyx.runtime.profile import RunProfile

BEYOND_CACHES = 256 << 20
"""Bytes that no cache holds."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What all threads of a run can do together: operations and bytes a second."""

    flops: float
    bytes: float

    def seconds(self, flops: float, moved: float) -> float:
        """The least time for some operations on some bytes.

        >>> Limits(100.0, 10.0).seconds(50, 20)
        2.0
        """
        return max(flops / self.flops, moved / self.bytes)


@dataclass(frozen=True, slots=True)
class KernelRate:
    """A kernel in one run: its time, its operations, the bytes of what it reads and writes.

    Operations are those of products and convolutions; bytes count every operand once.
    """

    name: str
    what: str
    seconds: float
    flops: int
    bytes: int
    share: float
    """The least time that the machine allows, over the time it took."""


def measure_limits(threads: int) -> Limits:
    """Measure one core and take as many; memory is counted once, since all cores share it."""
    return Limits(multiply_add_rate() * threads, Reading().rate(BEYOND_CACHES, 5))


def rate_kernels(
    profile: RunProfile, model: Model, feeds: Mapping[str, Any], limits: Limits,
    options: SessionOptions | None = None,
) -> list[KernelRate]:  # fmt: skip
    """Each kernel of a profile beside the machine's limits, the longest first.

    `model` and `options` are those of the session that was profiled, with its standard operators.

    >>> import sardonyx as sx
    >>> model = sx.load("examples/digits.onnx")
    >>> feeds = {"pixels": np.zeros((1, 64), np.float32)}
    >>> profile = sx.InferenceSession(model).profile(feeds)
    >>> found = rate_kernels(profile, model, feeds, Limits(1e12, 1e11))
    >>> sum(item.flops for item in found)
    4736
    """
    ready = optimize_model(fix_constants(model), options or SessionOptions(), None)
    fixed = with_sizes(Evaluator(ready).model, _sizes(ready, feeds))
    assert fixed.graph is not None
    facts = infer_facts(fixed)
    flops = {cost.node: _whole(cost.flops) for cost in estimate_costs(fixed, facts)}
    nodes = {node.where(): node for node in fixed.graph.nodes}
    members: dict[str, list[Node]] = {}
    for row in profile.nodes:
        if row.name in nodes:
            members.setdefault(row.what or row.name, []).append(nodes[row.name])
    found = []
    for row in profile.kernels:
        inside = members.get(row.name, [])
        work = sum(flops.get(node, 0) for node in inside)
        moved = sum(_bytes(facts.get(value)) for value in _outside(inside))
        seconds = row.seconds / profile.runs
        share = limits.seconds(work, moved) / max(seconds, 1e-12)
        found.append(KernelRate(row.name, row.what, seconds, work, moved, share))
    return found


def _sizes(model: Model, feeds: Mapping[str, Any]) -> dict[str, int]:
    """The sizes that feeds give to the inputs' dimensions."""
    sizes: dict[str, int] = {}
    for value in () if model.graph is None else model.graph.inputs:
        shape = value.type.shape if isinstance(value.type, TensorType) else None
        if value.name not in feeds or shape is None:
            continue
        for axis, (size, known) in enumerate(zip(shape, np.shape(feeds[value.name]), strict=True)):
            sizes[size if isinstance(size, str) else f"{value.name}[{axis}]"] = known
    return sizes


def _outside(nodes: Iterable[Node]) -> set[Value]:
    """What nodes read that others made, and what they make that others read."""
    inside = set(nodes)
    values = {
        value
        for node in inside
        for value in node.inputs
        if value is not None and value.producer not in inside
    }
    for node in inside:
        for value in node.outputs:
            if any(user not in inside for user, _ in value.uses):
                values.add(value)
    return values


def _bytes(fact: Fact | None) -> int:
    if fact is None or fact.shape is None or fact.dtype is None:
        return 0
    sizes = [_whole(size) for size in fact.shape]
    return fact.dtype.raw_size(math.prod(sizes))


def _whole(size: object) -> int:
    return size if isinstance(size, int) else 0
