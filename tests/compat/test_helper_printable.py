"""Short text of messages, beside the real onnx."""

import warnings
from pathlib import Path
from typing import Any

import pytest

from tests.compat.differential import Call, assert_same

VALUES: dict[str, Any] = {
    "int": 3,
    "float": 0.1,
    "tiny float": 1e-30,
    "whole float": 2.0,
    "nan": float("nan"),
    "inf": float("inf"),
    "text": "abc",
    "quotes": 'it\'s "so"',
    "long text": "x" * 100,
    "text of 63": "x" * 63,
    "text of 64": "x" * 64,
    "broken UTF-8": b"a\xffb",
    "control characters": "a\nb\t\x00",
    "ints": [1, -2],
    "floats": [0.5, 1e10],
    "texts": ["a", "b" * 80],
    "broken texts": [b"\xff", b"ok"],
}


def tensor(onnx: Any, kind: str = "FLOAT", shape: Any = (), values: Any = (1,)) -> Any:
    return onnx.helper.make_tensor("t", getattr(onnx.TensorProto, kind), shape, values)


def graph(onnx: Any, inputs: Any = (), stored: Any = (), nodes: Any = ()) -> Any:
    make = onnx.helper.make_tensor_value_info
    return onnx.helper.make_graph(
        list(nodes) or [onnx.helper.make_node("Add", ["a", "b"], ["c"], alpha=1.5, beta=[1, 2])],
        "g",
        [make(name, onnx.TensorProto.FLOAT, ["n", 2, None]) for name in inputs],
        [make("c", onnx.TensorProto.FLOAT, [])],
        [onnx.helper.make_tensor(name, onnx.TensorProto.FLOAT, [2], [1, 2]) for name in stored],
    )


def nested(onnx: Any) -> Any:
    branch = onnx.helper.make_node(
        "If", ["p"], ["c"], then_branch=graph(onnx), else_branch=graph(onnx)
    )
    loops = onnx.helper.make_node("Many", [], [], bodies=[graph(onnx), graph(onnx, ["a"])])
    return graph(onnx, ["p"], nodes=[branch, loops])


def attribute(value: Any) -> Call:
    return lambda onnx, folder: onnx.helper.printable_attribute(
        onnx.helper.make_attribute("k", value)
    )


def shown(build: Any, **options: Any) -> Call:
    """The text of the attribute whose value is `build(onnx)`."""

    def call(onnx: Any, folder: Path) -> Any:
        return onnx.helper.printable_attribute(
            onnx.helper.make_attribute("k", build(onnx)), **options
        )

    return call


def type_of(onnx: Any, shape: Any = ("n", 2, None)) -> Any:
    return onnx.helper.make_tensor_type_proto(onnx.TensorProto.INT64, shape)


CASES: dict[str, Call] = {f"attribute {name}": attribute(value) for name, value in VALUES.items()}
CASES |= {
    "attribute tensor": shown(lambda onnx: tensor(onnx, shape=[1])),
    "attribute scalar": shown(tensor),
    "attribute scalar half": shown(lambda onnx: tensor(onnx, "FLOAT16")),
    "attribute scalar int8": shown(lambda onnx: tensor(onnx, "INT8")),
    "attribute scalar string": shown(lambda onnx: tensor(onnx, "STRING", values=["a"])),
    "attribute scalar raw": shown(
        lambda onnx: onnx.helper.make_tensor("t", onnx.TensorProto.UINT8, [], b"a", raw=True)
    ),
    "attribute tensor without type": shown(lambda onnx: onnx.TensorProto()),
    "attribute sparse": shown(
        lambda onnx: onnx.helper.make_sparse_tensor(tensor(onnx), tensor(onnx), [1])
    ),
    "attribute graph": shown(graph),
    "attribute graph listed": shown(graph, subgraphs=True),
    "attribute type": shown(type_of),
    "attribute tensors": shown(lambda onnx: [tensor(onnx)] * 2),
    "attribute sparse tensors": shown(
        lambda onnx: [onnx.helper.make_sparse_tensor(tensor(onnx), tensor(onnx), [1])]
    ),
    "attribute types": shown(lambda onnx: [type_of(onnx), type_of(onnx, [])]),
    "attribute graphs": shown(lambda onnx: [graph(onnx), graph(onnx)]),
    "attribute graphs listed": shown(lambda onnx: [graph(onnx), graph(onnx)], subgraphs=True),
    "attribute int listed": shown(lambda onnx: 3, subgraphs=True),
    "attribute without value": lambda onnx, folder: onnx.helper.printable_attribute(
        onnx.AttributeProto(name="k")
    ),
    "attribute reference": lambda onnx, folder: onnx.helper.printable_attribute(
        onnx.helper.make_attribute_ref("k", onnx.AttributeProto.INT)
    ),
    "dimension size": lambda onnx, folder: onnx.helper.printable_dim(
        onnx.TensorShapeProto.Dimension(dim_value=3)
    ),
    "dimension name": lambda onnx, folder: onnx.helper.printable_dim(
        onnx.TensorShapeProto.Dimension(dim_param="n")
    ),
    "dimension unknown": lambda onnx, folder: onnx.helper.printable_dim(
        onnx.TensorShapeProto.Dimension()
    ),
    "type": lambda onnx, folder: onnx.helper.printable_type(type_of(onnx)),
    "type scalar": lambda onnx, folder: onnx.helper.printable_type(type_of(onnx, [])),
    "type without shape": lambda onnx, folder: onnx.helper.printable_type(type_of(onnx, None)),
    "type without anything": lambda onnx, folder: onnx.helper.printable_type(onnx.TypeProto()),
    "type sequence": lambda onnx, folder: onnx.helper.printable_type(
        onnx.helper.make_sequence_type_proto(type_of(onnx))
    ),
    "type of unknown number": lambda onnx, folder: onnx.helper.printable_type(
        onnx.helper.make_tensor_type_proto(99, [])
    ),
    "value": lambda onnx, folder: onnx.helper.printable_value_info(
        onnx.helper.make_value_info("v", type_of(onnx))
    ),
    "value without type": lambda onnx, folder: onnx.helper.printable_value_info(
        onnx.helper.make_empty_tensor_value_info("v")
    ),
    "tensor": lambda onnx, folder: onnx.helper.printable_tensor_proto(
        tensor(onnx, shape=[1, 2], values=[1, 2])
    ),
    "tensor scalar": lambda onnx, folder: onnx.helper.printable_tensor_proto(tensor(onnx)),
    "tensor without type": lambda onnx, folder: onnx.helper.printable_tensor_proto(
        onnx.TensorProto(name="t")
    ),
    "tensor of unknown type": lambda onnx, folder: onnx.helper.printable_tensor_proto(
        onnx.TensorProto(name="t", data_type=99)
    ),
    "node": lambda onnx, folder: onnx.helper.printable_node(
        onnx.helper.make_node("Add", ["a", ""], ["b", "c"], z=1, y="s")
    ),
    "node without outputs": lambda onnx, folder: onnx.helper.printable_node(
        onnx.helper.make_node("Print", ["a"], []), "> "
    ),
    "node listed": lambda onnx, folder: onnx.helper.printable_node(
        nested(onnx).node[0], "  ", subgraphs=True
    ),
    "node not listed": lambda onnx, folder: onnx.helper.printable_node(nested(onnx).node[0]),
    "graph": lambda onnx, folder: onnx.helper.printable_graph(graph(onnx)),
    "graph inputs": lambda onnx, folder: onnx.helper.printable_graph(graph(onnx, ["a", "b"])),
    "graph defaults": lambda onnx, folder: onnx.helper.printable_graph(graph(onnx, ["a"], ["a"])),
    "graph inputs and defaults": lambda onnx, folder: onnx.helper.printable_graph(
        graph(onnx, ["a", "b"], ["b"])
    ),
    "graph initializers": lambda onnx, folder: onnx.helper.printable_graph(
        graph(onnx, ["a"], ["w", "v"])
    ),
    "graph all": lambda onnx, folder: onnx.helper.printable_graph(
        graph(onnx, ["a", "b"], ["b", "w"]), "## "
    ),
    "graph only initializers": lambda onnx, folder: onnx.helper.printable_graph(
        graph(onnx, [], ["w"])
    ),
    "graph nested": lambda onnx, folder: onnx.helper.printable_graph(nested(onnx)),
    "graph empty": lambda onnx, folder: onnx.helper.printable_graph(onnx.GraphProto()),
    "graph of None": lambda onnx, folder: onnx.helper.printable_graph(None),
    "repr of model": lambda onnx, folder: repr(onnx.helper.make_model(nested(onnx))),
    "repr of full model": lambda onnx, folder: repr(full_model(onnx)),
    "repr of empty model": lambda onnx, folder: repr(onnx.ModelProto()),
    "repr of graph": lambda onnx, folder: repr(graph(onnx, ["a"], ["a", "w"])),
    "repr of empty graph": lambda onnx, folder: repr(onnx.GraphProto()),
    "repr of function": lambda onnx, folder: repr(full_model(onnx).functions[0]),
    "repr of empty function": lambda onnx, folder: repr(onnx.FunctionProto()),
    "repr of node": lambda onnx, folder: repr(graph(onnx).node[0]),
    "str of model": lambda onnx, folder: str(full_model(onnx)),
}


def full_model(onnx: Any) -> Any:
    helper = onnx.helper
    function = helper.make_function(
        "d",
        "f",
        ["x"],
        ["y"],
        [helper.make_node("Relu", ["x"], ["y"])],
        [helper.make_opsetid("", 17)],
        ["alpha", "beta"],
        overload="o",
    )
    main = graph(onnx, ["a"], ["w"])
    main.value_info.add(name="v")
    return helper.make_model(
        main,
        functions=[function],
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("d", 1)],
        producer_name="p'q",
        producer_version="1",
        domain="dom",
    )


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", CASES)
def test_same_as_onnx(name: str, tmp_path: Path) -> None:
    assert_same(CASES[name], tmp_path)


def test_printable_graph_is_deprecated() -> None:
    from sardonyx.compat import onnx

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        onnx.helper.printable_graph(onnx.GraphProto())
    assert [warning.category for warning in caught] == [DeprecationWarning]
    assert caught[0].filename == __file__
