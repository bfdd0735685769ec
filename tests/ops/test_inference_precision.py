"""Inference against onnx's: on every model of the official suite ours knows as much, or more."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest

from sardonyx.compat.onnx import shape_inference
from tests.conformance import suite
from tests.shared_models import model_paths, needs_models

MADE_UP = "unk__"
"""What the names of sizes begin with that only inference has given."""

Types = dict[str, Any]


def bare(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model without the types of what its nodes make."""
    twin = onnx.ModelProto()
    twin.CopyFrom(model)
    made = {name for node in twin.graph.node for name in node.output}
    for value in twin.graph.output:
        if value.name in made:
            value.ClearField("type")
    del twin.graph.value_info[:]
    return twin


def types(graph: Any, path: str = "") -> Types:
    """The types of values of a graph and of the graphs inside it, by path and name."""
    found = {path + value.name: value.type for value in (*graph.value_info, *graph.output)}
    for index, node in enumerate(graph.node):
        for attribute in node.attribute:
            for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                found |= types(inner, f"{path}{index}.{attribute.name}.")
    return {name: kind for name, kind in found.items() if kind.WhichOneof("value")}


def shortfalls(theirs: Any, ours: Any) -> Iterator[str]:
    """In what a type of ours says less than, or something else than, one of theirs."""
    kind = theirs.WhichOneof("value")
    if ours is None or ours.WhichOneof("value") is None:
        yield f"nothing known, onnx says {kind}"
    elif ours.WhichOneof("value") != kind:
        yield f"{ours.WhichOneof('value')}, onnx says {kind}"
    elif kind in ("sequence_type", "optional_type"):
        yield from shortfalls(getattr(theirs, kind).elem_type, getattr(ours, kind).elem_type)
    elif kind == "map_type":
        if theirs.map_type.key_type != ours.map_type.key_type:
            yield f"key {ours.map_type.key_type}, onnx says {theirs.map_type.key_type}"
        yield from shortfalls(theirs.map_type.value_type, ours.map_type.value_type)
    elif kind is not None:
        yield from _tensor_shortfalls(getattr(theirs, kind), getattr(ours, kind))


def _tensor_shortfalls(theirs: Any, ours: Any) -> Iterator[str]:
    if theirs.elem_type and theirs.elem_type != ours.elem_type:
        yield f"element type {ours.elem_type}, onnx says {theirs.elem_type}"
    if not theirs.HasField("shape"):
        return
    if not ours.HasField("shape"):
        yield f"no rank, onnx says {len(theirs.shape.dim)}"
        return
    if len(ours.shape.dim) != len(theirs.shape.dim):
        yield f"rank {len(ours.shape.dim)}, onnx says {len(theirs.shape.dim)}"
        return
    for axis, (left, right) in enumerate(zip(theirs.shape.dim, ours.shape.dim, strict=True)):
        known = right.dim_value if right.HasField("dim_value") else right.dim_param
        if left.HasField("dim_value") and left.dim_value >= 0 and known != left.dim_value:
            yield f"axis {axis} is {known!r}, onnx says {left.dim_value}"
        named = left.dim_param and not left.dim_param.startswith(MADE_UP)
        if named and isinstance(known, str) and known != left.dim_param:
            yield f"axis {axis} is {known!r}, onnx says {left.dim_param!r}"


def gains(theirs: Types, ours: Types) -> int:
    """How many ranks and sizes we know beyond those onnx knows."""
    count = 0
    for name, kind in ours.items():
        if not kind.HasField("tensor_type") or not kind.tensor_type.HasField("shape"):
            continue
        mine = kind.tensor_type.shape.dim
        other = theirs.get(name)
        known = other.tensor_type.shape.dim if other is not None else ()
        if len(known) != len(mine):
            count += 1
            continue
        for left, right in zip(known, mine, strict=True):
            vague = not left.HasField("dim_value") and left.dim_param[:5] in ("", MADE_UP)
            count += vague and right.dim_param[:5] != MADE_UP
    return count


def contradictions(kind: Any, array: Any) -> Iterator[str]:
    """Where a type differs from an array that is of it."""
    if isinstance(array, list) and kind.HasField("sequence_type"):
        for item in array:
            yield from contradictions(kind.sequence_type.elem_type, item)
    elif isinstance(array, np.ndarray) and kind.HasField("optional_type"):
        yield from contradictions(kind.optional_type.elem_type, array)
    elif isinstance(array, np.ndarray) and kind.HasField("tensor_type"):
        element = onnx.helper.tensor_dtype_to_np_dtype(kind.tensor_type.elem_type)
        if element != array.dtype and array.dtype.kind not in "OUS":
            yield f"{element} inferred for {array.dtype}"
        sizes = [
            item.dim_value if item.HasField("dim_value") else None
            for item in kind.tensor_type.shape.dim
        ]
        if kind.tensor_type.HasField("shape") and (
            len(sizes) != array.ndim
            or any(size not in (None, real) for size, real in zip(sizes, array.shape, strict=True))
        ):
            yield f"{sizes} inferred for {list(array.shape)}"


def compare(model: onnx.ModelProto) -> tuple[Types, list[str], int]:
    """Our types of a model, what they fall short in, and what they gain."""
    twin = bare(model)
    theirs = types(onnx.shape_inference.infer_shapes(twin, data_prop=True).graph)
    ours = types(shape_inference.infer_shapes(twin.SerializeToString()).graph)
    found = [
        f"{name}: {what}"
        for name, kind in theirs.items()
        for what in shortfalls(kind, ours.get(name))
    ]
    return ours, found, gains(theirs, ours)


_UNTAKEN = "the branch for images divides the five sizes of a volume into four parts"
OTHERWISE = {
    "test_affine_grid_3d_expanded": _UNTAKEN,
    "test_affine_grid_3d_align_corners_expanded": _UNTAKEN,
    "test_loop13_seq": "what the loop inserts has rank 1, onnx keeps the rank it began with",
    "test_sequence_map_identity_1_sequence": "the size 'M' of the body's output is its input's 'N'",
}
"""Cases in which onnx infers something else, which is not better, with the reason."""


@pytest.mark.parametrize("kind", suite.KINDS)
def test_official_cases(kind: str) -> None:
    values = gained = 0
    problems = []
    for case in suite.cases(kind):
        ours, found, more = compare(case.model)
        values += len(ours)
        gained += more
        outputs = [value.name for value in case.model.graph.output]
        for _, arrays in case.data_sets:
            for name, array in zip(outputs, arrays, strict=False):
                found += [
                    f"{name}: {what}"
                    for what in (contradictions(ours[name], array) if name in ours else ())
                ]
        if bool(found) != (case.name in OTHERWISE):
            problems.append(f"{case.name}: {'; '.join(found)}")
    print(f"{kind}: {values} types, {gained} sizes or ranks more than onnx, {len(problems)} short")
    assert not problems, f"{len(problems)} cases:\n" + "\n".join(problems)


@needs_models
@pytest.mark.parametrize("path", model_paths(), ids=lambda path: path.parent.name)
def test_real_models(path: Any) -> None:
    model = onnx.load(path)
    try:
        ours, found, more = compare(model)
    except onnx.shape_inference.InferenceError:
        with pytest.raises(shape_inference.InferenceError):
            shape_inference.infer_shapes(bare(model).SerializeToString())
        return
    print(f"{len(ours)} types, {more} sizes or ranks more than onnx")
    assert not found, "\n".join(found)
