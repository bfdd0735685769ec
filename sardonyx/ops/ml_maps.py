# mypy: disable-error-code="misc"
"""Maps to tensors and back in `ai.onnx.ml`. A map is a dict, a sequence a list."""

from typing import Any

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.errors import EvaluationError, InferenceError
from sardonyx.graph import MapType, SequenceType, TensorType
from sardonyx.ops.fact import Fact, tensor
from sardonyx.ops.ml_scores import labels_of, rows
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array

_CASTS = {
    "TO_FLOAT": DataType.FLOAT,
    "TO_STRING": DataType.STRING,
    "TO_INT64": DataType.INT64,
}


def _cast(value: Any, target: DataType) -> Any:
    if target == DataType.STRING:
        return value if isinstance(value, str) else f"{value:f}"
    return float(value) if target == DataType.FLOAT else int(float(value))


class CastMap(Operator):
    """A map's values in the order of keys, or each at the place its key says."""

    domain = "ai.onnx.ml"
    signatures = (
        "1(X: T1, cast_to: string = 'TO_FLOAT', map_form: string = 'DENSE', max_map: int = 1) "
        "-> Y: T2; T1: map(int64, float) map(int64, string); T2: float int64 string",
    )

    def infer(x: Fact, cast_to: str, map_form: str, max_map: int) -> Fact:
        if cast_to not in _CASTS or map_form not in ("DENSE", "SPARSE"):
            raise InferenceError(f"cast_to '{cast_to}' or map_form '{map_form}' is not known")
        return tensor(_CASTS[cast_to], (1, max_map if map_form == "SPARSE" else None))

    def reference(x: dict[int, Any], cast_to: str, map_form: str, max_map: int) -> Array:
        target = _CASTS[cast_to]
        if map_form == "DENSE":
            items = [_cast(x[key], target) for key in sorted(x)]
            return np.array(items, target.numpy).reshape(1, len(items))
        if any(key < 0 for key in x):
            raise EvaluationError(f"a key of the map is negative: {min(x)}")
        result = np.full((1, max_map), "0.f" if target == DataType.STRING else 0, target.numpy)
        for key, value in x.items():
            if key < max_map:
                result[0, key] = _cast(value, target)
        return result


class DictVectorizer(Operator):
    """One row with a map's values, each at its key's place in a vocabulary."""

    domain = "ai.onnx.ml"
    signatures = (
        "1(X: T1, int64_vocabulary?: ints, string_vocabulary?: strings) -> Y: T2; "
        "T1: map(int64, double) map(int64, float) map(int64, string) map(string, double) "
        "map(string, float) map(string, int64); T2: double float int64 string",
    )

    def infer(
        x: Fact, int64_vocabulary: tuple[int, ...] | None, string_vocabulary: tuple[str, ...] | None
    ) -> Fact:
        value = x.type.value if isinstance(x.type, MapType) else None
        element = value.element if isinstance(value, TensorType) else None
        known = element if isinstance(element, DataType) else None
        return tensor(known, (1, len(string_vocabulary or int64_vocabulary or ())))

    def reference(
        x: dict[Any, Any], int64_vocabulary: tuple[int, ...] | None,
        string_vocabulary: tuple[str, ...] | None, context: Any,
    ) -> Array:  # fmt: skip
        vocabulary: tuple[Any, ...] = string_vocabulary or int64_vocabulary or ()
        dtype = _map_element(context.node.inputs[0], x)
        empty = "" if dtype.kind == "O" else 0
        items = [x.get(key, empty) for key in vocabulary]
        return np.array(items, dtype).reshape(1, len(vocabulary))


def _map_element(value: Any, given: dict[Any, Any]) -> np.dtype[Any]:
    """The element type of a map's values: as declared, else as the values are."""
    kind = value.type
    if isinstance(kind, MapType) and isinstance(kind.value, TensorType):
        element = kind.value.element
        if isinstance(element, DataType):
            return element.numpy
    first = next(iter(given.values()), 0.0)
    if isinstance(first, str):
        return np.dtype(object)
    return np.dtype(np.int64 if isinstance(first, int | np.integer) else np.float32)


class ZipMap(Operator):
    """A map from class labels to scores for each row."""

    domain = "ai.onnx.ml"
    signatures = (
        "1(X: tensor(float), classlabels_int64s?: ints, classlabels_strings?: strings) -> Z: T; "
        "T: seq(map(int64, float)) seq(map(string, float))",
    )

    def infer(
        x: Fact, classlabels_int64s: tuple[int, ...] | None,
        classlabels_strings: tuple[str, ...] | None,
    ) -> Fact:  # fmt: skip
        key = DataType.STRING if classlabels_strings else DataType.INT64
        return Fact(SequenceType(MapType(key, TensorType(DataType.FLOAT, ()))))

    def reference(
        x: Array, classlabels_int64s: tuple[int, ...] | None,
        classlabels_strings: tuple[str, ...] | None,
    ) -> list[dict[Any, float]]:  # fmt: skip
        names = labels_of((classlabels_int64s, classlabels_strings)).tolist()
        table = rows(x)
        if table.shape[1] != len(names):
            raise EvaluationError(f"{table.shape[1]} columns for {len(names)} labels")
        return [dict(zip(names, row, strict=True)) for row in table.tolist()]
