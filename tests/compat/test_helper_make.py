"""Nodes, graphs, functions, models and types, beside the real onnx."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx as real
import pytest

from sardonyx.compat import onnx as ours
from tests.compat.differential import Call, assert_same


def value(onnx: Any, name: str = "x", shape: Any = (2, "n", None)) -> Any:
    return onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)


def weight(onnx: Any) -> Any:
    return onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT, [2], [1.0, 2.0])


def graph(onnx: Any, **options: Any) -> Any:
    node = onnx.helper.make_node("Add", ["x", "w"], ["y"], name="add", doc_string="adds")
    return onnx.helper.make_graph([node], "g", [value(onnx)], [value(onnx, "y")], **options)


def function(onnx: Any) -> Any:
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    return onnx.helper.make_function(
        "d", "f", ["x"], ["y"], [node], [onnx.helper.make_opsetid("", 17)]
    )


def sparse(onnx: Any) -> Any:
    places = onnx.helper.make_tensor("i", onnx.TensorProto.INT64, [2], [0, 3])
    return onnx.helper.make_sparse_tensor(weight(onnx), places, [4])


def node(*arguments: Any, **options: Any) -> Call:
    return lambda onnx, folder: onnx.helper.make_node(*arguments, **options)


def model(**options: Any) -> Call:
    return lambda onnx, folder: onnx.helper.make_model(graph(onnx), **options)


def opsets(*pairs: tuple[str, int], **options: Any) -> Call:
    """The lowest IR version for operator sets."""
    return lambda onnx, folder: onnx.helper.find_min_ir_version_for(
        [onnx.helper.make_opsetid(*pair) for pair in pairs], **options
    )


def generated(*pairs: tuple[str, int], **options: Any) -> Call:
    return lambda onnx, folder: onnx.helper.make_model_gen_version(
        graph(onnx), opset_imports=[onnx.helper.make_opsetid(*pair) for pair in pairs], **options
    )


CASES: dict[str, Call] = {
    "node": node("Relu", ["x"], ["y"]),
    "node with all": node("Op", ["x", ""], ["y", "z"], "n", "doc", "dom", "over", axis=1, k=[1.0]),
    "node sorted attributes": node("Op", [], [], b=1, a=2, C=3),
    "node attribute None": node("Op", ["x"], ["y"], axis=None),
    "node attribute empty": node("Op", ["x"], ["y"], axes=[]),
    "node empty strings": node("Op", [], [], name="", doc_string="", domain="", overload=""),
    "node text as inputs": node("Op", "xy", "z"),
    "node bytes as inputs": node("Op", [b"x"], ["y"]),
    "node bad UTF-8 input": node("Op", [b"\xff"], ["y"]),
    "node generators": lambda onnx, folder: onnx.helper.make_node("Op", iter("ab"), iter("c")),
    "node tuple": node("Op", ("x",), ("y",)),
    "node inputs None": node("Op", None, ["y"]),
    "node input None": node("Op", [None], ["y"]),
    "node op_type None": node(None, ["x"], ["y"]),
    "node op_type int": node(3, ["x"], ["y"]),
    "node array attribute": node("Op", ["x"], ["y"], axes=np.arange(3)),
    "node graph attribute": lambda onnx, folder: onnx.helper.make_node(
        "If", ["c"], ["y"], then_branch=graph(onnx)
    ),
    "node bad attribute": node("Op", ["x"], ["y"], value=object()),
    "node name int": node("Op", ["x"], ["y"], name=3),
    "opset": lambda onnx, folder: onnx.helper.make_opsetid("ai.onnx.ml", 3),
    "opset by the longer name": lambda onnx, folder: onnx.helper.make_operatorsetid("", 0),
    "opset domain None": lambda onnx, folder: onnx.helper.make_opsetid(None, 3),
    "opset version text": lambda onnx, folder: onnx.helper.make_opsetid("", "3"),
    "opset version float": lambda onnx, folder: onnx.helper.make_opsetid("", 3.5),
    "graph": lambda onnx, folder: graph(onnx),
    "graph with all": lambda onnx, folder: graph(
        onnx,
        initializer=[weight(onnx)],
        doc_string="doc",
        value_info=[value(onnx, "v")],
        sparse_initializer=[sparse(onnx)],
    ),
    "graph of generators": lambda onnx, folder: onnx.helper.make_graph(
        iter([onnx.helper.make_node("Relu", ["x"], ["y"])]), "g", iter([value(onnx)]), iter(())
    ),
    "graph name None": lambda onnx, folder: onnx.helper.make_graph([], None, [], []),
    "graph of wrong things": lambda onnx, folder: onnx.helper.make_graph(
        [value(onnx)], "g", [], []
    ),
    "graph of names": lambda onnx, folder: onnx.helper.make_graph([], "g", ["x"], ["y"]),
    "graph inputs None": lambda onnx, folder: onnx.helper.make_graph([], "g", None, []),
    "graph initializer array": lambda onnx, folder: graph(onnx, initializer=np.zeros(2)),
    "function": lambda onnx, folder: function(onnx),
    "function with all": lambda onnx, folder: onnx.helper.make_function(
        "d",
        "f",
        ["x"],
        ["y"],
        [],
        [],
        ["alpha"],
        [onnx.helper.make_attribute("beta", 1.0)],
        "doc",
        "over",
        [value(onnx)],
    ),
    "function bad node": lambda onnx, folder: onnx.helper.make_function("d", "f", [], [], [1], []),
    "function bad opset": lambda onnx, folder: onnx.helper.make_function(
        "d", "f", [], [], [], ["a"]
    ),
    "function no nodes": lambda onnx, folder: onnx.helper.make_function("d", "f", [], [], None, []),
    "model": model(),
    "model producer": model(producer_name="p", producer_version="1", domain="d", model_version=3),
    "model doc": model(doc_string="doc", ir_version=4),
    "model unknown field": model(color="red"),
    "model repeated field": model(metadata_props=[]),
    "model bad field value": model(ir_version="8"),
    "model no opsets": model(opset_imports=[]),
    "model opsets": lambda onnx, folder: onnx.helper.make_model(
        graph(onnx), opset_imports=[onnx.helper.make_opsetid("", 11)], functions=[function(onnx)]
    ),
    "model bad opsets": model(opset_imports=[1]),
    "model bad functions": model(functions=[1]),
    "model of None": lambda onnx, folder: onnx.helper.make_model(None),
    "model of a node": lambda onnx, folder: onnx.helper.make_model(
        onnx.helper.make_node("Relu", ["x"], ["y"])
    ),
    "generated version": generated(("", 17)),
    "generated version of two": generated(("", 9), ("ai.onnx.ml", 3)),
    "generated version unknown": generated(("mine", 1)),
    "generated version given": generated(("mine", 1), ir_version=8),
    "generated version of nothing": lambda onnx, folder: onnx.helper.make_model_gen_version(
        graph(onnx)
    ),
    "lowest IR of nothing": opsets(),
    "lowest IR unknown": opsets(("mine", 1)),
    "lowest IR unknown ignored": opsets(("mine", 1), ("", 13), ignore_unknown=True),
    "lowest IR of too new": opsets(("", 99)),
    "lowest IR of None": lambda onnx, folder: onnx.helper.find_min_ir_version_for(None),
    "lowest IR of numbers": lambda onnx, folder: onnx.helper.find_min_ir_version_for([1]),
    "version table": lambda onnx, folder: onnx.helper.VERSION_TABLE,
    "version map": lambda onnx, folder: onnx.helper.OP_SET_ID_VERSION_MAP,
    "metadata": lambda onnx, folder: with_metadata(onnx, {"a": "1", "b": "2"}),
    "metadata empty": lambda onnx, folder: with_metadata(onnx, {}),
    "metadata of numbers": lambda onnx, folder: with_metadata(onnx, {"a": 1}),
    "metadata of None": lambda onnx, folder: with_metadata(onnx, None),
    "metadata of a tensor": lambda onnx, folder: with_metadata(onnx, {"a": "1"}, weight(onnx)),
    "metadata of a type": lambda onnx, folder: with_metadata(onnx, {"a": "1"}, onnx.TypeProto()),
    "training": lambda onnx, folder: onnx.helper.make_training_info(
        graph(onnx), [("a", "b")], graph(onnx), [("c", "d"), ("e", "f")]
    ),
    "training without start": lambda onnx, folder: onnx.helper.make_training_info(
        graph(onnx), [], None, None
    ),
    "training bad pair": lambda onnx, folder: onnx.helper.make_training_info(
        graph(onnx), [("a",)], None, None
    ),
    "training of None": lambda onnx, folder: onnx.helper.make_training_info(None, [], None, None),
    "strip nothing": lambda onnx, folder: onnx.helper.strip_doc_string("text"),
}
for _version in range(30):
    CASES[f"lowest IR for opset {_version}"] = opsets(("", _version))
for _domain in ("ai.onnx", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview.training"):
    CASES[f"lowest IR for {_domain}"] = opsets((_domain, 1))


def with_metadata(onnx: Any, entries: Any, message: Any = None) -> Any:
    message = onnx.ModelProto() if message is None else message
    onnx.helper.set_metadata_props(message, {"old": "entry"})
    onnx.helper.set_metadata_props(message, entries)
    if isinstance(message, onnx.ModelProto):
        onnx.helper.set_model_props(message, entries)
    return message


@pytest.mark.parametrize("name", CASES)
def test_same_as_onnx(name: str, tmp_path: Path) -> None:
    assert_same(CASES[name], tmp_path)


SHAPES: dict[str, Any] = {
    "none": None,
    "scalar": [],
    "sizes": [1, 2],
    "mixed": ["n", 3, None, 0, -1],
    "tuple": (1, "m"),
    "text": "ab",
    "bool": [True],
    "NumPy": [np.int64(3)],
    "array": np.array([2, 3]),
    "float": [1.5],
    "too large": [2**63],
    "bytes": [b"n"],
    "nested": [[1]],
    "number": 3,
    "empty name": [""],
}
TYPES: dict[str, Call] = {}
for _name, _shape in SHAPES.items():
    for _maker in ("make_tensor_type_proto", "make_sparse_tensor_type_proto"):
        TYPES[f"{_maker} {_name}"] = lambda onnx, folder, maker=_maker, shape=_shape: getattr(
            onnx.helper, maker
        )(onnx.TensorProto.FLOAT, shape)
    for _maker in (
        "make_tensor_value_info",
        "make_sparse_tensor_value_info",
        "make_tensor_sequence_value_info",
    ):
        TYPES[f"{_maker} {_name}"] = lambda onnx, folder, maker=_maker, shape=_shape: getattr(
            onnx.helper, maker
        )("v", onnx.TensorProto.INT8, shape, "doc")
for _maker in ("make_tensor_type_proto", "make_sparse_tensor_type_proto"):
    for _name, _denotations in {
        "fits": ["A", "B"],
        "too short": ["A"],
        "empty": [],
        "of numbers": [1, 2],
    }.items():
        TYPES[f"{_maker} denotation {_name}"] = (
            lambda onnx, folder, maker=_maker, denotations=_denotations: getattr(
                onnx.helper, maker
            )(1, [1, 2], denotations)
        )
    TYPES[f"{_maker} denotation without shape"] = lambda onnx, folder, maker=_maker: getattr(
        onnx.helper, maker
    )(1, None, ["A"])
    TYPES[f"{_maker} bad type"] = lambda onnx, folder, maker=_maker: getattr(onnx.helper, maker)(
        "FLOAT", [1]
    )


def _inner(onnx: Any) -> Any:
    return onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, [2])


TYPES |= {
    "sequence": lambda onnx, folder: onnx.helper.make_sequence_type_proto(_inner(onnx)),
    "sequence of None": lambda onnx, folder: onnx.helper.make_sequence_type_proto(None),
    "optional": lambda onnx, folder: onnx.helper.make_optional_type_proto(_inner(onnx)),
    "optional of text": lambda onnx, folder: onnx.helper.make_optional_type_proto("x"),
    "map": lambda onnx, folder: onnx.helper.make_map_type_proto(7, _inner(onnx)),
    "map bad key": lambda onnx, folder: onnx.helper.make_map_type_proto("a", _inner(onnx)),
    "map of None": lambda onnx, folder: onnx.helper.make_map_type_proto(7, None),
    "value": lambda onnx, folder: onnx.helper.make_value_info("v", _inner(onnx), "doc"),
    "value without doc": lambda onnx, folder: onnx.helper.make_value_info("v", _inner(onnx)),
    "value of None": lambda onnx, folder: onnx.helper.make_value_info("v", None),
    "value name None": lambda onnx, folder: onnx.helper.make_value_info(None, _inner(onnx)),
    "value empty": lambda onnx, folder: onnx.helper.make_empty_tensor_value_info("v"),
    "value empty None": lambda onnx, folder: onnx.helper.make_empty_tensor_value_info(None),
    "value denotation": lambda onnx, folder: onnx.helper.make_tensor_value_info(
        "v", 1, ["N", 3], shape_denotation=["BATCH", "CHANNEL"]
    ),
    "sequence value denotation": lambda onnx, folder: onnx.helper.make_tensor_sequence_value_info(
        "v", 1, [1], elem_shape_denotation=["BATCH"]
    ),
    "sparse value denotation": lambda onnx, folder: onnx.helper.make_sparse_tensor_value_info(
        "v", 1, [1], shape_denotation=["BATCH"]
    ),
}


@pytest.mark.parametrize("name", TYPES)
def test_types_same_as_onnx(name: str, tmp_path: Path) -> None:
    assert_same(TYPES[name], tmp_path)


MAPPINGS = (
    "tensor_dtype_to_np_dtype",
    "tensor_dtype_to_storage_tensor_dtype",
    "tensor_dtype_to_string",
    "tensor_dtype_to_field",
)


@pytest.mark.parametrize("name", MAPPINGS)
@pytest.mark.parametrize("kind", [*range(30), -1, "FLOAT", None, 1.0, []], ids=repr)
def test_element_types_same_as_onnx(name: str, kind: Any, tmp_path: Path) -> None:
    assert_same(lambda onnx, folder: getattr(onnx.helper, name)(kind), tmp_path)


NUMPY_TYPES = [
    *(row.np_dtype for row in real._mapping.TENSOR_TYPE_MAP.values()),
    *(np.dtype(text) for text in ("U5", "S5", ">f4", "<i8", "datetime64[s]", "longdouble", "V4")),
    np.dtype([("a", np.float32)]),
    np.float32,
    float,
    str,
    "float32",
    "U",
    None,
    [],
]


@pytest.mark.parametrize("dtype", NUMPY_TYPES, ids=repr)
def test_numpy_types_same_as_onnx(dtype: Any, tmp_path: Path) -> None:
    assert_same(lambda onnx, folder: onnx.helper.np_dtype_to_tensor_dtype(dtype), tmp_path)


def test_all_element_types() -> None:
    assert ours.helper.get_all_tensor_dtypes() == real.helper.get_all_tensor_dtypes()


def test_documentation_is_stripped_everywhere() -> None:
    """onnx fails here with protobuf 7, which has no field labels any more."""
    model = ours.helper.make_model(graph(ours, doc_string="g"), doc_string="m")
    inner = ours.helper.make_node("If", ["c"], ["y"], doc_string="n", then_branch=graph(ours))
    model.graph.node.append(inner)
    model.functions.append(function(ours))
    model.functions[0].doc_string = "f"
    plain = ours.ModelProto()
    plain.CopyFrom(model)
    ours.helper.strip_doc_string(model)
    assert b"adds" not in model.SerializeToString()
    assert not model.doc_string
    assert not model.graph.node[1].attribute[0].g.node[0].doc_string
    assert not model.functions[0].doc_string
    assert plain.graph.node[0].doc_string == "adds"
    assert model.graph.node[0].op_type == "Add"
