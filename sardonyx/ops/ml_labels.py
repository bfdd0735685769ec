# mypy: disable-error-code="misc"
"""Names, numbers and indicator vectors for categories in `ai.onnx.ml`."""

from collections.abc import Sequence
from math import isnan
from typing import Any

import numpy as np

from sardonyx.dtypes import DataType, from_numpy
from sardonyx.errors import ConversionError, EvaluationError, InferenceError
from sardonyx.graph import Node
from sardonyx.ops.build import Builder
from sardonyx.ops.element_type import element_type
from sardonyx.ops.fact import Fact, tensor
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array

Floats = tuple[float, ...]
Integers = tuple[int, ...]
Strings = tuple[str, ...]


def look_up(x: Array, keys: Array, values: Array, default: Any) -> Array:
    """For each element the value at the last key equal to it, or the default. NaN equals NaN.

    >>> look_up(np.array([3, 5, 4]), np.array([3, 4]), np.array(["c", "d"], object), "?").tolist()
    ['c', '?', 'd']
    """
    distinct, places = np.unique(x.reshape(-1), return_inverse=True)
    table = {_key(key): index for index, key in enumerate(keys.tolist())}
    found = np.array([table.get(_key(item), -1) for item in distinct.tolist()], np.int64)
    result = np.full(len(distinct), default, values.dtype)
    present = found >= 0
    result[present] = values[found[present]]
    return result[places].reshape(x.shape)


def _key(item: Any) -> Any:
    return "not a number" if isinstance(item, float) and isnan(item) else item


class CategoryMapper(Operator):
    """Strings to integers, or integers to strings, by two lists of equal length."""

    domain = "ai.onnx.ml"
    signatures = (
        "1(X: T1, cats_int64s?: ints, cats_strings?: strings, default_int64: int = -1, "
        "default_string: string = '_Unused') -> Y: T2; T1: int64 string; T2: int64 string",
    )

    def infer(
        x: Fact, cats_int64s: Integers | None, cats_strings: Strings | None, **_: Any
    ) -> Fact:
        if len(cats_int64s or ()) != len(cats_strings or ()):
            raise InferenceError("cats_int64s and cats_strings differ in length")
        other = {DataType.STRING: DataType.INT64, DataType.INT64: DataType.STRING}
        return tensor(None if x.dtype is None else other.get(x.dtype), x.shape)

    def reference(
        x: Array, cats_int64s: Integers | None, cats_strings: Strings | None, default_int64: int,
        default_string: str,
    ) -> Array:  # fmt: skip
        numbers = np.array(cats_int64s or (), np.int64)
        names = np.array(cats_strings or (), object)
        if x.dtype == object:
            return look_up(x, names, numbers, default_int64)
        return look_up(x, numbers, names, default_string)


class LabelEncoder(Operator):
    """The value that stands beside each element in a list of keys."""

    domain = "ai.onnx.ml"
    signatures = (
        "1(X: T1, classes_strings?: strings, default_int64: int = -1, "
        "default_string: string = '_Unused') -> Y: T2; T1: int64 string; T2: int64 string",
        "2(X: T1, default_float: float = -0.0, default_int64: int = -1, "
        "default_string: string = '_Unused', keys_floats?: floats, keys_int64s?: ints, "
        "keys_strings?: strings, values_floats?: floats, values_int64s?: ints, "
        "values_strings?: strings) -> Y: T2; T1: float int64 string; T2: float int64 string",
        "4(X: T1, default_float: float = -0.0, default_int64: int = -1, "
        "default_string: string = '_Unused', default_tensor?: tensor, keys_floats?: floats, "
        "keys_int64s?: ints, keys_strings?: strings, keys_tensor?: tensor, values_floats?: floats, "
        "values_int64s?: ints, values_strings?: strings, values_tensor?: tensor) -> Y: T2; "
        "T1: double float int16 int32 int64 string; T2: double float int16 int32 int64 string",
    )

    def infer(x: Fact, **attributes: Any) -> Fact:
        keys, values = _table(attributes, "keys"), _table(attributes, "values")
        if len(keys) != len(values):
            raise InferenceError(f"{len(keys)} keys against {len(values)} values")
        if x.dtype is not None and from_numpy(keys.dtype) != x.dtype:
            raise InferenceError(f"keys are {from_numpy(keys.dtype).text}, X is {x.dtype.text}")
        return tensor(from_numpy(values.dtype), x.shape)

    def reference(x: Array, **attributes: Any) -> Array:
        keys, values = _table(attributes, "keys"), _table(attributes, "values")
        if attributes["default_tensor"] is not None:
            default = attributes["default_tensor"].reshape(-1)[0]
        elif values.dtype == object:
            default = attributes["default_string"]
        else:
            default = attributes["default_float" if values.dtype.kind == "f" else "default_int64"]
        return look_up(x, keys, values, default)

    def upgrade_1(node: Node, build: Builder) -> None:
        classes = node.attribute("classes_strings") or ()
        node.attributes.pop("classes_strings", None)
        element = element_type(node.inputs[0])
        if element is None:
            raise ConversionError("the element type of X is not known")
        keys, values = "keys_strings", "values_int64s"
        if element != DataType.STRING:
            keys, values = "keys_int64s", "values_strings"
        for name in (keys, values):
            node.set_attribute(name, classes if name.endswith("strings") else range(len(classes)))

    def downgrade_4(node: Node, build: Builder) -> None:
        for part in ("keys", "values", "default"):
            given = node.attributes.pop(f"{part}_tensor", None)
            if given is None:
                continue
            array = given.value.numpy().reshape(-1)
            kind = {np.dtype(np.int64): "int64", np.dtype(np.float32): "float"}.get(array.dtype)
            if array.dtype == object:
                kind = "string"
            if kind is None:
                raise ConversionError(f"{array.dtype} in '{part}_tensor' begins with version 4")
            items = array.tolist()
            if part == "default":
                node.set_attribute(f"default_{kind}", items[0])
            else:
                node.set_attribute(f"{part}_{kind}s", items)


def _table(attributes: dict[str, Any], part: str) -> Array:
    """The keys or values of a LabelEncoder, in their element type."""
    kinds = {"floats": np.float32, "int64s": np.int64, "strings": object, "tensor": None}
    given = [name for name in kinds if attributes[f"{part}_{name}"] is not None]
    if len(given) != 1:
        raise InferenceError(f"{len(given)} lists of {part} are given, exactly one is needed")
    return np.array(attributes[f"{part}_{given[0]}"], kinds[given[0]]).reshape(-1)


class OneHotEncoder(Operator):
    """A vector with a 1 at the place of each element's category."""

    domain = "ai.onnx.ml"
    signatures = (
        "1(X: T, cats_int64s?: ints, cats_strings?: strings, zeros: int = 1) -> Y: tensor(float); "
        "T: double float int32 int64 string",
    )

    def infer(
        x: Fact, cats_int64s: Integers | None, cats_strings: Strings | None, zeros: int
    ) -> Fact:
        categories: Sequence[Any] = cats_int64s or cats_strings or ()
        if bool(cats_int64s) == bool(cats_strings):
            raise InferenceError("exactly one of cats_int64s and cats_strings is needed")
        return tensor(DataType.FLOAT, None if x.shape is None else (*x.shape, len(categories)))

    def reference(
        x: Array, cats_int64s: Integers | None, cats_strings: Strings | None, zeros: int
    ) -> Array:
        if x.dtype == object:
            categories = np.array(cats_strings or (), object)
        else:
            categories = np.array(cats_int64s or (), np.int64)
            x = x.astype(np.int64)
        places = look_up(x, categories, np.arange(len(categories)), -1)
        if not zeros and (places < 0).any():
            raise EvaluationError(f"{x[places < 0].tolist()[0]!r} is no category, and zeros is 0")
        return np.asarray(places[..., None] == np.arange(len(categories))).astype(np.float32)
