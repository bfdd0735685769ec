"""Execution providers: who runs a model, chosen by name."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from sardonyx.errors import UnsupportedError
from sardonyx.graph import Model, Value
from sardonyx.ops.catalog import Catalog
from sardonyx.ops.evaluate import Evaluator

Observe = Callable[[Value, Any], None]


class Runner(Protocol):
    """A model made ready to run by some provider; safe to run from many threads at once."""

    def run(
        self,
        outputs: Sequence[str] | None,
        inputs: Mapping[str, Any],
        *,
        observe: Observe | None = None,
    ) -> list[Any]:
        """Run once; `observe` is told of every value as it is made."""
        ...

    def explain(self) -> list[tuple[str, str]]:
        """Each node with what runs it."""
        ...


class ReferenceRunner:
    """Runs each operator's reference, one node after another."""

    def __init__(self, model: Model, catalog: Catalog) -> None:
        self._evaluator = Evaluator(model, catalog=catalog)
        self.graph = self._evaluator.graph

    def run(
        self,
        outputs: Sequence[str] | None,
        inputs: Mapping[str, Any],
        *,
        observe: Observe | None = None,
    ) -> list[Any]:
        """Run once."""
        return self._evaluator.run(outputs, inputs, observe=observe)

    def explain(self) -> list[tuple[str, str]]:
        """Each node runs its reference."""
        return [(node.where(), "reference") for node in self.graph.nodes]


PROVIDERS: dict[str, Callable[[Model, Catalog], Runner]] = {
    "ReferenceExecutionProvider": ReferenceRunner,
}
"""Providers by name, in the order of preference."""


def get_available_providers() -> list[str]:
    """The providers a session can use here, the preferred one first.

    >>> get_available_providers()
    ['ReferenceExecutionProvider']
    """
    return list(PROVIDERS)


def choose_providers(wanted: Sequence[Any] | None) -> list[str]:
    """Wanted providers that are known; `CPUExecutionProvider` is whatever is preferred here."""
    if not wanted:
        return get_available_providers()
    names = [item if isinstance(item, str) else item[0] for item in wanted]
    known = [
        get_available_providers()[0] if name == "CPUExecutionProvider" else name
        for name in names
        if name in PROVIDERS or name == "CPUExecutionProvider"
    ]
    if not known:
        raise UnsupportedError(
            f"none of the providers {names} is available",
            hint=f"available are: {', '.join(get_available_providers())}",
        )
    return list(dict.fromkeys(known))
