"""Operators written as `OpRun` classes, as operators of the catalog."""

from collections.abc import Mapping
from typing import Any

from sardonyx.compat.onnx.onnx_ml_pb2 import NodeProto
from sardonyx.compat.onnx.reference.op_run import OpRun
from sardonyx.format.write import write_node
from sardonyx.graph import Graph, Model, Node
from sardonyx.ops.build import Builder
from sardonyx.ops.catalog import canonical_domain, standard
from sardonyx.ops.convert import function_results
from sardonyx.ops.evaluate import Context
from sardonyx.ops.operator import Operator
from sardonyx.ops.replace import replace_node
from sardonyx.ops.signature import Signature

Key = tuple[str, str]
"""A domain and an operator's name."""

_ANYTHING = Signature(1, (), (), {}, {}, open=True)


def custom_operator(key: Key, kind: type[OpRun], run_params: dict[str, Any]) -> type[Operator]:
    """An operator whose reference is what an `OpRun` class does, for any attributes."""
    instances: dict[Node, OpRun] = {}

    def reference(*inputs: Any, context: Context) -> tuple[Any, ...]:
        node = context.node
        if node not in instances:
            message = NodeProto.FromString(write_node(node).joined())
            instances[node] = kind(message, run_params)
        instance = instances[node]
        scope = context.scope() | {"": None} if instance.need_context() else None
        return instance.run(*inputs, **({} if scope is None else {"context": scope}))

    members: dict[str, Any] = {"domain": key[0], "name": key[1], "reference": reference}
    members["versions"] = classmethod(lambda _: (_ANYTHING,))
    members["newest"] = classmethod(lambda _: _ANYTHING)
    members["at"] = classmethod(lambda _, opset: _ANYTHING)
    return type(key[1], (Operator,), members)


def expand_operators(model: Model, wanted: set[Key]) -> None:
    """Replace nodes of some operators, in place, by the functions they stand for."""
    bodies = {id(function.graph): function.opsets for function in model.functions}
    roots = [graph for graph in model.graphs() if graph.owner is None]
    for root in roots if wanted else ():
        opsets = bodies.get(id(root), model.opsets)
        while _expand_once(root, wanted, opsets):
            continue


def _expand_once(root: Graph, wanted: set[Key], opsets: Mapping[str, int]) -> bool:
    changed = False
    opset = opsets.get("", opsets.get("ai.onnx", 0))
    for graph in list(root.walk()):
        for node in list(graph.nodes):
            key = (canonical_domain(node.domain), node.op_type)
            if key not in wanted:
                continue
            if key[0]:
                raise NotImplementedError(f"{key[0]}.{key[1]} cannot be replaced by a function")
            operator = standard().get(key)
            version = None if operator is None else operator.at(opset)
            if operator is None or version is None or operator.function is None:
                raise NotImplementedError(f"{node.op_type} stands for no function")
            build = Builder(graph, opset, node)
            replace_node(node, function_results(node, operator, version, build))
            changed = True
    return changed
