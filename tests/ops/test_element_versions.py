"""Every version of every operator on elements, brought to the newest: is it valid, does it run?"""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from sardonyx.dtypes import DataType
from sardonyx.format.write import write_model
from sardonyx.graph import AttributeType
from sardonyx.ops.catalog import NEWEST_OPSETS, standard
from sardonyx.ops.convert import convert_opset
from sardonyx.ops.signature import Signature
from tests.ops.one_node import load, run_model

FAMILIES = [
    "activations",
    "arithmetic",
    "bitwise",
    "cast",
    "comparison",
    "cumulative",
    "loss",
    "quantization",
    "random_numbers",
    "reduction",
    "softmax",
    "unary",
]
BY_TEXT = {f"tensor({kind.text})": kind for kind in DataType}
INPUTS: dict[tuple[str, int], Any] = {
    ("CumSum", 1): np.array(0),
    ("CumProd", 1): np.array(0),
    ("NegativeLogLikelihoodLoss", 1): np.array([0, 1]),
    ("NegativeLogLikelihoodLoss", 2): np.ones(3),
    ("SoftmaxCrossEntropyLoss", 1): np.array([0, 1]),
    ("SoftmaxCrossEntropyLoss", 2): np.ones(3),
    ("QuantizeLinear", 1): np.array(1.0),
    ("QuantizeLinear", 2): np.array(1),
    ("DequantizeLinear", 1): np.array(1.0),
    ("DequantizeLinear", 2): np.array(0),
    ("Clip", 1): np.array(0),
    ("Clip", 2): np.array(2),
    ("Dropout", 1): np.array(0.25),
    ("Dropout", 2): np.array(0),
}
ATTRIBUTES: dict[str, dict[str, Any]] = {
    "BitShift": {"direction": "LEFT"},
    "RandomNormal": {"shape": [2, 3]},
    "RandomUniform": {"shape": [2, 3]},
    "RandomNormalLike": {"dtype": 1},
    "RandomUniformLike": {"dtype": 1},
}


def cases() -> list[tuple[str, int, str]]:
    found = []
    for (domain, name), operator in sorted(standard().items()):
        if domain == "" and operator.__module__.rpartition(".")[2] in FAMILIES:
            for version in operator.versions():
                kinds = version.types(version.inputs[0]) if version.inputs else ("tensor(float)",)
                found += [(name, version.since, kind) for kind in kinds]
    return found


def assign(version: Signature, first: str) -> dict[str, str]:
    """A type for each constraint: the first input's as asked for, the others' any allowed one."""
    chosen = {version.inputs[0].type: first} if version.inputs else {}
    for name, types in version.constraints.items():
        chosen.setdefault(name, first if first in types else types[0])
    return chosen


def model_of(name: str, since: int, kind: str) -> tuple[bytes, dict[str, Any]]:
    version = next(item for item in standard()["", name].versions() if item.since == since)
    chosen = assign(version, kind)
    inputs, infos, names = {}, [], []
    for place, formal in enumerate(version.inputs):
        if name.startswith("Reduce") and place == 1:
            continue
        element = BY_TEXT[chosen.get(formal.type, formal.type)]
        numbers = INPUTS.get((name, place), np.array([[0, 1, 1], [1, 0, 1]]))
        array = numbers.astype(str).astype(object) if element == DataType.STRING else numbers
        inputs[f"in{place}"] = array.astype(element.numpy)
        names.append(f"in{place}")
        infos.append(helper.make_tensor_value_info(f"in{place}", int(element), numbers.shape))
    given = dict(ATTRIBUTES.get(name, {}))
    if name in ("Cast", "BitCast"):
        to = DataType.FLOAT if name == "Cast" else BY_TEXT[kind]
        given["to"] = "FLOAT" if version.attributes["to"].kind == AttributeType.STRING else int(to)
    outputs = [f"out{place}" for place in range(len(version.outputs))]
    node = helper.make_node(name, names, outputs, **given)
    graph = helper.make_graph(
        [node], "g", infos, [onnx.ValueInfoProto(name=item) for item in outputs]
    )
    opsets = [helper.make_opsetid("", since)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString(), inputs


@pytest.mark.parametrize(("name", "since", "kind"), cases())
def test_upgrade(name: str, since: int, kind: str) -> None:
    content, inputs = model_of(name, since, kind)
    converted = convert_opset(load(content), NEWEST_OPSETS[""])
    written = onnx.load_from_string(write_model(converted).joined())
    inferred = onnx.shape_inference.infer_shapes(written, check_type=True, strict_mode=True)
    results = run_model(converted, inputs)
    for result, value in zip(results, inferred.graph.output, strict=True):
        declared = value.type.tensor_type
        assert DataType(declared.elem_type).numpy == result.dtype
        if declared.HasField("shape"):
            assert [size.dim_value for size in declared.shape.dim] == list(result.shape)
