"""Models of any size in one respect each: deep, long or wide."""

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import (
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    helper,
    numpy_helper,
)

OPSET = 18


def _float(name: str, *shape: int | str) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def _model(
    nodes: list[NodeProto], outputs: list[str], *, inputs: list[ValueInfoProto] | None = None,
    **more: Any,
) -> ModelProto:  # fmt: skip
    functions = more.pop("functions", [])
    inputs = [_float("x", "n", 4)] if inputs is None else inputs
    results = [_float(name, "n", 4) for name in outputs]
    graph = helper.make_graph(nodes, "g", inputs, results, **more)
    imports = [helper.make_opsetid("", OPSET), helper.make_opsetid("local", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9, functions=functions)


def _function(name: str, nodes: list[NodeProto]) -> Any:
    imports = [helper.make_opsetid("", OPSET), helper.make_opsetid("local", 1)]
    return helper.make_function("local", name, ["x"], ["y"], nodes, imports)


def _call(name: str, source: str, target: str) -> NodeProto:
    return helper.make_node(name, [source], [target], domain="local")


def doubled_functions(depth: int) -> ModelProto:
    """Each function calls the next one twice: 2**depth nodes when all calls are followed."""
    functions = [_function("f0", [helper.make_node("Neg", ["x"], ["y"])])]
    for level in range(1, depth + 1):
        callee = f"f{level - 1}"
        functions.append(_function(f"f{level}", [_call(callee, "x", "t"), _call(callee, "t", "y")]))
    return _model([_call(f"f{depth}", "x", "y")], ["y"], functions=functions)


def chained_functions(count: int) -> ModelProto:
    """Each function calls the next one once, beside a node of its own."""
    functions = [_function("f0", [helper.make_node("Neg", ["x"], ["y"])])]
    for level in range(1, count):
        nodes = [helper.make_node("Abs", ["x"], ["t"]), _call(f"f{level - 1}", "t", "y")]
        functions.append(_function(f"f{level}", nodes))
    return _model([_call(f"f{count - 1}", "x", "y")], ["y"], functions=functions)


def many_functions(count: int) -> ModelProto:
    """As many functions, each called once by the graph."""
    functions = [
        _function(f"f{item}", [helper.make_node("Abs", ["x"], ["t"]),
                               helper.make_node("Neg", ["t"], ["y"])])
        for item in range(count)
    ]  # fmt: skip
    names = ["x", *(f"v{item}" for item in range(count - 1)), "y"]
    calls = [_call(f"f{item}", names[item], names[item + 1]) for item in range(count)]
    return _model(calls, ["y"], functions=functions)


def called_often(count: int) -> ModelProto:
    """One function with two nodes, called many times."""
    body = [helper.make_node("Abs", ["x"], ["t"]), helper.make_node("Neg", ["t"], ["y"])]
    names = ["x", *(f"v{item}" for item in range(count - 1)), "y"]
    calls = [_call("f", names[item], names[item + 1]) for item in range(count)]
    return _model(calls, ["y"], functions=[_function("f", body)])


def nested_ifs(depth: int) -> ModelProto:
    """If in If in If; protobuf's limit for nested messages lets about 30 through."""
    graph = GraphProto(name="inner0")
    graph.node.append(helper.make_node("Neg", ["x"], ["y0"]))
    graph.output.append(_float("y0", "n", 4))
    for level in range(1, depth + 1):
        outer = GraphProto(name=f"inner{level}")
        other = GraphProto(name=f"other{level}")
        other.node.append(helper.make_node("Abs", ["x"], [f"z{level}"]))
        other.output.append(_float(f"z{level}", "n", 4))
        node = helper.make_node("If", ["c"], [f"y{level}"])
        for name, branch in (("then_branch", graph), ("else_branch", other)):
            node.attribute.add(name=name, type=5).g.CopyFrom(branch)
        outer.node.append(node)
        outer.output.append(_float(f"y{level}", "n", 4))
        graph = outer
    flag = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    return _model(list(graph.node), [f"y{depth}"], inputs=[_float("x", "n", 4), flag])


def chain(count: int) -> ModelProto:
    """Nodes in a row."""
    kinds = ("Neg", "Abs", "Relu", "Sigmoid")
    names = ["x", *(f"v{item}" for item in range(count - 1)), "y"]
    nodes = [
        helper.make_node(kinds[item % 4], [names[item]], [names[item + 1]], f"n{item}")
        for item in range(count)
    ]
    return _model(nodes, ["y"])


def many_inputs_of_a_node(count: int) -> ModelProto:
    """One node that reads as many values."""
    nodes = [helper.make_node("Neg", ["x"], [f"v{item}"]) for item in range(count)]
    nodes.append(helper.make_node("Concat", [f"v{item}" for item in range(count)], ["y"], axis=0))
    return _model(nodes, ["y"])


def repeated_input(count: int) -> ModelProto:
    """One node that reads one value as many times."""
    return _model([helper.make_node("Sum", ["x"] * count, ["y"])], ["y"])


def many_outputs_of_a_node(count: int) -> ModelProto:
    """One node that makes as many values, of which one is read."""
    split = helper.make_node(
        "Split", ["x"], [f"v{item}" for item in range(count)], axis=0, num_outputs=count
    )
    nodes = [split, helper.make_node("Neg", ["v0"], ["y"])]
    model = _model(nodes, ["y"], inputs=[_float("x", count, 4)])
    del model.graph.output[0].type.tensor_type.shape.dim[:]
    model.graph.output[0].type.tensor_type.ClearField("shape")
    return model


def one_value_read_often(count: int) -> ModelProto:
    """A value with as many readers, whose results are added."""
    nodes = [helper.make_node("Neg", ["x"], ["v0"])]
    for item in range(count):
        target = f"v{item + 1}" if item < count - 1 else "y"
        nodes.append(helper.make_node("Add", [f"v{item}", "x"], [target]))
    return _model(nodes, ["y"])


def many_inputs(count: int) -> ModelProto:
    """As many inputs of the graph."""
    names = [f"x{item}" for item in range(count)]
    inputs = [_float(name, "n", 4) for name in names]
    return _model([helper.make_node("Sum", names, ["y"])], ["y"], inputs=inputs)


def many_outputs(count: int) -> ModelProto:
    """As many outputs of the graph."""
    names = [f"y{item}" for item in range(count)]
    return _model([helper.make_node("Neg", ["x"], [name]) for name in names], names)


def many_initializers(count: int) -> ModelProto:
    """As many constants, each added to what came before."""
    constants = [
        numpy_helper.from_array(np.full(4, item, np.float32), f"w{item}") for item in range(count)
    ]
    names = ["x", *(f"v{item}" for item in range(count - 1)), "y"]
    nodes = [
        helper.make_node("Add", [names[item], f"w{item}"], [names[item + 1]])
        for item in range(count)
    ]
    return _model(nodes, ["y"], initializer=constants)


def unused_initializers(count: int) -> ModelProto:
    """As many constants that nothing reads."""
    constants = [
        numpy_helper.from_array(np.full(4, item, np.float32), f"w{item}") for item in range(count)
    ]
    return _model([helper.make_node("Neg", ["x"], ["y"])], ["y"], initializer=constants)


def constant_nodes(count: int) -> ModelProto:
    """As many Constant nodes."""
    names = ["x", *(f"v{item}" for item in range(count - 1)), "y"]
    nodes = []
    for item in range(count):
        nodes.append(helper.make_node("Constant", [], [f"c{item}"], value_float=float(item)))
        nodes.append(helper.make_node("Add", [names[item], f"c{item}"], [names[item + 1]]))
    return _model(nodes, ["y"])


def long_expressions(count: int) -> ModelProto:
    """As many declared values, each with a long expression for a size."""
    names = ["x", *(f"v{item}" for item in range(count - 1)), "y"]
    nodes = [helper.make_node("Neg", [names[item]], [names[item + 1]]) for item in range(count)]
    size = "+".join(f"{item}*s{item}" for item in range(2, 20))
    infos = [_float(f"v{item}", f"{size}+k{item}", 4) for item in range(count - 1)]
    return _model(nodes, ["y"], value_info=infos)


def growing_sizes(count: int) -> ModelProto:
    """Sizes that become longer with each node."""
    inputs = [_float(f"x{item}", f"n{item}", 4) for item in range(count)]
    nodes = []
    previous = "x0"
    for item in range(1, count):
        target = f"v{item}" if item < count - 1 else "y"
        nodes.append(helper.make_node("Concat", [previous, f"x{item}"], [target], axis=0))
        previous = target
    return _model(nodes, ["y"], inputs=inputs)


def shape_arithmetic(count: int) -> ModelProto:
    """A size that is computed by as many nodes and then given to a Reshape."""
    constants = [numpy_helper.from_array(np.array([1], np.int64), "one")]
    nodes = [helper.make_node("Shape", ["x"], ["s0"], end=1)]
    for item in range(count):
        kind = "Mul" if item % 2 else "Add"
        nodes.append(helper.make_node(kind, [f"s{item}", "one"], [f"s{item + 1}"]))
    nodes.append(helper.make_node("ConstantOfShape", [f"s{count}"], ["y"]))
    return _model(nodes, ["y"], initializer=constants)


def reversed_chain(count: int) -> ModelProto:
    """Nodes in a row, written last first."""
    model = chain(count)
    nodes = list(model.graph.node)[::-1]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model


def many_ifs(count: int) -> ModelProto:
    """As many Ifs in a row."""
    names = ["x", *(f"v{item}" for item in range(count - 1)), "y"]
    nodes = []
    for item in range(count):
        node = helper.make_node("If", ["c"], [names[item + 1]])
        for name, kind in (("then_branch", "Neg"), ("else_branch", "Abs")):
            branch = helper.make_graph(
                [helper.make_node(kind, [names[item]], [f"{name}{item}"])], name, [],
                [_float(f"{name}{item}", "n", 4)],
            )  # fmt: skip
            node.attribute.add(name=name, type=5).g.CopyFrom(branch)
        nodes.append(node)
    flag = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    return _model(nodes, ["y"], inputs=[_float("x", "n", 4), flag])


def captured_often(count: int) -> ModelProto:
    """Subgraphs that read all values made before them."""
    nodes = [helper.make_node("Neg", ["x"], [f"v{item}"]) for item in range(count)]
    node = helper.make_node("If", ["c"], ["y"])
    for name in ("then_branch", "else_branch"):
        total = helper.make_node("Sum", [f"v{item}" for item in range(count)], [f"{name}_y"])
        branch = helper.make_graph([total], name, [], [_float(f"{name}_y", "n", 4)])
        node.attribute.add(name=name, type=5).g.CopyFrom(branch)
    flag = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    return _model([*nodes, node], ["y"], inputs=[_float("x", "n", 4), flag])


def dead_nodes(count: int) -> ModelProto:
    """A row of nodes whose result nobody reads."""
    model = chain(count)
    del model.graph.output[:]
    model.graph.node.append(helper.make_node("Neg", ["x"], ["z"]))
    model.graph.output.append(_float("z", "n", 4))
    return model


def same_name(count: int) -> ModelProto:
    """Nodes that all have the same name."""
    model = chain(count)
    for node in model.graph.node:
        node.name = "node"
    return model


def many_imports(count: int) -> ModelProto:
    """As many operator sets."""
    model = chain(4)
    for item in range(count):
        model.opset_import.add(domain=f"d{item}", version=1)
    return model


def much_metadata(count: int) -> ModelProto:
    """As many entries of metadata."""
    model = chain(4)
    for item in range(count):
        model.metadata_props.add(key=f"k{item}", value="v")
    return model


def many_attributes(count: int) -> ModelProto:
    """A node of an unknown operator with as many attributes."""
    model = chain(4)
    node = model.graph.node.add(op_type="F", domain="local", input=["y"], output=["z"])
    for item in range(count):
        node.attribute.append(helper.make_attribute(f"a{item}", item))
    return model


Maker = Callable[[int], ModelProto]
