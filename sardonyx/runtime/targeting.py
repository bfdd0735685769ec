"""Which target a session compiles for: as its options say, else the environment, else the best."""

import os
from collections.abc import Mapping

from sardonyx.compiler.host import host_target
from sardonyx.errors import InputError, UnsupportedError
from sardonyx.runtime.options import SessionOptions

ENTRY = "sardonyx.target"
"""Configuration entry: the name of a target."""
VARIABLE = "SARDONYX_TARGET"
"""Environment variable: the name of a target."""


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
