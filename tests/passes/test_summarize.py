"""What a model is, in figures."""

from pathlib import Path

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.graph import Model, Tensor
from sardonyx.passes import summarize as module
from sardonyx.passes.summarize import dynamic_dimensions, summarize, weight_statistics, with_sizes
from tests.passes.cases import model_of

ROW = "(float[n,3] x) => (float[n,3] y)"


def warnings(model: Model) -> tuple[str, ...]:
    return summarize(model).warnings


@pytest.mark.parametrize(("opset", "old"), [(7, True), (12, True), (13, False), (21, False)])
def test_an_old_opset(opset: int, old: bool) -> None:
    found = warnings(model_of(ROW, "y = Neg(x)", opset=opset, ir=8))
    assert found == ((f"opset {opset} is old (the newest is 28): `sardonyx convert --opset` "
                      "raises it",) if old else ())  # fmt: skip


def test_no_opset_is_not_an_old_one() -> None:
    model = model_of(ROW, "y = Neg(x)")
    model.opsets = sx.Opsets({"local": 1})
    assert not any("is old" in text for text in warnings(model))


def test_what_is_not_used_or_not_known() -> None:
    model = model_of(
        "(float[n,3] x, float z, float d) => (y)", "a = Neg(x) y = Odd(a)",
        "float u = {1}", "float d = {2}", "float v = {1}",
    )  # fmt: skip
    assert warnings(model) == (
        "1 values have no known shape, the first is 'y'",
        "the input 'z' is not used",
        "3 constants are not used, the first is 'u'",
        "operators that are not known here: Odd",
    )


def test_functions_are_known() -> None:
    model = sx.load_text(
        '<ir_version: 10, opset_import: ["": 21, "local": 1]>'
        "g (float[n] x) => (float[n] y) { y = local.f(x) }"
        '<domain: "local", opset_import: ["": 21]> f (p) => (r) { r = Neg(p) }'
    )
    found = summarize(model)
    assert found.warnings == () and found.functions == ("local.f",)
    assert found.operators == {"local.f": 1, "Neg": 1} and found.nodes == 2


def test_sizes_from_which_on_constants_are_worth_a_remark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HUGE_CONSTANT", 16)
    for count, told in ((3, False), (4, True)):
        numbers = ", ".join(["1"] * count)
        body = f"c = Constant<value = float[{count}] {{{numbers}}}>() y = Add(x, c)"
        found = warnings(model_of(f"(float[{count}] x) => (float[{count}] y)", body))
        assert any("16 bytes in an attribute" in text for text in found) is told
    for dtype, count, told in ((np.int64, 1023, False), (np.int64, 1024, True),
                               (np.int32, 1024, False)):  # fmt: skip
        model = model_of("(int64 x) => (int64[?] y)", "c = Cast<to=7>(w) y = Add(x, c)",
                         "int64[1] w = {0}")  # fmt: skip
        assert model.graph is not None
        model.graph.value("w").tensor = Tensor(np.zeros(count, dtype), "w")
        text = "1 weights are int64 and take 8,192 bytes, the first is 'w'"
        assert any(item.startswith(text) for item in warnings(model)) is told


def test_arguments_dimensions_and_costs() -> None:
    model = model_of(
        "(float[n,3] x, float[?,n] z, float[2] c) => (float[n,4] y, float[n,4] t)",
        "y = MatMul(x, w) t = Relu(y)", "float[3,4] w = {1,2,3,4,5,6,7,8,9,10,11,12}",
        "float[2] c = {1,2}",
    )  # fmt: skip
    found = summarize(model)
    assert [(item.name, item.type) for item in found.inputs] == [
        ("x", "float[n,3]"), ("z", "float[?,n]")
    ]  # fmt: skip
    assert found.dynamic_dimensions == ("n", "z[0]")
    assert (found.parameters, found.weight_bytes, found.memory_bytes) == (14, 56, 56)
    assert found.flops == "24*n" and summarize(model, {"n": 5}).flops == "120"
    assert found.uncounted == 0 and found.ir_version == 10 and found.opsets == {"ai.onnx": 21}
    assert model.graph is not None
    assert list(dynamic_dimensions(model.graph.inputs)) == ["n", "z[0]"]


def test_a_type_that_is_not_declared_is_inferred() -> None:
    model = model_of(ROW, "y = Neg(x)")
    assert model.graph is not None
    model.graph.outputs[0].type = None
    assert summarize(model).outputs[0].type == "float[n,3]"
    model.graph.outputs[0].type = sx.TensorType(sx.DataType.FLOAT, None)
    assert summarize(model).outputs[0].type == "float[n,3]"
    model.graph.outputs[0].type = sx.TensorType(sx.DataType.FLOAT, ("m", 3))
    assert summarize(model).outputs[0].type == "float[m,3]"


def test_sizes_for_dimensions() -> None:
    model = model_of("(float[n,?,2] x, float[-1] z, float[0] k) => (float y)", "y = ReduceSum(x)")
    twin = with_sizes(model, {"n": 4, "x[1]": 5, "z[0]": 6, "k[0]": 7, "x[2]": 8})
    assert twin.graph is not None and model.graph is not None
    assert [str(value.type) for value in twin.graph.inputs] == [
        "float[4,5,2]", "float[6]", "float[0]"
    ]  # fmt: skip
    assert str(model.graph.inputs[0].type) == "float[n,?,2]"


def test_narrow_weights_and_quantizing_nodes() -> None:
    body = "q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) y = Add(d, k)"
    model = model_of("(float[3] x) => (float[3] y)", body, "float s = {0.1}", "uint8 z = {0}",
                     "float[3] k = {1,2,3}", "int8[2] p = {1,2}", "uint8[3] r = {1,2,3}",
                     "bool[2] b = {0,1}", "int8[1] h = {1}", "int16[2] w = {1,2}")  # fmt: skip
    found = summarize(model)
    assert found.quantization == {
        "QuantizeLinear": 1, "DequantizeLinear": 1, "int8 weights": 1, "uint8 weights": 1,
    }  # fmt: skip


def test_elements_below_a_byte_take_one_each_in_memory() -> None:
    model = model_of(ROW, "y = Neg(x)", "float[1] w = {0}")
    assert model.graph is not None
    model.graph.value("w").tensor = Tensor(np.array([1, 2, 3], sx.DataType.INT4.numpy), "w")
    found = summarize(model)
    assert (found.parameters, found.weight_bytes, found.memory_bytes) == (3, 2, 3)
    assert found.quantization == {"int4 weights": 1}


def test_external_data(tmp_path: Path) -> None:
    model = model_of(ROW, "a = Add(x, w) y = Mul(a, v)", "float[3] w = {1,2,3}",
                     "float[3] v = {4,5,6}")  # fmt: skip
    sx.save(model, tmp_path / "m.onnx", external_data="w.bin", size_threshold=0)
    opened = sx.load(tmp_path / "m.onnx")
    assert summarize(opened).external_data == {"w.bin": 24}
    assert opened.graph is not None
    tensor = opened.graph.initializers[0].tensor
    assert isinstance(tensor, Tensor) and weight_statistics(tensor).external == "w.bin"


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.array([0, 2, -4, 0], np.float32), (-4, 2, -0.5, 0.5, 0, 0)),
        (np.array([np.nan, np.inf, -np.inf, 3], np.float64), (3, 3, 3, 0, 1, 2)),
        (np.array([np.nan], np.float16), (None, None, None, 0, 1, 0)),
        (np.array([1, 0, 5], np.uint8), (0, 5, 2, 1 / 3, 0, 0)),
        (np.array([-1, 7], sx.DataType.INT4.numpy), (-1, 7, 3, 0, 0, 0)),
        (np.array([15, 1], sx.DataType.UINT4.numpy), (1, 15, 8, 0, 0, 0)),
        (np.array([1.5, -2], sx.DataType.BFLOAT16.numpy), (-2, 1.5, -0.25, 0, 0, 0)),
        (np.array([True]), (None, None, None, None, 0, 0)),
        (np.array(["a"], object), (None, None, None, None, 0, 0)),
        (np.zeros(0, np.float32), (None, None, None, None, 0, 0)),
    ],
    ids=str,
)
def test_statistics_of_weights(array: np.ndarray, expected: tuple[float | None, ...]) -> None:
    found = weight_statistics(Tensor(array, "w"))
    figures = (found.minimum, found.maximum, found.mean, found.zeros)
    assert (*figures, found.nans, found.infinities) == expected
    assert found.name == "w" and found.external == ""
