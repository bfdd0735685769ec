"""Functions that call functions, and bodies of If, Loop and Scan inside one another.

Bodies use values of the graphs around them, constants, sequences and optionals; some names are
used again inside. All tensors are vectors of one length, so that most models can run.
"""

import random
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.fuzz.trial import Feeds, Trial
from tests.fuzz.values import floats, numbers

RUNS = 6
SHARE = 10
DEEPEST = 3
DOMAIN = "local"
FLOAT = TensorProto.FLOAT
POINTWISE = ("Add", "Mul", "Sub", "Max", "Neg", "Relu", "Identity", "Tanh", "Abs", "Min")


class Writer:
    """Writes nodes of one graph; `scope` are the names that it may use."""

    def __init__(self, rng: random.Random, depth: int, scope: list[str], maker: "Program") -> None:
        self.rng, self.depth, self.program = rng, depth, maker
        self.scope = list(scope)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def name(self) -> str:
        """A new name, or now and then one that an outer graph has."""
        if self.depth and self.scope and self.rng.random() < 0.03:
            return self.rng.choice(self.scope)
        return self.program.name()

    def add(self, kind: str, inputs: list[str], count: int = 1, **given: Any) -> list[str]:
        """A node and its outputs' names."""
        names = [self.name() for _ in range(count)]
        self.nodes.append(helper.make_node(kind, inputs, names, **given))
        return names

    def held(self, array: Any) -> str:
        """A constant: an initializer or a node."""
        name = self.program.name()
        if self.rng.random() < 0.5:
            self.constants.append(numpy_helper.from_array(array, name))
        else:
            value = numpy_helper.from_array(array)
            self.nodes.append(helper.make_node("Constant", [], [name], value=value))
        return name

    def operand(self) -> str:
        """A vector in scope."""
        return self.rng.choice(self.scope[-5:] if self.rng.random() < 0.7 else self.scope)

    def flag(self) -> str:
        """A condition: fed, constant, or computed."""
        way = self.rng.random()
        if way < 0.4 and self.program.inside is None:
            return "flag"
        if way < 0.6:
            return self.held(np.array(self.rng.random() < 0.5))
        total = self.add("ReduceSum", [self.operand()], keepdims=0)[0]
        zero = self.held(np.array(0, np.float32))
        return self.add("Less", [total, zero])[0]

    def step(self) -> None:
        """One more value in scope."""
        ways = [self.pointwise] * 3 + [self.sequence, self.optional]
        if self.depth < DEEPEST:
            ways += [self.branch, self.loop, self.scan]
        if self.program.functions:
            ways += [self.call] * 2
        self.scope.append(self.rng.choice(ways)())

    def pointwise(self) -> str:
        kind = self.rng.choice(POINTWISE)
        count = 2 if kind in ("Add", "Mul", "Sub", "Max", "Min") else 1
        return self.add(kind, [self.operand() for _ in range(count)])[0]

    def sequence(self) -> str:
        """Into a sequence and out of it."""
        items = [self.operand() for _ in range(self.rng.randint(1, 3))]
        held = self.add("SequenceConstruct", items)[0]
        if self.rng.random() < 0.4:
            held = self.add("SequenceInsert", [held, self.operand()])[0]
        where = self.rng.choice((0, -1, 0, 1, 2**63 - 1, -(2**63)))
        place = self.held(np.array(where if self.rng.random() < 0.3 else 0))
        return self.add("SequenceAt", [held, place])[0]

    def optional(self) -> str:
        held = self.add("Optional", [self.operand()])[0]
        return self.add("OptionalGetElement", [held])[0]

    def body(self, name: str, extra: list[str], count: int) -> tuple["Writer", list[str]]:
        """A graph inside: its writer and `count` of its values."""
        inner = Writer(self.rng, self.depth + 1, [*self.scope, *extra], self.program)
        for _ in range(self.rng.randint(1, 2)):
            inner.step()
        found = []
        for _ in range(count):
            found.append(inner.add(self.rng.choice(("Identity", "Neg")), [inner.operand()])[0])
        return inner, found

    def branch(self) -> str:
        graphs = {}
        for name in ("then_branch", "else_branch"):
            inner, found = self.body(name, [], 1)
            graphs[name] = helper.make_graph(
                inner.nodes, name, [], [vector(found[0])], inner.constants
            )
        return self.add("If", [self.flag()], **graphs)[0]

    def loop(self) -> str:
        """A value carried around, and one gathered and summed."""
        names = [self.name() for _ in range(3)]
        inner, found = self.body("body", [names[2]], 2)
        go = inner.add("Identity", [names[1]])[0]
        inputs = [whole(names[0], TensorProto.INT64), whole(names[1], TensorProto.BOOL),
                  vector(names[2])]  # fmt: skip
        outputs = [whole(go, TensorProto.BOOL), vector(found[0]), vector(found[1])]
        graph = helper.make_graph(inner.nodes, "body", inputs, outputs, inner.constants)
        times = self.rng.choice((0, 1, 2, 3, -1, 2**63 - 1, -(2**63)))
        condition = self.held(np.array(times <= 3 and self.rng.random() < 0.8))
        trips = self.held(np.array(times)) if self.rng.random() < 0.6 else "trips"
        if self.program.inside is not None and trips == "trips":
            trips = self.held(np.array(2))
        last, each = self.add("Loop", [trips, condition, self.operand()], 2, body=graph)
        if self.rng.random() < 0.5:
            return last
        axes = self.held(np.array([0]))
        total = self.add("ReduceSum", [each, axes], keepdims=0)[0]
        return self.add("Add", [total, last])[0]

    def scan(self) -> str:
        """Along the first axis of stacked vectors."""
        axes = self.held(np.array([0]))
        rows = [self.add("Unsqueeze", [self.operand(), axes])[0] for _ in range(2)]
        stacked = self.add("Concat", rows, axis=0)[0]
        names = [self.name() for _ in range(2)]
        inner, found = self.body("body", names, 2)
        graph = helper.make_graph(
            inner.nodes, "body", [vector(item) for item in names],
            [vector(item) for item in found], inner.constants,
        )  # fmt: skip
        given = {"scan_input_directions": [self.rng.choice((0, 1))]}
        last, _ = self.add(
            "Scan", [self.operand(), stacked], 2, body=graph, num_scan_inputs=1, **given
        )
        return last

    def call(self) -> str:
        """Call a function."""
        function = self.rng.choice(self.program.functions)
        operands = [self.operand() for _ in function.input]
        given = {item: self.rng.choice((0.5, -1.0)) for item in function.attribute}
        names = [self.name() for _ in function.output]
        node = helper.make_node(function.name, operands, names, domain=DOMAIN, **given)
        self.nodes.append(node)
        return self.rng.choice(names)


class Program:
    """A model in the making: its functions and its names."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.functions: list[Any] = []
        self.inside: str | None = None
        self.count = 0

    def name(self) -> str:
        """A name that nothing has yet; functions repeat the names of others."""
        self.count += 1
        return f"v{self.count}"

    def function(self, number: int) -> None:
        """A function, which may call those before it; names in it begin anew."""
        self.inside = f"f{number}"
        before, self.count = self.count, self.rng.choice((0, self.count))
        inputs = [f"a{n}" for n in range(self.rng.randint(1, 2))]
        writer = Writer(self.rng, 1, inputs, self)
        for _ in range(self.rng.randint(1, 3)):
            writer.step()
        attributes = []
        if self.rng.random() < 0.3:
            attributes = ["slope"]
            node = helper.make_node("LeakyRelu", [writer.operand()], [self.name()])
            node.attribute.add(name="alpha", ref_attr_name="slope", type=1)
            writer.nodes.append(node)
            writer.scope.append(node.output[0])
        nodes = [
            helper.make_node("Constant", [], [item.name], value=item) for item in writer.constants
        ]
        outputs = [writer.scope[-1]]
        kept = prune([*nodes, *writer.nodes], set(outputs))
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid(DOMAIN, 1)]
        self.functions.append(
            helper.make_function(DOMAIN, self.inside, inputs, outputs, kept, opsets, attributes)
        )
        self.inside, self.count = None, max(before, self.count)


def prune(nodes: list[Any], wanted: set[str]) -> list[Any]:
    """The nodes that results need, in bodies too: what nobody needs may be left out by one
    provider and refused by the other."""
    kept = []
    for node in reversed(nodes):
        if not wanted & set(node.output):
            continue
        for item in node.attribute:
            if item.HasField("g"):
                inner = prune(list(item.g.node), {value.name for value in item.g.output})
                del item.g.node[:]
                item.g.node.extend(inner)
        kept.append(node)
        wanted = wanted | used(node)
    return kept[::-1]


def used(node: Any) -> set[str]:
    """Names that a node uses, in its bodies too."""
    found = set(node.input)
    for item in node.attribute:
        if item.HasField("g"):
            found |= {value.name for value in item.g.output}
            for inner in item.g.node:
                found |= used(inner)
    return found


def vector(name: str) -> Any:
    """A declared vector."""
    return helper.make_tensor_value_info(name, FLOAT, ["n"])


def whole(name: str, kind: int) -> Any:
    """A declared scalar."""
    return helper.make_tensor_value_info(name, kind, [])


def make(seed: int) -> Trial:
    """A model with functions and bodies."""
    rng = random.Random(seed)
    program = Program(rng)
    for number in range(rng.choice((0, 0, 1, 2, 4))):
        program.function(number)
    writer = Writer(rng, 0, ["x", "y"], program)
    for _ in range(rng.randint(1, 4)):
        writer.step()
    taken = {name for node in writer.nodes for name in node.input}
    made = [name for name in writer.scope[2:] if name not in taken] or [writer.scope[-1]]
    outputs = [vector(name) for name in dict.fromkeys(made)]
    inputs = [vector("x"), vector("y"), whole("flag", TensorProto.BOOL),
              whole("trips", TensorProto.INT64)]  # fmt: skip
    nodes = prune(writer.nodes, {value.name for value in outputs})
    graph = helper.make_graph(nodes, "g", inputs, outputs, writer.constants)
    model = helper.make_model(
        graph, functions=program.functions, ir_version=10,
        opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid(DOMAIN, 1)],
    )  # fmt: skip
    kinds = sorted({node.op_type for node in every_node(model)} - set(POINTWISE))
    what = f"nested {'+'.join(kinds)[:80]}"
    return Trial(bytes(model.SerializeToString()), what, lambda run: _feeds(seed, run))


def every_node(model: onnx.ModelProto) -> list[Any]:
    """The nodes of all graphs and functions."""
    graphs: list[Any] = [model.graph, *model.functions]
    found: list[Any] = []
    for graph in graphs:
        for node in graph.node:
            found.append(node)
            graphs += [item.g for item in node.attribute if item.HasField("g")]
    return found


def _feeds(seed: int, run: int) -> Feeds:
    rng = random.Random(seed << 8 | run)
    size = rng.choice((0, 1, 2, 3, 5))
    trips = rng.choice((0, 1, 2, 3)) if rng.random() < 0.8 else -int(numbers(rng, ())) % 5
    return {
        "x": floats(rng, (size,), wild=0.1),
        "y": floats(rng, (size,), wild=0.1),
        "flag": np.array(rng.random() < 0.5),
        "trips": np.array(trips),
    }
