# mypy: disable-error-code="misc"
"""Preparation of feature tables in `ai.onnx.ml`."""

import numpy as np

from sardonyx.dims import Size, product
from sardonyx.dtypes import DataType
from sardonyx.errors import EvaluationError, InferenceError
from sardonyx.ops.fact import Fact, same_size, tensor
from sardonyx.ops.ml_scores import vector
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array

Floats = tuple[float, ...]
Integers = tuple[int, ...]


class ArrayFeatureExtractor(Operator):
    """Chosen columns along the last axis; a vector is one row."""

    domain = "ai.onnx.ml"
    signatures = ("1(X: T, Y: tensor(int64)) -> Z: T; T: double float int32 int64 string",)

    def infer(x: Fact, y: Fact) -> Fact:
        if x.shape is None:
            return tensor(x.dtype, None)
        sizes = y.shape
        count = None if sizes is None or None in sizes else product([size or 0 for size in sizes])
        leading = x.shape[:-1] or (1,)
        return tensor(x.dtype, (*leading, count))

    def reference(x: Array, y: Array) -> Array:
        chosen = y.reshape(-1)
        if ((chosen < 0) | (chosen >= x.shape[-1])).any():
            raise EvaluationError(f"an index is not in [0, {x.shape[-1]})")
        return (x.reshape(1, -1) if x.ndim == 1 else x)[..., chosen]


class Binarizer(Operator):
    """1 where an element is above a threshold, else 0."""

    domain = "ai.onnx.ml"
    signatures = ("1(X: T, threshold: float = 0.0) -> Y: T; T: double float int32 int64",)

    def infer(x: Fact, threshold: float) -> Fact:
        return tensor(x.dtype, x.shape)

    def reference(x: Array, threshold: float) -> Array:
        return np.asarray(x > np.float32(threshold)).astype(x.dtype)


class FeatureVectorizer(Operator):
    """Tables side by side as floats, each cut or filled with zeros to a given width."""

    domain = "ai.onnx.ml"
    signatures = (
        "1(X+: T1, inputdimensions?: ints) -> Y: tensor(float); T1: double float int32 int64",
    )

    def infer(*inputs: Fact, inputdimensions: Integers | None) -> Fact:
        count: Size | None = None
        widths: list[Size | None] = list(inputdimensions or ())
        for fact in inputs:
            shape = fact.shape
            first = None if shape is None else 1 if len(shape) == 1 else shape[0]
            count = same_size(count, first, "rows of the inputs")
            if inputdimensions is None:
                inner = None if shape is None else shape[-1:] if len(shape) == 1 else shape[1:]
                known = inner is not None and None not in inner
                widths.append(product([size or 0 for size in inner or ()]) if known else None)
        total = None if None in widths else sum((size or 0 for size in widths), start=0)
        return tensor(DataType.FLOAT, (count, total))

    def reference(*inputs: Array, inputdimensions: Integers | None) -> Array:
        tables = [x.reshape(1 if x.ndim < 2 else x.shape[0], -1) for x in inputs]
        widths = inputdimensions or [table.shape[1] for table in tables]
        if len(widths) != len(tables):
            raise EvaluationError(f"{len(widths)} inputdimensions for {len(tables)} inputs")
        result = np.zeros((tables[0].shape[0], sum(widths)), np.float32)
        start = 0
        for table, width in zip(tables, widths, strict=True):
            kept = min(width, table.shape[1])
            result[:, start : start + kept] = table[:, :kept]
            start += width
        return result


class Imputer(Operator):
    """Other values, one for all columns or one for each, for elements that equal a given one."""

    domain = "ai.onnx.ml"
    signatures = (
        "1(X: T, imputed_value_floats?: floats, imputed_value_int64s?: ints, "
        "replaced_value_float: float = 0.0, replaced_value_int64: int = 0) -> Y: T; "
        "T: double float int32 int64",
    )

    def infer(x: Fact, **_: object) -> Fact:
        return tensor(x.dtype, x.shape)

    def reference(
        x: Array, imputed_value_floats: Floats | None, imputed_value_int64s: Integers | None,
        replaced_value_float: float, replaced_value_int64: int,
    ) -> Array:  # fmt: skip
        if x.dtype.kind == "f":
            values = np.array(imputed_value_floats or (), np.float32).astype(x.dtype)
            wanted = np.float32(replaced_value_float)
            found = np.isnan(x) if np.isnan(wanted) else x == wanted
        else:
            values = np.array(imputed_value_int64s or (), np.int64).astype(x.dtype)
            found = x == replaced_value_int64
        if values.size not in (1, *x.shape[-1:]):
            raise EvaluationError(f"{values.size} imputed values for {x.shape[-1:]} columns")
        return np.where(found, values, x)


class Normalizer(Operator):
    """Each row divided by its largest element, by the sum of sizes, or by its length."""

    domain = "ai.onnx.ml"
    signatures = ("1(X: T, norm: string = 'MAX') -> Y: tensor(float); T: double float int32 int64",)

    def infer(x: Fact, norm: str) -> Fact:
        if norm not in ("MAX", "L1", "L2"):
            raise InferenceError(f"norm '{norm}' is none of MAX, L1, L2")
        return tensor(DataType.FLOAT, x.shape)

    def reference(x: Array, norm: str) -> Array:
        wide: Array = x if x.dtype == np.float64 else x.astype(np.float32)
        match norm:
            case "MAX":
                size: Array = wide.max(-1, keepdims=True, initial=-np.inf)
            case "L1":
                size = np.abs(wide).sum(-1, keepdims=True)
            case "L2":
                size = np.sqrt((wide * wide).sum(-1, keepdims=True))
            case _:
                raise EvaluationError(f"norm '{norm}' is none of MAX, L1, L2")
        return (wide / np.where(size == 0, 1, size)).astype(np.float32)


class Scaler(Operator):
    """(X - offset) * scale, with one pair for all columns or one for each."""

    domain = "ai.onnx.ml"
    signatures = (
        "1(X: T, offset?: floats, scale?: floats) -> Y: tensor(float); T: double float int32 int64",
    )

    def infer(x: Fact, offset: Floats | None, scale: Floats | None) -> Fact:
        return tensor(DataType.FLOAT, x.shape)

    def reference(x: Array, offset: Floats | None, scale: Floats | None) -> Array:
        shift, factor = vector(offset or (0.0,)), vector(scale or (1.0,))
        for values in (shift, factor):
            if values.size not in (1, *x.shape[-1:]):
                raise EvaluationError(f"{values.size} values for {x.shape[-1:]} columns")
        wide = x if x.dtype == np.float64 else x.astype(np.float32)
        return np.asarray((wide - shift) * factor).astype(np.float32).reshape(x.shape)
