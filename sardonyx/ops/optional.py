# mypy: disable-error-code="misc, no-any-return"
"""Optionals: a value or nothing. Nothing is None; a value stands for itself."""

from typing import Any

import numpy as np

from sardonyx.dims import HIDDEN
from sardonyx.dtypes import DataType
from sardonyx.errors import EvaluationError, InferenceError
from sardonyx.graph import Node, OptionalType, SequenceType, TensorType, Type, Value
from sardonyx.ops.build import Builder
from sardonyx.ops.fact import Fact, from_type, tensor, to_type
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array

_TENSORS = "all float8s int4s int2s float6s float4e2m1 float8e8m0"
_VALUES = f"{_TENSORS} seq({_TENSORS})"
_OPTIONALS = f"optional({_TENSORS}) optional(seq({_TENSORS}))"
_EARLY = "optional(all15) optional(seq(all15))"


class Optional(Operator):
    """An optional that holds the input, or that is empty and of a given type."""

    signatures = (
        f"15(input?: V, type?: type) -> output: O; V: all15 seq(all15); O: {_EARLY}",
        f"28(input?: V, type?: type) -> output: O; V: {_VALUES}; O: {_OPTIONALS}",
    )

    def infer(x: Fact | None = None, *, type: Type | None) -> Fact:
        if x is None and type is None:
            raise InferenceError("an empty optional needs its type as an attribute")
        return Fact(OptionalType(type if x is None else to_type(x, HIDDEN)))

    def reference(x: Any = None, *, type: Type | None) -> Any:
        return x


class OptionalHasElement(Operator):
    """Whether an optional holds something; what is not an optional does."""

    signatures = (
        f"15(input: O) -> output: B; O: {_EARLY}; B: bool",
        f"18(input?: O) -> output: B; O: all15 seq(all15) {_EARLY}; B: bool",
        f"28(input?: O) -> output: B; O: {_VALUES} {_OPTIONALS}; B: bool",
    )

    def infer(x: Fact | None = None) -> Fact:
        result = tensor(DataType.BOOL, ())
        if x is None:
            return result.with_value(np.array(False))
        sure = (x.type is not None and not isinstance(x.type, OptionalType)) or x.dtype is not None
        return result.with_value(np.array(True)) if sure else result

    def reference(x: Any = None) -> Array:
        return np.array(x is not None)

    def downgrade_18(node: Node, build: Builder) -> Any:
        given = node.inputs[0] if node.inputs else None
        if given is None or _is_filled(given):
            return build.constant(np.array(given is not None))
        return None


def _is_filled(value: Value) -> bool:
    """Whether a value is declared as something that is no optional."""
    return isinstance(value.type, TensorType | SequenceType)


class OptionalGetElement(Operator):
    """What an optional holds; what is not an optional is given back."""

    signatures = (
        f"15(input: O) -> output: V; O: {_EARLY}; V: all15 seq(all15)",
        f"18(input: O) -> output: V; O: all15 seq(all15) {_EARLY}; V: all15 seq(all15)",
        f"28(input: O) -> output: V; O: {_VALUES} {_OPTIONALS}; V: {_VALUES}",
    )

    def infer(x: Fact) -> Fact:
        return from_type(x.type.element) if isinstance(x.type, OptionalType) else x

    def reference(x: Any) -> Any:
        if x is None:
            raise EvaluationError("the optional holds nothing")
        return x

    def downgrade_18(node: Node, build: Builder) -> Any:
        given = node.inputs[0]
        return build.Identity(given) if given is not None and _is_filled(given) else None
