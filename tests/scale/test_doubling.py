"""A model twice as large takes about twice as long, whatever it is that is twice as large."""

import time
from collections.abc import Callable

import pytest

import sardonyx as sx
from tests.scale import models

SIZES: dict[Callable[[int], object], int] = {
    models.chained_functions: 1500,
    models.many_functions: 1500,
    models.called_often: 2500,
    models.chain: 4000,
    models.reversed_chain: 4000,
    models.many_inputs_of_a_node: 4000,
    models.repeated_input: 10_000,
    models.many_outputs_of_a_node: 4000,
    models.one_value_read_often: 4000,
    models.many_outputs: 3000,
    models.many_initializers: 4000,
    models.long_expressions: 1500,
    models.same_name: 4000,
}


def _reference(model: sx.Model) -> object:
    return sx.InferenceSession(sx.to_bytes(model), providers=["ReferenceExecutionProvider"])


CALLS: dict[str, Callable[[sx.Model], object]] = {
    "save": sx.to_bytes,
    "text": sx.to_text,
    "check": sx.find_problems,
    "infer": sx.infer_shapes,
    "simplify": sx.simplify,
    "convert": lambda model: sx.convert_opset(model, 21),
    "summarize": sx.summarize,
    "inline": sx.inline_functions,
    "reference": _reference,
}


def _seconds(call: Callable[[sx.Model], object], content: bytes) -> float:
    model = sx.load(content)
    start = time.process_time()
    call(model)
    return time.process_time() - start


@pytest.mark.parametrize("maker", SIZES, ids=lambda maker: maker.__name__)
def test_twice_the_size_is_about_twice_the_time(maker: Callable[[int], object]) -> None:
    size = SIZES[maker]
    once, twice = (
        maker(size * factor).SerializeToString()  # type: ignore[attr-defined]
        for factor in (1, 2)
    )
    slow = {}
    for name, call in CALLS.items():
        for _ in range(3):
            first, second = (_seconds(call, content) for content in (once, twice))
            if second < 3 * first + 0.1:
                break
        else:
            slow[name] = (first, second)
    assert not slow


def test_nested_branches_are_not_looked_at_twice_a_level() -> None:
    shallow, deep = (models.nested_ifs(depth).SerializeToString() for depth in (14, 28))
    for name, call in CALLS.items():
        assert _seconds(call, deep) < 8 * _seconds(call, shallow) + 0.5, name
