"""Cases about names: defined once, before they are used, and not hidden."""

from typing import Any

from tests.checker.broken_models import BRANCHES, CALL, Cases, branch, node, tensor_type

CASES = Cases()
add, case = CASES.add, CASES.case
THEN = "graph 'g' > node 'if' (If) > attribute 'then_branch' > graph 'yes'"


def _read(m: Any, name: str, position: int, value: str) -> None:
    node(m, name).input[position] = value


def _rename(m: Any, name: str, value: str) -> None:
    node(m, name).output[0] = value


add(
    "undefined-value",
    "graph 'g' > node 'add' (Add) > input 1",
    lambda m, o: _read(m, "add", 1, "nowhere"),
    "main",
)
add(
    "undefined-value",
    f"{THEN} > node 'inner' (Add) > input 0",
    lambda m, o: _read(m, "inner", 0, "nowhere"),
    "branch",
    BRANCHES,
)
add(
    "undefined-value",
    "model > function 'own.f' > node 'body' (Add) > input 1",
    lambda m, o: _read(m, "body", 1, "x"),
    "function",
    CALL,
)
add(
    "undefined-value",
    "graph 'g' > node 'if' (If) > input 0",
    lambda m, o: _read(m, "if", 0, "t"),
    "inner value outside",
    BRANCHES,
)
add(
    "undefined-value",
    f"{THEN} > node 'inner' (Add) > input 1",
    lambda m, o: _read(m, "inner", 1, "e"),
    "value of another branch",
    BRANCHES,
)


@case("unsorted", "graph 'g' > node 'relu' (Relu) > input 0")
def _swapped(m: Any, o: Any) -> None:
    first, second = o.NodeProto(), o.NodeProto()
    first.CopyFrom(node(m, "add"))
    second.CopyFrom(node(m, "relu"))
    del m.graph.node[:]
    m.graph.node.extend([second, first])


@case("unsorted", f"{THEN} > node 'inner' (Add) > input 0", BRANCHES)
def _captures_later(m: Any, o: Any) -> None:
    m.graph.node.add(op_type="Abs", name="late", input=["x"], output=["later"])
    _read(m, "inner", 0, "later")


@case("unsorted", "model > function 'own.f' > node 'body' (Add) > input 0", CALL)
def _function_unsorted(m: Any, o: Any) -> None:
    _read(m, "body", 0, "d")
    _read(m, "leaky", 0, "a")


add("cycle", "graph 'g'", lambda m, o: _read(m, "add", 0, "y"), "two nodes")
add("cycle", "graph 'g'", lambda m, o: _read(m, "relu", 0, "y"), "one node")
add("cycle", "graph 'g'", lambda m, o: _read(m, "neg", 0, "y"), "through a branch", BRANCHES)
add("cycle", "graph 'g'", lambda m, o: _read(m, "inner", 0, "y"), "in a branch", BRANCHES)
add("cycle", "model > function 'own.f'", lambda m, o: _read(m, "body", 0, "d"), "function", CALL)

add(
    "duplicate-definition",
    "graph 'g' > node 'relu' (Relu) > output 0",
    lambda m, o: _rename(m, "relu", "mid"),
    "two nodes",
)
add(
    "duplicate-definition",
    "graph 'g' > node 'add' (Add) > output 0",
    lambda m, o: _rename(m, "add", "x"),
    "input",
)
add(
    "duplicate-definition",
    "graph 'g' > node 'add' (Add) > output 0",
    lambda m, o: _rename(m, "add", "w"),
    "initializer",
)
add(
    "duplicate-definition",
    "graph 'g' > node 'add' (Add) > output 1",
    lambda m, o: node(m, "add").output.append("mid"),
    "one node",
)
add(
    "duplicate-definition",
    "model > function 'own.f' > node 'leaky' (LeakyRelu) > output 0",
    lambda m, o: _rename(m, "leaky", "a"),
    "function input",
    CALL,
)
for name, hidden in (("node", "a"), ("input", "x"), ("initializer", "w")):
    add(
        "shadowing",
        f"{THEN} > node 'inner' (Add) > output 0",
        lambda m, o, hidden=hidden: _rename(m, "inner", hidden),
        name,
        BRANCHES,
    )
add(
    "shadowing-input",
    f"{THEN} > input 'a'",
    lambda m, o: branch(m, "then").input.add(name="a"),
    "input",
    BRANCHES,
)


@case("shadowing-input", f"{THEN} > initializer 'w'", BRANCHES)
def _hiding_initializer(m: Any, o: Any) -> None:
    branch(m, "then").initializer.add().CopyFrom(m.graph.initializer[0])


add(
    "output-undefined",
    "graph 'g' > output 'nowhere'",
    lambda m, o: setattr(m.graph.output[0], "name", "nowhere"),
)
add(
    "output-undefined",
    f"{THEN} > output 'nowhere'",
    lambda m, o: setattr(branch(m, "then").output[0], "name", "nowhere"),
    "branch",
    BRANCHES,
)
add(
    "output-from-outer",
    f"{THEN} > output 'a'",
    lambda m, o: setattr(branch(m, "then").output[0], "name", "a"),
    "node",
    BRANCHES,
)
add(
    "output-from-outer",
    f"{THEN} > output 'x'",
    lambda m, o: setattr(branch(m, "then").output[0], "name", "x"),
    "input",
    BRANCHES,
)
add(
    "input-duplicate",
    f"{THEN} > input 'n'",
    lambda m, o: branch(m, "then").input.extend([o.ValueInfoProto(name="n")] * 2),
    "branch",
    BRANCHES,
)
add(
    "input-name-empty",
    f"{THEN} > input 0",
    lambda m, o: branch(m, "then").input.add(type=tensor_type(o, 1, ())),
    "branch",
    BRANCHES,
)
add(
    "node-empty",
    "graph 'g' > node 'nothing' (Relu)",
    lambda m, o: m.graph.node.add(op_type="Relu", name="nothing"),
)
add(
    "operator-empty",
    "graph 'g' > node 'add' ()",
    lambda m, o: node(m, "add").ClearField("op_type"),
)
