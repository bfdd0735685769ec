"""Execution providers: who runs a model, chosen by name."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from sardonyx.compiler.program import Settings
from sardonyx.errors import UnsupportedError
from sardonyx.graph import Value
from sardonyx.ops.catalog import Catalog
from sardonyx.ops.evaluate import Evaluator
from sardonyx.runtime.caching import open_cache
from sardonyx.runtime.options import SessionOptions
from sardonyx.runtime.processors import thread_limits
from sardonyx.runtime.source import ModelSource

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

    def __init__(
        self, source: ModelSource, catalog: Catalog | None, options: SessionOptions
    ) -> None:
        self._evaluator = Evaluator(source.model, catalog=catalog)
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


class CompiledRunner:
    """Runs the model as native code; what has no native form runs its reference in between."""

    def __init__(
        self, source: ModelSource, catalog: Catalog | None, options: SessionOptions
    ) -> None:
        asked = options.intra_op_num_threads
        threads = asked if asked > 0 else thread_limits().threads
        cache = open_cache(options)
        settings = Settings(threads=threads, catalog=catalog, cache=cache)
        identity = "" if cache is None else source.identity(cache)
        self._program = settings.open(lambda: source.model, identity)
        self._places = {name: place for place, name in enumerate(self._program.output_names)}
        self._source, self._catalog, self._options = source, catalog, options
        self._reference: ReferenceRunner | None = None

    def run(
        self,
        outputs: Sequence[str] | None,
        inputs: Mapping[str, Any],
        *,
        observe: Observe | None = None,
    ) -> list[Any]:
        """Run once; where inner values are asked for, on the reference, since only it has them."""
        if observe is not None or any(name not in self._places for name in outputs or ()):
            if self._reference is None:
                self._reference = ReferenceRunner(self._source, self._catalog, self._options)
            return self._reference.run(outputs, inputs, observe=observe)
        results = self._program.run(inputs)
        return results if outputs is None else [results[self._places[name]] for name in outputs]

    def explain(self) -> list[tuple[str, str]]:
        """Each node with its kernel and the nodes fused into it, or why it has none."""
        rows = []
        for item in self._program.explain():
            text = f"{item.kernel}: {item.reason}" if item.reason else item.kernel
            if item.together:
                text += f" (with {', '.join(item.together)})"
            rows.append((f"{item.operator} {item.node}".strip(), text))
        return rows


PROVIDERS: dict[str, Callable[[ModelSource, Catalog | None, SessionOptions], Runner]] = {
    "ReferenceExecutionProvider": ReferenceRunner,
    "CompiledExecutionProvider": CompiledRunner,
}
"""Providers by name, in the order of preference. The compiler is young: large graphs with dynamic
shapes can take a minute to compile, so it runs only where it is asked for."""


def get_available_providers() -> list[str]:
    """The providers a session can use here, the preferred one first.

    >>> get_available_providers()
    ['ReferenceExecutionProvider', 'CompiledExecutionProvider']
    """
    return list(PROVIDERS)


def choose_providers(wanted: Sequence[Any] | None) -> list[str]:
    """Wanted providers that are known; `CPUExecutionProvider` is the preferred one here."""
    names = [item if isinstance(item, str) else item[0] for item in wanted or PROVIDERS]
    preferred = get_available_providers()[0]
    spelled = [preferred if name == "CPUExecutionProvider" else name for name in names]
    known = [name for name in spelled if name in PROVIDERS]
    if not known:
        raise UnsupportedError(
            f"none of the providers {names} is available",
            hint=f"available are: {', '.join(get_available_providers())}",
        )
    return list(dict.fromkeys(known))
