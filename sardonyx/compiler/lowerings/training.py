"""Steps of optimizers, as maps: each variable with its gradient and its states."""

from collections.abc import Callable, Sequence

from sardonyx.compiler.forms import Form, binary, cast, number, reshape, select, unary
from sardonyx.compiler.lowerings.request import Lowerings, Request
from sardonyx.dtypes import DataType
from sardonyx.ops.gradients import TRAINING

Step = Callable[..., tuple[Form, ...]]


def _each(parts: int, inputs: Sequence[Form], step: Step) -> tuple[Form, ...]:
    """A step for each variable; then all new variables, and all new states of each kind."""
    count = len(inputs) // parts
    made = [step(*inputs[index::count]) for index in range(count)]
    return tuple(item for kind in zip(*made, strict=True) for item in kind)


def _scalar(form: Form, like: Form) -> Form:
    return cast(reshape(form, ()), like.dtype)


def adagrad(
    request: Request, rate: Form, count: Form, *inputs: Form, decay_factor: float, epsilon: float,
    norm_coefficient: float,
) -> tuple[Form, ...]:  # fmt: skip
    """Rates shrink with the squares of all gradients so far."""

    def step(x: Form, given: Form, before: Form) -> tuple[Form, ...]:
        gradient = norm_coefficient * x + given
        squares = before + gradient * gradient
        shrunk = _scalar(rate, x) / (1.0 + _scalar(count, x) * decay_factor)
        return x - shrunk * gradient / (unary("sqrt", squares) + epsilon), squares

    return _each(3, inputs, step)


def adam(
    request: Request, rate: Form, count: Form, *inputs: Form, alpha: float, beta: float,
    epsilon: float, norm_coefficient: float, norm_coefficient_post: float,
) -> tuple[Form, ...]:  # fmt: skip
    """Along a running mean of gradients, over the root of one of their squares."""

    def step(x: Form, given: Form, mean: Form, squares: Form) -> tuple[Form, ...]:
        times = cast(reshape(count, ()), DataType.DOUBLE)
        first, second = (
            binary("pow", number(base, DataType.DOUBLE), times) for base in (alpha, beta)
        )
        plain = cast(reshape(rate, ()), DataType.DOUBLE)
        adjusted = plain * unary("sqrt", 1.0 - second) / (1.0 - first)
        adjusted = cast(select(binary("gt", times, 0.0), adjusted, plain), x.dtype)
        gradient = norm_coefficient * x + given
        mean = alpha * mean + (1 - alpha) * gradient
        squares = beta * squares + (1 - beta) * gradient * gradient
        moved = x - adjusted * mean / (unary("sqrt", squares) + epsilon)
        return (1 - norm_coefficient_post) * moved, mean, squares

    return _each(4, inputs, step)


def momentum(
    request: Request, rate: Form, count: Form, *inputs: Form, alpha: float, beta: float,
    mode: str, norm_coefficient: float,
) -> tuple[Form, ...]:  # fmt: skip
    """Along gradients that carry on those before, in the standard form or Nesterov's."""

    def step(x: Form, given: Form, before: Form) -> tuple[Form, ...]:
        gradient = norm_coefficient * x + given
        is_later = binary("gt", reshape(count, ()), 0)
        weight = select(is_later, number(beta, x.dtype), number(1.0, x.dtype))
        carried = alpha * before + weight * gradient
        step = carried if mode == "standard" else gradient + alpha * carried
        return x - _scalar(rate, x) * step, carried

    return _each(3, inputs, step)


LOWERINGS: Lowerings = {
    (TRAINING, "Adagrad"): adagrad,
    (TRAINING, "Adam"): adam,
    (TRAINING, "Momentum"): momentum,
}
