"""Messages to text and back: nothing lost with exact=True, onnx's own text without it."""

import math
import os
import struct
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.backend.test import loader

from sardonyx.dtypes import DataType
from sardonyx.format.protos import proto_class
from sardonyx.format.text_lexer import MAXIMUM_DEPTH
from sardonyx.format.text_numbers import format_floats, read_float32, read_float64, read_floats
from sardonyx.format.text_parse import (
    parse_attribute,
    parse_function,
    parse_graph,
    parse_model,
    parse_node,
    parse_standard,
)
from sardonyx.format.text_print import to_text
from tests.format.text_messages import Generator

PARSERS = {
    "ModelProto": parse_model,
    "GraphProto": parse_graph,
    "FunctionProto": parse_function,
    "NodeProto": parse_node,
    "AttributeProto": parse_attribute,
}
SUITES = ["node", "simple", "pytorch-converted", "pytorch-operator", "light"]
SUITE_SIZES = {
    "node": 1884,
    "simple": 23,
    "pytorch-converted": 82,
    "pytorch-operator": 35,
    "light": 9,
}
REPOSITORY = Path(__file__).parents[2]
MODELS = Path(os.environ.get("SARDONYX_TEST_MODELS", REPOSITORY.parent / "shared" / "models"))

NodeProto = proto_class("NodeProto")
GraphProto = proto_class("GraphProto")
ModelProto = proto_class("ModelProto")
FunctionProto = proto_class("FunctionProto")
AttributeProto = proto_class("AttributeProto")
TensorProto = proto_class("TensorProto")
TypeProto = proto_class("TypeProto")


def assert_round_trip(message: Any) -> str:
    """Fail unless text gives back an equal message, byte for byte; the text."""
    text = to_text(message, exact=True)
    again = PARSERS[message.DESCRIPTOR.name](text)
    assert again.SerializeToString(deterministic=True) == message.SerializeToString(
        deterministic=True
    ), text
    assert again == message
    return text


def assert_both_ways(content: bytes) -> None:
    """Fail unless a model survives exact text and its standard text is what onnx prints."""
    message = ModelProto.FromString(content)
    assert_round_trip(message)
    expected = onnx.printer.to_text(onnx.ModelProto.FromString(content))
    assert to_text(message, exact=False) == expected


def suite_models(kind: str) -> Iterator[tuple[str, bytes]]:
    """Names and encoded models of one part of onnx's backend suite."""
    if kind == "light":
        for path in sorted((Path(loader.DATA_DIR) / "light").glob("*.onnx")):
            yield path.stem, path.read_bytes()
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = loader.load_model_tests(kind=kind)
    for case in cases:
        if case.model is not None:
            yield case.name, case.model.SerializeToString()
        else:
            yield case.name, (Path(case.model_dir) / "model.onnx").read_bytes()


@pytest.mark.parametrize("kind", SUITES)
def test_backend_suite(kind: str) -> None:
    count = 0
    for _, content in suite_models(kind):
        assert_both_ways(content)
        count += 1
    assert count >= SUITE_SIZES[kind]


@pytest.mark.skipif(not MODELS.is_dir(), reason=f"no models in {MODELS}")
@pytest.mark.parametrize(
    "path", sorted(MODELS.glob("*/model.onnx")), ids=lambda path: path.parent.name
)
def test_real_models(path: Path) -> None:
    assert_both_ways(path.read_bytes())


@pytest.mark.parametrize("start", range(0, 8000, 1000))
def test_random_messages(start: int) -> None:
    annotated = 0
    for seed in range(start, start + 1000):
        kind = list(PARSERS)[seed % len(PARSERS)]
        annotated += "@{" in assert_round_trip(Generator(seed).message(kind))
    assert annotated > 300


@pytest.mark.parametrize("kind", [kind for kind in DataType if kind], ids=lambda kind: kind.name)
def test_every_element_type_raw_and_typed(kind: DataType) -> None:
    for count in (0, 1, 2, 3, 4, 5, 17):
        typed = TensorProto(data_type=kind, dims=[count], name="t")
        width = 2 if "COMPLEX" in kind.name else 1
        if kind == DataType.STRING:
            typed.string_data.extend(f"s{item}".encode() for item in range(count))
        else:
            getattr(typed, kind.field).extend(item % 4 for item in range(count * width))
        text = assert_round_trip(graph_with(typed))
        assert f"{kind.text}[{count}] t = {{" in text
        assert "@{" not in text
        if kind != DataType.STRING:
            raw = TensorProto(data_type=kind, dims=[count], name="t")
            raw.raw_data = bytes(item % 3 for item in range(kind.raw_size(count)))
            assert "} @{raw_data}" in assert_round_trip(graph_with(raw))


def graph_with(tensor: Any) -> Any:
    return GraphProto(name="g", initializer=[tensor])


@pytest.mark.parametrize("kind", [kind for kind in DataType if kind], ids=lambda kind: kind.name)
def test_raw_bytes_of_any_length_and_content(kind: DataType) -> None:
    source = np.random.default_rng(int(kind))
    for size in (0, 1, 2, 3, 5, 7, 8, 16, 33):
        for dims in ([], [size], [2, 2], [0], [-1, 3]):
            tensor = TensorProto(data_type=kind, dims=dims, name="t")
            tensor.raw_data = source.integers(0, 256, size, dtype=np.uint8).tobytes()
            assert_round_trip(graph_with(tensor))


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (0.1, "0.1"),
        (-0.0, "-0"),
        (1e20, "1e+20"),
        (100000.0, "1e+05"),
        (0.0001, "1e-04"),
        (123456792.0, "123456792"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (math.nan, "nan"),
        (-math.nan, "-nan"),
        (1e-45, "1e-45"),
    ],
)
def test_floats_are_shortest_and_exact(value: float, word: str) -> None:
    attribute = AttributeProto(name="a", type=1, f=np.float32(value))
    assert assert_round_trip(attribute) == f"a: float = {word}"


@pytest.mark.parametrize("bits", [0x7F800001, 0x7FC00001, 0xFFC12345, 0xFF800001])
def test_nan_payloads_survive_everywhere(bits: int) -> None:
    single, double = struct.pack("<I", bits), struct.pack("<Q", 0x7FF0000000000001)
    attribute = AttributeProto.FromString(b"\x0a\x01a\xa0\x01\x01\x15" + single)
    assert "wire:" in assert_round_trip(attribute)
    floats = AttributeProto.FromString(b"\x0a\x01a\xa0\x01\x06\x3d" + single)
    assert_round_trip(floats)
    for number, content in ((4, single), (10, double)):
        tensor = TensorProto(data_type=1 if number == 4 else 11, dims=[1], name="t")
        tensor.MergeFromString(bytes([number << 3 | 2, len(content)]) + content)
        assert "wire:" in assert_round_trip(graph_with(tensor))
    raw = TensorProto(data_type=1, dims=[1], name="t", raw_data=single)
    assert 'raw_data: "' in assert_round_trip(graph_with(raw))


def test_float_lists_agree_with_single_floats() -> None:
    source = np.random.default_rng(7)
    bits = source.integers(0, 2**32, 20000, dtype=np.uint32).view(np.float32)
    powers = np.float32(2.0) ** np.arange(-149, 128, dtype=np.float32)
    near = np.concatenate([powers, np.nextafter(powers, np.float32(0)), -powers])
    decimals = np.array([d * 10.0**e for d in range(1, 40) for e in range(-14, 15)], np.float32)
    scaled = source.standard_normal(20000).astype(np.float32)
    for values in (bits[~np.isnan(bits)], near, decimals, scaled, scaled.astype(np.float64)):
        words = format_floats(values)
        again = read_floats(words, single=values.dtype == np.float32)
        assert again is not None
        assert again.tobytes() == values.tobytes()
        read_one = read_float32 if values.dtype == np.float32 else read_float64
        assert [read_one(word) for word in words[:500]] == values[:500].tolist()
        tensor = onnx.numpy_helper.from_array(values)
        node = onnx.helper.make_node("Constant", [], ["c"], value=tensor)
        printed = onnx.printer.to_text(node)
        assert words == printed[printed.index("{") + 1 : printed.index("}")].split(",")


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("16777217", 0x4B800000),
        ("16777217.0000000000000000001", 0x4B800001),
        ("16777216.9999999999999999999", 0x4B800000),
        ("16777219", 0x4B800002),
        ("16777218.9999999999999999999", 0x4B800001),
        ("340282356779733661637539395458142568447.9", 0x7F7FFFFF),
        ("7.006492321624085e-46", 0x00000000),
        ("7.0064923216240853546186479164495807e-46", 0x00000001),
        ("1e-60", 0x00000000),
    ],
)
def test_decimals_are_rounded_once(text: str, bits: int) -> None:
    value = read_float32(text)
    assert value is not None
    assert struct.pack("<f", value) == struct.pack("<I", bits)
    listed = read_floats([text], single=True)
    assert listed is not None
    assert listed.tobytes() == struct.pack("<I", bits)
    assert parse_standard("NodeProto", f"y = A <a: float = {text}> ()") == NodeProto.FromString(
        onnx.parser.parse_node(f"y = A <a: float = {text}> ()").SerializeToString()
    )


def test_halfway_to_infinity_does_not_fit() -> None:
    assert read_float32("340282356779733661637539395458142568448") is None
    assert read_floats(["1", "340282356779733661637539395458142568448"], single=True) is None
    assert read_floats(["1e999"], single=False) is None


PLAIN_NODES = [
    "y = Relu (x)",
    "y = .Relu (x)",
    "[n] a, b = com.microsoft.Fused:two <axis: int = -1> (x, \"\", w)",
    "= Print (x)",
    'y = Concat <axis: int = 1, mode: string = "a\\"b"> ("x y", "é")',
    "y = A <f: floats = [1, 2.5, -inf], i: ints = [], s: strings = [\"a\", \"b\"]> ()",
    "y = A <t: tensor = float[2] {1,2}, u: tensor = string name {\"q\"}> ()",
    "y = A <ts: tensors = [float {1}, int4[2] {1,2}], tp: type_proto = seq(float[N, 3])> ()",
    "y = A <types: type_protos = [float, map(int64, optional(bool[])), opaque(a.b,c)]> ()",
    "y = A <alpha: float = @beta, b = @\"c d\"> (x)",
]  # fmt: skip


@pytest.mark.parametrize("text", PLAIN_NODES)
def test_plain_nodes_read_and_print_without_annotations(text: str) -> None:
    node = parse_node(text)
    assert assert_round_trip(node) == text.replace("[N, 3]", "[N,3]")


def test_unset_and_empty_fields_differ() -> None:
    absent = NodeProto(op_type="A")
    empty = NodeProto(op_type="A", name="", domain="", overload="", doc_string="")
    assert assert_round_trip(absent) == "= A ()"
    assert assert_round_trip(empty) == '[""] = .A:"" () @{doc_string: ""}'
    assert assert_round_trip(NodeProto()) == '= "" () @{-op_type}'
    assert assert_round_trip(AttributeProto()) == '"" @{-name}'
    assert assert_round_trip(AttributeProto(name="a")) == "a @{}"
    assert assert_round_trip(AttributeProto(name="a", type=2)) == "a: int @{}"
    assert assert_round_trip(AttributeProto(name="a", i=0)) == "a @{i: 0}"
    assert assert_round_trip(ModelProto()).startswith("@{-graph}\n")
    for kind in PARSERS:
        assert_round_trip(proto_class(kind)())


def test_operator_set_without_domain() -> None:
    model = ModelProto(ir_version=8)
    model.graph.name = "g"
    model.opset_import.add(version=17)
    model.opset_import.add(domain="", version=1)
    model.opset_import.add()
    text = assert_round_trip(model)
    assert 'opset_import: ["" : 17 @{-domain}, "" : 1, "" : 0 @{-domain -version}]' in text


def test_names_that_are_not_identifiers() -> None:
    node = NodeProto(op_type="aten::relu", domain="com.my-company", overload="a b", name="n/1")
    node.input.extend(["x.1", "", "float"])
    node.attribute.add(name="my attr", type=2, i=3)
    node.attribute.add(name="ref", type=1, ref_attr_name="a-b")
    assert assert_round_trip(node) == (
        '["n/1"] = "com.my-company"."aten::relu":"a b" '
        '<"my attr": int = 3, ref: float = @"a-b"> ("x.1", "", float)'
    )


def test_values_named_like_types() -> None:
    graph = GraphProto(name="seq")
    graph.input.add(name="float")
    graph.output.add(name="map")
    assert assert_round_trip(graph) == 'seq ("float") => ("map") {\n}'
    function = FunctionProto(name="f", domain="", input=["int64", "x"], output=["opaque"])
    assert '("int64", x) => ("opaque")' in assert_round_trip(function)


def test_bytes_that_are_not_text() -> None:
    node = NodeProto(op_type="A")
    node.attribute.add(name="s", type=3, s=b"\xff\x00z")
    node.attribute.add(name="l", type=8, strings=[b"ok", b"\x80"])
    assert assert_round_trip(node) == (
        '= A <s: string @{s: "\\xff\\x00z"}, l: strings @{strings: ["ok", "\\x80"]}> ()'
    )
    tensor = TensorProto(data_type=8, dims=[1], name="t", string_data=[b"\xff"])
    assert 't = {} @{string_data: ["\\xff"]}' in assert_round_trip(graph_with(tensor))


def test_line_endings_are_escaped_where_files_would_change_them() -> None:
    node = NodeProto(op_type="A", name="a\r\nb", doc_string="one\r\ntwo", output=["line\nfeed"])
    text = assert_round_trip(node)
    assert "\r" not in text
    assert '"line\nfeed"' in text


def test_names_that_are_not_utf8() -> None:
    node = NodeProto.FromString(b"\x12\x01\xff\x1a\x01\xfe\x22\x01A")
    assert assert_round_trip(node) == '= A () @{wire: "\\x12\\x01\\xff\\x1a\\x01\\xfe"}'


def test_unknown_fields_survive() -> None:
    node = NodeProto.FromString(b"\x22\x01A\xf8\x3e\x05\xfb\x3e\xf8\x3e\x07\xfc\x3e\xfd\x3eabcd")
    assert "wire:" in assert_round_trip(node)
    graph = GraphProto(name="g")
    graph.input.add(name="x").type.tensor_type.MergeFromString(b"\x08\x01\xf8\x3e\x05")
    assert_round_trip(graph)


def test_types_with_denotations_and_gaps() -> None:
    graph = GraphProto(name="g")
    image = graph.input.add(name="x").type
    image.denotation = "IMAGE"
    image.tensor_type.elem_type = 1
    image.tensor_type.shape.dim.add(dim_param="N", denotation="DATA_BATCH")
    image.tensor_type.shape.dim.add()
    graph.input.add(name="no_type")
    graph.input.add(name="empty_type").type.SetInParent()
    graph.input.add(name="no_element").type.tensor_type.shape.SetInParent()
    graph.input.add(name="unknown_element").type.tensor_type.elem_type = 99
    graph.input.add(name="no_item").type.sequence_type.SetInParent()
    graph.input.add(name="opaque").type.opaque_type.domain = "only a domain"
    text = assert_round_trip(graph)
    expected = (
        'float[N @{denotation: "DATA_BATCH"},?] @{denotation: "IMAGE"} x, no_type, ? empty_type'
    )
    assert expected in text
    assert "? @{tensor_type {elem_type: 99}} unknown_element" in text


def test_everything_a_model_can_carry() -> None:
    model = ModelProto(ir_version=11, producer_name="p", model_version=-3, doc_string='d"')
    model.metadata_props.add(key="k", value="v")
    model.opset_import.add(domain="", version=21)
    model.configuration.add(name="c", num_devices=2, device=["a", "b"])
    graph = model.graph
    graph.name = "main graph"
    graph.doc_string = "about"
    graph.metadata_props.add(key="k")
    graph.quantization_annotation.add(tensor_name="x").quant_parameter_tensor_names.add(key="S")
    sparse = graph.sparse_initializer.add(dims=[3])
    sparse.values.data_type = 1
    sparse.values.float_data.extend([1.5])
    sparse.indices.int64_data.append(1)
    node = graph.node.add(op_type="If", input=["c"], output=["y"])
    node.metadata_props.add(key="a", value="b")
    node.device_configurations.add(configuration_id="c", pipeline_stage=1).sharding_spec.add(
        tensor_name="y"
    ).sharded_dim.add(axis=-1).simple_sharding.add(dim_param="N", num_shards=2)
    branch = node.attribute.add(name="then_branch", type=5, doc_string="").g
    branch.name = "inner graph"
    branch.node.add(op_type="A").attribute.add(name="g", type=10).graphs.add(name="deep")
    node.attribute.add(name="s", type=11).sparse_tensor.dims.append(2)
    function = model.functions.add(name="f", domain="d", overload="o", doc_string="doc")
    function.input.append("x")
    function.attribute.append("a")
    function.attribute_proto.add(name="b", type=1, f=0.5)
    function.value_info.add(name="x").type.tensor_type.elem_type = 1
    function.metadata_props.add(key="m", value="n")
    training = model.training_info.add()
    training.algorithm.name = "train"
    training.update_binding.add(key="w", value="w_new")
    text = assert_round_trip(model)
    assert 'metadata_props: ["k": "v"]' in text
    assert "f <a, b: float = 0.5>(x) => ()\n   <float[] x>\n{" in text


def test_external_data() -> None:
    tensor = TensorProto(data_type=1, dims=[2], name="w", data_location=1)
    tensor.external_data.add(key="location", value="w.bin")
    assert 'float[2] w = ["location": "w.bin"]' in assert_round_trip(graph_with(tensor))
    attribute = AttributeProto(name="a", type=4)
    attribute.t.CopyFrom(tensor)
    attribute.t.ClearField("name")
    del attribute.t.dims[:]
    assert assert_round_trip(attribute) == 'a: tensor = float = ["location": "w.bin"]'
    tensor.external_data.add(key="offset")
    assert "data_location: EXTERNAL" in assert_round_trip(graph_with(tensor))


def test_standard_text_leaves_things_out_but_exact_does_not() -> None:
    node = NodeProto(op_type="A", doc_string="lost")
    assert to_text(node, exact=False) == "    = A ()\n"
    assert parse_node(to_text(node, exact=True)).doc_string == "lost"


def test_messages_of_the_real_package_print_too() -> None:
    node = onnx.helper.make_node("Relu", ["x"], ["y"], doc_string="d")
    assert to_text(node, exact=True) == 'y = Relu (x) @{doc_string: "d"}'


def test_other_messages_have_no_text() -> None:
    with pytest.raises(TypeError, match="TensorProto has no text"):
        to_text(TensorProto(), exact=True)
    with pytest.raises(TypeError, match="int has no text"):
        to_text(3, exact=False)


def test_as_deep_as_decoders_go() -> None:
    attribute = AttributeProto(name="a", type=13)
    kind = attribute.tp
    for _ in range((MAXIMUM_DEPTH - 2) // 2):
        kind = kind.sequence_type.elem_type
    kind.tensor_type.elem_type = 1
    AttributeProto.FromString(attribute.SerializeToString())
    assert_round_trip(attribute)
