"""Replace calls of functions by the functions' bodies."""

from collections.abc import Sequence
from typing import Any

from google.protobuf.message import DecodeError

from sardonyx.compat.onnx._inline import inline_local, inline_selected
from sardonyx.compat.onnx._nesting import check_model_nesting
from sardonyx.compat.onnx.onnx_ml_pb2 import ModelProto

__all__ = ["inline_local_functions", "inline_selected_functions"]


def inline_local_functions(model: Any, convert_version: bool = False) -> Any:
    """A copy of `model` in which calls of its local functions are replaced by their bodies.

    Functions that import other operator set versions than the model stay as they are, unless
    `convert_version` is true and the default operator set is the only difference.

    >>> from sardonyx.compat.onnx import ModelProto, inliner
    >>> model = ModelProto()
    >>> _ = model.graph.node.add(op_type="f", domain="local", input=["x"], output=["y"])
    >>> function = model.functions.add(domain="local", name="f", input=["a"], output=["c"])
    >>> _ = function.node.add(op_type="Relu", input=["a"], output=["b"])
    >>> _ = function.node.add(op_type="Abs", input=["b"], output=["c"])
    >>> inlined = inliner.inline_local_functions(model)
    >>> [(node.op_type, *node.input, *node.output) for node in inlined.graph.node]
    [('Relu', 'x', 'b__1'), ('Abs', 'b__1', 'y')]
    """
    content = _serialize(model)
    _require_bool(convert_version, "convert_version")
    copy = _parse(content)
    inline_local(copy, convert_version)
    return ModelProto.FromString(copy.SerializeToString())


def inline_selected_functions(
    model: Any,
    function_ids: list[tuple[str, str]],
    exclude: bool = False,
    inline_schema_functions: bool = False,
) -> Any:
    """A copy of `model` in which calls of the chosen functions are replaced by their bodies.

    `function_ids` holds (domain, name) pairs: the functions to inline, or with `exclude` those to
    keep. With `inline_schema_functions` operators that the standard defines as functions count
    too, not only the model's own functions.

    >>> from sardonyx.compat.onnx import ModelProto, inliner
    >>> model = ModelProto()
    >>> for name in "fg":
    ...     _ = model.graph.node.add(op_type=name, domain="local", input=["x"], output=[name])
    ...     function = model.functions.add(domain="local", name=name, input=["a"], output=["b"])
    ...     _ = function.node.add(op_type="Relu", input=["a"], output=["b"])
    >>> inlined = inliner.inline_selected_functions(model, [("local", "f")])
    >>> [node.op_type for node in inlined.graph.node], [it.name for it in inlined.functions]
    (['Relu', 'g'], ['g'])
    """
    content = _serialize(model)
    chosen = {_function_id(item) for item in _sequence(function_ids, "function_ids")}
    _require_bool(exclude, "exclude")
    copy = _parse(content)
    inline_selected(
        copy,
        lambda domain, name: ((domain, name) in chosen) != exclude,
        bool(inline_schema_functions),
    )
    return ModelProto.FromString(copy.SerializeToString())


def _serialize(model: Any) -> bytes:
    if isinstance(model, ModelProto):
        check_model_nesting(model)
    content = model.SerializeToString()
    if not isinstance(content, bytes):
        raise TypeError(f"model must serialize to bytes, not {type(content).__name__}")
    return content


def _parse(content: bytes) -> Any:
    try:
        return ModelProto.FromString(content)
    except DecodeError as error:
        raise ValueError(f"model cannot be read back from its bytes: {error}") from error


def _require_bool(value: Any, argument: str) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"{argument} must be True or False, not {type(value).__name__}")


def _sequence(value: Any, what: str) -> Sequence[Any]:
    kind = type(value)
    indexable = hasattr(kind, "__getitem__") and hasattr(kind, "__len__")
    if not indexable or isinstance(value, dict | str | bytes):
        raise TypeError(f"{what} must be a list of (domain, name) pairs, not {kind.__name__}")
    return list(value)


def _function_id(item: Any) -> tuple[str, str]:
    pair = list(item) if isinstance(item, str) else _sequence(item, "each of function_ids")
    if len(pair) != 2 or not all(isinstance(part, str) for part in pair):
        raise TypeError(f"each of function_ids must be a pair (domain, name), not {item!r}")
    return str(pair[0]), str(pair[1])
