"""Models of one node for differential tests: made with onnx, run here and by onnxruntime."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper

from sardonyx.format.read import read_model
from sardonyx.format.write import write_model
from sardonyx.graph import Model
from sardonyx.ops.convert import convert_opset
from sardonyx.ops.evaluate import Evaluator
from sardonyx.ops.infer import infer_shapes


def element(array: Any) -> int:
    """ONNX's number for an array's element type."""
    if array.dtype.kind in "OU":
        return int(onnx.TensorProto.STRING)
    return int(helper.np_dtype_to_tensor_dtype(array.dtype))


def one_node(
    op_type: str, inputs: Mapping[str, Any], outputs: Sequence[str | Any], opset: int = 22, *,
    domain: str = "", version: int | None = None, shapes: Mapping[str, Any] | None = None,
    arguments: Sequence[str] | None = None, **attributes: Any,
) -> bytes:  # fmt: skip
    """A model with one node whose inputs are `inputs` in order (None: absent).

    `arguments` names the node's inputs where that is not the order of `inputs`. Outputs are names,
    or full declarations. `version` is the operator's domain's version, where it is not the default.
    """
    given = {name: item for name, item in inputs.items() if item is not None}
    names = list(arguments or (name if item is not None else "" for name, item in inputs.items()))
    while names and not names[-1]:
        names.pop()
    declared = [
        onnx.ValueInfoProto(name=item) if isinstance(item, str) else item
        for item in outputs
        if item
    ]
    made = [item if isinstance(item, str) else item.name for item in outputs]
    node = helper.make_node(op_type, names, made, domain=domain, **attributes)
    typed = [
        helper.make_tensor_value_info(name, element(item), (shapes or {}).get(name, item.shape))
        for name, item in given.items()
    ]
    graph = helper.make_graph([node], "g", typed, declared)
    opsets = [helper.make_opsetid("", opset)]
    if domain:
        opsets.append(helper.make_opsetid(domain, version or 1))
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


def load(content: bytes) -> Model:
    """Our model of some bytes."""
    return read_model(memoryview(content), "test", None)


def run_here(content: bytes, inputs: Mapping[str, Any]) -> list[Any]:
    """What our reference makes of it."""
    return run_model(load(content), inputs)


def run_model(model: Model, inputs: Mapping[str, Any]) -> list[Any]:
    """What our reference makes of a model; absent inputs are left out."""
    return Evaluator(model).run(
        None, {name: item for name, item in inputs.items() if item is not None}
    )


def run_there(content: bytes, inputs: Mapping[str, Any]) -> list[Any]:
    """What onnxruntime makes of it."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    return session.run(None, {name: item for name, item in inputs.items() if item is not None})


def run_converted(
    content: bytes, inputs: Mapping[str, Any], opset: int, domain: str = ""
) -> list[Any]:
    """What our reference makes of it after a conversion, which onnx's checker must accept."""
    model = convert_opset(infer_shapes(load(content)), opset, domain)
    written = write_model(model).joined()
    onnx.checker.check_model(onnx.load_from_string(written))
    return run_model(model, inputs)


def inferred(content: bytes, *, strict: bool = True) -> list[str]:
    """The types we infer for a model's outputs, as text."""
    graph = infer_shapes(load(content), strict=strict).graph
    assert graph is not None
    return [str(value.type) for value in graph.outputs]


def same(left: Sequence[Any], right: Sequence[Any], rtol: float = 1e-5, atol: float = 1e-6) -> None:
    """Fail unless two lists of outputs agree in type, shape and elements."""
    assert len(left) == len(right)
    for mine, theirs in zip(left, right, strict=True):
        if isinstance(theirs, np.ndarray) and theirs.dtype.kind in "OUS":
            assert [str(item) for item in mine.ravel()] == [str(item) for item in theirs.ravel()]
            assert mine.shape == theirs.shape
        elif isinstance(theirs, np.ndarray):
            assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
            np.testing.assert_allclose(
                mine.astype(np.float64), theirs.astype(np.float64), rtol=rtol, atol=atol
            )
        else:
            assert mine == theirs
