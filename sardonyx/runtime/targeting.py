"""What a session compiles for, checks and refuses: as its options say, else the environment."""

import os
from collections.abc import Mapping

from sardonyx.compiler.host import host_target
from sardonyx.compiler.targets import ACCESSES, CHECKS, GENERIC, MEMORY, allowing
from sardonyx.errors import InputError, UnsupportedError
from sardonyx.ops.work import WORK_LIMIT, WORK_LIMIT_ENTRY
from sardonyx.runtime.options import SessionOptions

ENTRY = "sardonyx.target"
"""Configuration entry: the name of a target."""
VARIABLE = "SARDONYX_TARGET"
"""Environment variable: the name of a target."""
PRECISION = "sardonyx.precision"
"""Configuration entry: how exact products of float32 are."""

CHECK_ENTRY = "sardonyx.check"
"""Configuration entry: what programs check while they run."""
CHECK = "SARDONYX_CHECK"
"""Environment variable: the same."""
_CHECKS = {"": "", "0": "", "1": ACCESSES, **{name: name for name in CHECKS}}


def asked_target(
    options: SessionOptions, environment: Mapping[str, str] = os.environ
) -> str | None:
    """The name of the target that is asked for; None for the best one.

    >>> asked_target(SessionOptions(), {"SARDONYX_TARGET": "generic"})
    'generic'
    """
    name = options.entry(ENTRY) or environment.get(VARIABLE, "")
    try:
        return host_target(name).name if name else None
    except UnsupportedError as error:
        raise InputError(error.what, hint=error.hint) from error


def asked_precision(options: SessionOptions) -> str:
    """The precision that is asked for.

    >>> asked_precision(SessionOptions())
    'highest'
    """
    name = options.entry(PRECISION) or "highest"
    try:
        allowing(GENERIC, name)
    except UnsupportedError as error:
        raise InputError(error.what, hint=error.hint) from error
    return name


def asked_checks(options: SessionOptions, environment: Mapping[str, str] = os.environ) -> str:
    """What programs check: nothing, their memory, or every access too, which `1` means as well.

    >>> asked_checks(SessionOptions(), {"SARDONYX_CHECK": "1"})
    'accesses'
    """
    name = options.entry(CHECK_ENTRY) or environment.get(CHECK, "")
    if name not in _CHECKS:
        raise InputError(
            f"there is no check of '{name}'", hint=f"use 1 (all of them), 0, {MEMORY} or {ACCESSES}"
        )
    return _CHECKS[name]


def asked_work_limit(options: SessionOptions) -> int:
    """How many elementary operations a run may take.

    >>> asked_work_limit(SessionOptions()) == 2**50
    True
    """
    text = options.entry(WORK_LIMIT_ENTRY) or str(WORK_LIMIT)
    try:
        limit = int(text)
    except ValueError:
        limit = 0
    if limit < 1:
        raise InputError(
            f"the configuration entry '{WORK_LIMIT_ENTRY}' is '{text}'",
            hint="set it to a number of elementary operations, 1 or more",
        )
    return limit
