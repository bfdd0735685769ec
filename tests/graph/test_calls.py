"""Calls of functions: their order, what comes of them, and the limit of inlining."""

import pytest

from sardonyx.errors import GraphError
from sardonyx.format.load import load
from sardonyx.graph import Attribute, AttributeType, Function, Graph, Model, Node
from sardonyx.graph.calls import Growth, callees_first
from sardonyx.graph.inline import LONGEST_NAME, inline_functions
from sardonyx.graph.verify import verify
from tests.scale import models
from tests.scale.hostile import CASES


def _loaded(proto: object) -> Model:
    return load(proto.SerializeToString())  # type: ignore[attr-defined]


def test_growth_is_counted_exactly() -> None:
    model = _loaded(models.doubled_functions(200))
    growth = Growth({function.key: function for function in model.functions})
    assert growth.nodes["local", "f200", ""] == 3 * 2**200 - 2
    assert model.graph is not None and growth.measure(model.graph) == (3 * 2**200 - 1, 1)


def test_ten_thousand_functions_in_a_row() -> None:
    model = _loaded(models.chained_functions(10_000))
    functions = {function.key: function for function in model.functions}
    order = callees_first(functions)
    assert [key[1] for key in order] == [f"f{item}" for item in range(10_000)]
    assert inline_functions(model) == 1
    assert model.graph is not None and len(model.graph.nodes) == 10_000
    verify(model)
    assert max(len(value.name) for value in model.graph.values()) <= LONGEST_NAME + 8


def test_the_limit_names_itself_and_the_function() -> None:
    model = _loaded(models.doubled_functions(40))
    before = len(model.functions)
    with pytest.raises(GraphError, match=r"local\.f40 makes 3298534883327 .* 100000.*inline_limit"):
        inline_functions(model)
    assert len(model.functions) == before
    assert model.graph is not None and len(model.graph.nodes) == 1


def test_the_limit_can_be_set() -> None:
    with pytest.raises(GraphError, match="more than the limit of 46"):
        inline_functions(_loaded(models.doubled_functions(4)), inline_limit=46)
    model = _loaded(models.doubled_functions(4))
    assert inline_functions(model, inline_limit=47) == 1
    assert model.graph is not None and len(model.graph.nodes) == 16


def test_functions_without_nodes_are_not_free() -> None:
    with pytest.raises(GraphError, match="more than the limit"):
        inline_functions(_loaded(CASES["functions without nodes"]()))


def test_names_of_a_megabyte_are_not_put_together() -> None:
    model = _loaded(models.doubled_functions(10))
    for function in model.functions:
        for node in function.graph.nodes:
            node.name = "n" * 1_000_000
    inline_functions(model)
    assert model.graph is not None
    assert all(len(node.name) <= LONGEST_NAME for node in model.graph.nodes)


def _calling(name: str, attribute: Attribute | None) -> Function:
    """A function of one If whose branches are both the function's attribute."""
    body = Graph(name)
    x = body.add_input("x")
    choice = body.add("If", [x], ["y"])
    for branch in ("then_branch", "else_branch"):
        choice.set_attribute(branch, Attribute.refer(branch, AttributeType.GRAPH, "b"))
    body.outputs.append(choice.output)
    function = Function("local", name, body)
    if attribute is not None:
        function.attribute_defaults = [attribute]
    return function


def _branch(op_type: str, domain: str = "") -> Graph:
    graph = Graph("branch")
    graph.outputs.append(graph.add(op_type, [], ["z"], domain=domain).output)
    return graph


def test_a_graph_used_twice_is_copied_twice() -> None:
    model = Model(Graph("main"))
    assert model.graph is not None
    x = model.graph.add_input("x")
    call = model.graph.add("F", [x], ["y"], {"b": _branch("Constant")}, domain="local")
    model.graph.outputs.append(call.output)
    model.functions = [_calling("F", None)]
    inline_functions(model)
    (choice,) = model.graph.nodes
    then, otherwise = choice.subgraphs
    assert then is not otherwise and [len(then.nodes), len(otherwise.nodes)] == [1, 1]
    verify(model)


def test_graphs_that_are_defaults_and_call_on_have_a_limit() -> None:
    model = Model(Graph("main"))
    assert model.graph is not None
    x = model.graph.add_input("x")
    model.graph.outputs.append(model.graph.add("F60", [x], ["y"], domain="local").output)
    model.functions = [
        _calling(f"F{level}", Attribute("b", _branch(f"F{level - 1}" if level else "Constant",
                                                     "local" if level else "")))
        for level in range(61)
    ]  # fmt: skip
    with pytest.raises(GraphError, match="more than"):
        inline_functions(model)


def test_calls_inside_branches_have_a_deepest_level() -> None:
    model = Model(Graph("main"))
    assert model.graph is not None
    x = model.graph.add_input("x")
    model.graph.outputs.append(model.graph.add("F0", [x], ["y"], domain="local").output)
    for level in range(200):
        body = Graph(f"F{level}")
        flag = body.add_input("x")
        inner = Graph("inner")
        node = Node("Neg" if level == 199 else f"F{level + 1}", [flag], ["z"],
                    domain="" if level == 199 else "local")  # fmt: skip
        inner.nodes.append(node)
        inner.outputs.append(node.output)
        body.outputs.append(body.add("If", [flag], ["y"], {"then_branch": inner}).output)
        model.functions.append(Function("local", f"F{level}", body))
    with pytest.raises(GraphError, match="puts 201 graphs inside one another"):
        inline_functions(model)


def test_recursion_through_a_default_is_found() -> None:
    model = Model(Graph("main"))
    assert model.graph is not None
    x = model.graph.add_input("x")
    model.graph.outputs.append(model.graph.add("F", [x], ["y"], domain="local").output)
    model.functions = [_calling("F", Attribute("b", _branch("F", "local")))]
    with pytest.raises(GraphError, match=r"call themselves: local\.F -> local\.F"):
        inline_functions(model)
