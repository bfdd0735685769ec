"""The verifier finds every way in which a graph's objects can disagree."""

from collections.abc import Callable

import numpy as np
import pytest

from sardonyx.errors import GraphError
from sardonyx.format.load import load, load_text
from sardonyx.graph import Function, Graph, Model, Node, Opsets, Tensor, TrainingInfo, Value
from sardonyx.graph.clone import clone_model
from sardonyx.graph.sort import sort_graph
from sardonyx.graph.verify import find_faults, verify
from tests.shared_models import model_paths, needs_models

TEXT = """
<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
g (float[2] x, bool c) => (float[2] y)
<float[2] w = {1, 2}>
{
    [neg] a = Neg (x)
    [if] y = If (c) <
        then_branch = yes () => (float[2] t) { [inner] t = Add (a, w) },
        else_branch = no () => (float[2] e) { [other] e = own.f (a) }
    >
}
<domain: "own", opset_import: ["" : 21]>
f (p) => (q) { [body] q = Abs (p) }
"""


def _model() -> Model:
    return load_text(TEXT)


def _branch(model: Model, name: str) -> Graph:
    graph = model.graph.node("if").attributes[f"{name}_branch"].value
    assert isinstance(graph, Graph)
    return graph


def test_sound_graphs_verify() -> None:
    verify(_model())
    verify(clone_model(_model()))
    verify(Graph("empty"))
    assert find_faults(Model()) == []


@needs_models
@pytest.mark.parametrize("path", model_paths(), ids=lambda path: path.parent.name)
def test_real_models_verify(path: object) -> None:
    model = load(path)
    sort_graph(model.graph)
    assert [fault for fault in find_faults(model) if "are called" not in fault] == []


def _forget_use(model: Model) -> None:
    del model.graph.inputs[0].uses[(model.graph.node("neg"), 0)]


def _forget_output_use(model: Model) -> None:
    del model.graph.outputs[0].uses[(model.graph, 0)]


def _invent_use(model: Model) -> None:
    model.graph.inputs[0].uses[(model.graph.node("neg"), 5)] = None


def _invent_use_behind_the_last(model: Model) -> None:
    node = model.graph.node("neg")
    model.graph.inputs[0].uses[(node, len(node.inputs))] = None


def _invent_output_use_behind_the_last(model: Model) -> None:
    model.graph.inputs[0].uses[(model.graph, len(model.graph.outputs))] = None


def _invent_output_use(model: Model) -> None:
    model.graph.inputs[0].uses[(model.graph, 0)] = None


def _dead_user(model: Model) -> None:
    Node("Relu", [model.graph.inputs[0]], ["dead"])


def _lose_producer(model: Model) -> None:
    model.graph.node("neg").output.producer = None


def _swap_producer(model: Model) -> None:
    model.graph.node("neg").output.producer = model.graph.node("if")


def _make_twice(model: Model) -> None:
    node = model.graph.node("neg")
    node.outputs = (node.output, node.output)


def _leave_graph(model: Model) -> None:
    model.graph.node("neg").graph = None


def _other_graph(model: Model) -> None:
    model.graph.node("neg").graph = _branch(model, "then")


def _break_links(model: Model) -> None:
    first, second = model.graph.nodes
    second._link.previous = first._link.previous


def _wrong_length(model: Model) -> None:
    model.graph.nodes._length = 7


def _disown(model: Model) -> None:
    _branch(model, "then").owner = None


def _own_root(model: Model) -> None:
    model.graph.owner = model.graph.node("neg")


def _unsorted(model: Model) -> None:
    nodes = list(model.graph.nodes)
    model.graph.nodes.reorder(nodes[::-1])


def _undefined(model: Model) -> None:
    model.graph.node("neg").replace_input(0, Value("nowhere"))


def _read_inside(model: Model) -> None:
    inner = _branch(model, "then").nodes[0].output
    model.graph.add("Relu", [inner], ["late"])


def _read_other_branch(model: Model) -> None:
    _branch(model, "else").nodes[0].replace_input(0, _branch(model, "then").nodes[0].output)


def _read_own_output(model: Model) -> None:
    _branch(model, "then").nodes[0].replace_input(0, model.graph.node("if").output)


def _return_nothing(model: Model) -> None:
    model.graph.outputs[0] = Value("nowhere")


def _name_twice(model: Model) -> None:
    model.graph.node("neg").output.name = "x"


def _made_input(model: Model) -> None:
    model.graph.inputs.append(model.graph.node("neg").output)


def _listed_input(model: Model) -> None:
    model.graph.inputs.append(model.graph.inputs[0])


def _empty_constant(model: Model) -> None:
    model.graph.initializers[0].tensor = None


def _function_body(model: Model) -> None:
    model.functions[0].graph.nodes[0].output.producer = None


def _function_captures(model: Model) -> None:
    model.functions[0].graph.nodes[0].replace_input(0, model.graph.inputs[0])


BREAKS: tuple[tuple[Callable[[Model], None], str], ...] = (
    (_forget_use, "input 0 of node 'neg' (Neg), 'x', does not know of that use"),
    (_forget_output_use, "output 0 of graph 'g', 'y', does not know of that use"),
    (_invent_use, "'x' lists a use by node 'neg' (Neg) at 5 that is not there"),
    (_invent_use_behind_the_last, "'x' lists a use by node 'neg' (Neg) at 1 that is not there"),
    (_invent_output_use_behind_the_last, "'x' lists a use by graph 'g' at 1 that is not there"),
    (_invent_output_use, "'x' lists a use by graph 'g' at 0 that is not there"),
    (_dead_user, "'x' is used by node of 'dead' (Relu), which is in no graph here"),
    (_lose_producer, "output 0 of node 'neg' (Neg) says that nothing makes it"),
    (_swap_producer, "output 0 of node 'neg' (Neg) says that node 'if' (If) makes it"),
    (_make_twice, "node 'neg' (Neg) makes a value twice"),
    (_leave_graph, "node 'neg' (Neg) lies in graph 'g' but does not say so"),
    (_other_graph, "node 'neg' (Neg) lies in graph 'g' but does not say so"),
    (_break_links, "the nodes of graph 'g' are linked in two different orders"),
    (_wrong_length, "the nodes of graph 'g' are linked in two different orders"),
    (_disown, "graph 'yes' does not name node 'if' (If) as its owner"),
    (_own_root, "graph 'g' is a root but has an owner"),
    (_unsorted, "input 0 of node 'inner' (Add), 'a', is not defined before it is used"),
    (_undefined, "input 0 of node 'neg' (Neg), 'nowhere', is not defined before it is used"),
    (_read_inside, "input 0 of node of 'late' (Relu), 't', is not defined before it is used"),
    (_read_other_branch, "input 0 of node 'other' (own.f), 't', is not defined before it is used"),
    (_read_own_output, "input 0 of node 'inner' (Add), 'y', is not defined before it is used"),
    (_return_nothing, "output 0 of graph 'g', 'nowhere', is defined nowhere it can be seen"),
    (_name_twice, "two values of graph 'g' are called 'x'"),
    (_made_input, "input 'a' of graph 'g' is made by a node too"),
    (_listed_input, "graph 'g' lists an input twice"),
    (_empty_constant, "initializer 'w' of graph 'g' has no tensor"),
    (_function_body, "output 0 of node 'body' (Abs) says that nothing makes it"),
    (_function_captures, "input 0 of node 'body' (Abs), 'x', is not defined before it is used"),
)


@pytest.mark.parametrize(
    ("damage", "fault"), BREAKS, ids=lambda item: getattr(item, "__name__", "")
)
def test_disagreement_is_found(damage: Callable[[Model], None], fault: str) -> None:
    model = _model()
    damage(model)
    assert fault in find_faults(model)
    with pytest.raises(GraphError, match="disagree"):
        verify(model)


def test_long_lists_are_cut() -> None:
    graph = Graph("g")
    for number in range(30):
        graph.add("Neg", [Value("nowhere")], [f"v{number}"])
    with pytest.raises(GraphError, match="and 20 more"):
        verify(graph)


def test_training_graphs_see_the_main_graph() -> None:
    model = _model()
    step = Graph("step")
    step.outputs.append(step.add("Neg", [model.graph.initializers[0]], ["new"]).output)
    start = Graph("start")
    start.outputs.append(start.add_initializer(Tensor(np.zeros(2, np.float32)), "zero"))
    model.training.append(TrainingInfo(start, step))
    verify(model)
    start.add("Neg", [model.graph.initializers[0]], ["other"])
    assert any("'w', is not defined" in fault for fault in find_faults(model))


def test_deep_graphs_are_walked_without_recursion() -> None:
    graph = Graph("deepest")
    for depth in range(2000):
        outer = Graph(f"g{depth}")
        node = Node("Foo", [], ["o"])
        node.set_attribute("body", graph)
        outer.nodes.append(node)
        graph = outer
    verify(Model(graph, Opsets({"": 21})))
    verify(Function("own", "f").graph)
