"""Attention among forms: softmax over the keys of what a product of queries and keys gives, times
values. Known by the kinds of forms alone, so that every spelling of it gets the same kernel.
"""

import math
from collections.abc import Mapping, Sequence

from sardonyx.compiler.forms import (
    Contraction,
    Fold,
    Form,
    Map,
    Number,
    Source,
    View,
)
from sardonyx.dims import product
from sardonyx.dtypes import DataType
from sardonyx.record import entity

LARGEST_HEAD = 512
"""Elements of a head, which a task keeps for each of its queries."""


@entity
class Attention:
    """`weights(scores) @ values`, where scores are maps of a product of queries and keys.

    Query and key are what is read from memory, which `factors` have yet to multiply (or, where
    `inverse`, to divide). `scale` is what the sum of a row's powers becomes: its weights are the
    powers times that, or divided by that. `cleaned`: a row that would be NaN is 0.
    """

    result: Contraction
    product: Contraction
    query: Form
    key: Form
    factors: tuple[tuple[Form, bool], ...]
    scores: Form
    total: Fold
    scale: Form
    divided: bool
    cleaned: bool
    inner: frozenset[Form]
    """Every form between, none of which anything else uses."""
    peeled: frozenset[Form]
    """Those of them of which the sources are read from memory."""


Users = Mapping[Form, Sequence[Form]]


def find_attentions(forms: Sequence[Form], users: Users, forced: set[Form]) -> list[Attention]:
    """Every attention whose weights nothing else needs."""
    found = []
    for form in forms:
        if isinstance(form, Contraction):
            made = _Match(form, users).run()
            if made is not None and _is_private(made, users, forced):
                found.append(made)
    return found


def _is_private(made: Attention, users: Users, forced: set[Form]) -> bool:
    around = made.inner | {made.result}
    return all(
        form not in forced and all(user in around for user in users[form]) for form in made.inner
    )


class _Match:
    def __init__(self, result: Contraction, users: Users) -> None:
        self.result = result
        self.users = users
        self.inner: set[Form] = set()
        self.peeled: set[Form] = set()
        self.factors: list[tuple[Form, bool]] = []

    def run(self) -> Attention | None:
        """What is computed before the product with the values, if it is a softmax of scores."""
        weights, cleaned = self.uncleaned(self.result.left)
        if not isinstance(weights, Map) or weights.name not in ("mul", "div"):
            return None
        sides = [weights.arguments]
        if weights.name == "mul":
            sides.append(weights.arguments[::-1])
        self.inner.add(weights)
        for powers, scale in sides:
            made = self.softmax(powers, scale, weights.name == "div", cleaned)
            if made is not None:
                return made
        return None

    def uncleaned(self, form: Form) -> tuple[Form, bool]:
        """Weights without a choice of 0 where they are NaN."""
        match form:
            case Map(name="select", arguments=(Map(name="ne", arguments=(a, c)) as test, zero, x)):
                if a is c is x and _is_number(zero, 0.0) and x.shape == form.shape:
                    self.inner |= {form, test}
                    return x, True
        return form, False

    def softmax(self, powers: Form, scale: Form, divided: bool, cleaned: bool) -> Attention | None:
        match powers:
            case Map(name="exp", arguments=(Map(name="sub", arguments=(scores, shift)) as sub,)):
                best = self.maximum(shift)
            case _:
                return None
        total = self.sum_of(scale, powers)
        found = self.product(scores)
        if best is None or best.argument is not scores or total is None or found is None:
            return None
        if not self.fits(scores, found, best, total):
            return None
        self.inner |= {powers, sub, shift, best, total, found}
        query = self.unscaled(found.left)
        key = self.unscaled(found.right)
        return Attention(
            self.result, found, query, key, tuple(self.factors), scores, total, scale, divided,
            cleaned, frozenset(self.inner), frozenset(self.peeled),
        )  # fmt: skip

    def fits(self, scores: Form, found: Contraction, best: Fold, total: Fold) -> bool:
        last = (len(scores.shape) - 1,)
        heads = (found.depth, self.result.shape[-1])
        return (
            best.axes == total.axes == last
            and scores.shape == self.result.left.shape
            and scores.shape[:-2] == self.result.shape[:-2]
            and scores.dtype is self.result.dtype is DataType.FLOAT
            and all(isinstance(size, int) and 0 < size <= LARGEST_HEAD for size in heads)
        )

    def maximum(self, shift: Form) -> Fold | None:
        """The largest score, also where 0 stands for the one of a row without any."""
        match shift:
            case Fold(combine="max"):
                return shift
            case Map(name="select", arguments=(Map(name="eq", arguments=(a, low)) as test, z, x)):
                safe = a is x and _is_number(low, -math.inf) and _is_number(z, 0.0)
                if safe and isinstance(x, Fold) and x.combine == "max":
                    self.inner.add(test)
                    return x
        return None

    def sum_of(self, scale: Form, powers: Form) -> Fold | None:
        """The sum of powers that a factor of them is computed from, and from nothing else."""
        found: Fold | None = None
        waiting = [scale]
        while waiting:
            form = waiting.pop()
            match form:
                case Map(arguments=arguments):
                    self.inner.add(form)
                    waiting.extend(arguments)
                case Fold(combine="add", argument=argument) if argument is powers:
                    found = form
                case Number():
                    continue
                case Source(constant=constant) if constant is not None and constant.size == 1:
                    continue
                case _:
                    return None
        return found

    def product(self, scores: Form) -> Contraction | None:
        """The product that scores are maps of, with the maps on the way there."""
        path: list[Form] = []
        form = scores
        while isinstance(form, Map):
            path.append(form)
            inside = [
                item
                for item in dict.fromkeys(form.arguments)
                if item.shape == scores.shape and _has_product(item, scores.shape)
            ]
            if len(inside) != 1:
                return None
            (form,) = inside
        if not isinstance(form, Contraction) or form.shape != scores.shape:
            return None
        self.inner.update(path)
        return form

    def unscaled(self, form: Form) -> Form:
        """A side of the product without factors that are one number, which scores take instead."""
        if len(self.users[form]) > 1:
            return form
        match form:
            case Map(name="mul" | "div" as name, arguments=(x, factor)):
                if name == "mul" and product(x.shape) == 1:
                    x, factor = factor, x
                if x.shape != form.shape or product(factor.shape) != 1:
                    return form
                self.factors.append((factor, name == "div"))
                self.inner.add(form)
                self.peeled.add(form)
                return self.unscaled(x)
            case View(source=Map() as source):
                inner = self.unscaled(source)
                if inner is source:
                    return form
                self.inner.add(form)
                self.peeled.add(form)
                return View(form.shape, form.dtype, inner, form.axes)
        return form


def _has_product(form: Form, shape: tuple[object, ...]) -> bool:
    """True where maps of a shape lead down to a product."""
    seen = {form}
    waiting = [form]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Contraction):
            return True
        if isinstance(item, Map):
            more = {source for source in item.arguments if source.shape == shape} - seen
            seen |= more
            waiting.extend(more)
    return False


def _is_number(form: Form, value: float) -> bool:
    """True for one number that equals a value."""
    match form:
        case Number(number=found):
            return bool(found == value)
        case Source(constant=constant) if constant is not None and constant.size == 1:
            return bool(constant.reshape(-1)[0] == value)
    return False
