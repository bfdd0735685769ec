"""`printer`: the same text, character for character, as the real `onnx` for the same messages."""

import inspect
import struct
from pathlib import Path
from typing import Any

import numpy as np
import onnx as real
import pytest

from sardonyx.compat import onnx as ours
from sardonyx.dtypes import DataType
from tests.compat.differential import Call, assert_same, outcome
from tests.format.text_messages import Generator

KINDS = [kind for kind in DataType if kind]
FLOATS = [0.0, -0.0, 1.0, 0.1, 1e-45, 1e-5, 1e-4, 123456792.0, 1e20, 3.4028235e38, 100000.0]
FLOATS += [float("inf"), -float("inf"), float("nan"), -float("nan")]
STRINGS = [b"", b"x", b"a b", b'q"\\', b"\n", "é".encode(), b"\xff", b"a\0b"]
DIMS = [[], [0], [2], [2, 3], [-1], [2**62, 4], [2**62, 4, 0], [0, 2**62, 4], [1, 1, 1]]


def printed(build: Any) -> Call:
    """Print the message that `build` makes with a module."""
    return lambda onnx, _: onnx.printer.to_text(build(onnx))


def tensor_node(**fields: Any) -> Call:
    def build(onnx: Any) -> Any:
        node = onnx.NodeProto(op_type="Constant", output=["c"])
        node.attribute.add(name="value", type=4).t.CopyFrom(onnx.TensorProto(**fields))
        return node

    return printed(build)


def attribute_node(**fields: Any) -> Call:
    def build(onnx: Any) -> Any:
        return onnx.NodeProto(op_type="A", attribute=[onnx.AttributeProto(name="a", **fields)])

    return printed(build)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize("storage", ["typed", "raw", "external", "none"])
def test_tensors(kind: DataType, count: int, storage: str, tmp_path: Path) -> None:
    fields: dict[str, Any] = {"data_type": int(kind), "dims": [count], "name": "t"}
    match storage:
        case "typed" if kind == DataType.STRING:
            fields["string_data"] = [b'a"', b"", b"c"][:count]
        case "typed":
            fields[kind.field] = [0, 1, 100][:count]
        case "raw":
            fields["raw_data"] = bytes(range(kind.raw_size(count)))
        case "external":
            fields["data_location"] = 1
            fields["external_data"] = [{"key": "location", "value": "a b"}] * count
    assert_same(tensor_node(**fields), tmp_path)

    def initializer(onnx: Any) -> Any:
        return onnx.GraphProto(name="g", initializer=[onnx.TensorProto(**fields)] * 2)

    tmp_path.joinpath("graph").mkdir()
    assert_same(printed(initializer), tmp_path / "graph")


@pytest.mark.parametrize("dims", DIMS, ids=str)
@pytest.mark.parametrize("size", [0, 3, 4, 8])
@pytest.mark.parametrize("kind", [1, 2, 7, 10, 22], ids=lambda kind: DataType(kind).name)
def test_raw_sizes_that_may_not_fit(kind: int, size: int, dims: list[int], tmp_path: Path) -> None:
    assert_same(tensor_node(data_type=kind, dims=dims, raw_data=bytes(size)), tmp_path)


@pytest.mark.parametrize("number", [0, 29, 99, -1])
def test_unknown_element_types(number: int, tmp_path: Path) -> None:
    assert_same(tensor_node(data_type=number, dims=[1], raw_data=b"1234"), tmp_path)


@pytest.mark.parametrize("value", FLOATS, ids=str)
def test_floats(value: float, tmp_path: Path) -> None:
    single = float(np.float32(value))
    calls = [
        attribute_node(type=1, f=single),
        attribute_node(type=6, floats=[single, 1.5]),
        tensor_node(data_type=1, float_data=[single], dims=[1]),
        tensor_node(data_type=11, double_data=[value], dims=[1]),
        tensor_node(data_type=1, raw_data=struct.pack("<f", single)),
        tensor_node(data_type=11, raw_data=struct.pack("<d", value)),
    ]
    for index, call in enumerate(calls):
        tmp_path.joinpath(str(index)).mkdir()
        assert_same(call, tmp_path / str(index))


def test_many_floats(tmp_path: Path) -> None:
    source = np.random.default_rng(3)
    bits = source.integers(0, 2**32, 30000, dtype=np.uint32)
    normal = source.standard_normal(30000).astype(np.float32).view(np.uint32)
    doubles = source.integers(0, 2**64, 5000, dtype=np.uint64)
    for kind, values in ((1, bits), (1, normal), (11, doubles)):
        folder = tmp_path / f"{kind}-{values[0]}"
        folder.mkdir()
        call = tensor_node(data_type=kind, dims=[values.size], raw_data=values.tobytes())
        assert_same(call, folder)


@pytest.mark.parametrize("value", STRINGS, ids=repr)
def test_strings(value: bytes, tmp_path: Path) -> None:
    calls = [
        attribute_node(type=3, s=value),
        attribute_node(type=8, strings=[value, b"x"]),
        tensor_node(data_type=8, string_data=[value, b"y"], dims=[2]),
        lambda onnx, _: onnx.printer.to_text(
            onnx.NodeProto.FromString(b"\x0a" + bytes([len(value)]) + value)
        ),
    ]
    for index, call in enumerate(calls):
        tmp_path.joinpath(str(index)).mkdir()
        assert_same(call, tmp_path / str(index))


ATTRIBUTES: list[dict[str, Any]] = [
    {},
    {"type": 0},
    {"i": 3},
    {"type": 1},
    {"type": 2, "i": -(2**63)},
    {"type": 3},
    {"type": 4},
    {"type": 5},
    {"type": 6},
    {"type": 7, "ints": [1, -2, 2**63 - 1]},
    {"type": 7},
    {"type": 8},
    {"type": 9},
    {"type": 9, "tensors": [{"data_type": 1, "float_data": [1], "name": "n"}, {}]},
    {"type": 10},
    {"type": 10, "graphs": [{"name": "a"}, {"name": "b", "node": [{"op_type": "C"}]}]},
    {"type": 5, "g": {"name": "g", "node": [{"op_type": "C", "name": ""}]}},
    {"type": 11, "sparse_tensor": {"dims": [3]}},
    {"type": 12, "sparse_tensors": [{"dims": [3]}]},
    {"type": 13},
    {"type": 13, "tp": {"tensor_type": {"elem_type": 1}}},
    {"type": 14, "type_protos": [{"tensor_type": {"elem_type": 1}}, {}]},
    {"type": 14},
    {"type": 1, "ref_attr_name": "b c"},
    {"type": 1, "ref_attr_name": "", "f": 1.0},
    {"ref_attr_name": "b"},
    {"type": 2, "i": 1, "doc_string": "left out"},
]


@pytest.mark.parametrize("fields", ATTRIBUTES, ids=str)
def test_attributes(fields: dict[str, Any], tmp_path: Path) -> None:
    assert_same(attribute_node(**fields), tmp_path)


SHAPE = {
    "dim": [{"dim_value": -1}, {"dim_param": "N"}, {"dim_param": "a b"}, {"dim_param": ""}, {}]
}
TENSOR = {"tensor_type": {"elem_type": 1, "shape": {}}}
TYPES: list[dict[str, Any]] = [
    {},
    {"denotation": "left out"},
    TENSOR,
    {"tensor_type": {}},
    {"tensor_type": {"elem_type": 99, "shape": {}}},
    {"tensor_type": {"elem_type": 1, "shape": SHAPE}},
    {"sparse_tensor_type": {"elem_type": 7, "shape": SHAPE}},
    {"sparse_tensor_type": {"elem_type": 7}},
    {"sparse_tensor_type": {"shape": {}}},
    {"sequence_type": {}},
    {"sequence_type": {"elem_type": TENSOR}},
    {"optional_type": {"elem_type": {"sequence_type": {"elem_type": TENSOR}}}},
    {"map_type": {}},
    {"map_type": {"key_type": 8, "value_type": TENSOR}},
    {"map_type": {"key_type": 50, "value_type": {"sequence_type": {}}}},
    {"opaque_type": {}},
    {"opaque_type": {"name": "a b"}},
    {"opaque_type": {"domain": "a.b"}},
    {"opaque_type": {"domain": "a.b", "name": "c"}},
    {"opaque_type": {"domain": "", "name": ""}},
]


@pytest.mark.parametrize("fields", TYPES, ids=str)
def test_types(fields: dict[str, Any], tmp_path: Path) -> None:
    def build(onnx: Any) -> Any:
        graph = onnx.GraphProto(name="g")
        graph.input.add(name="x", type=onnx.TypeProto(**fields))
        graph.value_info.add(name="a b", type=onnx.TypeProto(**fields))
        graph.output.add(name="y")
        return graph

    assert_same(printed(build), tmp_path)


NODES: list[dict[str, Any]] = [
    {},
    {"op_type": "A", "name": ""},
    {"op_type": "A", "name": "a b", "input": ["x", "", "a.b"], "output": ["1", "float"]},
    {"op_type": "a::b", "domain": "com.my-company", "overload": "o p"},
    {"op_type": "A", "domain": "", "overload": ""},
    {"op_type": "A", "doc_string": "left out"},
]


@pytest.mark.parametrize("fields", NODES, ids=str)
def test_nodes(fields: dict[str, Any], tmp_path: Path) -> None:
    assert_same(printed(lambda onnx: onnx.NodeProto(**fields)), tmp_path)


FUNCTIONS: list[dict[str, Any]] = [
    {},
    {"name": "f", "domain": "d", "overload": "o", "doc_string": "left out"},
    {"name": "a b", "input": ["x", "y z"], "output": ["float"], "attribute": ["a", "b c"]},
    {"name": "f", "opset_import": [{"domain": "", "version": 1}, {"version": 2}]},
    {"name": "f", "attribute_proto": [{"name": "a"}], "node": [{"op_type": "A"}]},
]


@pytest.mark.parametrize("fields", FUNCTIONS, ids=str)
def test_functions(fields: dict[str, Any], tmp_path: Path) -> None:
    assert_same(printed(lambda onnx: onnx.FunctionProto(**fields)), tmp_path)


MODELS: list[dict[str, Any]] = [
    {},
    {"ir_version": -1, "opset_import": [{}], "functions": [{"name": "f"}, {}]},
    {"producer_name": "", "producer_version": "v", "domain": "d", "model_version": 0},
    {"doc_string": 'a"b', "metadata_props": [{"key": "k"}, {"value": "v"}]},
    {"graph": {"name": "g", "doc_string": "left out"}, "training_info": [{}]},
]


@pytest.mark.parametrize("fields", MODELS, ids=str)
def test_models(fields: dict[str, Any], tmp_path: Path) -> None:
    assert_same(printed(lambda onnx: onnx.ModelProto(**fields)), tmp_path)


@pytest.mark.parametrize("start", range(0, 2000, 500))
def test_random_messages(start: int, tmp_path: Path) -> None:
    kinds = ("ModelProto", "GraphProto", "FunctionProto", "NodeProto")
    texts = 0
    for seed in range(start, start + 500):
        kind = kinds[seed % 4]
        content = Generator(seed).message(kind).SerializeToString()
        call = _printing(kind, content)
        expected = outcome(call, real, tmp_path / f"real{seed}")
        actual = outcome(call, ours, tmp_path / f"ours{seed}")
        assert actual == expected or _names_are_broken(expected, actual), seed
        texts += isinstance(actual, str)
    assert texts > 350


def _printing(kind: str, content: bytes) -> Call:
    return lambda onnx, _: onnx.printer.to_text(getattr(onnx, kind).FromString(content))


def _names_are_broken(expected: Any, actual: Any) -> bool:
    """Two faults in one message: onnx cannot even decode its own complaint about the first."""
    return expected[1][0] == "UnicodeDecodeError" and actual[1][0] == "InferenceError"


@pytest.mark.parametrize("levels", [10, 48, 49, 60])
def test_deep_types(levels: int, tmp_path: Path) -> None:
    def build(onnx: Any) -> Any:
        node = onnx.NodeProto(op_type="A")
        kind = node.attribute.add(name="a", type=13).tp
        for _ in range(levels):
            kind = kind.sequence_type.elem_type
        kind.tensor_type.elem_type = 1
        kind.tensor_type.shape.SetInParent()
        return node

    assert_same(printed(build), tmp_path)


@pytest.mark.parametrize("what", ["TensorProto", "AttributeProto", "ValueInfoProto", "TypeProto"])
def test_other_messages(what: str, tmp_path: Path) -> None:
    assert_same(printed(lambda onnx: getattr(onnx, what)()), tmp_path)


@pytest.mark.parametrize("what", [None, 3, b"bytes", "text"])
def test_what_is_no_message(what: Any, tmp_path: Path) -> None:
    assert_same(printed(lambda _: what), tmp_path)


def test_text_goes_through_the_parser(tmp_path: Path) -> None:
    text = "g (float[N] x) => (y) <float[2] w = {1, 2.5}> { y = A <k: ints = [1, 2]> (x, w) }"
    assert_same(lambda onnx, _: onnx.printer.to_text(onnx.parser.parse_graph(text)), tmp_path)


def test_same_interface() -> None:
    expected = inspect.signature(real.printer.to_text).parameters
    assert list(inspect.signature(ours.printer.to_text).parameters) == list(expected)
