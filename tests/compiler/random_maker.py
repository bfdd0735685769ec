"""How random models grow: values with the shapes they have, and a graph that takes more of them.

A value that passed through inexact arithmetic is not given to operators that jump (comparisons,
roundings, indices of extremes), since two right implementations may then differ.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sardonyx as sx
from sardonyx.dtypes import DataType

OPSET = 21
FLOATS = (DataType.FLOAT, DataType.DOUBLE, DataType.FLOAT16, DataType.BFLOAT16)
INTEGERS = (DataType.INT32, DataType.INT64, DataType.UINT8, DataType.INT8)


@dataclass(frozen=True, slots=True)
class Item:
    """A value of the graph, with the shape it has when the model runs."""

    value: sx.Value
    shape: tuple[int, ...]
    dtype: DataType
    exact: bool

    @property
    def rank(self) -> int:
        return len(self.shape)


@dataclass(frozen=True)
class Case:
    """A model and what to feed."""

    model: sx.Model
    feeds: dict[str, NDArray[Any]]


class Maker:
    """Grows one graph."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.graph = sx.Graph("random")
        self.op: Any = sx.Builder(self.graph, opset=OPSET)
        self.feeds: dict[str, NDArray[Any]] = {}
        self.items: list[Item] = []
        self.names = 0

    def integer(self, low: int, high: int) -> int:
        """A number from low to high, both included."""
        return int(self.random.integers(low, high + 1))

    def chance(self, probability: float) -> bool:
        return bool(self.random.random() < probability)

    def choose(self, *options: Any) -> Any:
        return options[int(self.random.integers(len(options)))]

    def array(self, shape: tuple[int, ...], dtype: DataType) -> NDArray[Any]:
        """Random elements of a sensible size."""
        if dtype is DataType.BOOL:
            return self.random.random(shape) < 0.5
        if dtype.is_float:
            return self.random.standard_normal(shape).astype(np.float32).astype(dtype.numpy)
        low = 0 if dtype.text.startswith("u") else -9
        return self.random.integers(low, 10, shape).astype(dtype.numpy)

    def input(self, shape: tuple[int, ...], dtype: DataType) -> Item:
        """A new input; some of its sizes are symbols."""
        name = f"x{len(self.feeds)}"
        declared: list[Any] = [
            f"{name}d{axis}" if self.chance(0.4) else size for axis, size in enumerate(shape)
        ]
        value = self.graph.add_input(name, sx.TensorType(dtype, tuple(declared)))
        self.feeds[name] = self.array(shape, dtype)
        return self.keep(value, shape, dtype, True)

    def constant(self, shape: tuple[int, ...], dtype: DataType) -> NDArray[Any]:
        return self.array(shape, dtype)

    def keep(self, value: sx.Value, shape: tuple[int, ...], dtype: DataType, exact: bool) -> Item:
        item = Item(value, tuple(int(size) for size in shape), dtype, exact)
        self.items.append(item)
        return item

    def pick(self, fits: Callable[[Item], bool] = lambda item: True) -> Item | None:
        """A value that fits, rather a recent one; a new input where there is none."""
        found = [item for item in self.items[-8:] if fits(item)] or [
            item for item in self.items if fits(item)
        ]
        return found[int(self.random.integers(len(found)))] if found else None

    def floats(self, rank: int | None = None, exact: bool = False) -> Item:
        """A float32 value, of a rank if one is asked for."""
        found = self.pick(
            lambda item: (
                item.dtype is DataType.FLOAT
                and (rank is None or item.rank == rank)
                and (item.exact or not exact)
            )
        )
        if found is not None and self.chance(0.9):
            return found
        sizes = tuple(
            self.integer(1, 6) for _ in range(self.integer(1, 4) if rank is None else rank)
        )
        return self.input(sizes, DataType.FLOAT)

    def finish(self) -> Case:
        """The model: everything that nothing reads is an output."""
        for item in self.items:
            if not item.value.uses and item.value.producer is not None:
                item.value.type = sx.TensorType(item.dtype, (None,) * item.rank)
                self.graph.outputs.append(item.value)
        if not self.graph.outputs:
            item = self.items[-1]
            self.graph.outputs.append(self.op.Identity(item.value))
        model = sx.Model(self.graph, sx.Opsets({"": OPSET}), ir_version=10)
        return Case(model, self.feeds)


Step = Callable[[Maker], None]
