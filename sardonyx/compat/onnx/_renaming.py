"""Names for the values and nodes of a function body that moves into its caller."""

from typing import Any

from sardonyx.compat.onnx._nesting import subgraphs


class Names:
    """The names taken in a graph and the graphs inside it; hands out new ones.

    >>> from sardonyx.compat.onnx import GraphProto
    >>> graph = GraphProto()
    >>> _ = graph.node.add(op_type="Relu", input=["x"], output=["t__1"])
    >>> names = Names(graph)
    >>> names.fresh("t__1"), names.fresh("u__1")
    ('t__1_0', 'u__1')
    """

    def __init__(self, graph: Any) -> None:
        self._taken: set[str] = set()
        self._counter = 0
        pending = [graph]
        while pending:
            inner = pending.pop()
            for values in (inner.input, inner.initializer, inner.output):
                self._taken.update(value.name for value in values)
            for node in inner.node:
                self._taken.add(node.name)
                self._taken.update(node.input, node.output)
                pending.extend(subgraphs(node))

    def fresh(self, suggestion: str) -> str:
        """`suggestion`, with a number behind it if it is taken; from now on taken."""
        name = suggestion
        while name in self._taken:
            name = f"{suggestion}_{self._counter}"
            self._counter += 1
        self._taken.add(name)
        return name


class Renamer:
    """Renames one function body for one call: parameters to arguments, the rest to fresh names."""

    def __init__(self, suffix: str, names: Names) -> None:
        self._suffix = suffix
        self._names = names
        self._scopes: list[dict[str, str]] = [{}]

    def rename_body(self, call: Any, function: Any) -> None:
        """Rename everything in `function`, which `call` calls, in place."""
        self._bind(function, "input", function.input, call.input)
        self._bind(function, "output", function.output, call.output)
        for node in function.node:
            self._rename_node(node)
        for value in function.value_info:
            value.name = self._find(value.name) if value.name else ""

    def _bind(self, function: Any, role: str, formals: Any, actuals: Any) -> None:
        """Map parameters to arguments; an output that nobody takes still needs a name."""
        if len(actuals) > len(formals):
            raise RuntimeError(
                f"a call of function {function.domain}.{function.name} has {len(actuals)}"
                f" {role}s, but the function only {len(formals)}; remove the others"
            )
        missing = [""] * (len(formals) - len(actuals))
        for formal, actual in zip(formals, [*actuals, *missing], strict=True):
            if role == "output" and not actual:
                self._scopes[-1][formal] = self._fresh(formal)
            else:
                self._scopes[-1][formal] = actual

    def _fresh(self, name: str) -> str:
        return self._names.fresh(name + self._suffix)

    def _define(self, name: str) -> str:
        self._scopes[-1][name] = new_name = self._fresh(name)
        return new_name

    def _find(self, name: str) -> str:
        """What `name` means here; a name from outside the function stays as it is."""
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        return name

    def _is_known(self, name: str) -> bool:
        return any(name in scope for scope in self._scopes)

    def _rename_node(self, node: Any) -> None:
        if node.name:
            node.name = self._fresh(node.name)
        for index, name in enumerate(node.input):
            if name:
                node.input[index] = self._find(name)
        for index, name in enumerate(node.output):
            if name:
                node.output[index] = (
                    self._find(name) if self._is_known(name) else self._define(name)
                )
        for graph in subgraphs(node):
            self._rename_graph(graph)

    def _rename_graph(self, graph: Any) -> None:
        self._scopes.append({})
        for values in (graph.input, graph.initializer, graph.output):
            for value in values:
                value.name = self._define(value.name)
        for node in graph.node:
            self._rename_node(node)
        self._scopes.pop()
