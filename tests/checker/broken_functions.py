"""Cases about functions, training information, and what each IR version lacks."""

from typing import Any

from tests.checker.broken_models import BRANCHES, CALL, PLAIN, Cases, entry, node, tensor_type

CASES = Cases()
add, case = CASES.add, CASES.case
F, H = "model > function 'own.f'", "model > function 'own.h'"
CALLER = "graph 'g' > node 'call' (own.f)"


def _call(add_: Any = add) -> Any:
    def add_case(rule: str, where: str, mutate: Any, name: str = "") -> None:
        add_(rule, where, mutate, name, CALL)

    return add_case


call = _call()
call(
    "function-name-empty", "model > function 'own.'", lambda m, o: m.functions[1].ClearField("name")
)
call(
    "function-domain-missing",
    "model > function 'h'",
    lambda m, o: m.functions[1].ClearField("domain"),
)
call("function-duplicate", H, lambda m, o: m.functions.add().CopyFrom(m.functions[1]))
call(
    "function-recursive",
    H,
    lambda m, o: m.functions[1].node.add(op_type="h", domain="own", input=["b"], output=["c"]),
    "itself",
)


@case("function-recursive", F, CALL)
def _mutual(m: Any, o: Any) -> None:
    m.functions[1].opset_import.add(domain="own", version=1)
    m.functions[1].node.add(op_type="f", domain="own", input=["b", "b"], output=["c"])
    m.functions[0].node.add(op_type="h", domain="own", input=["s"], output=["c"])


@case("function-recursive", H, CALL)
def _in_a_branch(m: Any, o: Any) -> None:
    body = m.functions[1]
    body.opset_import.add(domain="own", version=1)
    inner = body.node.add(op_type="If", input=["a"], output=["c"])
    for name in ("then_branch", "else_branch"):
        graph = inner.attribute.add(name=name, type=5).g
        graph.name = name
        graph.node.add(op_type="h", domain="own", input=["a"], output=[name])
        graph.output.add(name=name)


@case("function-chain-too-long", "model > function 'own.c299'", CALL)
def _chain(m: Any, o: Any) -> None:
    for number in range(400):
        made = m.functions.add(name=f"c{number}", domain="own", input=["a"], output=["b"])
        made.opset_import.add(domain="own", version=1)
        made.node.add(op_type=f"c{number + 1}", domain="own", input=["a"], output=["b"])


call("function-input-empty", f"{F} > input 2", lambda m, o: m.functions[0].input.append(""))
call("function-input-duplicate", f"{F} > input 2", lambda m, o: m.functions[0].input.append("a"))
call("function-output-empty", f"{F} > output 1", lambda m, o: m.functions[0].output.append(""))
call("function-output-duplicate", F, lambda m, o: m.functions[0].output.append("d"))
call(
    "function-output-undefined",
    f"{F} > output 1",
    lambda m, o: m.functions[0].output.append("nowhere"),
)
call("function-attribute-empty", F, lambda m, o: m.functions[0].attribute.append(""))
call("function-attribute-duplicate", F, lambda m, o: m.functions[0].attribute.append("alpha"))
call(
    "function-attribute-twice",
    F,
    lambda m, o: m.functions[0].attribute_proto.add(name="alpha", type=1, f=1),
    "with and without default",
)
call(
    "function-attribute-twice",
    H,
    lambda m, o: m.functions[1].attribute_proto.extend(
        [o.AttributeProto(name="k", type=1, f=1)] * 2
    ),
    "two defaults",
)
call(
    "function-default-value",
    f"{H} > attribute 'k'",
    lambda m, o: m.functions[1].attribute_proto.add(name="k", type=1, ref_attr_name="other"),
    "reference",
)
call(
    "function-default-value",
    f"{H} > attribute 'k'",
    lambda m, o: m.functions[1].attribute_proto.add(name="k", type=4),
    "absent",
)
call(
    "tensor-no-data",
    f"{H} > attribute 'k'",
    lambda m, o: m.functions[1].attribute_proto.add(
        name="k", type=4, t=o.TensorProto(data_type=1, dims=[2])
    ),
    "default",
)
call(
    "opset-too-new",
    f"{H} > import of 'ai.onnx'",
    lambda m, o: setattr(m.functions[1].opset_import[0], "version", 99),
)
call(
    "opset-import-duplicate",
    H,
    lambda m, o: m.functions[1].opset_import.add(domain="", version=21),
)


@case("function-opset-incompatible", f"{H} > node 'only' (Neg)", CALL)
def _older(m: Any, o: Any) -> None:
    m.functions[1].opset_import[0].version = 12


@case("function-opset-incompatible", f"{H} > node 'new' (Gelu)", CALL)
def _not_there_yet(m: Any, o: Any) -> None:
    m.opset_import[0].version = 19
    m.functions[1].opset_import[0].version = 20
    m.functions[1].node.add(name="new", op_type="Gelu", input=["a"], output=["c"])


@case("function-import-spelling", H, CALL)
def _long_name(m: Any, o: Any) -> None:
    m.functions[1].opset_import[0].domain = "ai.onnx"


call("call-too-many-inputs", CALLER, lambda m, o: node(m, "call").input.append("x"))
call("call-too-many-outputs", CALLER, lambda m, o: node(m, "call").output.append("extra"))
call(
    "call-attribute-unknown",
    f"{CALLER} > attribute 'beta'",
    lambda m, o: node(m, "call").attribute.add(name="beta", type=1, f=1),
)
call("call-attribute-missing", CALLER, lambda m, o: node(m, "call").attribute.pop())


@case("function-standard-domain", "graph 'g' > node 'call' (Own)", CALL)
def _standard_domain(m: Any, o: Any) -> None:
    m.functions[1].domain, m.functions[1].name = "", "Own"
    caller = node(m, "call")
    caller.domain, caller.op_type = "", "Own"
    del caller.attribute[:]
    del caller.input[1:]


def _old(version: int, feature: Any) -> Any:
    def mutate(m: Any, o: Any) -> None:
        m.ir_version = version
        feature(m, o)

    return mutate


def _value_type(kind: str) -> Any:
    def feature(m: Any, o: Any) -> None:
        made = getattr(m.graph.input[1].type, kind)
        if kind == "optional_type":
            made.elem_type.CopyFrom(tensor_type(o, 1, (1,)))
        else:
            made.elem_type = 1
            made.shape.SetInParent()

    return feature


def _train(m: Any, o: Any) -> Any:
    info = m.training_info.add()
    info.initialization.name, info.algorithm.name = "start", "step"
    for graph, source in ((info.initialization, ""), (info.algorithm, "w")):
        name = f"new_{graph.name}"
        if source:
            graph.node.add(op_type="Neg", input=[source], output=[name])
        else:
            graph.node.add(op_type="Constant", output=[name]).attribute.add(
                name="value_floats", type=6, floats=[1, 2, 3]
            )
        graph.output.add(name=name, type=tensor_type(o, 1, (3,)))
    info.initialization_binding.append(entry(o, "w", "new_start"))
    info.update_binding.append(entry(o, "w", "new_step"))
    return info


def _annotate(m: Any, o: Any) -> None:
    m.graph.quantization_annotation.add(tensor_name="mid")


def _sparse(m: Any, o: Any) -> None:
    made = m.graph.sparse_initializer.add(dims=[3])
    made.values.CopyFrom(o.TensorProto(name="q", data_type=1, dims=[1], float_data=[1]))
    made.indices.CopyFrom(o.TensorProto(data_type=7, dims=[1], int64_data=[1]))


def _element(number: int) -> Any:
    return lambda m, o: m.graph.initializer.add(
        name="q", data_type=number, dims=[1], int32_data=[1]
    )


INITIALIZER, INPUT = "graph 'g' > initializer 'q'", "graph 'g' > input 'z'"
for label, version, where, feature, base in (
    ("functions", 7, "model", lambda m, o: None, CALL),
    (
        "defaults",
        8,
        H,
        lambda m, o: m.functions[1].attribute_proto.add(name="k", type=1, f=1),
        CALL,
    ),
    ("overload", 9, f"{H} (o)", lambda m, o: setattr(m.functions[1], "overload", "o"), CALL),
    ("call", 9, CALLER, lambda m, o: setattr(node(m, "call"), "overload", "o"), CALL),
    ("value info", 9, H, lambda m, o: m.functions[1].value_info.add(name="b"), CALL),
    ("graph metadata", 9, "graph 'g'", lambda m, o: m.graph.metadata_props.add(key="k"), PLAIN),
    (
        "node metadata",
        9,
        "graph 'g' > node 'add' (Add)",
        lambda m, o: node(m, "add").metadata_props.add(key="k"),
        PLAIN,
    ),
    ("bfloat16", 3, INITIALIZER, _element(16), PLAIN),
    ("float8e4m3fn", 8, INITIALIZER, _element(17), PLAIN),
    ("float8e4m3fnuz", 8, INITIALIZER, _element(18), PLAIN),
    ("float8e5m2", 8, INITIALIZER, _element(19), PLAIN),
    ("float8e5m2fnuz", 8, INITIALIZER, _element(20), PLAIN),
    ("uint4", 9, INITIALIZER, _element(21), PLAIN),
    ("int4", 9, INITIALIZER, _element(22), PLAIN),
    ("float4", 10, INITIALIZER, _element(23), PLAIN),
    ("float8e8m0", 11, INITIALIZER, _element(24), PLAIN),
    ("uint2", 12, INITIALIZER, _element(25), PLAIN),
    ("int2", 12, INITIALIZER, _element(26), PLAIN),
    ("float6e2m3", 13, INITIALIZER, _element(27), PLAIN),
    ("float6e3m2", 13, INITIALIZER, _element(28), PLAIN),
    (
        "input element",
        9,
        INPUT,
        lambda m, o: m.graph.input[1].type.CopyFrom(tensor_type(o, 22, (1,))),
        PLAIN,
    ),
    ("optional type", 7, INPUT, _value_type("optional_type"), PLAIN),
    ("sparse type", 7, INPUT, _value_type("sparse_tensor_type"), PLAIN),
    ("sparse tensor", 5, INITIALIZER, _sparse, PLAIN),
    ("quantization", 4, "graph 'g'", _annotate, PLAIN),
    ("training", 6, "model > training info 0", _train, PLAIN),
    ("devices", 10, "model", lambda m, o: m.configuration.add(name="two"), PLAIN),
    (
        "captured type",
        9,
        "graph 'g' > node 'neg' (Neg) > output 0",
        lambda m, o: m.graph.value_info.add(name="a", type=tensor_type(o, 22, (2,))),
        BRANCHES,
    ),
):
    add("ir-version-too-old", where, _old(version, feature), label, base)

INFO = "model > training info 0"


@case("training-binding-key", f"{INFO} > initialization_binding")
def _binds_nothing(m: Any, o: Any) -> None:
    _train(m, o).initialization_binding[0].key = "x"


@case("training-binding-key", f"{INFO} > update_binding")
def _updates_nothing(m: Any, o: Any) -> None:
    _train(m, o).update_binding[0].key = "nowhere"


@case("training-binding-value", f"{INFO} > update_binding")
def _bound_to_nothing(m: Any, o: Any) -> None:
    _train(m, o).update_binding[0].value = "nowhere"


@case("training-binding-duplicate", f"{INFO} > update_binding")
def _bound_twice(m: Any, o: Any) -> None:
    _train(m, o).update_binding.append(entry(o, "w", "new_step"))


@case("training-initialization-inputs", f"{INFO} > initialization 'start'")
def _initialization_reads(m: Any, o: Any) -> None:
    _train(m, o).initialization.input.add(name="given", type=tensor_type(o, 1, (1,)))


@case("undefined-value", f"{INFO} > algorithm 'step' > node of 'new_step' (Neg) > input 0")
def _training_reads_nothing(m: Any, o: Any) -> None:
    _train(m, o).algorithm.node[0].input[0] = "nowhere"


@case("shadowing", f"{INFO} > algorithm 'step' > node of 'mid' (Neg) > output 0")
def _training_hides(m: Any, o: Any) -> None:
    _train(m, o).algorithm.node[0].output[0] = "mid"
