"""Models that break the rules in ways that guards against must not be assertions."""

from collections.abc import Callable

from onnx import ModelProto, TensorProto, helper

from tests.scale.hostile import CASES, whole


def _nodes(*nodes: tuple[str, list[str], str]) -> ModelProto:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    made = [helper.make_node(kind, inputs, [output]) for kind, inputs, output in nodes]
    return whole(made, [x], ["y"])


BROKEN: dict[str, Callable[[], ModelProto]] = {
    "undefined name": lambda: _nodes(("Add", ["x", "nothing"], "y")),
    "undefined name behind kernels": lambda: _nodes(
        ("Neg", ["x"], "a"), ("NonZero", ["nothing"], "b"), ("Cast", ["b"], "c"),
        ("Add", ["a", "c"], "y")),
    "cycle": lambda: _nodes(
        ("Add", ["x", "b"], "a"), ("Neg", ["a"], "b"), ("Neg", ["b"], "y")),
    "node that reads itself": lambda: _nodes(("Add", ["x", "y"], "y")),
    "unknown operator": lambda: _nodes(("Nothing", ["x"], "y")),
    "too few inputs": lambda: _nodes(("Add", ["x"], "y")),
    "missing attribute": lambda: _nodes(("Cast", ["x"], "y")),
    "recursion": CASES["functions that call each other"],
    "functions that double": CASES["functions that double"],
}  # fmt: skip
