"""Gradients of operators that work element by element, of reductions and of running sums."""

from collections.abc import Callable, Sequence
from math import pi, sqrt

from sardonyx.dtypes import DataType
from sardonyx.graph import Value
from sardonyx.ops.gradient_step import Rule, Step, one

Gradients = Sequence[Value | None]
Slope = Callable[[Step], Value]


def _unary(slope: Slope) -> Rule:
    """The rule of y = f(x), where `slope` builds f'(x)."""
    return lambda step, gradients: [step.op.Mul(one(gradients), slope(step))]


def _where(step: Step, condition: Value, gradient: Value) -> Value:
    return step.op.Where(condition, gradient, step.number(0))  # type: ignore[no-any-return]


def _relu(step: Step, gradients: Gradients) -> Gradients:
    return [_where(step, step.op.Greater(step.x, step.number(0)), one(gradients))]


def _leaky(step: Step) -> Value:
    slope = step.number(step.attributes["alpha"])
    return step.op.Where(step.op.Less(step.x, step.number(0)), slope, step.number(1))  # type: ignore[no-any-return]


def _elu(step: Step) -> Value:
    below = step.op.Add(step.y, step.number(step.attributes["alpha"]))
    return step.op.Where(step.op.Less(step.x, step.number(0)), below, step.number(1))  # type: ignore[no-any-return]


def _hard_sigmoid(step: Step, gradients: Gradients) -> Gradients:
    op = step.op
    inside = op.And(op.Greater(step.y, step.number(0)), op.Less(step.y, step.number(1)))
    scaled = op.Mul(one(gradients), step.number(step.attributes["alpha"]))
    return [_where(step, inside, scaled)]


def _square(step: Step, value: Value) -> Value:
    return step.op.Mul(value, value)  # type: ignore[no-any-return]


def _one_minus_square(step: Step, value: Value) -> Value:
    return step.op.Sub(step.number(1), _square(step, value))  # type: ignore[no-any-return]


def _one_plus_square(step: Step, value: Value) -> Value:
    return step.op.Add(step.number(1), _square(step, value))  # type: ignore[no-any-return]


def _erf(step: Step) -> Value:
    bell = step.op.Exp(step.op.Neg(_square(step, step.x)))
    return step.op.Mul(step.number(2 / sqrt(pi)), bell)  # type: ignore[no-any-return]


def _softsign(step: Step) -> Value:
    size = step.op.Add(step.number(1), step.op.Abs(step.x))
    return step.op.Reciprocal(_square(step, size))  # type: ignore[no-any-return]


def _clip(step: Step, gradients: Gradients) -> Gradients:
    gradient, op = one(gradients), step.op
    for bound, compare in ((step.input(1), op.GreaterOrEqual), (step.input(2), op.LessOrEqual)):
        if bound is not None:
            gradient = _where(step, compare(step.x, bound), gradient)
    return [gradient]


def _add(step: Step, gradients: Gradients) -> Gradients:
    gradient = one(gradients)
    return [step.sum_to(gradient, step.y, item) for item in step.node.inputs if item is not None]


def _mean(step: Step, gradients: Gradients) -> Gradients:
    count = step.number(len(step.node.inputs))
    return _add(step, [step.op.Div(one(gradients), count)])


def _sub(step: Step, gradients: Gradients) -> Gradients:
    gradient = one(gradients)
    a, b = step.x, step.needed(1)
    return [step.sum_to(gradient, step.y, a), step.sum_to(step.op.Neg(gradient), step.y, b)]


def _mul(step: Step, gradients: Gradients) -> Gradients:
    gradient, a, b = one(gradients), step.x, step.needed(1)
    return [
        step.sum_to(step.op.Mul(gradient, b), step.y, a),
        step.sum_to(step.op.Mul(gradient, a), step.y, b),
    ]


def _div(step: Step, gradients: Gradients) -> Gradients:
    op, a, b = step.op, step.x, step.needed(1)
    share = op.Div(one(gradients), b)
    return [
        step.sum_to(share, step.y, a),
        step.sum_to(op.Neg(op.Mul(share, step.y)), step.y, b),
    ]


def _pow(step: Step, gradients: Gradients) -> Gradients:
    op, gradient, base = step.op, one(gradients), step.x
    exponent = op.CastLike(step.needed(1), base)
    lower = op.Pow(base, op.Sub(exponent, step.number(1)))
    constant = op.Equal(exponent, step.number(0))
    slope = op.Where(constant, step.number(0), op.Mul(exponent, lower))
    positive = op.Greater(base, step.number(0))
    safe = op.Where(positive, base, step.number(1))
    rise = op.Mul(step.y, op.Log(safe))
    return [
        step.sum_to(op.Mul(gradient, slope), step.y, base),
        op.CastLike(step.sum_to(op.Mul(gradient, rise), step.y, step.needed(1)), step.needed(1)),
    ]


def _extreme(step: Step, gradients: Gradients) -> Gradients:
    """The gradient goes to the inputs that equal the result, in equal shares."""
    op, inputs = step.op, [item for item in step.node.inputs if item is not None]
    shares = [op.CastLike(op.Equal(item, step.y), step.y) for item in inputs]
    shared = op.Div(one(gradients), op.Sum(*shares))
    return [
        step.sum_to(op.Mul(shared, share), step.y, item)
        for share, item in zip(shares, inputs, strict=True)
    ]


def _choose(step: Step, gradients: Gradients) -> Gradients:
    gradient, condition = one(gradients), step.x
    a, b = step.needed(1), step.needed(2)
    zero = step.number(0, a)
    return [
        None,
        step.sum_to(step.op.Where(condition, gradient, zero), step.y, a),
        step.sum_to(step.op.Where(condition, zero, gradient), step.y, b),
    ]


def _cast(step: Step, gradients: Gradients) -> Gradients:
    fact = step.facts.get(step.x)
    if fact is not None and fact.dtype is not None and not fact.dtype.is_float:
        return [None]
    return [step.op.CastLike(one(gradients), step.x)]


def _flat(step: Step, gradients: Gradients) -> Gradients:
    """Steps and signs: the gradient is 0 wherever there is one."""
    return [None] * len(step.node.inputs)


def _spread(step: Step, value: Value) -> Value:
    """A reduced value in the shape of what was reduced."""
    op, axes = step.op, step.input(1)
    if axes is not None and not step.attributes["keepdims"]:
        value = op.Unsqueeze(value, axes)
    return op.Expand(value, op.Shape(step.x))  # type: ignore[no-any-return]


def _reduce_sum(step: Step, gradients: Gradients) -> Gradients:
    return [_spread(step, one(gradients))]


def share_of(step: Step, gradient: Value) -> Value:
    """A gradient divided by how many elements of the input go into one of the output."""
    op = step.op
    sizes = [op.Cast(op.Size(item), to=int(DataType.DOUBLE)) for item in (step.y, step.x)]
    return op.Mul(gradient, op.CastLike(op.Div(*sizes), step.x))  # type: ignore[no-any-return]


def _reduce_mean(step: Step, gradients: Gradients) -> Gradients:
    return [_spread(step, share_of(step, one(gradients)))]


def _reduce_extreme(step: Step, gradients: Gradients) -> Gradients:
    op = step.op
    share = op.CastLike(op.Equal(step.x, _spread(step, step.y)), step.x)
    noop = step.attributes["noop_with_empty_axes"]
    count = op.ReduceSum(share, step.input(1), keepdims=1, noop_with_empty_axes=noop)
    return [op.Mul(_spread(step, one(gradients)), op.Div(share, count))]


def _running_sum(step: Step, gradients: Gradients) -> Gradients:
    back = {"reverse": 1 - step.attributes["reverse"], "exclusive": step.attributes["exclusive"]}
    return [step.op.CumSum(one(gradients), step.input(1), **back)]


def _softmax(step: Step, gradients: Gradients) -> Gradients:
    op, gradient, axis = step.op, one(gradients), step.attributes["axis"]
    total = op.ReduceSum(op.Mul(gradient, step.y), [axis], keepdims=1)
    return [op.Mul(step.y, op.Sub(gradient, total))]


def _log_softmax(step: Step, gradients: Gradients) -> Gradients:
    op, gradient, axis = step.op, one(gradients), step.attributes["axis"]
    total = op.ReduceSum(gradient, [axis], keepdims=1)
    return [op.Sub(gradient, op.Mul(op.Exp(step.y), total))]


ELEMENTWISE: dict[str, Rule] = {
    "Abs": _unary(lambda s: s.op.Sign(s.x)),
    "Acos": _unary(lambda s: s.op.Neg(s.op.Reciprocal(s.op.Sqrt(_one_minus_square(s, s.x))))),
    "Acosh": _unary(lambda s: s.op.Reciprocal(s.op.Sqrt(s.op.Sub(_square(s, s.x), s.number(1))))),
    "Add": _add,
    "Asin": _unary(lambda s: s.op.Reciprocal(s.op.Sqrt(_one_minus_square(s, s.x)))),
    "Asinh": _unary(lambda s: s.op.Reciprocal(s.op.Sqrt(_one_plus_square(s, s.x)))),
    "Atan": _unary(lambda s: s.op.Reciprocal(_one_plus_square(s, s.x))),
    "Atanh": _unary(lambda s: s.op.Reciprocal(_one_minus_square(s, s.x))),
    "Cast": _cast,
    "CastLike": _cast,
    "Ceil": _flat,
    "Clip": _clip,
    "Cos": _unary(lambda s: s.op.Neg(s.op.Sin(s.x))),
    "Cosh": _unary(lambda s: s.op.Sinh(s.x)),
    "CumSum": _running_sum,
    "Div": _div,
    "Elu": _unary(_elu),
    "Erf": _unary(_erf),
    "Exp": _unary(lambda s: s.y),
    "Floor": _flat,
    "HardSigmoid": _hard_sigmoid,
    "Identity": lambda step, gradients: [one(gradients)],
    "LeakyRelu": _unary(_leaky),
    "Log": _unary(lambda s: s.op.Reciprocal(s.x)),
    "LogSoftmax": _log_softmax,
    "Max": _extreme,
    "Mean": _mean,
    "Min": _extreme,
    "Mul": _mul,
    "Neg": lambda step, gradients: [step.op.Neg(one(gradients))],
    "Pow": _pow,
    "Reciprocal": _unary(lambda s: s.op.Neg(_square(s, s.y))),
    "ReduceMax": _reduce_extreme,
    "ReduceMean": _reduce_mean,
    "ReduceMin": _reduce_extreme,
    "ReduceSum": _reduce_sum,
    "Relu": _relu,
    "Round": _flat,
    "Sigmoid": _unary(lambda s: s.op.Mul(s.y, s.op.Sub(s.number(1), s.y))),
    "Sign": _flat,
    "Sin": _unary(lambda s: s.op.Cos(s.x)),
    "Sinh": _unary(lambda s: s.op.Cosh(s.x)),
    "Softmax": _softmax,
    "Softplus": _unary(lambda s: s.op.Sigmoid(s.x)),
    "Softsign": _unary(_softsign),
    "Sqrt": _unary(lambda s: s.op.Div(s.number(0.5), s.y)),
    "Sub": _sub,
    "Sum": _add,
    "Tan": _unary(lambda s: _one_plus_square(s, s.y)),
    "Tanh": _unary(lambda s: _one_minus_square(s, s.y)),
    "Where": _choose,
}
