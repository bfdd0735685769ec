"""Attributes: making and reading them, beside the real onnx."""

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.compat.differential import Call, assert_same


def tensor(onnx: Any) -> Any:
    return onnx.helper.make_tensor("t", onnx.TensorProto.FLOAT, [1], [1.0])


def sparse(onnx: Any) -> Any:
    return onnx.helper.make_sparse_tensor(tensor(onnx), tensor(onnx), [3])


def graph(onnx: Any) -> Any:
    return onnx.helper.make_graph([], "inner", [], [])


def type_proto(onnx: Any) -> Any:
    return onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, [1])


def plain(value: Any) -> Call:
    """An attribute with a value that needs no onnx module."""

    def call(onnx: Any, folder: Path) -> Any:
        attribute = onnx.helper.make_attribute("a", value, doc_string="doc")
        return attribute, onnx.helper.get_attribute_value(attribute)

    return call


def built(build: Any) -> Call:
    """An attribute with a value made by `build(onnx)`."""

    def call(onnx: Any, folder: Path) -> Any:
        attribute = onnx.helper.make_attribute("a", build(onnx))
        return attribute, onnx.helper.get_attribute_value(attribute)

    return call


def of_type(value: Any, kind: str) -> Call:
    """An attribute with a stated type."""
    return lambda onnx, folder: onnx.helper.make_attribute(
        "a", value, attr_type=getattr(onnx.AttributeProto, kind)
    )


VALUES: dict[str, Any] = {
    "int": 5,
    "negative int": -5,
    "largest int": 2**63 - 1,
    "int overflow": 2**63,
    "int underflow": -(2**63) - 1,
    "bool": True,
    "float": 1.5,
    "float rounded": 0.1,
    "float overflow": 1e300,
    "nan": math.nan,
    "inf": -math.inf,
    "fraction": Fraction(1, 3),
    "complex": 1j,
    "str": "abc",
    "str beyond ASCII": "\u00e9\U0001f600",
    "lone surrogate": "\ud800",
    "bytes": b"\xff\x00",
    "bytearray": bytearray(b"ab"),
    "memoryview": memoryview(b"ab"),
    "None": None,
    "object": object(),
    "empty list": [],
    "empty str": "",
    "ints": [1, 2],
    "bools": [True, False],
    "floats": [1.0, 2.5],
    "mixed numbers": [1, 2.5],
    "ints overflow": [2**63],
    "floats nan": [math.nan],
    "strs": ["a", "b"],
    "bytes list": [b"a", b"\xff"],
    "str and bytes": ["a", b"b"],
    "str and int": ["a", 1],
    "None list": [None],
    "nested": [[1], [2]],
    "tuple": (1, 2),
    "range": range(3),
    "set": {4},
    "dict": {1: 2, 3: 4},
    "dict of str": {"k": 1},
    "numpy int64": np.int64(3),
    "numpy uint8": np.uint8(3),
    "numpy uint64 overflow": np.uint64(2**63),
    "numpy float32": np.float32(0.1),
    "numpy float16": np.float16(0.1),
    "numpy float64": np.float64(0.1),
    "numpy bool": np.bool_(True),
    "numpy str": np.str_("x"),
    "numpy bytes": np.bytes_(b"x"),
    "numpy complex": np.complex64(1),
    "bfloat16": ml_dtypes.bfloat16(1.5),
    "int4": ml_dtypes.int4(3),
    "array of ints": np.arange(3),
    "array of int8": np.arange(3, dtype=np.int8),
    "array of uint64": np.array([2**63], np.uint64),
    "array of floats": np.array([1.5, 2.5], np.float32),
    "array of bool": np.array([True, False]),
    "array of str": np.array(["a", "b"]),
    "array of objects": np.array([1, "b"], dtype=object),
    "array 2-d": np.zeros((2, 2)),
    "array 0-d": np.array(3),
    "array empty": np.array([]),
    "array of bfloat16": np.array([1.5], ml_dtypes.bfloat16),
}

CASES: dict[str, Call] = {f"value {name}": plain(value) for name, value in VALUES.items()}
CASES |= {
    "generator": lambda onnx, folder: onnx.helper.make_attribute("a", (i for i in range(3))),
    "empty generator": lambda onnx, folder: onnx.helper.make_attribute("a", iter(())),
    "tensor": built(tensor),
    "sparse": built(sparse),
    "graph": built(graph),
    "type": built(type_proto),
    "tensors": built(lambda onnx: [tensor(onnx), tensor(onnx)]),
    "sparse tensors": built(lambda onnx: [sparse(onnx)]),
    "graphs": built(lambda onnx: [graph(onnx), graph(onnx)]),
    "types": built(lambda onnx: (type_proto(onnx),)),
    "tensor and graph": built(lambda onnx: [tensor(onnx), graph(onnx)]),
    "node": built(lambda onnx: onnx.helper.make_node("Relu", ["x"], ["y"])),
    "nodes": built(lambda onnx: [onnx.helper.make_node("Relu", ["x"], ["y"])]),
    "key None": lambda onnx, folder: onnx.helper.make_attribute(None, 1),
    "key bytes": lambda onnx, folder: onnx.helper.make_attribute(b"a", 1),
    "key int": lambda onnx, folder: onnx.helper.make_attribute(1, 1),
    "key empty": lambda onnx, folder: onnx.helper.make_attribute("", 1),
    "doc empty": lambda onnx, folder: onnx.helper.make_attribute("a", 1, ""),
    "doc int": lambda onnx, folder: onnx.helper.make_attribute("a", 1, 7),
}
for _kind in [
    "FLOAT",
    "INT",
    "STRING",
    "TENSOR",
    "GRAPH",
    "SPARSE_TENSOR",
    "TYPE_PROTO",
    "FLOATS",
    "INTS",
    "STRINGS",
    "TENSORS",
    "GRAPHS",
    "SPARSE_TENSORS",
    "TYPE_PROTOS",
    "UNDEFINED",
]:
    CASES[f"{_kind} empty list"] = of_type([], _kind)
    CASES[f"{_kind} ints"] = of_type([1, 2], _kind)
    CASES[f"{_kind} floats"] = of_type([1.5], _kind)
    CASES[f"{_kind} strings"] = of_type(["a", b"b"], _kind)
    CASES[f"{_kind} int"] = of_type(3, _kind)
    CASES[f"{_kind} text"] = of_type("a", _kind)
    CASES[f"{_kind} None"] = of_type(None, _kind)


@pytest.mark.parametrize("name", CASES)
def test_making_same_as_onnx(name: str, tmp_path: Path) -> None:
    assert_same(CASES[name], tmp_path)


def _raw(onnx: Any, **fields: Any) -> Any:
    return onnx.AttributeProto(name="a", **fields)


def _node(onnx: Any, *attributes: Any) -> Any:
    node = onnx.helper.make_node("Op", ["x"], ["y"])
    node.attribute.extend(attributes)
    return node


READING: dict[str, Call] = {
    "reference": lambda onnx, folder: onnx.helper.get_attribute_value(
        onnx.helper.make_attribute_ref("a", onnx.AttributeProto.INT)
    ),
    "undefined": lambda onnx, folder: onnx.helper.get_attribute_value(_raw(onnx)),
    "undefined with value": lambda onnx, folder: onnx.helper.get_attribute_value(_raw(onnx, i=3)),
    "type without value": lambda onnx, folder: onnx.helper.get_attribute_value(
        _raw(onnx, type=onnx.AttributeProto.FLOATS)
    ),
    "not an attribute": lambda onnx, folder: onnx.helper.get_attribute_value(3),
    "from node": lambda onnx, folder: onnx.helper.get_node_attr_value(
        _node(onnx, onnx.helper.make_attribute("axis", 3)), "axis"
    ),
    "from node, absent": lambda onnx, folder: onnx.helper.get_node_attr_value(_node(onnx), "axis"),
    "from node, twice": lambda onnx, folder: onnx.helper.get_node_attr_value(
        _node(onnx, *[onnx.helper.make_attribute("axis", 3)] * 2), "axis"
    ),
    "from None": lambda onnx, folder: onnx.helper.get_node_attr_value(None, "axis"),
    "ref": lambda onnx, folder: onnx.helper.make_attribute_ref("a", onnx.AttributeProto.INTS),
    "ref of another name": lambda onnx, folder: onnx.helper.make_attribute_ref(
        "a", 2, "doc", ref_attr_name="b"
    ),
    "ref of empty name": lambda onnx, folder: onnx.helper.make_attribute_ref(
        "a", 2, ref_attr_name=""
    ),
    "ref, empty name": lambda onnx, folder: onnx.helper.make_attribute_ref("", 2),
    "ref, name None": lambda onnx, folder: onnx.helper.make_attribute_ref(None, 2),
    "ref, bad type": lambda onnx, folder: onnx.helper.make_attribute_ref("a", 99),
    "ref, type None": lambda onnx, folder: onnx.helper.make_attribute_ref("a", None),
    "ref, positional name": lambda onnx, folder: onnx.helper.make_attribute_ref("a", 2, "d", "b"),
}


@pytest.mark.parametrize("name", READING)
def test_reading_same_as_onnx(name: str, tmp_path: Path) -> None:
    assert_same(READING[name], tmp_path)
