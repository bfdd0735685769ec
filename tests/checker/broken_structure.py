"""Cases about models and graphs: versions of their parts, names, inputs, outputs, order."""

from typing import Any

from tests.checker.broken_models import BRANCHES, CALL, Cases, branch, entry, node, tensor_type

CASES = Cases()
add, case = CASES.add, CASES.case

add("model-graph-missing", "model", lambda m, o: m.ClearField("graph"))
add("ir-version-missing", "model", lambda m, o: m.ClearField("ir_version"), "absent")
add("ir-version-missing", "model", lambda m, o: setattr(m, "ir_version", 0), "zero")
add("ir-version-negative", "model", lambda m, o: setattr(m, "ir_version", -3))
for version in (15, 99, 2**40):
    add(
        "ir-version-too-new",
        "model",
        lambda m, o, version=version: setattr(m, "ir_version", version),
        str(version),
    )
for version in (3, 4, 14):

    @case("opset-import-missing", "model")
    def _without_imports(m: Any, o: Any, version: int = version) -> None:
        del m.opset_import[:]
        m.ir_version = version


for version in (1, 2):
    add(
        "opset-import-forbidden",
        "model",
        lambda m, o, version=version: setattr(m, "ir_version", version),
        str(version),
    )
for domain, number in (("", 21), ("", 20), ("ai.onnx.ml", 3), ("ai.onnx", 21)):
    add(
        "opset-import-duplicate",
        "model",
        lambda m, o, d=domain, v=number: m.opset_import.add(domain=d, version=v),
        f"{domain}{number}",
    )
for domain, label in (("", "ai.onnx"), ("ai.onnx.ml", "ai.onnx.ml"), ("own", "own")):
    for number, rule in (
        (0, "opset-version-invalid"),
        (-1, "opset-version-invalid"),
        (-(2**31), "opset-version-invalid"),
        (-(2**31) - 1, "opset-version-range"),
        (2**31, "opset-version-range"),
        (-(2**40), "opset-version-range"),
    ):

        @case(rule, f"model > import of '{label}'")
        def _import_version(m: Any, o: Any, domain: str = domain, number: int = number) -> None:
            del m.opset_import[:]
            m.opset_import.add(domain=domain, version=number)


for domain, number in (
    ("", 29),
    ("", 1000),
    ("ai.onnx.ml", 6),
    ("ai.onnx.preview.training", 2),
    ("ai.onnx.preview", 2),
):

    @case("opset-too-new", f"model > import of '{domain or 'ai.onnx'}'")
    def _too_new(m: Any, o: Any, domain: str = domain, number: int = number) -> None:
        del m.opset_import[:]
        m.opset_import.add(domain=domain, version=number)


@case("opset-import-spelling", "model")
def _long_name(m: Any, o: Any) -> None:
    m.opset_import[0].domain = "ai.onnx"


def _twice(properties: Any, o: Any) -> None:
    properties.extend([entry(o, "k", "1"), entry(o, "k", "2")])


add("model-metadata-duplicate", "model", lambda m, o: _twice(m.metadata_props, o))
add("metadata-duplicate", "graph 'g'", lambda m, o: _twice(m.graph.metadata_props, o), "graph")
add(
    "metadata-duplicate",
    "graph 'g' > node 'add' (Add)",
    lambda m, o: _twice(node(m, "add").metadata_props, o),
    "node",
)
add(
    "metadata-duplicate",
    "graph 'g' > initializer 'w'",
    lambda m, o: _twice(m.graph.initializer[0].metadata_props, o),
    "tensor",
)
add(
    "metadata-duplicate",
    "graph 'g' > input 'x'",
    lambda m, o: _twice(m.graph.input[0].metadata_props, o),
    "input",
)
add(
    "metadata-duplicate",
    "graph 'g' > node 'add' (Add) > output 0",
    lambda m, o: _twice(m.graph.value_info[0].metadata_props, o),
    "value",
)
add(
    "metadata-duplicate",
    "model > function 'own.h'",
    lambda m, o: _twice(m.functions[1].metadata_props, o),
    "function",
    CALL,
)
UNKNOWN = b"\xa2\x06\x01a"
for name, where, pick in (
    ("model", "model", lambda m: m),
    ("graph", "graph 'g'", lambda m: m.graph),
    ("node", "graph 'g' > node 'add' (Add)", lambda m: node(m, "add")),
    ("tensor", "graph 'g' > initializer 'w'", lambda m: m.graph.initializer[0]),
):
    add(
        "unknown-field",
        where,
        lambda m, o, pick=pick: pick(m).MergeFromString(UNKNOWN),
        name,
    )

add(
    "device-configuration-unnamed",
    "model",
    lambda m, o: m.configuration.add(num_devices=1),
)
add(
    "device-configuration-duplicate",
    "model",
    lambda m, o: m.configuration.extend([o.DeviceConfigurationProto(name="two")] * 2),
)
add(
    "device-count",
    "model",
    lambda m, o: m.configuration.add(name="two", num_devices=2, device=["a"]),
)
add(
    "device-configuration-unknown",
    "graph 'g' > node 'add' (Add)",
    lambda m, o: node(m, "add").device_configurations.add(configuration_id="none"),
)


@case("sharding-tensor-unknown", "graph 'g' > node 'add' (Add)")
def _sharding(m: Any, o: Any) -> None:
    m.configuration.add(name="two", num_devices=2)
    chosen = node(m, "add").device_configurations.add(configuration_id="two")
    chosen.sharding_spec.add(tensor_name="nowhere")


add("graph-name-empty", "graph ''", lambda m, o: m.graph.ClearField("name"), "main")
add(
    "graph-name-empty",
    "graph 'g' > node 'if' (If) > attribute 'then_branch' > graph ''",
    lambda m, o: branch(m, "then").ClearField("name"),
    "branch",
    BRANCHES,
)
add("input-name-empty", "graph 'g' > input 1", lambda m, o: m.graph.input[1].ClearField("name"))
add("output-name-empty", "graph 'g' > output 0", lambda m, o: m.graph.output[0].ClearField("name"))
add(
    "output-name-empty",
    "graph 'g' > node 'if' (If) > attribute 'then_branch' > graph 'yes' > output 0",
    lambda m, o: branch(m, "then").output[0].ClearField("name"),
    "branch",
    BRANCHES,
)


def _broken_types(o: Any) -> list[tuple[str, str, Any]]:
    t = o.TypeProto
    opaque = t()
    opaque.opaque_type.domain = "own"
    half_map = t()
    half_map.map_type.key_type = 7
    keyless = t()
    keyless.map_type.value_type.CopyFrom(tensor_type(o, 1, (1,)))
    float_keys = t()
    float_keys.map_type.key_type = 1
    float_keys.map_type.value_type.CopyFrom(tensor_type(o, 1, (1,)))
    bool_keys = t()
    bool_keys.CopyFrom(float_keys)
    bool_keys.map_type.key_type = 9
    inner = t()
    inner.sequence_type.elem_type.CopyFrom(tensor_type(o, None, (1,)))
    inner_unknown = t()
    inner_unknown.optional_type.elem_type.CopyFrom(tensor_type(o, 99, (1,)))
    sparse = t()
    sparse.sparse_tensor_type.elem_type = 1
    sparse_element = t()
    sparse_element.sparse_tensor_type.shape.SetInParent()
    sequence, optional = t(), t()
    sequence.sequence_type.SetInParent()
    optional.optional_type.SetInParent()
    return [
        ("type-unset", "empty", t()),
        ("type-unset", "denotation", t(denotation="IMAGE")),
        ("element-missing", "tensor", tensor_type(o, None, (1,))),
        ("element-missing", "sparse", sparse_element),
        ("shape-missing", "tensor", tensor_type(o, 1, None)),
        ("shape-missing", "sparse", sparse),
        ("container-element-missing", "sequence", sequence),
        ("container-element-missing", "optional", optional),
        ("container-element-missing", "value", half_map),
        ("container-element-missing", "key", keyless),
        ("opaque-name-missing", "opaque", opaque),
        ("inner-element-missing", "sequence", inner),
        ("element-undefined", "tensor", tensor_type(o, 0, (1,))),
        ("element-unknown", "tensor", tensor_type(o, 99, (1,))),
        ("element-unknown", "inner", inner_unknown),
        ("map-key-type", "float", float_keys),
        ("map-key-type", "bool", bool_keys),
        ("dimension-negative", "tensor", tensor_type(o, 1, (-1, 3))),
    ]


def _set_type(m: Any, o: Any, side: str, position: int) -> None:
    target = m.graph.input[1] if side == "input" else m.graph.output[0]
    target.type.CopyFrom(_broken_types(o)[position][2])


def _type_cases() -> None:
    import onnx

    for side, name in (("input", "z"), ("output", "y")):
        for position, (rule, label, _) in enumerate(_broken_types(onnx)):
            add(
                rule,
                f"graph 'g' > {side} '{name}'",
                lambda m, o, side=side, position=position: _set_type(m, o, side, position),
                f"{side}-{label}",
            )


_type_cases()
add("type-missing", "graph 'g' > input 'x'", lambda m, o: m.graph.input[0].ClearField("type"))
add("type-missing", "graph 'g' > output 'y'", lambda m, o: m.graph.output[0].ClearField("type"))

add(
    "input-duplicate",
    "graph 'g' > input 'x'",
    lambda m, o: m.graph.input.add().CopyFrom(m.graph.input[0]),
)
add(
    "initializer-name-empty",
    "graph 'g' > initializer 0",
    lambda m, o: m.graph.initializer[0].ClearField("name"),
)
add(
    "initializer-duplicate",
    "graph 'g' > initializer 'w'",
    lambda m, o: m.graph.initializer.add().CopyFrom(m.graph.initializer[0]),
)
add(
    "initializer-not-input", "graph 'g' > initializer 'w'", lambda m, o: setattr(m, "ir_version", 3)
)
for element, shape in ((7, (3,)), (1, (3, 1)), (1, (4,))):

    @case("initializer-type-mismatch", "graph 'g' > initializer 'w'")
    def _declared_otherwise(
        m: Any, o: Any, element: int = element, shape: tuple[int, ...] = shape
    ) -> None:
        m.graph.input.add(name="w", type=tensor_type(o, element, shape))


@case("quantization-unknown-tensor", "graph 'g' > quantization of 'nowhere'")
def _annotated_nothing(m: Any, o: Any) -> None:
    m.graph.quantization_annotation.add(tensor_name="nowhere")


@case("quantization-unknown-tensor", "graph 'g' > quantization of 'mid'")
def _annotated_with_nothing(m: Any, o: Any) -> None:
    made = m.graph.quantization_annotation.add(tensor_name="mid")
    made.quant_parameter_tensor_names.append(entry(o, "SCALE_TENSOR", "nowhere"))


@case("quantization-duplicate", "graph 'g' > quantization of 'mid'")
def _annotated_twice(m: Any, o: Any) -> None:
    made = m.graph.quantization_annotation.add(tensor_name="mid")
    made.quant_parameter_tensor_names.extend([entry(o, "SCALE_TENSOR", "w")] * 2)


add(
    "output-duplicate",
    "graph 'g' > output 'y'",
    lambda m, o: m.graph.output.add().CopyFrom(m.graph.output[0]),
)
add("graph-without-outputs", "graph 'g'", lambda m, o: m.graph.ClearField("output"))
add(
    "value-info-unknown",
    "graph 'g' > value_info 'nowhere'",
    lambda m, o: m.graph.value_info.add(name="nowhere"),
)
add(
    "value-info-duplicate",
    "graph 'g' > value_info 'mid'",
    lambda m, o: m.graph.value_info.add().CopyFrom(m.graph.value_info[0]),
)
add("node-name-duplicate", "graph 'g'", lambda m, o: setattr(node(m, "relu"), "name", "add"))
