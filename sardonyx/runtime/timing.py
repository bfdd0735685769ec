"""Time calls fairly: taking turns, so that a busy moment of the machine hits them all."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Timing:
    """How long each of some equal calls took, in seconds."""

    seconds: tuple[float, ...]

    @property
    def best(self) -> float:
        """The shortest."""
        return min(self.seconds)

    @property
    def median(self) -> float:
        """The one in the middle."""
        return median(self.seconds)


def time_calls(
    calls: Mapping[str, Callable[[], object]],
    repeats: int,
    warmups: int = 1,
    advance: Callable[[], None] | None = None,
) -> dict[str, Timing]:
    """Call each in turn, `repeats` times; `warmups` rounds before that are not counted.

    `advance` is told of each round that is over.

    >>> timings = time_calls({"sum": lambda: sum(range(10))}, repeats=3)
    >>> len(timings["sum"].seconds), timings["sum"].best <= timings["sum"].median
    (3, True)
    """
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(warmups + repeats):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            taken = time.perf_counter() - start
            if turn >= warmups:
                seconds[name].append(taken)
        if advance is not None:
            advance()
    return {name: Timing(tuple(times)) for name, times in seconds.items()}
