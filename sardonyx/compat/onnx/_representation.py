"""One-line `repr` of the large messages."""

from typing import Any

from sardonyx.compat.onnx.onnx_ml_pb2 import FunctionProto, GraphProto, ModelProto


def _counts(message: Any, fields: dict[str, str]) -> str:
    """`, field=<3 things>` for each repeated field that is not empty."""
    sizes = {name: len(getattr(message, name)) for name in fields}
    return "".join(f", {name}=<{size} {fields[name]}>" for name, size in sizes.items() if size)


def _texts(message: Any, *fields: str) -> str:
    values = {name: getattr(message, name) for name in fields}
    return "".join(f", {name}='{value}'" for name, value in values.items() if value)


def _opsets(message: Any) -> str:
    versions = {opset.domain: opset.version for opset in message.opset_import}
    return f", opset_import={versions}" if versions else ""


def _represent_model(model: Any) -> str:
    return (
        f"ModelProto(ir_version={model.ir_version}{_opsets(model)}"
        f"{_texts(model, 'domain', 'producer_name', 'producer_version')}"
        f", graph={model.graph!r}{_counts(model, {'functions': 'functions'})})"
    )


def _represent_graph(graph: Any) -> str:
    fields = {
        "input": "inputs",
        "output": "outputs",
        "initializer": "initializers",
        "node": "nodes",
        "value_info": "value_info",
    }
    return f"GraphProto('{graph.name}'{_counts(graph, fields)})"


def _represent_function(function: Any) -> str:
    attributes = f", attribute={function.attribute}" if function.attribute else ""
    return (
        f"FunctionProto('{function.name}'{_texts(function, 'domain', 'overload')}"
        f"{_opsets(function)}{_counts(function, {'input': 'inputs', 'output': 'outputs'})}"
        f"{attributes}{_counts(function, {'node': 'nodes'})})"
    )


def install() -> None:
    """Give models, graphs and functions their short `repr`."""
    ModelProto.__repr__ = _represent_model
    GraphProto.__repr__ = _represent_graph
    FunctionProto.__repr__ = _represent_function
