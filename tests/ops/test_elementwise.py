"""Every operator on elements, with every type its newest version admits and in awkward shapes."""

import ml_dtypes
import numpy as np
import pytest

from sardonyx.dtypes import DataType
from sardonyx.ops.catalog import standard
from sardonyx.ops.fact import Fact
from tests.ops.one_node import inferred, one_node, run_here

ATTRIBUTES = {
    "BitShift": {"direction": "LEFT"},
    "Shrink": {"lambd": 0.5, "bias": 0.25},
    "Celu": {"alpha": 2.0},
    "Mod": {"fmod": 0},
}
UNARY = [
    "Abs",
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "BitwiseNot",
    "Ceil",
    "Celu",
    "Clip",
    "Cos",
    "Cosh",
    "Elu",
    "Erf",
    "Exp",
    "Floor",
    "Gelu",
    "HardSigmoid",
    "HardSwish",
    "Hardmax",
    "IsInf",
    "IsNaN",
    "LeakyRelu",
    "Log",
    "LogSoftmax",
    "Mish",
    "Neg",
    "Not",
    "Reciprocal",
    "Relu",
    "Round",
    "Selu",
    "Shrink",
    "Sigmoid",
    "Sign",
    "Sin",
    "Sinh",
    "Softmax",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Swish",
    "Tan",
    "Tanh",
    "ThresholdedRelu",
]
BINARY = [
    "Add",
    "And",
    "BitShift",
    "BitwiseAnd",
    "BitwiseOr",
    "BitwiseXor",
    "Div",
    "Equal",
    "Greater",
    "GreaterOrEqual",
    "Less",
    "LessOrEqual",
    "Max",
    "Mean",
    "Min",
    "Mod",
    "Mul",
    "Or",
    "PRelu",
    "Pow",
    "Sub",
    "Sum",
    "SwiGLU",
    "Xor",
]
ALONG_AXIS = ("Hardmax", "LogSoftmax", "Softmax")
NUMBERS = np.array([[0.25, 0.75, 1.5], [2.0, 0.5, 3.0]])


def kinds(operator: str) -> list[DataType]:
    """The element types of an operator's first input."""
    version = standard()["", operator].newest()
    by_text = {f"tensor({kind.text})": kind for kind in DataType}
    return [by_text[text] for text in version.types(version.inputs[0])]


def of_kind(numbers: np.ndarray, kind: DataType) -> np.ndarray:
    if kind == DataType.STRING:
        return numbers.astype(str).astype(object)
    return numbers.astype(np.float32).astype(kind.numpy)


def cases(operators: list[str]) -> list[tuple[str, DataType]]:
    return [(name, kind) for name in operators for kind in kinds(name)]


def check(operator: str, inputs: dict[str, np.ndarray]) -> np.ndarray:
    """Run one node; the type and shape must be what inference says."""
    content = one_node(operator, inputs, ["result"], 28, **ATTRIBUTES.get(operator, {}))
    (result,) = run_here(content, inputs)
    assert isinstance(result, np.ndarray)
    kind = "string" if result.dtype == object else str(DataType[_name(result)].text)
    assert inferred(content) == [f"{kind}[{','.join(map(str, result.shape))}]"]
    return result


def _name(result: np.ndarray) -> str:
    return next(kind.name for kind in DataType if kind and kind.numpy == result.dtype)


def close(result: np.ndarray, wide: np.ndarray) -> None:
    """A result agrees with one computed in float64, to the precision of its own type."""
    if np.bool_ in (result.dtype, wide.dtype):
        np.testing.assert_array_equal(result, wide)
        return
    eps = 4 * float(ml_dtypes.finfo(result.dtype).eps)
    np.testing.assert_allclose(result.astype(np.float64), wide, rtol=eps, atol=eps)


@pytest.mark.parametrize(("operator", "kind"), cases(UNARY))
def test_unary(operator: str, kind: DataType) -> None:
    x = of_kind(NUMBERS, kind)
    result = check(operator, {"x": x})
    assert result.shape == x.shape
    if kind.is_float and kind.bits > 8:
        close(result, check(operator, {"x": x.astype(np.float64)}))


@pytest.mark.parametrize(("operator", "kind"), cases(BINARY))
def test_binary(operator: str, kind: DataType) -> None:
    x, y = of_kind(NUMBERS, kind), of_kind(np.array([1.0, 2.0, 0.75]), kind)
    if operator == "SwiGLU":
        y = np.broadcast_to(y, x.shape).copy()
    result = check(operator, {"x": x, "y": y})
    assert result.shape == x.shape
    if kind.is_float and kind.bits > 8:
        close(result, check(operator, {"x": x.astype(np.float64), "y": y.astype(np.float64)}))


@pytest.mark.parametrize("operator", [name for name in UNARY if name not in ALONG_AXIS])
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3)])
def test_unary_shapes(operator: str, shape: tuple[int, ...]) -> None:
    x = of_kind(np.full(shape, 0.5), kinds(operator)[0])
    assert check(operator, {"x": x}).shape == shape


@pytest.mark.parametrize("operator", ALONG_AXIS)
def test_along_axis_empty(operator: str) -> None:
    assert check(operator, {"x": np.zeros((2, 0), np.float32)}).shape == (2, 0)
    assert check(operator, {"x": np.zeros((0, 2), np.float32)}).shape == (0, 2)


@pytest.mark.parametrize("operator", [name for name in BINARY if name not in ("SwiGLU", "PRelu")])
@pytest.mark.parametrize(
    ("left", "right", "shape"),
    [((), (), ()), ((0, 2), (1, 2), (0, 2)), ((), (3,), (3,)), ((2, 1), (1, 3), (2, 3))],
)
def test_binary_shapes(
    operator: str, left: tuple[int, ...], right: tuple[int, ...], shape: tuple[int, ...]
) -> None:
    kind = kinds(operator)[0]
    x, y = of_kind(np.ones(left), kind), of_kind(np.ones(right), kind)
    assert check(operator, {"x": x, "y": y}).shape == shape


@pytest.mark.parametrize("operator", UNARY + BINARY)
def test_inputs_stay_as_they_are(operator: str) -> None:
    kind = kinds(operator)[0]
    inputs = {"x": of_kind(NUMBERS, kind)}
    if operator in BINARY:
        inputs["y"] = of_kind(NUMBERS, kind)
    for item in inputs.values():
        item.setflags(write=False)
    before = {name: item.copy() for name, item in inputs.items()}
    check(operator, inputs)
    for name, item in inputs.items():
        np.testing.assert_array_equal(item, before[name])


@pytest.mark.parametrize("operator", UNARY + BINARY)
def test_inference_bears_what_is_unknown(operator: str) -> None:
    hook = standard()["", operator].infer
    version = standard()["", operator].newest()
    assert hook is not None
    attributes = {
        name: ATTRIBUTES.get(operator, {}).get(name, formal.default)
        for name, formal in version.attributes.items()
    }
    facts = [Fact()] * (2 if operator in BINARY else 1)
    fact = hook(*facts, **attributes)
    assert fact.shape is None
    assert fact.dtype in (None, DataType.BOOL)
