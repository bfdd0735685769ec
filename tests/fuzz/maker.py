"""Tiny models, made node by node, whose inputs know how to fill themselves for every run."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from tests.fuzz.trial import Feeds, Trial
from tests.fuzz.values import SIZES, Array, dtype_of, element_type, elements, numbers

OPSET = 24
IR_VERSION = 11
Shape = tuple[int | str, ...]
"""Sizes are numbers, or names that stand for another size in every run."""


class Maker:
    """Collects nodes, constants and inputs; sizes are `fixed`, `named` or `open`."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.mode = self.rng.choice(("fixed", "named", "named", "open"))
        self.constancy = self.rng.choice((0.0, 0.5, 1.0))
        """How many of the numbers that steer are constants."""
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.values: list[Any] = []
        self.fillers: list[tuple[str, Callable[[random.Random, dict[str, int]], Any]]] = []
        self.fixed: dict[str, int] = {}
        self.opset = OPSET
        self.count = 0

    def name(self) -> str:
        """A name that nothing has yet."""
        self.count += 1
        return f"v{self.count}"

    def size(self, symbol: int | str, chosen: dict[str, int], rng: random.Random) -> int:
        """The size that a name stands for in a run."""
        if isinstance(symbol, int):
            return symbol
        if self.mode == "fixed":
            chosen, rng = self.fixed, self.rng
        if symbol not in chosen:
            chosen[symbol] = rng.choice(SIZES)
        return chosen[symbol]

    def data(self, shape: Shape, kind: str = "float32", wild: float = 0.2) -> str:
        """An input full of elements, or now and then a constant."""
        if self.mode == "fixed" and self.rng.random() < 0.15:
            sizes = [self.size(item, {}, self.rng) for item in shape]
            return self.constant(elements(self.rng, sizes, kind, wild))

        def fill(rng: random.Random, chosen: dict[str, int]) -> Array:
            return elements(rng, [self.size(item, chosen, rng) for item in shape], kind, wild)

        return self.input(shape, dtype_of("object" if kind == "str" else kind), fill)

    def whole(self, count: int, kind: str = "int64", wild: float = 0.5, **given: Any) -> str:
        """`count` whole numbers as a constant or an input; `among` are what to choose from."""
        among = given.get("among")
        scalar = given.get("scalar", False)

        def fill(rng: random.Random, _: dict[str, int]) -> Array:
            shape = () if scalar else (count,)
            if among is not None and rng.random() < 0.7:
                limits = np.iinfo(kind)
                found = [min(max(rng.choice(among), limits.min), limits.max) for _ in range(count)]
                return np.array(found, kind).reshape(shape)
            return numbers(rng, shape, kind, wild)

        if self.rng.random() < self.constancy:
            return self.constant(fill(self.rng, {}))
        return self.input(() if scalar else (count,), np.dtype(kind), fill)

    def input(self, shape: Shape, dtype: np.dtype[Any], fill: Callable[..., Any]) -> str:
        """An input with a declaration in this model's manner."""
        name = self.name()
        sizes: list[Any] = []
        for item in shape:
            if self.mode == "fixed" or isinstance(item, int):
                sizes.append(self.size(item, {}, self.rng))
            else:
                sizes.append(item if self.mode == "named" else None)
        self.inputs.append(helper.make_tensor_value_info(name, element_type(dtype), sizes))
        self.fillers.append((name, fill))
        return name

    def constant(self, array: Array) -> str:
        """An initializer."""
        name = self.name()
        if array.dtype == object:
            flat = [str(item).encode() for item in array.reshape(-1)]
            self.constants.append(helper.make_tensor(name, TensorProto.STRING, array.shape, flat))
        else:
            self.constants.append(numpy_helper.from_array(array, name))
        return name

    def node(
        self, kind: str, *inputs: str, outputs: int = 1, domain: str = "", **given: Any
    ) -> Any:
        """A node; its output's name, or the names of several."""
        names = [self.name() for _ in range(outputs)]
        given = {key: value for key, value in given.items() if value is not None}
        empty = [key for key, value in given.items() if value == []]
        full = {key: value for key, value in given.items() if key not in empty}
        node = helper.make_node(kind, inputs, names, **full)
        for key in empty:
            node.attribute.append(AttributeProto(name=key, type=AttributeProto.INTS))
        self.nodes.append(node)
        return names[0] if outputs == 1 else names

    def maybe(self, make: Callable[[], Any], chance: float = 0.5) -> Any:
        """Something, or nothing (an attribute left out, an empty input)."""
        return make() if self.rng.random() < chance else None

    def some(self, count: int, wild: float = 0.3) -> list[int]:
        """Whole numbers for an attribute."""
        return [int(item) for item in numbers(self.rng, (count,), wild=wild)]

    def one(self, wild: float = 0.3) -> int:
        """A whole number for an attribute."""
        return self.some(1, wild)[0]

    def model(self, outputs: list[tuple[str, int]]) -> bytes:
        """The model's bytes; outputs are names with their element types (0: not said)."""
        declared = []
        for name, kind in outputs:
            value = helper.make_empty_tensor_value_info(name)
            if kind:
                value.type.tensor_type.elem_type = kind
            declared.append(value)
        graph = helper.make_graph(
            self.nodes, "g", self.inputs, declared, self.constants, value_info=self.values
        )
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid("ai.onnx.ml", 5)]
        found = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
        return bytes(found.SerializeToString())

    def feeds(self, run: int) -> Feeds:
        """What run number `run` feeds."""
        rng = random.Random(self.seed << 8 | run)
        chosen: dict[str, int] = {}
        return {name: fill(rng, chosen) for name, fill in self.fillers}

    def trial(self, outputs: list[tuple[str, int]], what: str, **given: Any) -> Trial:
        """The trial of this model."""
        return Trial(self.model(outputs), what, self.feeds, **given)
