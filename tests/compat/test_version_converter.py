"""`version_converter`: models of other versions that compute the same."""

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import onnx as real
import onnx.reference
import onnx.version_converter
import pytest

from sardonyx.compat import onnx as ours
from tests.compat.differential import assert_same
from tests.compat.text_models import model


def _text(opset: int, body: str, head: str = "float[2,3] X", ir: int = 8) -> str:
    return (
        f'<ir_version: {ir}, opset_import: ["" : {opset}]> g ({head}) => (float[M] Y) {{ {body} }}'
    )


X = np.array([[-1.5, 0.5, 2.0], [3.0, -0.25, 1.0]], np.float32)
CASES = {
    "squeeze up": (11, 13, "T = Unsqueeze <axes = [0]> (X) Y = Squeeze <axes = [0]> (T)"),
    "squeeze down": (13, 11, "A = Constant <value_ints = [0]> () T = Unsqueeze (X, A) "
                             "Y = Squeeze (T, A)"),
    "softmax up": (11, 13, "Y = Softmax <axis = 0> (X)"),
    "softmax down": (13, 11, "Y = Softmax <axis = 0> (X)"),
    "broadcast": (6, 7, "T = Transpose (X) U = MatMul (X, T) Y = Add <broadcast = 1> (U, U)"),
    "clip": (6, 11, "Y = Clip <min = 0.0, max = 1.0> (X)"),
    "dropout": (6, 13, "Y = Dropout <is_test = 1> (X)"),
    "pad": (2, 18, "Y = Pad <pads = [0, 1, 0, 0], value = 2.0> (X)"),
    "reduce": (11, 18, "Y = ReduceMean <axes = [1]> (X)"),
    "reduce down": (18, 11, "A = Constant <value_ints = [1]> () Y = ReduceMean (X, A)"),
    "gelu": (20, 14, "Y = Gelu (X)"),
    "mish": (22, 13, "Y = Mish (X)"),
    "layer norm": (17, 9, "S = Constant <value_floats = [1.0, 2.0, 3.0]> () "
                          "Y = LayerNormalization (X, S)"),
    "everything": (9, 28, "T = Relu (X) U = Sigmoid (T) Y = Mul (U, X)"),
    "same": (17, 17, "Y = Neg (X)"),
    "in a branch": (11, 13, "B = Constant <value = bool {1}> () Y = If (B) <"
        "then_branch = t () => (float[1,2,3] q) { q = Unsqueeze <axes = [0]> (X) },"
        "else_branch = e () => (float[1,2,3] r) { r = Unsqueeze <axes = [0]> (X) }>"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_conversion_keeps_the_meaning(name: str) -> None:
    before, after, body = CASES[name]
    if "Constant <value_" in body and min(before, after) < 12:
        body = body.replace("<value_ints = [", "<value = int64[1] {").replace("]>", "}>", 1)
        body = body.replace(
            "<value_floats = [1.0, 2.0, 3.0}>", "<value = float[3] {1.0, 2.0, 3.0}>"
        )
    source = model(ours, _text(before, body).replace("float[M] Y", "Y"))
    converted = ours.version_converter.convert_version(source, after)
    assert [(item.domain, item.version) for item in converted.opset_import] == [("", after)]
    theirs = real.ModelProto.FromString(converted.SerializeToString())
    real.checker.check_model(theirs)
    expected = ours.reference.ReferenceEvaluator(source).run(None, {"X": X})
    for evaluator in (real.reference.ReferenceEvaluator(theirs),
                      ours.reference.ReferenceEvaluator(converted)):  # fmt: skip
        for left, right in zip(evaluator.run(None, {"X": X}), expected, strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-6)


REFUSED = {
    "version 0": (11, 0, "Y = Neg (X)"),
    "version below": (11, -1, "Y = Neg (X)"),
    "version above": (11, 99, "Y = Neg (X)"),
    "from an unknown version": (99, 17, "Y = Neg (X)"),
    "unknown operator": (17, 18, "Y = NoSuch (X)"),
    "nothing older says it": (20, 19, "Y = StringConcat (X, X)"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    before, after, body = REFUSED[name]
    for o in (real, ours):
        with pytest.raises(RuntimeError):
            o.version_converter.convert_version(model(o, _text(before, body)), after)
    with pytest.raises(ours.version_converter.ConvertError):
        ours.version_converter.convert_version(model(ours, _text(before, body)), after)


def test_the_reason_names_the_node() -> None:
    source = model(ours, _text(20, "Y = StringConcat (X, X)"))
    with pytest.raises(RuntimeError, match=r"node of 'Y' \(StringConcat\).*begins with opset 20"):
        ours.version_converter.convert_version(source, 19)


CALLS: dict[str, Any] = {
    "bytes": lambda o: o.version_converter.convert_version(b"", 17),
    "graph": lambda o: o.version_converter.convert_version(o.GraphProto(), 17),
    "text": lambda o: o.version_converter.convert_version(model(o, _text(17, "Y = Neg (X)")), "17"),
    "no version": lambda o: o.version_converter.convert_version(model(o, _text(17, "Y = Neg (X)"))),
    "error": lambda o: [kind.__name__ for kind in o.version_converter.ConvertError.__mro__],
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name: str, tmp_path: Path) -> None:
    assert_same(lambda o, _: CALLS[name](o), tmp_path)


def test_what_stays() -> None:
    """Everything that is not about versions is as it was, and the source is untouched."""
    source = model(ours, _text(12, "T = Squeeze <axes = [0]> (X) Y = Neg (T)", "float[1,N] X"))
    source.producer_name, source.model_version, source.doc_string = "me", 5, "words"
    source.metadata_props.add(key="k", value="v")
    source.graph.doc_string = "more words"
    before = source.SerializeToString()
    converted = ours.version_converter.convert_version(source, 13)
    assert source.SerializeToString() == before
    for name in ("ir_version", "producer_name", "model_version", "doc_string", "metadata_props"):
        assert getattr(converted, name) == getattr(source, name)
    assert converted.graph.doc_string == "more words"
    assert converted.graph.input == source.graph.input
    assert [node.op_type for node in converted.graph.node] == ["Squeeze", "Neg"]


def test_early_models_keep_constants_as_inputs() -> None:
    """Before IR version 4 a constant is an input too, and one that is added becomes a node."""
    text = _text(10, "Y = Clip <min = 0.0> (X)", ir=3)
    converted = ours.version_converter.convert_version(model(ours, text), 12)
    assert not converted.graph.initializer
    assert [node.op_type for node in converted.graph.node] == ["Constant", "Clip"]
    real.checker.check_model(real.ModelProto.FromString(converted.SerializeToString()))


def test_a_constant_that_is_an_input_is_taken_for_what_it_holds() -> None:
    source = model(
        ours,
        '<ir_version: 8, opset_import: ["" : 13]>'
        "g (float[1,3] X, int64[1] A = {0}) => (float[3] Y) { Y = Squeeze (X, A) }",
    )
    converted = ours.version_converter.convert_version(source, 12)
    assert list(converted.graph.node[0].attribute[0].ints) == [0]
    assert [value.name for value in converted.graph.input] == ["X", "A"]


def test_functions_are_converted() -> None:
    source = model(
        ours,
        '<ir_version: 8, opset_import: ["" : 11, "local" : 1]> g (float[1,3] X) => (float[3] Y)'
        '{ Y = local.f (X) } <domain: "local", opset_import: ["" : 11]>'
        "f (x) => (y) { y = Squeeze <axes = [0]> (x) }",
    )
    converted = ours.version_converter.convert_version(source, 13)
    assert [node.op_type for node in converted.functions[0].node] == ["Constant", "Squeeze"]
    assert converted.functions[0].opset_import[0].version == 13
    result = ours.reference.ReferenceEvaluator(converted).run(None, {"X": X[:1]})
    np.testing.assert_array_equal(result[0], X[0])


def test_types_that_are_not_there_are_computed_in_wider_ones() -> None:
    source = model(ours, _text(28, "Y = CumSum (X, A)", "bfloat16[2,3] X, int64 A"))
    source.graph.output[0].type.tensor_type.elem_type = ours.TensorProto.BFLOAT16
    for version, expected in ((13, ["Cast", "CumSum", "Cast"]), (14, ["CumSum"])):
        converted = ours.version_converter.convert_version(source, version)
        assert [node.op_type for node in converted.graph.node] == expected
        real.checker.check_model(real.ModelProto.FromString(converted.SerializeToString()))


def test_signature() -> None:
    mine = inspect.signature(ours.version_converter.convert_version)
    theirs = inspect.signature(real.version_converter.convert_version)
    assert list(mine.parameters) == list(theirs.parameters)
