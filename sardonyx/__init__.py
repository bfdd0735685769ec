"""Sardonyx: ONNX models read, checked, changed and run, in one package.

>>> import sardonyx as sx
>>> model = sx.load("examples/digits.onnx")
>>> [str(value.type) for value in model.graph.inputs]
['float[batch,64]']
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import sardonyx.compiler.forks  # noqa: F401 - before anything of ours is imported by a thread
from sardonyx.version import VERSION

if TYPE_CHECKING:
    from sardonyx.api import compile, save, stage_names, text_after
    from sardonyx.checker import Finding, check, find_problems
    from sardonyx.dtypes import DataType
    from sardonyx.errors import (
        CancelledError,
        ChangedFileError,
        CheckError,
        ConversionError,
        EvaluationError,
        ExternalDataError,
        FormatError,
        GraphError,
        InferenceError,
        InputError,
        InternalError,
        OutOfMemoryError,
        ResourceError,
        SardonyxError,
        SaveError,
        TensorError,
        UnsupportedError,
        WorkLimitError,
    )
    from sardonyx.format.load import load, load_tensor, load_text
    from sardonyx.format.save import save_tensor, to_bytes, to_text
    from sardonyx.graph import (
        Attribute,
        AttributeType,
        Function,
        Graph,
        MapType,
        Model,
        Node,
        Opsets,
        OptionalType,
        SequenceType,
        SparseTensor,
        Tensor,
        TensorType,
        Type,
        Value,
    )
    from sardonyx.graph.clone import clone_model
    from sardonyx.graph.inline import inline_functions
    from sardonyx.ops.build import Builder
    from sardonyx.ops.convert import convert_opset
    from sardonyx.ops.evaluate import evaluate
    from sardonyx.ops.infer import infer_shapes
    from sardonyx.ops.operator import Operator
    from sardonyx.passes.diff_models import diff
    from sardonyx.passes.extract import extract_model
    from sardonyx.passes.fit_version import fit_version
    from sardonyx.passes.merge import merge_models
    from sardonyx.passes.narrow_floats import convert_floats
    from sardonyx.passes.pipeline import optimize, simplify
    from sardonyx.passes.stages import model_after
    from sardonyx.passes.summarize import summarize
    from sardonyx.runtime import (
        ExecutionMode,
        ExecutionOrder,
        GraphOptimizationLevel,
        InferenceSession,
        IOBinding,
        ModelMetadata,
        NodeArg,
        OrtValue,
        RunOptions,
        RunProfile,
        SessionOptions,
        SparseValue,
        c_operator,
        custom_operator,
        get_available_providers,
        set_seed,
    )
    from sardonyx.runtime.compare import bisect, compare_runs
    from sardonyx.runtime.inputs import make_inputs
    from sardonyx.viewer import render_html

__version__ = VERSION

_HOMES = {
    "sardonyx.api": "compile save stage_names text_after",
    "sardonyx.checker": "Finding check find_problems",
    "sardonyx.dtypes": "DataType",
    "sardonyx.errors": (
        "CancelledError ChangedFileError CheckError ConversionError EvaluationError "
        "ExternalDataError FormatError GraphError InferenceError InputError InternalError "
        "OutOfMemoryError ResourceError SardonyxError SaveError TensorError UnsupportedError "
        "WorkLimitError"
    ),
    "sardonyx.format.load": "load load_tensor load_text",
    "sardonyx.format.save": "save_tensor to_bytes to_text",
    "sardonyx.graph": (
        "Attribute AttributeType Function Graph MapType Model Node OptionalType Opsets "
        "SequenceType SparseTensor Tensor TensorType Type Value"
    ),
    "sardonyx.graph.clone": "clone_model",
    "sardonyx.graph.inline": "inline_functions",
    "sardonyx.ops.build": "Builder",
    "sardonyx.ops.convert": "convert_opset",
    "sardonyx.ops.evaluate": "evaluate",
    "sardonyx.ops.infer": "infer_shapes",
    "sardonyx.ops.operator": "Operator",
    "sardonyx.passes.diff_models": "diff",
    "sardonyx.passes.extract": "extract_model",
    "sardonyx.passes.fit_version": "fit_version",
    "sardonyx.passes.merge": "merge_models",
    "sardonyx.passes.narrow_floats": "convert_floats",
    "sardonyx.passes.pipeline": "optimize simplify",
    "sardonyx.passes.stages": "model_after",
    "sardonyx.passes.summarize": "summarize",
    "sardonyx.runtime": (
        "ExecutionMode ExecutionOrder GraphOptimizationLevel IOBinding InferenceSession "
        "ModelMetadata NodeArg OrtValue RunOptions RunProfile SessionOptions SparseValue "
        "c_operator custom_operator get_available_providers set_seed"
    ),
    "sardonyx.runtime.compare": "bisect compare_runs",
    "sardonyx.runtime.inputs": "make_inputs",
    "sardonyx.viewer": "render_html",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [
    "Attribute",
    "AttributeType",
    "Builder",
    "CancelledError",
    "ChangedFileError",
    "CheckError",
    "ConversionError",
    "DataType",
    "EvaluationError",
    "ExecutionMode",
    "ExecutionOrder",
    "ExternalDataError",
    "Finding",
    "FormatError",
    "Function",
    "Graph",
    "GraphError",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceError",
    "InferenceSession",
    "InputError",
    "InternalError",
    "MapType",
    "Model",
    "ModelMetadata",
    "Node",
    "NodeArg",
    "Operator",
    "Opsets",
    "OptionalType",
    "OrtValue",
    "OutOfMemoryError",
    "ResourceError",
    "RunOptions",
    "RunProfile",
    "SardonyxError",
    "SaveError",
    "SequenceType",
    "SessionOptions",
    "SparseTensor",
    "SparseValue",
    "Tensor",
    "TensorError",
    "TensorType",
    "Type",
    "UnsupportedError",
    "Value",
    "WorkLimitError",
    "__version__",
    "bisect",
    "c_operator",
    "check",
    "clone_model",
    "compare_runs",
    "compile",
    "convert_floats",
    "convert_opset",
    "custom_operator",
    "diff",
    "evaluate",
    "extract_model",
    "find_problems",
    "fit_version",
    "get_available_providers",
    "infer_shapes",
    "inline_functions",
    "load",
    "load_tensor",
    "load_text",
    "make_inputs",
    "merge_models",
    "model_after",
    "optimize",
    "render_html",
    "save",
    "save_tensor",
    "set_seed",
    "simplify",
    "stage_names",
    "summarize",
    "text_after",
    "to_bytes",
    "to_text",
]


def __getattr__(name: str) -> Any:
    """Public names are imported when they are first asked for: `import sardonyx` stays fast."""
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'sardonyx' has no attribute '{name}'")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
