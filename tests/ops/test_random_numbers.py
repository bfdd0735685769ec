"""Operators that draw random numbers: checked by their statistics, and for being repeatable."""

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper

from sardonyx.dtypes import DataType
from sardonyx.errors import ConversionError, EvaluationError
from sardonyx.ops.catalog import standard
from sardonyx.ops.convert import convert_opset
from sardonyx.ops.evaluate import Evaluator
from tests.ops.one_node import inferred, load, one_node, run_converted, run_here, run_model

SHAPE = [100, 200]
FLOATS = [np.float16, np.float32, np.float64, ml_dtypes.bfloat16]
RANDOM = [
    "Bernoulli",
    "Dropout",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
]
LIKE = np.zeros(SHAPE, np.float32)


def test_all_are_marked_random() -> None:
    assert all(standard()["", name].random for name in RANDOM)


def _number(dtype: Any) -> int:
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("like", [True, False])
def test_normal(dtype: Any, like: bool) -> None:
    name = "RandomNormalLike" if like else "RandomNormal"
    inputs = {"x": LIKE} if like else {}
    shape = {} if like else {"shape": SHAPE}
    content = one_node(
        name, inputs, ["y"], 22, mean=2.0, scale=3.0, seed=1.0, dtype=_number(dtype), **shape
    )
    (result,) = run_here(content, inputs)
    wide = result.astype(np.float64)
    assert (result.dtype, list(result.shape)) == (dtype, SHAPE)
    assert abs(wide.mean() - 2) < 0.1 and abs(wide.std() - 3) < 0.1
    inside = np.mean(np.abs(wide - 2) < 3)
    assert abs(inside - 0.6827) < 0.02
    assert inferred(content) == [f"{DataType(_number(dtype)).text}[100,200]"]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("like", [True, False])
def test_uniform(dtype: Any, like: bool) -> None:
    name = "RandomUniformLike" if like else "RandomUniform"
    inputs = {"x": LIKE} if like else {}
    shape = {} if like else {"shape": SHAPE}
    content = one_node(
        name, inputs, ["y"], 22, low=-2.0, high=4.0, seed=7.0, dtype=_number(dtype), **shape
    )
    (result,) = run_here(content, inputs)
    wide = result.astype(np.float64)
    assert (result.dtype, list(result.shape)) == (dtype, SHAPE)
    assert wide.min() >= -2 and wide.max() <= 4
    assert abs(wide.mean() - 1) < 0.1 and abs(wide.var() - 3) < 0.1
    quarters = np.histogram(wide, 4, (-2, 4))[0] / wide.size
    assert np.max(np.abs(quarters - 0.25)) < 0.02


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_type_may_be_copied(dtype: Any) -> None:
    inputs = {"x": np.zeros((3,), dtype)}
    for name in ("RandomNormalLike", "RandomUniformLike"):
        assert run_here(one_node(name, inputs, ["y"], 22), inputs)[0].dtype == dtype
    whole = {"x": np.zeros((3,), np.int32)}
    with pytest.raises(EvaluationError, match="cannot be int32"):
        run_here(one_node("RandomNormalLike", whole, ["y"], 22), whole)
    named = one_node("RandomNormalLike", whole, ["y"], 22, dtype=1)
    assert run_here(named, whole)[0].dtype == np.float32


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [(None, np.float32), (6, np.int32), (9, np.bool_), (11, np.float64), (2, np.uint8),
     (16, ml_dtypes.bfloat16)],
)  # fmt: skip
@pytest.mark.parametrize("opset", [15, 14])
def test_bernoulli(dtype: int | None, expected: Any, opset: int) -> None:
    chances = np.repeat(np.float32([[0], [0.25], [0.75], [1]]), 5000, 1)
    given = {} if dtype is None else {"dtype": dtype}
    content = one_node("Bernoulli", {"x": chances}, ["y"], 15, seed=3.0, **given)
    if opset == 15:
        (result,) = run_here(content, {"x": chances})
    else:
        (result,) = run_converted(content, {"x": chances}, opset)
    assert result.dtype == expected
    numbers = result.astype(np.float64)
    assert set(np.unique(numbers)) == {0, 1}
    np.testing.assert_allclose(numbers.mean(1), [0, 0.25, 0.75, 1], atol=0.03)


@pytest.mark.parametrize("dtype", [6, 7])
@pytest.mark.parametrize("source", FLOATS)
def test_multinomial(dtype: int, source: Any) -> None:
    chances = np.array([[0.1, 0.2, 0.7], [0.5, 0.5, 0]])
    with np.errstate(divide="ignore"):
        logs = (np.log(chances) + 3).astype(source)
    inputs = {"x": logs}
    content = one_node("Multinomial", inputs, ["y"], 22, sample_size=20000, dtype=dtype, seed=5.0)
    (result,) = run_here(content, inputs)
    assert (result.shape, result.dtype) == ((2, 20000), DataType(dtype).numpy)
    for row, expected in zip(result, chances, strict=True):
        found = np.bincount(row, minlength=3) / row.size
        np.testing.assert_allclose(found, expected, atol=0.02)
    assert inferred(content) == [f"{DataType(dtype).text}[2,20000]"]


@pytest.mark.parametrize("dtype", [*FLOATS, ml_dtypes.float8_e5m2])
@pytest.mark.parametrize("ratio", [0.25, 0.75])
def test_dropout_in_training(dtype: Any, ratio: float) -> None:
    x = np.ones(SHAPE, dtype)
    inputs = {"x": x, "ratio": np.array(ratio, np.float32), "training": np.array(True)}
    content = one_node("Dropout", inputs, ["y", "mask"], 22, seed=4)
    result, mask = run_here(content, inputs)
    assert (result.dtype, mask.dtype) == (dtype, np.bool_)
    assert abs(mask.mean() - (1 - ratio)) < 0.02
    scaled = np.float32(1 / (1 - ratio)).astype(dtype).astype(np.float32)
    np.testing.assert_array_equal(result.astype(np.float32), np.where(mask, scaled, 0))


@pytest.mark.parametrize(
    "inputs",
    [
        {},
        {"training": np.array(False)},
        {"ratio": np.array(0, np.float32), "training": np.array(True)},
    ],
)
def test_dropout_that_drops_nothing(inputs: dict[str, Any]) -> None:
    x = np.float32([1, 2, 3])
    given = {"x": x, "ratio": np.array(0.5, np.float32)} | inputs
    content = one_node("Dropout", given, ["y", "mask"], 22)
    result, mask = run_here(content, given)
    assert result.tolist() == [1, 2, 3] and mask.tolist() == [True] * 3


@pytest.mark.parametrize("opset", [1, 6, 7, 10])
@pytest.mark.parametrize("outputs", [["y"], ["y", "mask"]])
def test_dropout_of_older_opsets_is_inference(opset: int, outputs: list[str]) -> None:
    x = np.float32([[1, 2, 3]])
    extra = {"consumed_inputs": [0]} if opset == 1 else {}
    extra |= {"is_test": 1} if opset < 7 else {}
    content = one_node("Dropout", {"x": x}, outputs, opset, ratio=0.3, **extra)
    result = run_here(content, {"x": x})
    assert result[0].tolist() == x.tolist()
    if len(outputs) == 2:
        assert result[1].dtype == (np.float32 if opset < 10 else np.bool_)
        assert result[1].tolist() == [[1, 1, 1]]


def _with_constants(training: bool | None) -> bytes:
    names = ["x", "ratio"] if training is None else ["x", "ratio", "training"]
    constants = [helper.make_tensor("ratio", 1, [], [0.25])]
    if training is not None:
        constants.append(helper.make_tensor("training", 9, [], [training]))
    graph = helper.make_graph(
        [helper.make_node("Dropout", names, ["y", "mask"], seed=1)], "g",
        [helper.make_tensor_value_info("x", 1, [3])],
        [helper.make_tensor_value_info("y", 1, [3]), helper.make_tensor_value_info("mask", 9, [3])],
        constants,
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 13)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def test_dropout_downgrade() -> None:
    x = np.float32([1, 2, 3])
    for training in (None, False):
        content = _with_constants(training)
        for opset in (11, 9, 6):
            result, mask = run_converted(content, {"x": x}, opset)
            assert result.tolist() == [1, 2, 3] and mask.tolist() == [True] * 3
        lowered = convert_opset(load(content), 11)
        assert lowered.graph is not None
        assert [node.attribute("ratio") for node in lowered.graph.nodes] == [0.25]
    with pytest.raises(ConversionError, match="no training"):
        convert_opset(load(_with_constants(True)), 11)


def _content(name: str, seeded: bool) -> tuple[bytes, dict[str, Any]]:
    x = np.full((4, 5), 0.5, np.float32)
    seed = {"seed": 3 if name == "Dropout" else 3.0} if seeded else {}
    if name in ("RandomNormal", "RandomUniform"):
        return one_node(name, {}, ["y"], 22, shape=[4, 5], **seed), {}
    if name == "Multinomial":
        return one_node(name, {"x": x}, ["y"], 22, sample_size=20, **seed), {"x": x}
    if name == "Dropout":
        inputs = {"x": x, "ratio": np.array(0.5, np.float32), "training": np.array(True)}
        return one_node(name, inputs, ["y"], 22, **seed), inputs
    return one_node(name, {"x": x}, ["y"], 22, **seed), {"x": x}


@pytest.mark.parametrize("name", RANDOM)
def test_a_seed_makes_it_repeatable(name: str) -> None:
    content, inputs = _content(name, True)
    first = run_here(content, inputs)[0]
    np.testing.assert_array_equal(first, run_here(content, inputs)[0])
    other, inputs = _content(name, False)
    evaluator = Evaluator(load(other), seed=0)
    twice = [evaluator.run(None, inputs)[0] for _ in range(2)]
    assert not np.array_equal(*twice)
    again = Evaluator(load(other), seed=0).run(None, inputs)[0]
    np.testing.assert_array_equal(twice[0], again)


@pytest.mark.parametrize("name", [name for name in RANDOM if name != "Dropout"])
def test_scalars_and_nothing(name: str) -> None:
    if name == "Multinomial":
        inputs = {"x": np.zeros((0, 3), np.float32)}
        assert run_here(one_node(name, inputs, ["y"], 22, sample_size=4), inputs)[0].shape == (0, 4)
        return
    for shape in ((), (0, 2)):
        if name.endswith("Like") or name == "Bernoulli":
            inputs = {"x": np.zeros(shape, np.float32)}
            result = run_here(one_node(name, inputs, ["y"], 22), inputs)[0]
        else:
            model = onnx.load_from_string(one_node(name, {}, ["y"], 22, shape=[1]))
            model.graph.node[0].attribute[0].ints[:] = shape
            result = run_model(load(model.SerializeToString()), {})[0]
        assert isinstance(result, np.ndarray) and result.shape == shape
