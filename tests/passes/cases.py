"""Small models to run passes on, written in ONNX's text."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from sardonyx.format.load import load_text
from sardonyx.graph import Model
from sardonyx.graph.verify import verify
from sardonyx.ops.catalog import standard
from sardonyx.ops.evaluate import Evaluator
from sardonyx.passes.know_values import Knowledge
from sardonyx.passes.options import Options
from sardonyx.passes.pipeline import make_units
from sardonyx.passes.prepare_model import prepare_model
from sardonyx.passes.remove_dead import remove_dead
from sardonyx.passes.unit import Unit
from sardonyx.passes.verify_result import random_feeds, same_values


class Run(NamedTuple):
    """What came of one pass on one model, whose results were equal before and after."""

    name: str
    changed: bool
    symbolic: bool
    """True where an input has an open size."""
    inner: bool
    """True where what changed lies in an inner graph."""
    reasons: tuple[str, ...]


RUNS: list[Run] = []
"""Every run of a pass by these tests, for `tests.passes.coverage`."""


def weights(name: str, *shape: int, scale: float = 0.1, positive: bool = False) -> str:
    """An initializer of fixed small numbers, in text."""
    count = int(np.prod(shape, dtype=int))
    numbers = [((7 * place) % 11 - (0 if positive else 5)) * scale + 0.05 for place in range(count)]
    sizes = ",".join(map(str, shape))
    return f"float[{sizes}] {name} = {{{', '.join(f'{number:.4f}' for number in numbers)}}}"


def model_of(signature: str, body: str, *initializers: str, opset: int = 21, ir: int = 10) -> Model:
    """A model from its inputs and outputs, its nodes, and its weights."""
    constants = f"<{', '.join(initializers)}>" if initializers else ""
    head = f'<ir_version: {ir}, opset_import: ["": {opset}]>'
    return load_text(f"{head} g {signature} {constants} {{ {body} }}")


def operators(model: Model) -> list[str]:
    """The operators of all nodes, inner graphs behind the outer one."""
    assert model.graph is not None
    return [node.op_type for node in model.graph.all_nodes()]


def run_pass(
    model: Model, *passes: Callable[[Unit], bool], options: Options | None = None
) -> tuple[Model, Unit]:
    """What passes make of a model, with what they noted; equal by the reference."""
    chosen = options or Options()
    twin = prepare_model(model, chosen, standard())
    (unit, *_) = make_units(twin, chosen, Knowledge(standard()), standard())
    noted = []
    for step in passes:
        before = _inner_operators(twin)
        changed = step(unit)
        noted.append((step.__name__, changed, before != _inner_operators(twin)))
        verify(twin)
    remove_dead(unit)
    verify(twin)
    same(model, twin)
    symbolic = any(not isinstance(size, int) for value in twin.graph.inputs
                   for size in getattr(value.declared, "shape", None) or ())  # fmt: skip
    RUNS.extend(Run(name, changed, symbolic, inner, tuple(unit.reasons))
                for name, changed, inner in noted)  # fmt: skip
    return twin, unit


def run_function(
    body: str, step: Callable[[Unit], bool], shape: tuple[int, ...] = (3,)
) -> tuple[Model, Unit]:
    """What a pass makes of a function `f (x) => (y)`, where no types are known; equal as well."""
    sizes = ",".join(map(str, shape))
    model = load_text(f"""<ir_version: 10, opset_import: ["": 21, "local": 1]>
        g (float[{sizes}] z) => (float[{",".join("?" for _ in shape)}] o) {{ o = local.f(z) }}
        <domain: "local", opset_import: ["": 21]> f (x) => (y) {{ {body} }}""")
    twin = prepare_model(model, Options(), standard())
    (_, unit) = make_units(twin, Options(), Knowledge(standard()), standard())
    changed = step(unit)
    verify(twin)
    same(model, twin)
    RUNS.append(Run(step.__name__, changed, True, False, tuple(unit.reasons)))
    return twin, unit


def _inner_operators(model: Model) -> list[tuple[str, int]]:
    return [(node.op_type, len(node.inputs)) for graph in model.graphs()
            if graph is not model.graph for node in graph.nodes]  # fmt: skip


def same(model: Model, other: Model, seeds: Sequence[int] = (0, 1)) -> None:
    """Fail unless two models give the same on random inputs."""
    for seed in seeds:
        feeds = random_feeds(model, seed)
        left: list[Any] = Evaluator(model, seed=0).run(None, feeds)
        right: list[Any] = Evaluator(other, seed=0).run(None, feeds)
        assert len(left) == len(right)
        for a, b in zip(left, right, strict=True):
            assert same_values(a, b), f"{a} is not {b}"


def becomes(
    model: Model, expected: list[str], *passes: Callable[[Unit], bool],
    options: Options | None = None,
) -> Model:  # fmt: skip
    """Fail unless passes leave these operators."""
    result, _ = run_pass(model, *passes, options=options)
    assert operators(result) == expected
    return result


def stays(model: Model, reason: str, *passes: Callable[[Unit], bool]) -> None:
    """Fail unless passes leave a model as it is, for this reason where one is given."""
    result, unit = run_pass(model, *passes)
    assert operators(result) == operators(model)
    if reason:
        assert any(reason in noted for noted in unit.reasons), unit.reasons
