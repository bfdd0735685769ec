"""Models made for tests of the viewer."""

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.graph import Function, Graph, Model, Opsets, Tensor, TensorType

HOSTILE = (
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "quotes ' \" ` ${alert(3)} \\u003c",
    "<!--<script>",
    "&lt;b&gt;",
    "名前 ünïcode \u202egnirts\u2028line\x00zero",
    "broken \udcff half",
    "long " * 4000,
    "__proto__",
    "constructor",
)


def network(count: int) -> Model:
    """A network of `count` nodes: convolutions with shortcuts, and a value read everywhere."""
    graph = Graph("network")
    value = graph.add_input("image", TensorType(DataType.FLOAT, (1, 8, 16, 16)))
    scale = graph.add_input("scale", TensorType(DataType.FLOAT, ()))
    weight = np.random.default_rng(0).standard_normal((8, 8, 1, 1)).astype(np.float32)
    shortcut = value
    for index in range(count):
        name, step = f"block{index // 5}/node{index}", index % 5
        if step == 0:
            held = graph.add_initializer(Tensor(weight + index, f"weight{index}"))
            value = graph.add("Conv", [value, held], [f"v{index}"], name=name).output
        elif step == 1:
            value = graph.add("Relu", [value], [f"v{index}"], name=name).output
        elif step == 2:
            value = graph.add("Mul", [value, scale], [f"v{index}"], name=name).output
        elif step == 3:
            value = graph.add("Add", [value, shortcut], [f"v{index}"], name=name).output
        else:
            value = shortcut = graph.add("Sigmoid", [value], [f"v{index}"], name=name).output
    graph.outputs.append(value)
    return Model(graph, Opsets({"": 21}), 10)


def hostile() -> Model:
    """A model in which every text is an attack, or at least odd."""
    graph = Graph(HOSTILE[0])
    graph.doc_string = HOSTILE[1]
    value = graph.add_input(HOSTILE[0], TensorType(DataType.FLOAT, (HOSTILE[0], HOSTILE[2])))
    value.doc_string = HOSTILE[1]
    for index, text in enumerate(HOSTILE):
        held = graph.add_initializer(Tensor(np.arange(3, dtype=np.float32), f"{text}#w{index}"))
        node = graph.add(text, [value, held], [f"{text}#{index}"], {text: text}, domain=text,
                         name=text)  # fmt: skip
        node.doc_string, node.metadata = text, {text: text}
        value = node.output
    words = graph.add_initializer(Tensor(np.array(HOSTILE, object), "words"))
    value = graph.add("StringConcat", [words, words], ["joined"]).output
    graph.outputs.append(value)
    model = Model(graph, Opsets({"": 21, HOSTILE[0]: 1}), 10)
    model.producer_name = model.doc_string = HOSTILE[0]
    model.metadata = {text: text for text in HOSTILE}
    return model


def nested() -> Model:
    """An If inside an If, and a call of a function."""
    graph = Graph("main")
    x = graph.add_input("x", TensorType(DataType.FLOAT, (2,)))
    flag = graph.add_input("flag", TensorType(DataType.BOOL, ()))

    def branch(name: str, operator: str) -> Graph:
        body = Graph(name)
        body.outputs.append(body.add(operator, [x], [f"{name}_y"]).output)
        return body

    outer = Graph("outer_then")
    inner = {"then_branch": branch("inner_then", "Exp"), "else_branch": branch("inner_else", "Log")}
    outer.outputs.append(outer.add("If", [flag], ["inner_y"], inner, name="inner_if").output)
    branches = {"then_branch": outer, "else_branch": branch("outer_else", "Neg")}
    y = graph.add("If", [flag], ["y"], branches, name="outer_if").output
    z = graph.add("Twice", [y], ["z"], domain="local", name="call").output
    graph.outputs.append(z)
    body = Graph("Twice")
    argument = body.add_input("a")
    body.outputs.append(body.add("Add", [argument, argument], ["b"]).output)
    model = Model(graph, Opsets({"": 21, "local": 1}), 10)
    model.functions.append(Function("local", "Twice", body, Opsets({"": 21})))
    return model
