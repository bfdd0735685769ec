"""Programs made for the contents of small inputs: axes, shapes, repeats that a feed brings.

An operator whose list of axes is an input has no native form until that list is known. So a model
with such inputs gets a program for each of the first few contents they are fed with.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.compiler.watch import Watch
from sardonyx.errors import InputError
from sardonyx.graph import Model, Tensor
from sardonyx.graph.clone import clone_model

MOST_VARIANTS = 4
"""Contents that get a program of their own; with others, operators run their reference."""
LARGEST_CONTENT = 64
"""Elements of an input that may decide what a program looks like."""

Contents = dict[str, NDArray[Any]]


class Specialized:
    """A model's programs, by the contents of the inputs that decide about its operators."""

    def __init__(
        self, wanted: tuple[str, ...], make: Callable[[Contents | None], Any],
        inputs: list[str], outputs: list[str],
    ) -> None:  # fmt: skip
        self.wanted = wanted
        self.input_names = inputs
        self.output_names = outputs
        self._make = make
        self._made: dict[tuple[Any, ...] | None, Any] = {}
        self._last: Any = None

    def run(self, feeds: Mapping[str, Any], watch: Watch | None = None) -> list[Any]:
        """The model's outputs for a value of each input."""
        contents = {name: np.asarray(feeds[name]) for name in self.wanted if name in feeds}
        program = self._program(contents)
        rest = {name: item for name, item in feeds.items() if name in program.input_names}
        rest |= {name: item for name, item in feeds.items() if name not in self.input_names}
        self._last = program
        results: list[Any] = program.run(rest, watch)
        return results

    def _program(self, contents: Contents) -> Any:
        key: tuple[Any, ...] | None = tuple(
            (name, item.shape, item.dtype, item.tobytes()) for name, item in contents.items()
        )
        sizes = [item.size for item in contents.values() if item.dtype != object]
        small = len(sizes) == len(self.wanted) and max(sizes) <= LARGEST_CONTENT
        if not small or (key not in self._made and len(self._made) >= MOST_VARIANTS):
            key = None
        if key not in self._made:
            self._made[key] = self._make(None if key is None else contents)
        return self._made[key]

    @property
    def sparse_outputs(self) -> frozenset[str]:
        """Nothing: types are only known with the contents."""
        return frozenset()

    def latest(self) -> Any:
        """The program of the last run, or before any the one that knows no contents."""
        return self._last or self._program({})

    def explain(self) -> list[Any]:
        """What became of each node, for the contents of the last run."""
        rows: list[Any] = self.latest().explain()
        return rows

    @property
    def segments(self) -> int:
        """How many native calls one run is."""
        return int(self.latest().segments)

    @property
    def kernels(self) -> int:
        """How many kernels one run calls."""
        return int(self.latest().kernels)


def with_contents(model: Model, contents: Contents) -> Model:
    """A copy of a model in which inputs are constants."""
    twin = clone_model(model)
    graph = twin.graph
    if graph is None:
        raise InputError("the model has no graph", hint="the file is empty or damaged")
    for value in [item for item in graph.inputs if item.name in contents]:
        graph.inputs.remove(value)
        value.tensor = Tensor(contents[value.name], value.name)
        if value not in graph.initializers:
            graph.initializers.append(value)
    return twin
