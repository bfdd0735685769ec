"""Programs made for the contents of small inputs: axes, shapes, repeats that a feed brings.

An operator whose list of axes is an input has no native form until that list is known. So a model
with such inputs gets a program for each content they are fed with, and which program runs depends
on what is fed alone: never on what was fed before, nor on other threads. Programs that were not
used for long are dropped, and made again (or found in the cache) when their content comes back.
"""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.compiler.forks import FORKS
from sardonyx.compiler.watch import Watch
from sardonyx.errors import InputError
from sardonyx.graph import Model, Tensor
from sardonyx.graph.clone import clone_model

MOST_VARIANTS = 64
"""Programs that are kept, those used last."""
MOST_BYTES = 1 << 30
"""Bytes of constants that kept programs may hold together, the one used last not counted."""
LARGEST_CONTENT = 64
"""Elements of an input that may decide what a program looks like; with more, operators run their
reference."""

Contents = dict[str, NDArray[Any]]
Key = tuple[Any, ...] | None
_CHANGE = threading.RLock()
"""Held for moments, to look up and to note programs."""
FORKS.take(_CHANGE)


class _Making:
    """A program that a thread of this process is making; others wait for it."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.done = threading.Event()


class Variants:
    """Programs by contents, each made once however many threads ask for it at the same time."""

    def __init__(self, make: Callable[[Contents | None], Any]) -> None:
        self._make = make
        self._made: OrderedDict[Key, Any] = OrderedDict()
        self._making: dict[Key, _Making] = {}

    def get(self, key: Key, contents: Contents | None) -> Any:
        """The program for contents, which are None for the one that knows none."""
        while True:
            with _CHANGE:
                program = self._made.get(key)
                if program is not None:
                    self._made.move_to_end(key)
                    return program
                other = self._making.get(key)
                # What a thread was making when the process forked, nobody makes in the child.
                if other is None or other.process != os.getpid():
                    mine = self._making[key] = _Making()
                    break
            other.done.wait()
        try:
            program = self._make(contents)
            self._keep(key, program)
        finally:
            with _CHANGE:
                del self._making[key]
            mine.done.set()
        return program

    def _keep(self, key: Key, program: Any) -> None:
        with _CHANGE:
            self._made[key] = program
            total = sum(item.constant_bytes for item in self._made.values())
            while len(self._made) > 1:
                if len(self._made) <= MOST_VARIANTS and total <= MOST_BYTES:
                    break
                total -= self._made.popitem(last=False)[1].constant_bytes

    @property
    def constant_bytes(self) -> int:
        """Bytes of what kernels of all kept programs read."""
        with _CHANGE:
            kept = list(self._made.values())
        return sum(item.constant_bytes for item in kept)


class Specialized:
    """A model's programs, by the contents of the inputs that decide about its operators."""

    def __init__(
        self, wanted: tuple[str, ...], make: Callable[[Contents | None], Any],
        inputs: list[str], outputs: list[str], sparse: frozenset[str] = frozenset(),
    ) -> None:  # fmt: skip
        self.wanted = wanted
        self.input_names = inputs
        self.output_names = outputs
        self.sparse_outputs = sparse
        """What comes back as arrays but was declared as sparse tensors."""
        self._variants = Variants(make)
        self._last: Any = None
        self._own = threading.local()

    def run(
        self, feeds: Mapping[str, Any], watch: Watch | None = None,
        rooms: Mapping[str, Any] | None = None,
    ) -> list[Any]:  # fmt: skip
        """The model's outputs for a value of each input."""
        contents = {name: np.asarray(feeds[name]) for name in self.wanted if name in feeds}
        program = self._program(contents)
        rest = {name: item for name, item in feeds.items() if name in program.input_names}
        rest |= {name: item for name, item in feeds.items() if name not in self.input_names}
        self._last = self._own.last = program
        results: list[Any] = program.run(rest, watch, rooms)
        return results

    def _program(self, contents: Contents) -> Any:
        sizes = [item.size for item in contents.values() if item.dtype != object]
        if len(sizes) < len(self.wanted) or max(sizes) > LARGEST_CONTENT:
            return self._variants.get(None, None)
        key = tuple(
            (name, item.shape, item.dtype, item.tobytes()) for name, item in contents.items()
        )
        return self._variants.get(key, contents)

    @property
    def constant_bytes(self) -> int:
        """Bytes of what kernels of all kept programs read."""
        return self._variants.constant_bytes

    def latest(self) -> Any:
        """The program of this thread's last run, or of another's; before any, the one that knows
        no contents."""
        return getattr(self._own, "last", None) or self._last or self._program({})

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
