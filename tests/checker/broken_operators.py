"""Cases about nodes: operators, counts, types, attributes."""

from typing import Any

from tests.checker.broken_models import BRANCHES, CALL, Cases, branch, node, tensor_type

CASES = Cases()
add, case = CASES.add, CASES.case
NODE = "graph 'g' > node 'n'"


def _node(m: Any, op_type: str, inputs: str, outputs: str, **more: Any) -> Any:
    """Append the node 'n'; `-` stands for an empty name."""
    names = [["" if name == "-" else name for name in side.split()] for side in (inputs, outputs)]
    return m.graph.node.add(op_type=op_type, name="n", input=names[0], output=names[1], **more)


def _opset(m: Any, version: int) -> None:
    m.opset_import[0].version = version


for domain in ("own", "com.microsoft", "ai.onnx.preview", "ai.onnx.training"):
    add(
        "domain-not-imported",
        f"{NODE} ({domain}.Foo)",
        lambda m, o, domain=domain: _node(m, "Foo", "x", "q", domain=domain),
        domain,
    )
add(
    "domain-not-imported",
    "graph 'g' > node 'if' (If) > attribute 'else_branch' > graph 'no' > node 'other' (own.Abs)",
    lambda m, o: setattr(node(m, "other"), "domain", "own"),
    "branch",
    BRANCHES,
)
add(
    "domain-not-imported",
    "model > function 'own.h' > node 'only' (ai.onnx.ml.Neg)",
    lambda m, o: setattr(node(m, "only"), "domain", "ai.onnx.ml"),
    "function",
    CALL,
)
add(
    "domain-spelling",
    "graph 'g' > node 'add' (ai.onnx.Add)",
    lambda m, o: setattr(node(m, "add"), "domain", "ai.onnx"),
)
for op_type, domain in (("Rellu", ""), ("relu", ""), ("Scaler", ""), ("Relu", "ai.onnx.ml")):
    kind = f"{domain}.{op_type}" if domain else op_type
    add(
        "operator-unknown",
        f"{NODE} ({kind})",
        lambda m, o, op_type=op_type, domain=domain: _node(m, op_type, "x", "q", domain=domain),
        kind,
    )


@case("operator-unknown", f"{NODE} (ai.onnx.training.Foo)")
def _training_operator(m: Any, o: Any) -> None:
    m.opset_import.add(domain="ai.onnx.training", version=1)
    _node(m, "Foo", "x", "q", domain="ai.onnx.training")


for op_type, version in (("Gelu", 19), ("Mish", 17), ("HardSwish", 13), ("Celu", 11), ("Erf", 8)):

    @case("operator-not-yet", f"{NODE} ({op_type})")
    def _not_yet(m: Any, o: Any, op_type: str = op_type, version: int = version) -> None:
        _opset(m, version)
        _node(m, op_type, "x", "q")


for op_type, inputs, version in (("Upsample", "x w", 10), ("Scatter", "x i x", 11)):

    @case("operator-deprecated", f"{NODE} ({op_type})")
    def _deprecated(
        m: Any, o: Any, op_type: str = op_type, inputs: str = inputs, version: int = version
    ) -> None:
        _opset(m, version)
        _node(m, op_type, inputs, "q")


for op_type in ("Affine", "Crop", "ScaledTanh"):
    add(
        "operator-experimental",
        f"{NODE} ({op_type})",
        lambda m, o, op_type=op_type: _node(m, op_type, "x", "q"),
        op_type,
    )
for rule, op_type, inputs, outputs in (
    ("too-few-inputs", "Add", "x", "q"),
    ("too-few-inputs", "Concat", "", "q"),
    ("too-few-inputs", "Conv", "x", "q"),
    ("too-few-inputs", "Relu", "", "q"),
    ("too-few-inputs", "LSTM", "x w", "q"),
    ("too-many-inputs", "Relu", "x x", "q"),
    ("too-many-inputs", "Add", "x x x", "q"),
    ("too-many-inputs", "Clip", "x w w w", "q"),
    ("too-many-inputs", "Constant", "x", "q"),
    ("too-few-outputs", "Relu", "x", ""),
    ("too-few-outputs", "TopK", "x i", "q"),
    ("too-few-outputs", "Split", "x", ""),
    ("too-many-outputs", "Relu", "x", "q r"),
    ("too-many-outputs", "Dropout", "x", "q r s"),
    ("too-many-outputs", "MaxPool", "x", "q r s"),
    ("output-count", "BatchNormalization", "x w w w w", "q r"),
):
    add(
        rule,
        f"{NODE} ({op_type})",
        lambda m, o, t=op_type, i=inputs, u=outputs: _node(m, t, i, u),
        f"{op_type}-{inputs}-{outputs}",
    )
for version, outputs in ((9, "q r"), (7, "q r s"), (13, "q r s t"), (14, "q r")):

    @case("output-count", f"{NODE} (BatchNormalization)")
    def _batch_outputs(m: Any, o: Any, version: int = version, outputs: str = outputs) -> None:
        _opset(m, version)
        _node(m, "BatchNormalization", "x w w w w", outputs)


for op_type, inputs, outputs, rule, position in (
    ("Add", "- x", "q", "input-required-empty", 0),
    ("Add", "x -", "q", "input-required-empty", 1),
    ("Where", "c - x", "q", "input-required-empty", 1),
    ("Loop", "- - x", "-", "output-required-empty", None),
    ("TopK", "x i", "q -", "output-required-empty", 1),
    ("Relu", "x", "-", "output-required-empty", 0),
    ("Dropout", "x", "- r", "output-required-empty", 0),
):
    if position is not None:
        side = "input" if rule.startswith("input") else "output"
        add(
            rule,
            f"{NODE} ({op_type}) > {side} {position}",
            lambda m, o, t=op_type, i=inputs, u=outputs: _node(m, t, i, u),
            f"{op_type}-{position}",
        )

for op_type, inputs, place in (
    ("Relu", "c", "input 0"),
    ("And", "c x", "input 1"),
    ("Gather", "x w", "input 1"),
    ("Where", "x x x", "input 0"),
    ("Reshape", "x w", "input 1"),
    ("Not", "i", "input 0"),
    ("Conv", "i i", "input 0"),
):
    add(
        "type-not-allowed",
        f"{NODE} ({op_type}) > {place}",
        lambda m, o, op_type=op_type, inputs=inputs: _node(m, op_type, inputs, "q"),
        op_type,
    )
for op_type, inputs, place in (
    ("Add", "x i", "input 1"),
    ("MatMul", "i x", "input 1"),
    ("Where", "c x i", "input 2"),
    ("Concat", "x x i", "input 2"),
    ("Max", "x x i", "input 2"),
):
    add(
        "type-inconsistent",
        f"{NODE} ({op_type}) > {place}",
        lambda m, o, op_type=op_type, inputs=inputs: _node(m, op_type, inputs, "q"),
        op_type,
    )


@case("type-inconsistent", f"{NODE} (Relu) > output 0")
def _output_type(m: Any, o: Any) -> None:
    _node(m, "Relu", "x", "q")
    m.graph.value_info.add(name="q", type=tensor_type(o, 11, (2, 3)))


def _attribute(m: Any, name: str = "alpha", **fields: Any) -> Any:
    return _node(m, "LeakyRelu", "x", "q").attribute.add(name=name, **fields)


ALPHA = f"{NODE} (LeakyRelu) > attribute 'alpha'"
add(
    "attribute-name-empty",
    f"{NODE} (LeakyRelu) > attribute ''",
    lambda m, o: _attribute(m, "", type=1, f=1),
)


@case("attribute-duplicate", ALPHA)
def _given_twice(m: Any, o: Any) -> None:
    _attribute(m, type=1, f=1)
    m.graph.node[-1].attribute.add(name="alpha", type=1, f=1)


add("attribute-type-missing", ALPHA, lambda m, o: _attribute(m, f=1))
add(
    "attribute-type-unknown",
    ALPHA,
    lambda m, o: _attribute(m, f=1).MergeFromString(b"\xa0\x01\x63"),
)
for fields in (
    {"type": 2, "i": 1},
    {"type": 3, "s": b"1"},
    {"type": 6, "floats": [1.0]},
    {"type": 0},
):
    add(
        "attribute-type",
        ALPHA,
        lambda m, o, fields=fields: _attribute(m, **fields),
        str(fields["type"]),
    )
for fields in (
    {"type": 1, "i": 1},
    {"type": 1, "s": b"1"},
    {"type": 1, "ints": [1]},
    {"type": 0, "f": 1},
):
    add(
        "attribute-field-mismatch",
        ALPHA,
        lambda m, o, fields=fields: _attribute(m, **fields),
        "-".join(fields),
    )
for fields in ({"f": 1, "i": 1}, {"f": 1, "floats": [1.0]}, {"i": 1, "s": b""}):
    add(
        "attribute-several-values",
        ALPHA,
        lambda m, o, fields=fields: _attribute(m, type=1, **fields),
        "-".join(fields),
    )
for op_type, inputs, attribute, kind in (
    ("ConstantOfShape", "i", "value", 4),
    ("Constant", "", "value", 4),
    ("Constant", "", "sparse_value", 11),
    ("Optional", "", "type", 13),
):
    add(
        "attribute-without-value",
        f"{NODE} ({op_type}) > attribute '{attribute}'",
        lambda m, o, t=op_type, i=inputs, a=attribute, k=kind: _node(m, t, i, "q").attribute.add(
            name=a, type=k
        ),
        f"{op_type}-{attribute}",
    )


@case("attribute-without-value", "graph 'g' > node 'if' (If) > attribute 'then_branch'", BRANCHES)
def _without_branch(m: Any, o: Any) -> None:
    next(a for a in node(m, "if").attribute if a.name == "then_branch").ClearField("g")


@case("attribute-empty", f"{NODE} (own.Foo) > attribute 'value'")
def _custom_empty(m: Any, o: Any) -> None:
    m.opset_import.add(domain="own", version=1)
    _node(m, "Foo", "x", "q", domain="own").attribute.add(name="value", type=4)


for op_type, inputs, attribute in (
    ("Relu", "x", "alpha"),
    ("Add", "x x", "axis"),
    ("Clip", "x", "min"),
):
    add(
        "attribute-unknown",
        f"{NODE} ({op_type}) > attribute '{attribute}'",
        lambda m, o, t=op_type, i=inputs, a=attribute: _node(m, t, i, "q").attribute.add(
            name=a, type=1, f=1
        ),
        op_type,
    )
for op_type, inputs in (("Concat", "x x"), ("Cast", "x"), ("AveragePool", "x"), ("Scan", "x")):
    add(
        "attribute-missing",
        f"{NODE} ({op_type})",
        lambda m, o, op_type=op_type, inputs=inputs: _node(m, op_type, inputs, "q"),
        op_type,
    )
add(
    "attribute-missing",
    "graph 'g' > node 'if' (If)",
    lambda m, o: node(m, "if").attribute.pop(),
    "branch",
    BRANCHES,
)
add(
    "reference-outside-function",
    ALPHA,
    lambda m, o: _attribute(m, type=1, ref_attr_name="outer"),
)
LEAKY = "model > function 'own.f' > node 'leaky' (LeakyRelu) > attribute 'alpha'"
add(
    "reference-with-value",
    LEAKY,
    lambda m, o: setattr(node(m, "leaky").attribute[0], "f", 1.0),
    base=CALL,
)
add(
    "reference-undeclared",
    LEAKY,
    lambda m, o: setattr(node(m, "leaky").attribute[0], "ref_attr_name", "beta"),
    base=CALL,
)


@case("reference-type", LEAKY, CALL)
def _other_type(m: Any, o: Any) -> None:
    m.functions[0].ClearField("attribute")
    m.functions[0].attribute_proto.add(name="alpha", type=2, i=1)


@case(
    "nested-reference-with-value",
    "graph 'g' > node 'if' (If) > attribute 'then_branch' > graph 'yes' > node 'deep' (LeakyRelu)"
    " > attribute 'alpha'",
    BRANCHES,
)
def _nested(m: Any, o: Any) -> None:
    made = branch(m, "then").node.add(op_type="LeakyRelu", name="deep", input=["a"], output=["v"])
    made.attribute.add(name="alpha", type=1, f=1.0, ref_attr_name="outer")
