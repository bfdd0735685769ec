"""Numbers for everything a program's data refers to: arrays, constants, kernels, sizes."""

from collections.abc import Callable
from typing import Any

import numpy as np

from sardonyx.compiler.forms import Form, Source
from sardonyx.compiler.image import Unmade
from sardonyx.compiler.kernels.reader import Packed
from sardonyx.dtypes import from_numpy
from sardonyx.graph import Value
from sardonyx.loops import Kernel, kernel_text


class Numbering:
    """Gives numbers as they are asked for; equal things have one."""

    def __init__(self, add_kernel: Callable[[Kernel], None]) -> None:
        """`add_kernel` is told of each kernel that gets a number."""
        self._add_kernel = add_kernel
        self.constants: list[Any] = []
        self.symbols: dict[str, int] = {}
        self.arrays: dict[Form | Value, int] = {}
        self._kernels: dict[str, int] = {}
        self._seen: dict[int, tuple[Kernel, int]] = {}
        self._constants: dict[int, int] = {}

    def array(self, item: Form | Value) -> int:
        """The number of the array that holds a value or a stored form."""
        key = item.value if isinstance(item, Source) else item
        return self.arrays.setdefault(key, len(self.arrays))

    def constant(self, item: Any) -> int:
        """The number of a constant."""
        if id(item) not in self._constants:
            self._constants[id(item)] = len(self.constants)
            self.constants.append(item)
        return self._constants[id(item)]

    def symbol(self, name: str) -> int:
        """The number of a size by its name."""
        return self.symbols.setdefault(name, len(self.symbols))

    def kernel(self, kernel: Kernel) -> int:
        """The number of a kernel."""
        seen = self._seen.get(id(kernel))
        if seen is None:
            text = kernel_text(kernel)
            if text not in self._kernels:
                self._kernels[text] = len(self._kernels)
                self._add_kernel(kernel)
            seen = self._seen[id(kernel)] = kernel, self._kernels[text]
        return seen[1]


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
