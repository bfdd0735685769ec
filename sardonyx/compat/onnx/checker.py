"""Check that messages are legal, as `onnx.checker` does."""

import os
from typing import Any

from sardonyx.compat.onnx import _checker as C  # noqa: N812
from sardonyx.compat.onnx._errors import ValidationError
from sardonyx.compat.onnx._nesting import check_model_nesting, check_nesting
from sardonyx.compat.onnx._versions import NEWEST_OPSET, find_min_ir_version_for
from sardonyx.compat.onnx.onnx_ml_pb2 import (
    IR_VERSION,
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    SparseTensorProto,
    TensorProto,
    ValueInfoProto,
)

__all__ = [
    "DEFAULT_CONTEXT",
    "LEXICAL_SCOPE_CONTEXT",
    "MAXIMUM_PROTOBUF",
    "C",
    "ValidationError",
    "check_attribute",
    "check_function",
    "check_graph",
    "check_model",
    "check_node",
    "check_sparse_tensor",
    "check_tensor",
    "check_value_info",
]

MAXIMUM_PROTOBUF = 2147483647
"""The most bytes one message can have."""

DEFAULT_CONTEXT = C.CheckerContext()
"""The newest IR version and operator set."""
DEFAULT_CONTEXT.ir_version = IR_VERSION
DEFAULT_CONTEXT.opset_imports = {"": NEWEST_OPSET}

LEXICAL_SCOPE_CONTEXT = C.LexicalScopeContext()
"""A scope without names."""


def _content(message: Any, kind: Any) -> bytes:
    if not isinstance(message, kind):
        raise TypeError(f"a {kind.__name__} is wanted, not a {type(message).__name__}")
    try:
        check_nesting(_nodes(message), f"the {kind.__name__}")
    except RecursionError as error:
        raise ValueError(str(error)) from None
    content: bytes = message.SerializeToString()
    return content


def _nodes(message: Any) -> list[Any]:
    if isinstance(message, GraphProto | FunctionProto):
        return list(message.node)
    if isinstance(message, AttributeProto):
        return [node for graph in (message.g, *message.graphs) for node in graph.node]
    return [message] if isinstance(message, NodeProto) else []


def check_value_info(value_info: Any, ctx: C.CheckerContext = DEFAULT_CONTEXT) -> None:
    """Raise ValidationError unless an input or output is named and fully typed.

    >>> from sardonyx.compat.onnx import TensorProto, checker, helper
    >>> checker.check_value_info(helper.make_tensor_value_info("x", TensorProto.FLOAT, [None]))
    """
    C.check_value_info(_content(value_info, ValueInfoProto), ctx)


def check_tensor(tensor: Any, ctx: C.CheckerContext = DEFAULT_CONTEXT) -> None:
    """Raise ValidationError unless a tensor's type, dimensions and data fit together.

    >>> from sardonyx.compat.onnx import TensorProto, checker
    >>> checker.check_tensor(TensorProto(data_type=TensorProto.FLOAT, dims=[1], float_data=[1]))
    """
    C.check_tensor(_content(tensor, TensorProto), ctx)


def check_attribute(
    attr: Any,
    ctx: C.CheckerContext = DEFAULT_CONTEXT,
    lexical_scope_ctx: C.LexicalScopeContext = LEXICAL_SCOPE_CONTEXT,
) -> None:
    """Raise ValidationError unless an attribute has a name, a type and a value of that type.

    >>> from sardonyx.compat.onnx import checker, helper
    >>> checker.check_attribute(helper.make_attribute("axis", 1))
    """
    C.check_attribute(_content(attr, AttributeProto), ctx, lexical_scope_ctx)


def check_node(
    node: Any,
    ctx: C.CheckerContext = DEFAULT_CONTEXT,
    lexical_scope_ctx: C.LexicalScopeContext = LEXICAL_SCOPE_CONTEXT,
) -> None:
    """Raise ValidationError unless a node fits its operator.

    >>> from sardonyx.compat.onnx import checker, helper
    >>> checker.check_node(helper.make_node("Relu", ["x"], ["y"]))
    """
    C.check_node(_content(node, NodeProto), ctx, lexical_scope_ctx)


def check_function(
    function: Any,
    ctx: C.CheckerContext | None = None,
    lexical_scope_ctx: C.LexicalScopeContext = LEXICAL_SCOPE_CONTEXT,
) -> None:
    """Raise ValidationError unless a function is right by its own imports, or by those of `ctx`.

    >>> from sardonyx.compat.onnx import checker, parser
    >>> checker.check_function(parser.parse_function(
    ...     '<domain: "own", opset_import: ["" : 21]> f (x) => (y) { y = Relu (x) }'))
    """
    content = _content(function, FunctionProto)
    if ctx is None:
        ctx = C.CheckerContext()
        ctx.ir_version = find_min_ir_version_for(function.opset_import, ignore_unknown=True)
        ctx.opset_imports = {item.domain: item.version for item in function.opset_import}
    C.check_function(content, ctx, lexical_scope_ctx)


def check_graph(
    graph: Any,
    ctx: C.CheckerContext = DEFAULT_CONTEXT,
    lexical_scope_ctx: C.LexicalScopeContext = LEXICAL_SCOPE_CONTEXT,
) -> None:
    """Raise ValidationError unless a graph is right as a model's main graph.

    >>> from sardonyx.compat.onnx import checker, parser
    >>> checker.check_graph(parser.parse_graph("g (float[N] x) => (float[N] y) { y = Relu (x) }"))
    """
    C.check_graph(_content(graph, GraphProto), ctx, lexical_scope_ctx)


def check_sparse_tensor(sparse: Any, ctx: C.CheckerContext = DEFAULT_CONTEXT) -> None:
    """Raise ValidationError unless a sparse tensor's values, indices and dimensions fit.

    >>> from sardonyx.compat.onnx import SparseTensorProto, TensorProto, checker
    >>> values = TensorProto(data_type=TensorProto.FLOAT, dims=[1], float_data=[5])
    >>> indices = TensorProto(data_type=TensorProto.INT64, dims=[1], int64_data=[2])
    >>> checker.check_sparse_tensor(SparseTensorProto(values=values, indices=indices, dims=[3]))
    """
    C.check_sparse_tensor(_content(sparse, SparseTensorProto), ctx)


def check_model(
    model: Any,
    full_check: bool = False,
    skip_opset_compatibility_check: bool = False,
    check_custom_domain: bool = False,
) -> None:
    """Raise ValidationError unless a model, given as a message, a path or bytes, is right.

    `full_check` infers types and shapes too. `skip_opset_compatibility_check` lets functions
    import other versions than the model. `check_custom_domain` refuses unknown operators also in
    domains that are not onnx's.

    >>> from sardonyx.compat.onnx import checker, parser
    >>> model = parser.parse_model(
    ...     '<ir_version: 10, opset_import: ["" : 21]> g (float[N] x) => (y) { y = Relu (x) }')
    >>> try:
    ...     checker.check_model(model)
    ... except checker.ValidationError as error:
    ...     print(error)
    graph 'g' > output 'y': no type is declared [type-missing]; declare a type; the main graph's \
inputs and outputs must have one
    """
    options = (full_check, skip_opset_compatibility_check, check_custom_domain)
    if isinstance(model, str | os.PathLike):
        C.check_model_path(os.fspath(model), *options)
        return
    if isinstance(model, ModelProto):
        try:
            check_model_nesting(model)
        except RecursionError as error:
            raise ValueError(str(error)) from None
    content = model if isinstance(model, bytes) else model.SerializeToString()
    if len(content) > MAXIMUM_PROTOBUF:
        raise ValueError(
            "the model has more bytes than one message can have: save it with external data and "
            "give the path"
        )
    C.check_model(content, *options)
