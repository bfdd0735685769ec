"""Run a model and its simplified form on random inputs; name the pass and node that differ."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.errors import EvaluationError, InputError, SardonyxError
from sardonyx.graph import MapType, Model, TensorType, Value
from sardonyx.ops.evaluate import Evaluator
from sardonyx.passes.options import Options
from sardonyx.passes.prepare_model import prepare_model

if TYPE_CHECKING:
    from sardonyx.passes.pipeline import Pass

_OPEN_SIZES = (2, 32, 512)
"""What open sizes are in random inputs: the first with which the model runs."""
_MOST_ELEMENTS = 2**22
"""Larger inputs are not tried."""

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
        feeds, expected = _run_original(fixed, seed)
        if not _agrees(small, feeds, expected, seed):
            raise _blame(model, fixed, pipeline, options, feeds, expected, seed)


def _run_original(model: Model, seed: int) -> tuple[Feeds, list[Any]]:
    """Random inputs that a model runs on, and its results."""
    first: SardonyxError | None = None
    for size in _OPEN_SIZES:
        if first and _elements(model, size) > _MOST_ELEMENTS:
            break
        feeds = random_feeds(model, seed, size)
        try:
            return feeds, Evaluator(model, seed=seed).run(None, feeds)
        except SardonyxError as error:
            first = first or error
    assert first is not None
    raise InputError(
        f"the model itself does not run on random inputs: {first.what}",
        where=first.where,
        hint="fix open sizes (overwrite_input_shapes, free_dimensions), or leave verify out",
    ) from first


def _elements(model: Model, size: int) -> int:
    """How many elements random inputs have."""
    assert model.graph is not None
    kinds = [value.type for value in model.graph.inputs]
    return sum(math.prod(_sizes(kind, size)) for kind in kinds if isinstance(kind, TensorType))


def _sizes(kind: TensorType, open_size: int) -> list[int]:
    return [size if isinstance(size, int) and size >= 0 else open_size for size in kind.shape or ()]


def random_feeds(model: Model, seed: int, size: int = _OPEN_SIZES[0]) -> Feeds:
    """Random inputs that fit a model's declared types; every open size is `size`.

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
            feeds[value.name] = _random(value, generator, size)
    return feeds


def _random(value: Value, generator: np.random.Generator, open_size: int) -> Any:
    kind = value.type
    if isinstance(kind, MapType) and kind.key == DataType.INT64:
        return {key: float(generator.standard_normal()) for key in range(open_size)}
    if not isinstance(kind, TensorType) or not isinstance(kind.element, DataType):
        raise InputError(f"input '{value.name}' of type {kind} cannot be made up")
    sizes = _sizes(kind, open_size)
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
