"""Graphs under change: use lists, order, scopes, copies."""

import numpy as np
import pytest

from sardonyx.dtypes import DataType
from sardonyx.errors import GraphError
from sardonyx.graph import (
    Attribute,
    AttributeType,
    Function,
    Graph,
    Model,
    Node,
    Opsets,
    SparseTensor,
    Tensor,
    TensorType,
    Value,
)
from sardonyx.graph.clone import clone_graph, clone_model
from sardonyx.graph.inline import inline_functions
from sardonyx.graph.names import Names
from sardonyx.graph.sort import sort_graph


def chain(*op_types: str) -> Graph:
    graph = Graph("chain")
    value = graph.add_input("x", TensorType(DataType.FLOAT, ("n",)))
    for position, op_type in enumerate(op_types):
        value = graph.add(op_type, [value], [f"v{position}"], name=f"n{position}").output
    graph.outputs.append(value)
    return graph


def op_types(graph: Graph) -> list[str]:
    return [node.op_type for node in graph.nodes]


def uses(value: Value) -> list[tuple[str, int]]:
    return [(getattr(user, "op_type", "output"), position) for user, position in value.uses]


def test_uses_follow_every_change_of_inputs() -> None:
    x, y = Value("x"), Value("y")
    node = Node("Add", [x, x])
    assert uses(x) == [("Add", 0), ("Add", 1)]
    node.replace_input(0, y)
    assert (uses(x), uses(y)) == ([("Add", 1)], [("Add", 0)])
    node.set_inputs([None, y])
    assert (uses(x), uses(y)) == ([], [("Add", 1)])
    node.replace_input(1, None)
    assert uses(y) == []


def test_replace_all_uses_reaches_nodes_and_outputs() -> None:
    graph = chain("Neg", "Abs")
    neg, absolute = graph.nodes
    fresh = graph.add_input("fresh")
    neg.output.replace_all_uses(fresh)
    assert absolute.inputs == (fresh,)
    absolute.output.replace_all_uses(fresh)
    assert list(graph.outputs) == [fresh]
    assert fresh.is_output and not absolute.output.uses


def test_replace_all_uses_can_leave_outputs() -> None:
    graph = chain("Neg")
    (neg,) = graph.nodes
    fresh = Value("fresh")
    neg.output.replace_all_uses(fresh, outputs=False)
    assert list(graph.outputs) == [neg.output]


def test_a_value_has_one_producer() -> None:
    made = Node("Neg", [], ["y"]).output
    with pytest.raises(GraphError, match="already made by node of 'y'"):
        Node("Abs", [], [made])


def test_outputs_can_only_go_when_unused() -> None:
    graph = chain("Neg", "Abs")
    with pytest.raises(GraphError, match="still used"):
        graph.nodes[0].set_outputs([])
    node = Node("Split", [], ["a", "b"])
    node.set_outputs(node.outputs[:1])
    assert [value.name for value in node.outputs] == ["a"]


def test_remove_is_safe_by_default() -> None:
    graph = chain("Neg", "Abs")
    first, second = graph.nodes
    with pytest.raises(GraphError, match="still used"):
        graph.nodes.remove(first)
    graph.outputs.clear()
    graph.nodes.remove(second)
    assert first.output.uses == {}
    assert op_types(graph) == ["Neg"] and second.graph is None


def test_the_list_may_change_while_it_is_walked() -> None:
    graph = chain("A", "B", "C", "D")
    seen = []
    for node in graph.nodes:
        seen.append(node.op_type)
        if node.op_type == "B":
            graph.nodes.insert_after(node, Node("New"))
            graph.nodes.remove(node, safe=False)
        if node.op_type == "C":
            graph.nodes.insert_before(node, Node("Earlier"))
    assert seen == ["A", "B", "New", "C", "D"]
    assert op_types(graph) == ["A", "New", "Earlier", "C", "D"]


def test_a_walk_goes_on_when_several_nodes_ahead_are_removed() -> None:
    graph = chain("A", "B", "C", "D", "E")
    seen = []
    for node in graph.nodes:
        seen.append(node.op_type)
        if node.op_type == "A":
            for victim in [item for item in graph.nodes if item.op_type in "BC"]:
                graph.nodes.remove(victim, safe=False)
    assert seen == ["A", "D", "E"]


@pytest.mark.parametrize("index", [0, 1, 3, -1, -4])
def test_nodes_by_position(index: int) -> None:
    graph = chain("A", "B", "C", "D")
    assert graph.nodes[index].op_type == "ABCD"[index]


def test_positions_out_of_range_and_slices() -> None:
    graph = chain("A", "B", "C")
    assert [node.op_type for node in graph.nodes[1:]] == ["B", "C"]
    assert [node.op_type for node in reversed(graph.nodes)] == ["C", "B", "A"]
    with pytest.raises(IndexError, match="node 3 of a graph with 3"):
        graph.nodes[3]


def test_a_node_is_in_one_graph() -> None:
    graph, other = chain("A"), Graph("other")
    with pytest.raises(GraphError, match="already in graph 'chain'"):
        other.nodes.append(graph.nodes[0])
    node = graph.nodes[0]
    graph.move(node, other)
    assert node.graph is other and len(graph.nodes) == 0 and uses(graph.inputs[0]) == [("A", 0)]


def test_a_stranger_cannot_be_removed() -> None:
    with pytest.raises(GraphError, match="is not in graph"):
        chain("A").nodes.remove(Node("Stranger"))


def test_outputs_list() -> None:
    graph = chain("A", "B")
    first, second = (node.output for node in graph.nodes)
    graph.outputs[0] = first
    graph.outputs.insert(0, second)
    assert [uses(first)[-1], uses(second)[-1]] == [("output", 1), ("output", 0)]
    del graph.outputs[0]
    assert uses(second) == [] and uses(first)[-1] == ("output", 0)


def subgraph_model() -> Graph:
    graph = Graph("outer")
    x = graph.add_input("x")
    inner = Graph("inner")
    inner.outputs.append(inner.add("Neg", [x], ["inner_y"]).output)
    node = graph.add("If", [x], ["y"], {"then_branch": inner})
    graph.outputs.append(node.output)
    return graph


def test_subgraphs_know_their_place_and_what_they_capture() -> None:
    graph = subgraph_model()
    (node,) = graph.nodes
    (inner,) = node.subgraphs
    assert inner.parent is graph and inner.captured() == [graph.inputs[0]]
    assert inner.value("x") is graph.inputs[0]
    assert [part.name for part in graph.walk()] == ["outer", "inner"]
    assert [item.op_type for item in graph.all_nodes()] == ["If", "Neg"]


def test_removing_a_node_releases_what_its_subgraphs_use() -> None:
    graph = subgraph_model()
    graph.outputs.clear()
    graph.nodes.remove(graph.nodes[0])
    assert graph.inputs[0].uses == {}


def test_unknown_names() -> None:
    graph = subgraph_model()
    with pytest.raises(GraphError, match="no value 'nothing'"):
        graph.value("nothing")
    with pytest.raises(GraphError, match="no node 'nothing'"):
        graph.node("nothing")


def test_sorting_keeps_order_where_it_can() -> None:
    graph = Graph("g")
    x = graph.add_input("x")
    last = Node("C", [None], ["c"])
    first = Node("A", [x], ["a"])
    second = Node("B", [first.output], ["b"])
    last.set_inputs([second.output])
    for node in (last, first, second):
        graph.nodes.append(node)
    assert sort_graph(graph) and op_types(graph) == ["A", "B", "C"]
    assert not sort_graph(graph)


def test_sorting_sees_through_subgraphs() -> None:
    graph = subgraph_model()
    node = graph.nodes[0]
    (inner,) = node.subgraphs
    late = graph.add("Late", [graph.inputs[0]], ["late"])
    inner.nodes[0].replace_input(0, late.output)
    sort_graph(graph)
    assert op_types(graph) == ["Late", "If"]


def test_a_cycle_is_named() -> None:
    graph = Graph("g")
    one, two = Node("One", [], ["a"], name="one"), Node("Two", [], ["b"], name="two")
    one.set_inputs([two.output])
    two.set_inputs([one.output])
    graph.nodes.extend([one, two])
    with pytest.raises(GraphError, match=r"cycle: node 'one' \(One\) -> node 'two' \(Two\)"):
        sort_graph(graph)


def test_sorting_ten_thousand_nodes_backwards_does_not_recurse() -> None:
    graph = Graph("g")
    value = graph.add_input("x")
    nodes = []
    for position in range(10_000):
        node = Node("Neg", [value], [f"v{position}"])
        value = node.output
        nodes.append(node)
    graph.nodes.extend(reversed(nodes))
    assert sort_graph(graph) and list(graph.nodes) == nodes


def test_clone_shares_no_mutable_part() -> None:
    graph = subgraph_model()
    graph.add_initializer(Tensor(np.zeros(2, np.float32), "w"))
    twin = clone_graph(graph)
    assert op_types(twin) == op_types(graph)
    originals = set(graph.values()) | set(next(graph.nodes[0].subgraphs).values())
    assert not originals & (set(twin.values()) | set(next(twin.nodes[0].subgraphs).values()))
    assert next(twin.nodes[0].subgraphs).captured() == [twin.inputs[0]]
    twin.initializers[0].tensor.set(np.ones(3))
    assert graph.initializers[0].tensor.shape == (2,)


def test_clone_copies_the_tensors_of_attributes() -> None:
    def tensor() -> Tensor:
        return Tensor(np.zeros(2, np.float32), "w")

    def sparse() -> SparseTensor:
        return SparseTensor(Tensor(np.array([5.0]), "s"), Tensor(np.array([1])), (3,))

    graph = Graph("g")
    given = {"one": tensor(), "several": [tensor(), tensor()], "sparse": sparse(),
             "some": [sparse()]}  # fmt: skip
    node = graph.add("Own", [], ["y"], given)
    node.set_attribute("nothing", Attribute.refer("nothing", AttributeType.TENSOR, "other"))
    twin = clone_graph(graph).nodes[0]
    assert twin.attributes["nothing"].value is None
    assert twin.attributes["one"].value is not node.attributes["one"].value
    assert twin.attributes["sparse"].value is not node.attributes["sparse"].value
    twin.attributes["one"].value.set(np.ones(3))
    twin.attributes["several"].value[1].set(np.ones(4))
    assert node.attributes["one"].value.shape == (2,)
    assert [item.shape for item in node.attributes["several"].value] == [(2,), (2,)]
    assert twin.attributes["sparse"].value.numpy().tolist() == [0, 5, 0]
    assert twin.attributes["some"].value[0] is not node.attributes["some"].value[0]


def test_clone_model_keeps_everything() -> None:
    model = Model(chain("A"), Opsets({"": 20, "x": 1}, unnamed=True), 9)
    model.producer_name, model.metadata = "me", {"a": "b"}
    twin = clone_model(model)
    assert (twin.producer_name, twin.metadata, twin.ir_version) == ("me", {"a": "b"}, 9)
    assert (
        twin.opsets == model.opsets and twin.opsets.unnamed and twin.metadata is not model.metadata
    )


def twice(name: str, inner: str, domain: str = "") -> Function:
    body = Graph(name)
    value = body.add_input("a")
    for position in range(2):
        value = body.add(inner, [value], [f"t{position}"], domain=domain).output
    body.outputs.append(value)
    return Function("local", name, body, Opsets({"": 20}))


def test_inlining_expands_calls_of_calls() -> None:
    graph = Graph("main")
    x = graph.add_input("x")
    graph.outputs.append(graph.add("Quad", [x], ["y"], domain="local", name="call").output)
    model = Model(graph, Opsets({"": 20, "local": 1}), 9)
    model.functions = [twice("Quad", "Double", "local"), twice("Double", "Neg")]
    assert inline_functions(model) == 1
    assert op_types(graph) == ["Neg"] * 4 and not model.functions
    assert graph.outputs[0].name == "y" and len({v.name for v in graph.values()}) == 5


def test_inlining_passes_attributes_and_absent_inputs() -> None:
    body = Graph("F")
    a, b = body.add_input("a"), body.add_input("b")
    node = body.add("Clip", [a, b], ["c"])
    node.set_attribute("alpha", Attribute.refer("alpha", AttributeType.FLOAT, "beta"))
    node.set_attribute("gone", Attribute.refer("gone", AttributeType.INT, "missing"))
    body.outputs.append(node.output)
    function = Function("local", "F", body)
    graph = Graph("main")
    x = graph.add_input("x")
    graph.outputs.append(graph.add("F", [x], ["y"], {"beta": 0.5}, domain="local").output)
    model = Model(graph)
    model.functions = [function]
    inline_functions(model)
    (clip,) = graph.nodes
    assert clip.inputs == (x, None) and clip.attribute("alpha") == 0.5
    assert "gone" not in clip.attributes


def test_recursive_functions_are_refused() -> None:
    model = Model(chain("A"))
    model.functions = [twice("F", "G", "local"), twice("G", "F", "local")]
    with pytest.raises(GraphError, match=r"call themselves: local\.F -> local\.G -> local\.F"):
        inline_functions(model)


def test_names_avoid_subgraphs_too() -> None:
    graph = subgraph_model()
    names = Names(next(graph.nodes[0].subgraphs))
    assert [names.fresh(wish) for wish in ("x", "inner_y", "free", "")] == [
        "x_1",
        "inner_y_1",
        "free",
        "value",
    ]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (1, AttributeType.INT),
        (np.int32(3), AttributeType.INT),
        (0.5, AttributeType.FLOAT),
        ("text", AttributeType.STRING),
        (b"bytes", AttributeType.STRING),
        ([1, 2], AttributeType.INTS),
        ([1, 2.5], AttributeType.FLOATS),
        (["a", b"b"], AttributeType.STRINGS),
        (Tensor([1.0]), AttributeType.TENSOR),
        ([Tensor([1.0])], AttributeType.TENSORS),
        (SparseTensor(None, None, ()), AttributeType.SPARSE_TENSOR),
        (Graph("g"), AttributeType.GRAPH),
        ([Graph("g")], AttributeType.GRAPHS),
        (TensorType(DataType.FLOAT), AttributeType.TYPE_PROTO),
        ([TensorType(DataType.FLOAT)], AttributeType.TYPE_PROTOS),
    ],
)
def test_attribute_types_follow_values(value: object, kind: AttributeType) -> None:
    assert Attribute("a", value).type == kind


@pytest.mark.parametrize("value", [[], {}, object(), [1, "a"], 1j])
def test_values_no_attribute_can_hold(value: object) -> None:
    with pytest.raises(GraphError, match="attribute 'a' cannot hold"):
        Attribute("a", value)


def test_a_model_takes_operator_sets_as_any_mapping() -> None:
    assert Model(chain("A"), {"": 20}, 9).opsets.unnamed is False
    kept = Opsets({"": 20}, unnamed=True)
    assert Model(chain("A"), kept, 9).opsets is kept
    assert Model().opsets == {}
