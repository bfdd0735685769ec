"""Small models to run passes on, written in ONNX's text."""

from collections.abc import Callable, Sequence
from typing import Any

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
    for step in passes:
        step(unit)
        verify(twin)
    remove_dead(unit)
    verify(twin)
    same(model, twin)
    return twin, unit


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
