"""Read and write again: the same message, for every model there is and for every odd field."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.test import loader

from sardonyx.format.load import load
from sardonyx.format.save import to_bytes
from sardonyx.graph.clone import clone_model
from tests.conformance.suite import KINDS, cases
from tests.shared_models import model_paths, needs_models


def again(content: bytes) -> onnx.ModelProto:
    return onnx.ModelProto.FromString(to_bytes(load(content)))


@pytest.mark.parametrize("kind", KINDS)
def test_models_of_the_official_suite(kind: str) -> None:
    differing = [
        case.name for case in cases(kind) if again(case.model.SerializeToString()) != case.model
    ]
    assert differing == []


def test_light_models() -> None:
    for case in loader.load_model_tests(kind="light"):
        if case.model_dir is not None:
            path = f"{case.model_dir}/model.onnx"
            assert again(Path(path).read_bytes()) == onnx.load(path)


@needs_models
@pytest.mark.parametrize("path", model_paths(), ids=lambda path: path.parent.name)
def test_real_models(path) -> None:
    original = onnx.load(path)
    model = load(path)
    assert onnx.ModelProto.FromString(to_bytes(model)) == original
    assert onnx.ModelProto.FromString(to_bytes(clone_model(model))) == original


def small_graph(**options) -> onnx.GraphProto:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3])
    return helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y], **options)


def odd_models():
    def model(**options) -> onnx.ModelProto:
        return helper.make_model(small_graph(), **options)

    yield "explicit empties", model(producer_name="", doc_string="", model_version=0, domain="")
    nameless = model()
    del nameless.opset_import[:]
    nameless.opset_import.add(version=7)
    nameless.opset_import.add(domain="x")
    yield "opset without a domain", nameless
    twice = model()
    twice.opset_import.add(domain="", version=3)
    yield "an opset twice", twice
    yield from _odd_nodes(model)
    yield from _odd_values(model)
    yield from _odd_tensors(model)


def _odd_nodes(model):
    for name, change in {
        "node metadata": lambda node: node.metadata_props.add(key="k", value="v"),
        "doubled node metadata": lambda node: [
            node.metadata_props.add(key="k", value=v) for v in "ab"
        ],
        "empty domain": lambda node: setattr(node, "domain", ""),
        "overload": lambda node: setattr(node, "overload", "o"),
        "trailing absent inputs": lambda node: node.input.extend(["", ""]),
        "absent output": lambda node: node.output.extend(["", "z"]),
        "device": lambda node: (
            node.device_configurations.add(configuration_id="c", pipeline_stage=-2)
            .sharding_spec.add(tensor_name="x", device=[1, -1])
            .sharded_dim.add(axis=1)
            .simple_sharding.add(dim_param="n", num_shards=2)
        ),
        "doubled attribute": lambda node: node.attribute.extend(
            [helper.make_attribute("a", 1), helper.make_attribute("a", 2.0)]
        ),
        "attribute without a type": lambda node: node.attribute.add(name="a", i=3),
        "attribute without a value": lambda node: node.attribute.add(name="a", type=2),
        "attribute with two values": lambda node: node.attribute.add(name="a", type=2, i=3, f=0.5),
        "attribute of an unknown type": lambda node: node.attribute.add(name="a", s=b"x"),
        "empty list attribute": lambda node: node.attribute.add(name="a", type=7),
        "reference": lambda node: node.attribute.add(name="a", type=1, ref_attr_name="b"),
        "every kind of attribute": _every_attribute,
    }.items():
        made = model()
        change(made.graph.node[0])
        yield name, made


def _every_attribute(node) -> None:
    tensor = numpy_helper.from_array(np.arange(3.0), "t")
    sparse = helper.make_sparse_tensor(tensor, numpy_helper.from_array(np.arange(3)), [9])
    kind = helper.make_tensor_type_proto(1, [2, "n", None])
    for value in (1, -1, 2.5, float("nan"), "s", b"\xff", tensor, small_graph(), sparse, kind):
        node.attribute.append(helper.make_attribute(f"a{len(node.attribute)}", value))
    for value in ([1, -2], [0.5], ["a", "b"], [tensor], [small_graph()], [sparse], [kind]):
        node.attribute.append(helper.make_attribute(f"a{len(node.attribute)}", value))
    node.attribute[0].doc_string = "documented"


def _odd_values(model):
    made = model()
    made.graph.value_info.extend(
        [made.graph.output[0], helper.make_tensor_value_info("ghost", 7, None)]
    )
    made.graph.value_info.add(name="y", doc_string="again")
    yield "values described twice", made
    made = model()
    made.graph.output.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3]))
    yield "an input returned with another shape", made
    made = model()
    made.graph.input.add(name="untyped")
    made.graph.input.add(name="typed", type=onnx.TypeProto())
    yield "inputs without types", made
    inner = helper.make_tensor_type_proto(1, ["a", 2])
    for name, kind in {
        "sequence": helper.make_sequence_type_proto(inner),
        "optional": helper.make_optional_type_proto(helper.make_sequence_type_proto(inner)),
        "map": helper.make_map_type_proto(8, inner),
        "sparse": helper.make_sparse_tensor_type_proto(1, [3]),
        "opaque": onnx.TypeProto(opaque_type=onnx.TypeProto.Opaque(domain="d", name="n")),
        "bare": onnx.TypeProto(tensor_type=onnx.TypeProto.Tensor()),
        "unknown element": onnx.TypeProto(tensor_type=onnx.TypeProto.Tensor(elem_type=99)),
        "denoted": onnx.TypeProto(denotation="IMAGE", tensor_type=inner.tensor_type),
    }.items():
        made = model()
        made.graph.value_info.append(helper.make_value_info("v", kind))
        made.graph.value_info[0].metadata_props.add(key="k", value="v")
        yield f"type {name}", made
    made = model()
    made.graph.input[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    made.graph.input[0].type.tensor_type.shape.dim.add()
    yield "denoted dimension", made
    made = model()
    made.graph.quantization_annotation.add(tensor_name="x").quant_parameter_tensor_names.add(
        key="SCALE_TENSOR", value="nowhere"
    )
    made.graph.metadata_props.add(key="a", value="b")
    made.configuration.add(name="c", num_devices=2, device=["d0", "d1"])
    made.training_info.add(
        initialization=small_graph(), algorithm=small_graph()
    ).update_binding.add(key="w", value="x")
    made.functions.append(
        helper.make_function(
            "local",
            "F",
            ["a"],
            ["b"],
            [helper.make_node("Neg", ["a"], ["b"])],
            [helper.make_opsetid("", 20)],
            ["p"],
            [helper.make_attribute("q", 1)],
            "doc",
            "o",
            [helper.make_tensor_value_info("a", 1, None)],
        )
    )
    yield "annotations, training, functions", made


def _odd_tensors(model):
    for name, tensor in {
        "segment": TensorProto(
            name="w", dims=[2], data_type=1, segment=TensorProto.Segment(begin=1, end=2)
        ),
        "raw and typed": TensorProto(
            name="w", dims=[1], data_type=1, raw_data=b"abcd", float_data=[1]
        ),
        "documented": TensorProto(name="w", dims=[0], data_type=1, doc_string="d"),
        "located in the file": TensorProto(name="w", dims=[0], data_type=1, data_location=0),
        "no type": TensorProto(name="w", dims=[0]),
        "strings": TensorProto(name="w", dims=[2], data_type=8, string_data=[b"a", b"\xff"]),
        "nameless": TensorProto(dims=[1], data_type=7, int64_data=[-1]),
    }.items():
        made = model()
        made.graph.initializer.append(tensor)
        made.graph.initializer[0].metadata_props.add(key="k", value="v")
        yield f"tensor {name}", made
    made = model()
    values = numpy_helper.from_array(np.arange(2.0), "s")
    made.graph.sparse_initializer.append(
        helper.make_sparse_tensor(values, numpy_helper.from_array(np.arange(2)), [4])
    )
    yield "sparse initializer", made


@pytest.mark.parametrize(("name", "model"), list(odd_models()))
def test_odd_fields(name: str, model: onnx.ModelProto) -> None:
    once = again(model.SerializeToString())
    assert in_order(once) == in_order(model)


def in_order(model: onnx.ModelProto) -> onnx.ModelProto:
    """What has no order may move when it is odd: metadata said twice, imports without a version."""
    model.opset_import.sort(key=lambda entry: (entry.domain, entry.version))
    for node in model.graph.node:
        node.metadata_props.sort(key=lambda entry: (entry.key, entry.value))
    return model


def field(number: int, content: bytes) -> bytes:
    return bytes((number << 3 | 2, len(content))) + content


@pytest.mark.parametrize(
    "place", ["model", "graph", "node", "value", "type", "dimension", "tensor"]
)
def test_unknown_fields_are_written_back(place: str) -> None:
    unknown = b"\xfa\x3f\x03abc"
    put = {name: unknown if name == place else b"" for name in
           ("model", "graph", "node", "value", "type", "dimension", "tensor")}  # fmt: skip
    dimension = field(1, b"\x08\x02" + put["dimension"])
    shape = field(2, dimension)
    kind = field(2, field(1, b"\x08\x01" + shape) + put["type"])
    value = field(11, field(1, b"x") + kind + put["value"])
    node = field(1, field(1, b"x") + field(2, b"y") + field(4, b"Relu") + put["node"])
    tensor = field(5, b"\x08\x01\x10\x01" + field(8, b"w") + field(9, b"abcd") + put["tensor"])
    content = b"\x08\x08" + field(7, node + tensor + value + put["graph"]) + put["model"]
    original = onnx.ModelProto.FromString(content)
    result = again(content)
    assert unknown in to_bytes(load(content))
    assert result == original and result.ByteSize() == original.ByteSize()


def test_packed_and_unpacked_encodings_are_both_read() -> None:
    unpacked = b"\x08\x03\x10\x07" + b"\x38\x01\x38\x02\x38\x03"
    packed = b"\x0a\x01\x03\x10\x07" + b"\x3a\x03\x01\x02\x03"
    floats = (
        b"\x08\x02\x10\x01"
        + b"\x25"
        + np.float32(1.5).tobytes()
        + b"\x25"
        + np.float32(2).tobytes()
    )
    from sardonyx.format.load import load_tensor

    assert (
        load_tensor(unpacked).numpy().tolist() == load_tensor(packed).numpy().tolist() == [1, 2, 3]
    )
    assert load_tensor(floats).numpy().tolist() == [1.5, 2.0]


TYPED = [number for number in TensorProto.DataType.values() if number not in (0, 8)]


@pytest.mark.parametrize("number", TYPED)
@pytest.mark.parametrize("count", [0, 1, 5])
@pytest.mark.parametrize("raw", [False, True])
def test_every_storage_of_every_type(number: int, count: int, raw: bool) -> None:
    from sardonyx.format.load import load_tensor

    dtype = helper.tensor_dtype_to_np_dtype(number)
    values = (np.arange(count) % 3 - (0 if number in (2, 4, 12, 13, 21, 24, 25) else 1)).astype(
        dtype
    )
    message = (
        numpy_helper.from_array(values, "t")
        if raw
        else helper.make_tensor("t", number, [count], values)
    )
    found = load_tensor(message).numpy()
    assert found.dtype == dtype and found.tobytes() == numpy_helper.to_array(message).tobytes()
