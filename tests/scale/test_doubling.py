"""A model that is larger in one respect takes longer in proportion: below three times as long for
twice the size, looked at over two doublings, since short times are uncertain."""

import time
from collections.abc import Callable

import pytest

import sardonyx as sx
from tests.scale import models

SIZES: dict[Callable[[int], object], int] = {
    models.chained_functions: 750,
    models.many_functions: 750,
    models.called_often: 1250,
    models.chain: 2000,
    models.reversed_chain: 2000,
    models.many_inputs_of_a_node: 2000,
    models.repeated_input: 5000,
    models.many_outputs_of_a_node: 2000,
    models.one_value_read_often: 2000,
    models.many_outputs: 1500,
    models.many_initializers: 2000,
    models.long_expressions: 750,
    models.same_name: 2000,
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


@pytest.mark.slow
@pytest.mark.parametrize("maker", SIZES, ids=lambda maker: maker.__name__)
def test_time_grows_with_the_size(maker: Callable[[int], object]) -> None:
    size = SIZES[maker]
    small, large = (
        maker(size * factor).SerializeToString()  # type: ignore[attr-defined]
        for factor in (1, 4)
    )
    slow = {}
    for name, call in CALLS.items():
        for _ in range(3):
            first, second = (_seconds(call, content) for content in (small, large))
            if second < 9 * first + 0.3:
                break
        else:
            slow[name] = (first, second)
    assert not slow


def test_nested_branches_are_not_looked_at_twice_a_level() -> None:
    shallow, deep = (models.nested_ifs(depth).SerializeToString() for depth in (14, 28))
    for name, call in CALLS.items():
        assert _seconds(call, deep) < 8 * _seconds(call, shallow) + 0.5, name
