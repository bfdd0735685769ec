"""Run a model and its simplified form on random inputs; name the pass and node that differ."""

from typing import TYPE_CHECKING, Any

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.errors import EvaluationError, InputError, SardonyxError
from sardonyx.graph import Model, TensorType, Value
from sardonyx.ops.evaluate import Evaluator
from sardonyx.passes.options import Options
from sardonyx.passes.prepare_model import prepare_model

if TYPE_CHECKING:
    from sardonyx.passes.pipeline import Pass

_OPEN_SIZE = 2
"""What an open size is in random inputs."""

Feeds = dict[str, Any]


def verify_result(
    model: Model, small: Model, pipeline: "tuple[Pass, ...]", options: Options, count: int
) -> None:
    """Raise unless both models give the same on `count` random inputs.

    The message names the first pass after which the result differs, and the first node in it.
    """
    from sardonyx.ops.catalog import standard

    fixed = prepare_model(model, options, standard())
    for seed in range(count):
        feeds = random_feeds(fixed, seed)
        try:
            expected = Evaluator(fixed, seed=seed).run(None, feeds)
        except SardonyxError as error:
            raise InputError(
                f"the model itself does not run on random inputs: {error.what}",
                where=error.where,
                hint="leave verify out, and compare on inputs of your own",
            ) from error
        if not _agrees(small, feeds, expected, seed):
            raise _blame(model, fixed, pipeline, options, feeds, expected, seed)


def random_feeds(model: Model, seed: int) -> Feeds:
    """Random inputs that fit a model's declared types; equal symbols get equal sizes.

    >>> import sardonyx as sx
    >>> model = sx.load("examples/digits.onnx")
    >>> {name: array.shape for name, array in random_feeds(model, 0).items()}
    {'pixels': (2, 64)}
    """
    generator = np.random.default_rng(seed)
    assert model.graph is not None
    weights = set(model.graph.initializers)
    feeds: Feeds = {}
    for value in model.graph.inputs:
        if value not in weights:
            feeds[value.name] = _random(value, generator)
    return feeds


def _random(value: Value, generator: np.random.Generator) -> Any:
    kind = value.type
    if not isinstance(kind, TensorType) or not isinstance(kind.element, DataType):
        raise InputError(f"input '{value.name}' of type {kind} cannot be made up")
    sizes = [
        size if isinstance(size, int) and size >= 0 else _OPEN_SIZE for size in kind.shape or ()
    ]
    if kind.element == DataType.STRING:
        return np.full(sizes, "a", object)
    if kind.element == DataType.BOOL:
        return generator.random(sizes) < 0.5
    if kind.element.is_float:
        return generator.standard_normal(sizes).astype(kind.element.numpy)
    return generator.integers(0, 2, sizes).astype(kind.element.numpy)


def _agrees(model: Model, feeds: Feeds, expected: list[Any], seed: int) -> bool:
    try:
        found = Evaluator(model, seed=seed).run(None, feeds)
    except SardonyxError:
        return False
    return all(same_values(a, b) for a, b in zip(found, expected, strict=True))


def same_values(left: Any, right: Any, rtol: float = 1e-3, atol: float = 1e-5) -> bool:
    """True where two results agree: floats within a tolerance, all else exactly."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(
            same_values(left[key], right[key], rtol, atol) for key in left
        )
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(
            same_values(a, b, rtol, atol) for a, b in zip(left, right, strict=True)
        )
    if left is None or right is None:
        return left is right
    a, b = np.asarray(left), np.asarray(right)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind in "iubOSU":
        return bool((a == b).all())
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    return bool(np.allclose(a.astype(wide), b.astype(wide), rtol, atol, equal_nan=True))


def _blame(
    model: Model, fixed: Model, pipeline: "tuple[Pass, ...]", options: Options, feeds: Feeds,
    expected: list[Any], seed: int,
) -> EvaluationError:  # fmt: skip
    """Find by bisection the first step after which the result is another one."""
    from sardonyx.passes.pipeline import run_pipeline

    names: list[str] = []
    run_pipeline(model, pipeline, options, record=names)
    right, wrong = 0, len(names)
    while right + 1 < wrong:
        middle = (right + wrong) // 2
        tried = run_pipeline(model, pipeline, options, steps=middle)
        if _agrees(tried, feeds, expected, seed):
            right = middle
        else:
            wrong = middle
    broken = run_pipeline(model, pipeline, options, steps=wrong)
    return EvaluationError(
        f"simplifying changes the result, first in pass '{names[wrong - 1]}' (step {wrong})",
        where=_first_difference(fixed, broken, feeds, seed),
        hint=f"leave it out with skip=('{names[wrong - 1]}',), and report the model",
    )


def _first_difference(model: Model, broken: Model, feeds: Feeds, seed: int) -> str:
    """The first node of the broken model whose output differs from that of the same name."""
    known: dict[str, Any] = {}

    def remember(value: Value, item: Any) -> None:
        known[value.name] = item

    Evaluator(model, seed=seed).run(None, feeds, observe=remember)
    found: list[str] = []

    def compare(value: Value, item: Any) -> None:
        shared = value.name in known and value.producer is not None
        if shared and value.producer and not same_values(known[value.name], item):
            found.append(value.producer.where())

    try:
        Evaluator(broken, seed=seed).run(None, feeds, observe=compare)
    except SardonyxError as error:
        found.append(error.where or error.what)
    return found[0] if found else "an output"
