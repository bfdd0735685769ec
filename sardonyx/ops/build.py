"""Build nodes by calling operators: how upgrades, functions and passes write graphs."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.errors import ConversionError
from sardonyx.graph import Attribute, AttributeType, Graph, Node, Type, Value
from sardonyx.graph.clone import clone_graph
from sardonyx.graph.names import Names
from sardonyx.ops.operator import plain_value, tensor_of


class Builder:
    """Makes nodes in a graph, at its end or before a node. A call is an operator's name.

    Inputs are values, or anything an array can be made of (numbers, lists, arrays), which becomes a
    constant; keywords are attributes, and None leaves an attribute out. `outputs` says how many
    results there are (the results then come as a tuple), `domain` where the operator comes from.
    With `constants_as_nodes` constants are nodes: a function's body has no initializers.

    >>> from sardonyx.graph import Graph
    >>> graph = Graph("g")
    >>> x = graph.add_input("x")
    >>> op = Builder(graph, opset=21)
    >>> y = op.Mul(op.Relu(x), 2.0)
    >>> [node.op_type for node in graph.nodes], len(graph.initializers)
    (['Relu', 'Mul'], 1)
    """

    def __init__(
        self, graph: Graph, opset: int, before: Node | None = None, names: Names | None = None,
        *, constants_as_nodes: bool = False, keep_types: bool = False,
    ) -> None:  # fmt: skip
        self.graph = graph
        self.opset = opset
        self.keep_types = keep_types
        """True where element types may stay that the operators of this opset do not list."""
        self._before = before
        self._names = names or Names(graph)
        self._constants_as_nodes = constants_as_nodes
        self.made: list[Node] = []
        """The nodes that were placed, in the order in which that was done."""

    def __getattr__(self, op_type: str) -> Callable[..., Any]:
        if not op_type[:1].isupper():
            raise AttributeError(op_type)

        def call(*inputs: Any, outputs: int = 1, domain: str = "", **attributes: Any) -> Any:
            return self.node(op_type, inputs, outputs, domain, attributes)

        return call

    def node(
        self,
        op_type: str,
        inputs: tuple[Any, ...],
        outputs: int,
        domain: str,
        attributes: dict[str, Any],
    ) -> Any:
        """Make one node; returns its output, or a tuple of them where there are several."""
        hint = self._before.outputs[0].name if self._before and self._before.outputs else ""
        wish = f"{hint}/{op_type}" if hint else op_type
        values = [
            item if item is None or isinstance(item, Value) else self.constant(item)
            for item in inputs
        ]
        while values and values[-1] is None:
            values.pop()
        kept = {key: _refer(key, value) for key, value in attributes.items() if value is not None}
        made = [self._names.fresh(wish) for _ in range(outputs)]
        name = made[0] if self._before is not None and made else ""
        node = Node(op_type, values, made, kept, domain=domain, name=name)
        self._place(node)
        return node.outputs[0] if outputs == 1 else node.outputs

    def constant(self, value: Any, name: str = "") -> Value:
        """A constant from a tensor, array, list or number (int64 for whole numbers, else float32).

        A reference to an attribute of the function that is being built makes one of its value.
        """
        if isinstance(value, Attribute):
            return self.Constant(**{_holder(value): value})  # type: ignore[no-any-return]
        tensor = tensor_of(value)
        hint = self._before.outputs[0].name if self._before and self._before.outputs else ""
        made = self._names.fresh(
            name or tensor.name or (f"{hint}/constant" if hint else "constant")
        )
        if not self._constants_as_nodes:
            return self.graph.add_initializer(tensor, made)
        node = Node("Constant", [], [made], {"value": tensor})
        self._place(node)
        return node.output

    def known(self, value: Value | None) -> NDArray[Any] | None:
        """The elements of a constant that no caller can override; None for anything else."""
        if value is None:
            return None
        maker = value.producer
        if maker is not None:
            if maker.op_type != "Constant" or maker.domain not in ("", "ai.onnx"):
                return None
            given = {name: plain_value(item) for name, item in maker.attributes.items()}
            return constant_array(given)
        graph: Graph | None = self.graph
        while graph is not None:
            if any(value is item for item in graph.inputs):
                return None
            graph = graph.parent
        return None if value.tensor is None else value.tensor.numpy()

    def inside(self, name: str) -> "Builder":
        """A builder for a new graph that will be an attribute of a node in this one."""
        return Builder(
            Graph(name), self.opset, None, self._names,
            constants_as_nodes=self._constants_as_nodes, keep_types=self.keep_types,
        )  # fmt: skip

    def input(self, name: str, type: Type | None = None) -> Value:
        """A new input of the graph, with a name like `name`."""
        return self.graph.add_input(self._names.fresh(name), type)

    def inline(
        self, graph: Graph, inputs: Sequence[Value], outputs: int | None = None
    ) -> tuple[Value, ...]:
        """Place a copy of a graph's nodes here, reading `inputs`; returns its outputs.

        An error where the graph has not as many inputs, or not as many outputs as are expected.
        """
        wanted = len(inputs), len(graph.outputs) if outputs is None else outputs
        if (len(graph.inputs), len(graph.outputs)) != wanted:
            raise ConversionError(
                f"graph '{graph.name}' has {len(graph.inputs)} inputs and {len(graph.outputs)} "
                f"outputs, not {wanted[0]} and {wanted[1]}"
            )
        values = dict(zip(graph.inputs, inputs, strict=True))
        copy = clone_graph(graph, values)
        for part in copy.walk():
            for value in part.values():
                if value.name and value not in inputs:
                    value.name = self._names.fresh(value.name)
        results = tuple(copy.outputs)
        copy.outputs.clear()
        self.graph.initializers += copy.initializers
        for node in list(copy.nodes):
            copy.nodes.remove(node, safe=False)
            self._place(node)
        return results

    def _place(self, node: Node) -> None:
        self.made.append(node)
        if self._before is None:
            self.graph.nodes.append(node)
        else:
            self.graph.nodes.insert_before(self._before, node)


def _refer(name: str, value: Any) -> Any:
    """An attribute's value; a reference to a function's attribute under the name it gets here."""
    if isinstance(value, Attribute) and value.reference:
        return Attribute.refer(name, AttributeType(value.type), value.reference)
    return value


def _holder(reference: Attribute) -> str:
    """The attribute of a Constant node for a value of this kind."""
    kind = AttributeType(reference.type)
    return "value" if kind == AttributeType.TENSOR else f"value_{kind.name.lower()}"


_SCALARS = {"value_int": np.int64, "value_float": np.float32, "value_string": object}
_LISTS = {f"{name}s": dtype for name, dtype in _SCALARS.items()}


def constant_array(attributes: dict[str, Any]) -> NDArray[Any] | None:
    """What a Constant node with these attributes makes; None unless exactly one says it.

    >>> constant_array({"value_ints": (1, 2), "value_float": None})
    array([1, 2])
    """
    given = [(name, value) for name, value in attributes.items() if value is not None]
    if len(given) != 1:
        return None
    name, value = given[0]
    return np.asarray(value, (_SCALARS | _LISTS).get(name))
