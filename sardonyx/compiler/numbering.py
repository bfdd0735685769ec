"""Numbers for everything a program's data refers to: arrays, constants, kernels, sizes."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.compiler.derive import QUOTIENT
from sardonyx.compiler.forms import Form, Source
from sardonyx.compiler.image import Unmade, aligned
from sardonyx.compiler.kernels.reader import Packed
from sardonyx.compiler.processors import available_processors
from sardonyx.compiler.share import Family, family_text
from sardonyx.compiler.waiting import submit
from sardonyx.dims import Size, symbol
from sardonyx.dtypes import from_numpy
from sardonyx.graph import Value
from sardonyx.loops import Kernel, kernel_text
from sardonyx.record import record

EARLY = 64 << 20
"""Bytes of constants that are made while LLVM works; more of them are made one by one."""


@record
class Numbered:
    """The number of a kernel in a program, and what a call gives for its parameters."""

    number: int
    arguments: tuple[Size, ...]


class Numbering:
    """Gives numbers as they are asked for; equal things have one."""

    def __init__(self, add_kernel: Callable[[Kernel], None]) -> None:
        """`add_kernel` is told of each kernel that gets a number."""
        self._add_kernel = add_kernel
        self.constants: list[Any] = []
        self.symbols: dict[str, int] = {}
        self.arrays: dict[Form | Value, int] = {}
        self._added = 0
        self._kernels: dict[str, tuple[int, tuple[str, ...]]] = {}
        """By text with places for names of quotients: the number and the parameters."""
        self._families: dict[tuple[str, ...], Family] = {}
        self._general: dict[int, int] = {}
        self._seen: dict[int, tuple[Kernel, Numbered]] = {}
        self._constants: dict[Hashable, int] = {}

    def array(self, item: Form | Value) -> int:
        """The number of the array that holds a value or a stored form."""
        key = item.value if isinstance(item, Source) else item
        return self.arrays.setdefault(key, len(self.arrays))

    def constant(self, item: Any) -> int:
        """The number of a constant."""
        key = item.key if isinstance(item, Packed) and item.key is not None else id(item)
        if key not in self._constants:
            self._constants[key] = len(self.constants)
            self.constants.append(item)
        return self._constants[key]

    def symbol(self, name: str) -> int:
        """The number of a size by its name."""
        return self.symbols.setdefault(name, len(self.symbols))

    def kernel(self, kernel: Kernel) -> Numbered:
        """The number of a kernel that stands for this one, and its arguments."""
        seen = self._seen.get(id(kernel))
        if seen is None:
            seen = self._seen[id(kernel)] = kernel, self._number(kernel)
        return seen[1]

    def _number(self, kernel: Kernel) -> Numbered:
        names: dict[str, str] = {}
        text = QUOTIENT.sub(
            lambda found: names.setdefault(found[0], f"${len(names)}"), kernel_text(kernel)
        )
        if text in self._kernels:
            number, parameters = self._kernels[text]
            own = {place: name for name, place in names.items()}
            return Numbered(number, tuple(symbol(own.get(name, name)) for name in parameters))
        parameters = tuple(names.get(name, name) for name in kernel.parameters)
        family = self._families.setdefault((family_text(text), *names), Family())
        shared = family.find(kernel)
        if shared is None:
            family.members.append(kernel)
            self._kernels[text] = self._add(kernel), parameters
            return Numbered(self._kernels[text][0], tuple(map(symbol, kernel.parameters)))
        general, numbers = shared
        if id(general) not in self._general:
            self._general[id(general)] = self._add(general.kernel)
        given = [numbers.get(name, symbol(name)) for name in general.kernel.parameters]
        return Numbered(self._general[id(general)], tuple(given))

    def _add(self, kernel: Kernel) -> int:
        self._add_kernel(kernel)
        self._added += 1
        return self._added - 1


def stored_constant(item: Any) -> Any:
    """A constant as kernels read it: without gaps, at an address its elements may have."""
    if isinstance(item, Packed):
        shape = tuple(size for size in item.shape if isinstance(size, int))
        return Unmade(shape, int(item.dtype), item.make)
    if not isinstance(item, np.ndarray) or item.dtype == object:
        return item
    if item.flags.c_contiguous and item.flags.aligned:
        return item
    return Unmade(item.shape, int(from_numpy(item.dtype)), lambda: item)


def made_early(constants: Iterable[Any], room: int = EARLY) -> Iterator[Any]:
    """Constants, of which some are made now, while LLVM works, and those behind them later."""
    waiting: list[Any] = []
    with ThreadPoolExecutor(available_processors()) as threads:
        for item in constants:
            if isinstance(item, Unmade) and item.nbytes <= room:
                room -= item.nbytes
                waiting.append((submit(threads, partial(_made, item)), item))
            else:
                waiting.append(item)
        for item in waiting:
            yield _result(*item) if isinstance(item, tuple) else item


def _made(item: Unmade) -> NDArray[Any]:
    return aligned(item.make())


def _result(future: Future[NDArray[Any]], item: Unmade) -> NDArray[Any]:
    return _made(item) if future.cancel() else future.result()
