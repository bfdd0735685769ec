"""Run one node of `com.microsoft` here and on onnxruntime, and check inference on the way."""

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from sardonyx.dims import Expression
from sardonyx.dtypes import DataType, from_numpy
from sardonyx.format.read import read_model
from sardonyx.graph import Model
from sardonyx.ops.catalog import standard
from sardonyx.ops.evaluate import Evaluator
from sardonyx.ops.fact import Fact
from sardonyx.ops.infer import infer_facts
from tests.ops.exact_products import assert_codes

Inputs = Sequence[Any]
Attributes = dict[str, Any]


class Draw:
    """Random inputs, the same in every run."""

    def __init__(self, seed: int = 0) -> None:
        self.generator = np.random.default_rng(seed)

    def floats(self, *shape: int, dtype: Any = np.float32) -> Any:
        """Normally distributed numbers."""
        return self.generator.standard_normal(shape).astype(dtype)

    def whole(self, low: int, high: int, *shape: int, dtype: Any = np.int32) -> Any:
        """Whole numbers from `low` up to, and without, `high`."""
        return self.generator.integers(low, high, shape).astype(dtype)

    def codes(self, dtype: Any, *shape: int) -> Any:
        """Any numbers of an integer type."""
        limits = ml_dtypes.iinfo(dtype)
        return self.whole(int(limits.min), int(limits.max) + 1, *shape, dtype=dtype)


def node_model(
    op: str, inputs: Inputs, attributes: Attributes, outputs: int = 1, *,
    constants: Sequence[int] = (), symbolic: bool = False, domain: str = "com.microsoft",
    unused: Sequence[int] = (),
) -> onnx.ModelProto:  # fmt: skip
    """A model of one node; inputs at `constants` are initializers, outputs at `unused` unnamed."""
    names = ["" if item is None else f"i{index}" for index, item in enumerate(inputs)]
    made = ["" if index in unused else f"o{index}" for index in range(outputs)]
    node = helper.make_node(op, names, made, domain=domain, **attributes)
    infos, tensors = [], []
    for index, item in enumerate(inputs):
        if item is None:
            continue
        if index in constants:
            tensors.append(_tensor(item, names[index]))
            continue
        shape = [f"i{index}_{axis}" for axis in range(item.ndim)] if symbolic else list(item.shape)
        infos.append(
            helper.make_tensor_value_info(names[index], int(from_numpy(item.dtype)), shape)
        )
    graph = helper.make_graph([node], "g", infos, [], tensors)
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in made if name)
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def _tensor(array: Any, name: str) -> onnx.TensorProto:
    if from_numpy(array.dtype) == DataType.STRING:
        content = [str(item).encode() for item in array.reshape(-1)]
        return helper.make_tensor(name, TensorProto.STRING, array.shape, content)
    return numpy_helper.from_array(array, name)


def read(proto: onnx.ModelProto) -> Model:
    """The model as this package reads it."""
    return read_model(memoryview(proto.SerializeToString()), "test", None)


def _feeds(inputs: Inputs, constants: Sequence[int]) -> dict[str, Any]:
    return {
        f"i{index}": np.asarray(item)
        for index, item in enumerate(inputs)
        if item is not None and index not in constants
    }


def run_here(
    op: str, inputs: Inputs, attributes: Attributes | None = None, outputs: int = 1, **rest: Any
) -> list[Any]:
    """Evaluate one node with the reference."""
    model = read(node_model(op, inputs, attributes or {}, outputs, **rest))
    evaluator = Evaluator(model, catalog=standard(), seed=0)
    return evaluator.run(None, _feeds(inputs, rest.get("constants", ())))


def run_there(
    op: str, inputs: Inputs, attributes: Attributes, outputs: int, types: Sequence[Any], **rest: Any
) -> list[Any]:
    """Evaluate one node on onnxruntime's CPU provider; its outputs are known to have `types`.

    Types that NumPy lacks are passed as constants and cast to float on the way out.
    """
    constants = list(rest.pop("constants", ()))
    constants += [
        index for index, item in enumerate(inputs) if item is not None and _narrow(item.dtype)
    ]
    proto = node_model(op, inputs, attributes, outputs, constants=constants, **rest)
    for info, dtype in zip(proto.graph.output, types, strict=True):
        info.type.tensor_type.elem_type = int(from_numpy(dtype))
        if _narrow(dtype):
            cast = helper.make_node(
                "Cast", [info.name], [info.name + "_wide"], to=TensorProto.FLOAT
            )
            proto.graph.node.append(cast)
            info.name += "_wide"
            info.type.tensor_type.elem_type = TensorProto.FLOAT
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    results = session.run(None, _feeds(inputs, constants))
    return [item.astype(dtype) for item, dtype in zip(results, types, strict=True)]


def _narrow(dtype: Any) -> bool:
    return bool(dtype.isbuiltin == 2)


def assert_close(actual: Any, expected: Any, rtol: float = 1e-4, atol: float = 1e-5) -> None:
    """Equal type, shape and, within tolerances, elements."""
    assert isinstance(actual, np.ndarray), f"{type(actual)} is not an array"
    assert actual.dtype == expected.dtype, f"{actual.dtype} where {expected.dtype} is expected"
    assert actual.shape == expected.shape, f"{actual.shape} where {expected.shape} is expected"
    if expected.dtype == object:
        assert actual.tolist() == expected.tolist()
        return
    wide = (actual.astype(np.float64), expected.astype(np.float64))
    np.testing.assert_allclose(*wide, rtol=rtol, atol=atol)


def check(
    op: str, inputs: Inputs, attributes: Attributes | None = None, outputs: int = 1, *,
    rtol: float = 1e-4, atol: float = 1e-5, dynamic: bool = False, **rest: Any,
) -> list[Any]:  # fmt: skip
    """Compare a node with onnxruntime and its inferred types with the results; returns them."""
    attributes = attributes or {}
    actual = run_here(op, inputs, attributes, outputs, **rest)
    types = [item.dtype for item in actual]
    expected = run_there(op, inputs, attributes, outputs, types, **rest)
    for left, right in zip(actual, expected, strict=True):
        assert_close(left, right, rtol, atol)
    check_inference(op, inputs, attributes, outputs, actual, dynamic=dynamic, **rest)
    return actual


def check_against(
    expected: Any, op: str, inputs: Inputs, attributes: Attributes | None = None,
    outputs: int = 1, *, rtol: float = 1e-4, atol: float = 1e-5, dynamic: bool = False, **rest: Any,
) -> None:  # fmt: skip
    """Compare a node's outputs with arrays made otherwise, where onnxruntime has no kernel."""
    actual = run_here(op, inputs, attributes, outputs, **rest)
    for left, right in zip(
        actual, expected if isinstance(expected, tuple) else (expected,), strict=True
    ):
        assert_close(left, right, rtol, atol)
    check_inference(op, inputs, attributes or {}, outputs, actual, dynamic=dynamic, **rest)


def check_codes(
    real: Any, zero: Any, op: str, inputs: Inputs, attributes: Attributes | None = None,
    **rest: Any,
) -> None:  # fmt: skip
    """Compare a node's quantized output with real numbers, given in steps of its scale."""
    (found,) = run_here(op, inputs, attributes, **rest)
    assert found.dtype == zero.dtype
    assert_codes(found, real, zero)
    check_inference(op, inputs, attributes or {}, 1, [found], **rest)


def check_inference(
    op: str, inputs: Inputs, attributes: Attributes, outputs: int, results: list[Any], *,
    dynamic: bool = False, **rest: Any,
) -> None:  # fmt: skip
    """Inferred types hold for known and for symbolic input sizes, and inference needs neither.

    With `dynamic` sizes depend on elements, and need not be known even for known input sizes.
    """
    for symbolic in (False, True):
        model = read(node_model(op, inputs, attributes, outputs, symbolic=symbolic, **rest))
        facts = infer_facts(model, strict=True)
        assert model.graph is not None
        for value, result in zip(model.graph.outputs, results, strict=True):
            _check_fact(
                facts[value], np.asarray(result), inputs, whole=not symbolic and not dynamic
            )
    model = read(node_model(op, inputs, attributes, outputs, symbolic=True, **rest))
    assert model.graph is not None
    for value in model.graph.inputs:
        value.declared = None
    infer_facts(model, strict=True)


def _check_fact(fact: Fact, result: Any, inputs: Inputs, *, whole: bool) -> None:
    assert fact.dtype == from_numpy(result.dtype), f"{fact} where {result.dtype} came"
    if fact.shape is None and not whole:
        return
    assert fact.shape is not None, f"no rank where {result.shape} came"
    assert len(fact.shape) == result.ndim, f"{fact} where {result.shape} came"
    sizes: dict[str, Any] = {
        f"i{index}_{axis}": size
        for index, item in enumerate(inputs)
        if item is not None
        for axis, size in enumerate(item.shape)
    }
    for size, real in zip(fact.shape, result.shape, strict=True):
        known = size.substitute(sizes) if isinstance(size, Expression) else size
        if isinstance(known, int):
            assert known == real, f"{fact} where {result.shape} came"
        else:
            assert not whole, f"{fact} is not known whole where {result.shape} came"
