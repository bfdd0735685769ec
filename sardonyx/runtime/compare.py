"""Compare runs of models: how far outputs differ, and at which node that begins."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sardonyx.boundary import public
from sardonyx.errors import InputError
from sardonyx.format.save import to_bytes
from sardonyx.graph import Model, Node, Value
from sardonyx.graph.clone import clone_model
from sardonyx.graph.sort import sort_graph
from sardonyx.runtime.session import InferenceSession

OpenSession = Callable[[bytes], Any]
"""Makes a session, an object with onnxruntime's `run`, of a model's bytes."""


@dataclass(frozen=True, slots=True)
class Difference:
    """How far two values with one name are apart."""

    name: str
    largest: float
    """The largest absolute difference; infinite where shapes, types or lengths differ."""
    relative: float
    """The largest difference relative to the other value's largest magnitude."""
    agrees: bool
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The outputs of a model, and the first node that does not agree, if it was looked for."""

    outputs: tuple[Difference, ...]
    first_node: str = ""
    first_value: Difference | None = None

    @property
    def agrees(self) -> bool:
        """True where every output agrees."""
        return all(item.agrees for item in self.outputs)


def compare_values(
    name: str, ours: Any, theirs: Any, *, rtol: float = 1e-3, atol: float = 1e-5
) -> Difference:
    """How far two values are apart; lists and maps are compared part by part.

    >>> compare_values("y", np.array([1.0, 2.0]), np.array([1.0, 2.5])).largest
    0.5
    """
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        if set(ours) != set(theirs):
            return _apart(name, "the keys differ")
        keys = list(theirs)
        ours, theirs = [ours[key] for key in keys], [theirs[key] for key in keys]
    if isinstance(ours, list | tuple) and isinstance(theirs, list | tuple):
        if len(ours) != len(theirs):
            return _apart(name, f"lengths differ: {len(ours)} and {len(theirs)}")
        parts = [
            compare_values(name, mine, other, rtol=rtol, atol=atol)
            for mine, other in zip(ours, theirs, strict=True)
        ]
        worst = max(parts, key=lambda part: (not part.agrees, part.largest), default=None)
        return worst or Difference(name, 0.0, 0.0, True)
    if ours is None or theirs is None:
        return (
            Difference(name, 0.0, 0.0, True)
            if ours is theirs
            else _apart(name, "one of them is absent")
        )
    return _compare_arrays(name, np.asarray(ours), np.asarray(theirs), rtol, atol)


def _apart(name: str, remark: str) -> Difference:
    return Difference(name, float("inf"), float("inf"), False, remark)


def _compare_arrays(name: str, ours: Any, theirs: Any, rtol: float, atol: float) -> Difference:
    if ours.shape != theirs.shape:
        return _apart(name, f"shapes differ: {list(ours.shape)} and {list(theirs.shape)}")
    if ours.dtype.kind in "OUST" or theirs.dtype.kind in "OUST":
        equal = bool(np.all(ours.astype(object) == theirs.astype(object)))
        return Difference(name, 0.0, 0.0, True) if equal else _apart(name, "texts differ")
    if ours.dtype != theirs.dtype:
        return _apart(name, f"element types differ: {ours.dtype} and {theirs.dtype}")
    wide = np.complex128 if ours.dtype.kind == "c" else np.float64
    left, right = ours.astype(wide).reshape(-1), theirs.astype(wide).reshape(-1)
    if not left.size:
        return Difference(name, 0.0, 0.0, True)
    with np.errstate(all="ignore"):
        gap = np.abs(left - right)
        gap[(left == right) | (np.isnan(left) & np.isnan(right))] = 0
        gap[np.isnan(gap)] = np.inf
        magnitude = np.abs(np.where(np.isfinite(right), right, 0))
        scale = float(magnitude.max())
    largest = float(gap.max())
    agrees = bool(np.all(gap <= atol + rtol * np.maximum(magnitude, scale * rtol)))
    return Difference(name, largest, largest / scale if scale else largest, agrees)


@public("comparing runs")
def bisect(
    first: Model,
    second: Model | OpenSession,
    inputs: Mapping[str, Any],
    *,
    rtol: float = 1e-3,
    atol: float = 1e-5,
) -> Comparison:
    """Compare two models, or a model with itself in another runtime, and find where they part.

    `second` is a model, or what makes a session of a model's bytes. Where outputs differ,
    `first_node` is the first node in the order of execution whose result differs from the value of
    the same name; of two models, it is the second's.

    >>> import sardonyx as sx
    >>> text = '''<ir_version: 8, opset_import: ["": 18]>
    ... g (float[2] x) => (float[2] y) { a = Exp(x) b = Neg(a) y = Abs(b) }'''
    >>> one, other = sx.load_text(text), sx.load_text(text.replace("Neg(a)", "Ceil(a)"))
    >>> sx.bisect(one, other, {"x": np.array([0.5, 1.5], np.float32)}).first_node
    "node of 'b' (Ceil)"
    """
    if not isinstance(second, Model):
        return compare_runs(first, inputs, second, rtol=rtol, atol=atol)
    twins = clone_model(first), clone_model(second)
    graphs = [twin.graph for twin in twins if twin.graph is not None]
    if len(graphs) != 2 or len(graphs[0].outputs) != len(graphs[1].outputs):
        raise InputError("the models do not have the same number of outputs")
    for graph in graphs:
        sort_graph(graph)
    names = [value.name for value in graphs[1].outputs]
    outputs = _compare_lists(names, *_run_both(twins, inputs), rtol, atol)
    if all(item.agrees for item in outputs):
        return Comparison(outputs)
    made = [{value.name: value for node in graph.nodes for value in node.outputs if value.name}
            for graph in graphs]  # fmt: skip
    shared = [name for name in made[1] if name in made[0]]
    for graph, values in zip(graphs, made, strict=True):
        graph.outputs[:] = [values[name] for name in shared]
    for item in _compare_lists(shared, *_run_both(twins, inputs), rtol, atol):
        node = made[1][item.name].producer
        if not item.agrees and node is not None:
            return Comparison(outputs, node.where(), item)
    return Comparison(outputs)


def _run_both(models: Sequence[Model], inputs: Mapping[str, Any]) -> tuple[list[Any], list[Any]]:
    one, other = (InferenceSession(model).run(None, dict(inputs)) for model in models)
    return one, other


def _compare_lists(
    names: Sequence[str], ours: Sequence[Any], theirs: Sequence[Any], rtol: float, atol: float
) -> tuple[Difference, ...]:
    return tuple(
        compare_values(name, mine, other, rtol=rtol, atol=atol)
        for name, mine, other in zip(names, ours, theirs, strict=True)
    )


@public("comparing runs")
def compare_runs(
    model: Model,
    feeds: Mapping[str, Any],
    open_session: OpenSession,
    *,
    rtol: float = 1e-3,
    atol: float = 1e-5,
    locate: bool = True,
) -> Comparison:
    """Run a model here and by another runtime on the same inputs, and compare all outputs.

    Where they differ and `locate` is set, both run again with all inner values as outputs, and the
    first node, in the order of execution, whose result differs is named.

    >>> import sardonyx as sx
    >>> model = sx.load("examples/digits.onnx")
    >>> feeds = {"pixels": np.zeros((1, 64), np.float32)}
    >>> compare_runs(model, feeds, sx.InferenceSession).agrees
    True
    """
    if model.graph is None:
        raise InputError("the model has no graph", hint="the file is empty or damaged")
    names = [value.name for value in model.graph.outputs]
    ours = InferenceSession(model).run(None, feeds)
    theirs = open_session(to_bytes(model)).run(None, dict(feeds))
    outputs = _compare_lists(names, ours, theirs, rtol, atol)
    result = Comparison(outputs)
    if result.agrees or not locate:
        return result
    node, difference = first_difference(model, feeds, open_session, rtol=rtol, atol=atol)
    return Comparison(outputs, "" if node is None else node.where(), difference)


def first_difference(
    model: Model,
    feeds: Mapping[str, Any],
    open_session: OpenSession,
    *,
    rtol: float = 1e-3,
    atol: float = 1e-5,
) -> tuple[Node | None, Difference | None]:
    """The first node of the main graph whose result differs, and by how much; (None, None) if none.

    >>> import sardonyx as sx
    >>> model = sx.load("examples/digits.onnx")
    >>> first_difference(model, {"pixels": np.zeros((1, 64), np.float32)}, sx.InferenceSession)
    (None, None)
    """
    twin = clone_model(model)
    assert twin.graph is not None
    sort_graph(twin.graph)
    wanted = _with_all_outputs(twin)
    ours = InferenceSession(twin).run(None, feeds)
    theirs = open_session(to_bytes(twin)).run(None, dict(feeds))
    for value, mine, other in zip(wanted, ours, theirs, strict=True):
        difference = compare_values(value.name, mine, other, rtol=rtol, atol=atol)
        if not difference.agrees:
            return value.producer, difference
    return None, None


def _with_all_outputs(model: Model) -> Sequence[Value]:
    """Let a model return every value that a node of its main graph makes, in order."""
    assert model.graph is not None
    made = [value for node in model.graph.nodes for value in node.outputs if value.name]
    model.graph.outputs[:] = made
    return made
