"""Where callers come in: what is raised inside and belongs to no one else becomes one of ours.

A `SardonyxError` passes, and so does what a caller's own code raised: operators, callbacks, file
objects, mappings. Lack of memory says so. All the rest is a defect of this package.
"""

import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import wraps
from types import FunctionType, TracebackType
from typing import Any, NoReturn, TypeVar, cast

from sardonyx.errors import InternalError, OutOfMemoryError, ResourceError, SardonyxError

Function = TypeVar("Function", bound=Callable[..., Any])
Class = TypeVar("Class", bound=type)

_OURS = frozenset(["sardonyx", "numpy", "llvmlite", "ml_dtypes", "google"])
"""Packages whose errors are not a caller's."""
_SPECIAL = frozenset(["__init__", "__call__", "__getstate__", "__setstate__"])
_MARK = "_raised_by_a_caller"


def public(
    doing: str, *, expected: tuple[type[Exception], ...] = ()
) -> Callable[[Function], Function]:
    """A decorator of public functions: `doing` tells what was tried, `expected` passes too.

    >>> @public("counting")
    ... def count(items):
    ...     return len(items)
    >>> count([1, 2])
    2
    """

    def decorate(function: Function) -> Function:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except SardonyxError:
                raise
            except expected:
                raise
            except Exception as error:  # noqa: BLE001 - the one place where all of them are caught
                raise_outward(error, doing)

        return cast("Function", call)

    return decorate


def public_methods(doing: str, *, plain: Collection[str] = ()) -> Callable[[Class], Class]:
    """A decorator of public classes: each method is `public`, but those in `plain`.

    Those are called so often that they have their own `try` with `raise_outward`.
    """

    def decorate(made: Class) -> Class:
        for name, item in list(vars(made).items()):
            if name in plain or (name.startswith("_") and name not in _SPECIAL):
                continue
            if isinstance(item, FunctionType):
                setattr(made, name, public(doing)(item))
            elif isinstance(item, staticmethod | classmethod):
                setattr(made, name, type(item)(public(doing)(item.__func__)))
        return made

    return decorate


def raise_outward(error: Exception, doing: str) -> NoReturn:
    """Raise what a caller gets for an error inside: itself, or one of ours in its place."""
    if isinstance(error, SardonyxError | Warning) or _is_callers(error):
        raise error
    if isinstance(error, MemoryError):
        raise OutOfMemoryError(
            f"{doing} needs more memory than there is: {error}",
            where=place_of(error),
            hint="use smaller inputs, or allow the process more memory",
        ) from error
    if isinstance(error, OSError):
        raise ResourceError(
            f"{doing} failed, since the system refused: {error}", where=place_of(error)
        ) from error
    raise internal_error(error, doing) from error


def internal_error(error: Exception, doing: str) -> InternalError:
    """The error that says that this package has a defect."""
    return InternalError(
        f"{doing} failed: {type(error).__name__}: {error}",
        where=place_of(error),
        hint="this is a defect of sardonyx: please report it, with the model and this traceback",
    )


@contextmanager
def callers_code() -> Iterator[None]:
    """What is raised meanwhile is a caller's: a call of a file object, which has no Python of its
    own that would tell."""
    try:
        yield
    except Exception as error:
        setattr(error, _MARK, True)
        raise


def place_of(error: BaseException) -> str:
    """The node at which an error came up, where the functions in between had one in hand."""
    place = ""
    for trace in _traces(error.__traceback__):
        node = trace.tb_frame.f_locals.get("node")
        if callable(where := getattr(node, "where", None)):
            place = str(where())
    return place


def _is_callers(error: Exception) -> bool:
    """True where code that is not ours raised, or a call did not fit the signature."""
    traces = list(_traces(error.__traceback__))
    if len(traces) == 1 and isinstance(error, TypeError) and _is_gate(traces[0]):
        return True
    return getattr(error, _MARK, False) or any(map(_is_foreign, traces[1:]))


def _is_gate(trace: TracebackType) -> bool:
    return trace.tb_frame.f_globals.get("__name__") == __name__


def _is_foreign(trace: TracebackType) -> bool:
    """True for code outside this package, those it is built on, and Python's own."""
    name = trace.tb_frame.f_globals.get("__name__")
    top = str(name).partition(".")[0]
    return name is not None and top not in _OURS and top not in sys.stdlib_module_names


def _traces(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next
