"""Element types and constants of a graph about which nothing was inferred."""

import numpy as np
import pytest
from onnx import parser

from sardonyx.dtypes import DataType
from sardonyx.errors import ConversionError, UnlistedTypeError
from sardonyx.graph import Graph, Node, Tensor, TensorType, Value
from sardonyx.ops.build import Builder
from sardonyx.ops.early_opsets import known_rank, known_shape
from sardonyx.ops.element_type import constant_like, constant_value, element_type, refuse
from tests.ops.one_node import load

MODEL = """<ir_version: 10, opset_import: ["": 21]>
g (float16[2] x, int32[2] i, bool[2] b) => (y) <double[1] w = {1.0}> {
  relu = Relu(x) sum = Add(relu, x) shape = Shape(sum) cast = Cast<to = 7>(relu)
  like = CastLike(sum, i) equal = Equal(sum, x) constant = Constant<value = int8[1] {3}>()
  where = Where(b, unknown, w) filled = ConstantOfShape<value = uint8[1] {3}>(shape)
  largest, places = TopK(i, shape) custom = my.domain.Thing(x) y = Identity(custom)
}"""


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("x", DataType.FLOAT16),
        ("sum", DataType.FLOAT16),
        ("shape", DataType.INT64),
        ("cast", DataType.INT64),
        ("like", DataType.INT32),
        ("equal", DataType.BOOL),
        ("constant", DataType.INT8),
        ("where", DataType.DOUBLE),
        ("filled", DataType.UINT8),
        ("largest", DataType.INT32),
        ("places", DataType.INT64),
        ("y", None),
    ],
)
def test_element_type(name: str, kind: DataType | None) -> None:
    text = MODEL.replace("custom = my.domain.Thing(x) y = Identity(custom)", "y = Identity(custom)")
    model = load(parser.parse_model(text).SerializeToString())
    assert model.graph is not None
    assert element_type(model.graph.value(name)) == kind


def test_element_type_of_a_loop_in_the_graph_ends() -> None:
    first, second = Value("a"), Value("b")
    Node("Relu", [first], [second])
    Node("Relu", [second], [first])
    assert element_type(first) is None
    assert element_type(None) is None


def test_constant_value() -> None:
    held = Value("c", None, Tensor(np.int64([1, 2])))
    assert constant_value(held).tolist() == [1, 2]
    for name, value, expected in (
        ("value", Tensor(np.float64([2])), [2]),
        ("value_ints", (3, 4), [3, 4]),
        ("value_int", 5, 5),
        ("value_float", 0.5, 0.5),
        ("value_floats", (0.5,), [0.5]),
    ):
        assert (
            constant_value(Node("Constant", [], ["c"], {name: value}).output).tolist() == expected
        )
    assert constant_value(Node("Relu", [held]).output) is None
    assert constant_value(Value("x")) is None and constant_value(None) is None


def test_constant_like() -> None:
    graph = Graph("g")
    half = graph.add_input("x", TensorType(DataType.FLOAT16, None))
    untyped = graph.add_input("u")
    made = constant_like(Builder(graph, 13), 0.5, half)
    assert (made.tensor.dtype, made.tensor.numpy().tolist()) == (DataType.FLOAT16, 0.5)
    assert constant_like(Builder(graph, 15), 0.5, untyped).producer.op_type == "CastLike"
    with pytest.raises(ConversionError, match="element type of 'u' must be known"):
        constant_like(Builder(graph, 14), 0.5, untyped)


def test_refuse() -> None:
    node = Node("Relu", [Value("x", TensorType(DataType.BFLOAT16, None))])
    build = Builder(Graph("g"), 12)
    refuse(node, build, DataType.INT4)
    with pytest.raises(UnlistedTypeError, match="bfloat16 is not allowed"):
        refuse(node, build, DataType.INT4, DataType.BFLOAT16)
    refuse(node, Builder(Graph("g"), 12, keep_types=True), DataType.BFLOAT16)


def test_shapes_behind_casts() -> None:
    x = Value("x", TensorType(DataType.FLOAT, (2, None)))
    behind = Node("Cast", [Node("Identity", [x]).output], attributes={"to": 7}).output
    assert known_shape(behind) == (2, None) and known_rank(behind) == 2
    assert known_shape(Node("Relu", [x]).output) is None and known_rank(None) is None
