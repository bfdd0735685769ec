"""A word that ends a run from outside: kernels look at it while they work."""

import ctypes


class Stop:
    """Ends the runs that were given it soon after it is set; it stays set."""

    __slots__ = ("_word", "address")

    def __init__(self) -> None:
        self._word = ctypes.c_int64()
        self.address = ctypes.addressof(self._word)
        """Where kernels look: a run is to stop where they find anything but 0."""

    def set(self) -> None:
        """Ask to stop; any thread may."""
        self._word.value = 1

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return Stop, ()

    @property
    def is_set(self) -> bool:
        """Whether somebody asked."""
        return bool(self._word.value)


NEVER = Stop()
"""Of runs that nobody can stop; never set."""
