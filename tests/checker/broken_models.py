"""Models that break one rule each: how a case is written, and the sound models it starts from."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import onnx

Mutate = Callable[[Any, Any], object]
"""Breaks a sound model `m`, a message of the module `o`, in place."""

PLAIN = """
<ir_version: 14, opset_import: ["" : 21, "ai.onnx.ml" : 3]>
g (float[2,3] x, float[2,3] z, int64[2] i, bool c) => (float[2,3] y)
<float[3] w = {1, 2, 3}, float[2,3] mid>
{
    [add] mid = Add (x, w)
    [relu] y = Relu (mid)
}
"""

BRANCHES = """
<ir_version: 14, opset_import: ["" : 21]>
g (float[2] x, bool c) => (float[2] y)
<float[2] w = {1, 2}>
{
    [neg] a = Neg (x)
    [if] y = If (c) <
        then_branch = yes () => (float[2] t) { [inner] t = Add (a, w) },
        else_branch = no () => (float[2] e) { [other] e = Abs (a) }
    >
}
"""

CALL = """
<ir_version: 14, opset_import: ["" : 21, "own" : 1]>
g (float[2] x) => (float[2] y)
{
    [call] y = own.f <alpha = 0.5> (x, x)
}
<domain: "own", opset_import: ["" : 21, "own" : 1]>
f <alpha> (a, b) => (d)
{
    [body] s = Add (a, b)
    [leaky] d = LeakyRelu <alpha : float = @alpha> (s)
}
<domain: "own", opset_import: ["" : 21]>
h (a) => (b)
{
    [only] b = Neg (a)
}
"""


@dataclass(frozen=True)
class Broken:
    """A case: the rule that is broken, where, and how it comes about."""

    rule: str
    where: str
    name: str
    base: str
    mutate: Mutate

    def message(self, o: Any) -> Any:
        """The broken model as a message of module `o`."""
        message = o.ModelProto.FromString(sound(self.base))
        self.mutate(message, o)
        return message

    def __str__(self) -> str:
        return f"{self.rule}-{self.name}"


class Cases(list[Broken]):
    """A list of cases, filled by decorated functions and by calls."""

    def add(self, rule: str, where: str, mutate: Mutate, name: str = "", base: str = PLAIN) -> None:
        """One more case."""
        self.append(Broken(rule, where, name or str(len(self)), base, mutate))

    def case(self, rule: str, where: str, base: str = PLAIN) -> Callable[[Mutate], Mutate]:
        """Make the decorated function a case."""

        def keep(mutate: Mutate) -> Mutate:
            self.add(rule, where, mutate, mutate.__name__.strip("_"), base)
            return mutate

        return keep


@cache
def sound(text: str) -> bytes:
    """The bytes of a model in textual syntax."""
    content: bytes = onnx.parser.parse_model(text).SerializeToString()
    return content


def node(m: Any, name: str) -> Any:
    """The node called `name` in the main graph, a branch or a function."""
    graphs = [m.graph, *m.functions]
    for graph in graphs:
        for item in graph.node:
            if item.name == name:
                return item
            graphs.extend(attribute.g for attribute in item.attribute if attribute.HasField("g"))
    raise KeyError(name)


def branch(m: Any, name: str) -> Any:
    """A branch of the conditional in `BRANCHES`: "then" or "else"."""
    return next(a.g for a in node(m, "if").attribute if a.name == f"{name}_branch")


def entry(o: Any, key: str, value: str) -> Any:
    """A pair of strings."""
    return o.StringStringEntryProto(key=key, value=value)


def tensor_type(o: Any, element: int | None, shape: tuple[Any, ...] | None) -> Any:
    """A tensor's type; what is None is left out."""
    made = o.TypeProto()
    made.tensor_type.SetInParent()
    if element is not None:
        made.tensor_type.elem_type = element
    if shape is not None:
        made.tensor_type.shape.SetInParent()
        for size in shape:
            made.tensor_type.shape.dim.add(dim_value=size)
    return made
