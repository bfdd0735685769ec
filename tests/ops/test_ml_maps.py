"""Maps to tensors and back against onnxruntime."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from sardonyx.errors import SardonyxError
from tests.ops.one_node import inferred, one_node, run_here, run_there, same

SCORES = np.array([[1, -2, 3], [0.25, 5, 6]], np.float32)


def map_model(op_type, key, value, **attributes):
    """A model that takes a map."""
    kind = helper.make_map_type_proto(key, helper.make_tensor_type_proto(value, []))
    node = helper.make_node(op_type, ["X"], ["Y"], domain="ai.onnx.ml", **attributes)
    graph = helper.make_graph(
        [node], "g", [helper.make_value_info("X", kind)], [onnx.ValueInfoProto(name="Y")]
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


def agree(content, given):
    same(run_here(content, {"X": given}), run_there(content, {"X": given}))


@pytest.mark.parametrize("form", ["DENSE", "SPARSE"])
@pytest.mark.parametrize("target", ["TO_FLOAT", "TO_STRING", "TO_INT64"])
def test_cast_map(target, form):
    content = map_model("CastMap", TensorProto.INT64, TensorProto.FLOAT, cast_to=target,
                        map_form=form, max_map=5)  # fmt: skip
    agree(content, {3: 1.5, 1: 2.25})
    agree(content, {4: -1.75})
    words = map_model("CastMap", TensorProto.INT64, TensorProto.STRING, cast_to=target,
                      map_form="DENSE")  # fmt: skip
    (result,) = run_here(words, {"X": {7: "2.5", 2: "-3"}})
    assert result.tolist() == [
        {"TO_FLOAT": [-3, 2.5], "TO_STRING": ["-3", "2.5"], "TO_INT64": [-3, 2]}[target]
    ]


def test_cast_map_keys():
    content = map_model(
        "CastMap", TensorProto.INT64, TensorProto.FLOAT, map_form="SPARSE", max_map=3
    )
    agree(content, {7: 1.5, 1: 2.25})
    with pytest.raises(SardonyxError, match="negative"):
        run_here(content, {"X": {-1: 1.0}})
    assert inferred(content) == ["float[1,3]"]


def test_dict_vectorizer():
    content = map_model("DictVectorizer", TensorProto.STRING, TensorProto.FLOAT,
                        string_vocabulary=["a", "c", "b", "z"])  # fmt: skip
    agree(content, {"a": 4.0, "c": 8.5})
    agree(content, {"nowhere": 1.0})
    assert inferred(content) == ["float[1,4]"]
    content = map_model("DictVectorizer", TensorProto.INT64, TensorProto.FLOAT,
                        int64_vocabulary=[5, 1])  # fmt: skip
    agree(content, {1: 0.5})


@pytest.mark.parametrize(
    ("key", "value", "given", "expected"),
    [
        (TensorProto.INT64, TensorProto.STRING, {1: "x"}, ["", "x"]),
        (TensorProto.STRING, TensorProto.INT64, {"b": 3}, [0, 3]),
        (TensorProto.STRING, TensorProto.DOUBLE, {"b": 3.5}, [0, 3.5]),
        (TensorProto.INT64, TensorProto.DOUBLE, {}, [0, 0]),
    ],
)
def test_dict_vectorizer_types(key, value, given, expected):
    words = {"string_vocabulary": ["a", "b"]} if key == TensorProto.STRING else {}
    content = map_model("DictVectorizer", key, value, **(words or {"int64_vocabulary": [0, 1]}))
    (result,) = run_here(content, {"X": given})
    wanted = {
        TensorProto.STRING: object,
        TensorProto.INT64: np.int64,
        TensorProto.DOUBLE: np.float64,
    }
    assert (result.dtype, result.tolist()) == (wanted[value], [expected])


def test_zip_map():
    for x in (SCORES, SCORES[0], SCORES[:0]):
        for labels in ({"classlabels_int64s": [5, 6, 7]}, {"classlabels_strings": ["a", "b", "c"]}):
            content = one_node("ZipMap", {"X": x}, ["Z"], 17, domain="ai.onnx.ml", **labels)
            same(run_here(content, {"X": x}), run_there(content, {"X": x}))
    content = one_node("ZipMap", {"X": SCORES}, ["Z"], 17, domain="ai.onnx.ml",
                       classlabels_strings=["a", "b"])  # fmt: skip
    assert inferred(content) == ["seq(map(string, float[]))"]
    with pytest.raises(SardonyxError, match="3 columns for 2 labels"):
        run_here(content, {"X": SCORES})
