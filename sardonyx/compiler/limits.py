"""Whether the numbers that kernels compute for given sizes fit into 64 bits."""

import math
from collections.abc import Sequence

from sardonyx.errors import EvaluationError

Terms = tuple[tuple[float, tuple[int, ...]], ...]
"""A bound as a sum: factors, and the places of sizes to multiply."""
MOST = 2.0**62
"""What every number in a kernel stays below."""
LARGEST_SIZE = 1 << 47
"""Elements along an axis that no array has, unless it is empty."""


def check_bound(terms: Terms, sizes: Sequence[int], names: Sequence[str]) -> None:
    """An error where numbers in kernels could leave 64 bits for these sizes."""
    total = sum(factor * math.prod(float(sizes[place]) for place in places)
                for factor, places in terms)  # fmt: skip
    if total < MOST and max(sizes, default=0) <= LARGEST_SIZE:
        return
    size, name = max(zip(sizes, names, strict=True), default=(0, ""))
    what = f"with {name} = {size} " if name else ""
    raise EvaluationError(f"{what}places in memory are beyond 64 bits", hint="feed smaller shapes")
