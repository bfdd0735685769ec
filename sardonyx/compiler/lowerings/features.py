"""Linear models and the preparation of features of `ai.onnx.ml`."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.compiler.forms import (
    Form,
    Join,
    NotLowered,
    binary,
    cast,
    constant,
    fold,
    iota,
    reshape,
    select,
    take,
    unary,
    unsqueeze,
)
from sardonyx.compiler.lowerings.contraction import matrix_product
from sardonyx.compiler.lowerings.request import Lowerings, Request
from sardonyx.compiler.lowerings.scores import (
    arg_max,
    decided,
    feature_rows,
    labelled,
    transform,
    wide,
)
from sardonyx.dims import product
from sardonyx.dtypes import DataType
from sardonyx.ops.ml_linear import class_count

Floats = tuple[float, ...]


def _vector(values: Floats | None) -> NDArray[np.float32]:
    return np.array(values or (), np.float32)


def _linear(
    request: Request, x: Form, coefficients: Floats | None, intercepts: Floats | None, count: int
) -> Form:
    table, weights = cast(feature_rows(x), DataType.FLOAT), _vector(coefficients)
    width = table.shape[1]
    if not isinstance(width, int) or weights.size != count * width:
        raise NotLowered("the number of coefficients does not fit")
    result = matrix_product(request, table, constant(weights.reshape(count, width).T.copy()))
    return result + constant(_vector(intercepts)) if intercepts else result


def linear_regressor(
    request: Request, x: Form, *, coefficients: Floats | None, intercepts: Floats | None,
    post_transform: str, targets: int,
) -> Form:  # fmt: skip
    """Targets that are linear in the features."""
    return transform(_linear(request, x, coefficients, intercepts, targets), post_transform)


def linear_classifier(
    request: Request, x: Form, *, classlabels_ints: tuple[int, ...] | None, coefficients: Floats,
    intercepts: Floats | None, post_transform: str, **_: Any,
) -> tuple[Form, Form]:  # fmt: skip
    """A score for each class, linear in the features, and the class with the largest."""
    names = np.array(classlabels_ints or (), np.int64)
    width = feature_rows(x).shape[1]
    if not isinstance(width, int) or len(names) < 2:
        raise NotLowered("without its classes and features known it has no native form")
    count = class_count(len(names), coefficients, intercepts, width)
    scores = _linear(request, x, coefficients[: count * width], intercepts, count)
    if scores.shape[1] != 1:
        if len(names) < count:
            raise NotLowered("a class has no label")
        return labelled(arg_max(scores), names), transform(scores, post_transform)
    if len(names) != 2:
        raise NotLowered("one score for several classes has no native form")
    return decided(scores, True, names, post_transform, threshold=0.0)


def scaler(request: Request, x: Form, *, offset: Floats | None, scale: Floats | None) -> Form:
    """(X - offset) * scale, with one pair for all columns or one for each."""
    shift, factor = (
        constant(_vector(item or default)) for item, default in ((offset, (0.0,)), (scale, (1.0,)))
    )
    table = wide(x)
    return cast((table - cast(shift, table.dtype)) * cast(factor, table.dtype), DataType.FLOAT)


def normalizer(request: Request, x: Form, norm: str) -> Form:
    """Each row divided by its largest element, by the sum of sizes, or by its length."""
    table = wide(x)
    match norm:
        case "MAX":
            size = fold("max", table, [-1], -math.inf)
        case "L1":
            size = fold("add", unary("abs", table), [-1], 0)
        case _:
            size = unary("sqrt", fold("add", table * table, [-1], 0))
    return cast(table / select(binary("eq", size, 0.0), 1.0, size), DataType.FLOAT)


def binarizer(request: Request, x: Form, threshold: float) -> Form:
    """1 where an element is above a threshold, else 0."""
    above = binary("gt", cast(x, DataType.DOUBLE), float(np.float32(threshold)))
    return cast(above, x.dtype)


def imputer(
    request: Request, x: Form, *, imputed_value_floats: Floats | None,
    imputed_value_int64s: tuple[int, ...] | None, replaced_value_float: float,
    replaced_value_int64: int,
) -> Form:  # fmt: skip
    """Other values, one for all columns or one for each, for elements that equal a given one."""
    if x.dtype.is_float:
        values: NDArray[Any] = np.array(imputed_value_floats or (), np.float32)
        wanted = float(np.float32(replaced_value_float))
        found = binary("ne", x, x) if math.isnan(wanted) else binary("eq", x, wanted)
    else:
        values = np.array(imputed_value_int64s or (), np.int64)
        found = binary("eq", x, replaced_value_int64)
    if values.size not in (1, *x.shape[-1:]):
        raise NotLowered(f"{values.size} values for {x.shape[-1:]} columns")
    return select(found, cast(constant(values), x.dtype), x)


def extractor(request: Request, x: Form, chosen: Form) -> Form:
    """Chosen columns along the last axis; a vector is one row."""
    table = reshape(x, (1, x.shape[0])) if len(x.shape) == 1 else x
    wanted = reshape(chosen, request.shape()[-1:])
    shape = (*table.shape[:-1], wanted.shape[0])
    places: list[Form] = [iota(shape, axis) for axis in range(len(shape) - 1)]
    return take(table, [*places, wanted], checked=True)


def one_hot_encoder(
    request: Request, x: Form, *, cats_int64s: tuple[int, ...] | None, zeros: int, **_: Any
) -> Form:
    """A vector with a 1 at the place of each element's category."""
    if not cats_int64s or not zeros or len(set(cats_int64s)) < len(cats_int64s):
        raise NotLowered("only with categories that differ, and zeros for others, it is native")
    whole = unsqueeze(cast(x, DataType.INT64), [len(x.shape)])
    return cast(binary("eq", whole, constant(np.array(cats_int64s, np.int64))), DataType.FLOAT)


def vectorizer(request: Request, *inputs: Form, inputdimensions: tuple[int, ...] | None) -> Form:
    """Tables side by side as floats."""
    tables = []
    for position, x in enumerate(inputs):
        rows = x.shape[0] if len(x.shape) > 1 else 1
        width = product(x.shape[1:]) if len(x.shape) > 1 else product(x.shape)
        wanted = inputdimensions[position] if inputdimensions else width
        if wanted != width:
            raise NotLowered("a table that is cut or filled has no native form")
        tables.append(cast(reshape(x, (rows, width)), DataType.FLOAT))
    return Join(request.shape(), DataType.FLOAT, tuple(tables), 1)


LOWERINGS: Lowerings = {
    ("ai.onnx.ml", "OneHotEncoder"): one_hot_encoder,
    ("ai.onnx.ml", "FeatureVectorizer"): vectorizer,
    ("ai.onnx.ml", "LinearRegressor"): linear_regressor,
    ("ai.onnx.ml", "LinearClassifier"): linear_classifier,
    ("ai.onnx.ml", "Scaler"): scaler,
    ("ai.onnx.ml", "Normalizer"): normalizer,
    ("ai.onnx.ml", "Binarizer"): binarizer,
    ("ai.onnx.ml", "Imputer"): imputer,
    ("ai.onnx.ml", "ArrayFeatureExtractor"): extractor,
}
