"""Execution providers: who runs a model, chosen by name."""

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from logging import INFO, WARNING
from typing import Any, Protocol

from sardonyx.compiler.program import Program, Settings
from sardonyx.compiler.specialize import Specialized
from sardonyx.errors import InputError, UnsupportedError
from sardonyx.format.private import keep_in_memory
from sardonyx.graph import Graph, Model, SparseTensorType, Value
from sardonyx.graph.clone import clone_model
from sardonyx.ops.catalog import Catalog
from sardonyx.runtime.caching import open_cache
from sardonyx.runtime.defaults import PROCESS
from sardonyx.runtime.feeds import constants_of
from sardonyx.runtime.options import SessionOptions
from sardonyx.runtime.prepare import fix_constants, optimize_model, overridable
from sardonyx.runtime.processors import thread_limits
from sardonyx.runtime.profile import Computed
from sardonyx.runtime.progress import signs_of_life
from sardonyx.runtime.source import ModelSource
from sardonyx.runtime.targeting import (
    asked_checks,
    asked_precision,
    asked_target,
    asked_work_limit,
)
from sardonyx.runtime.watching import Watcher

Observe = Callable[[Value, Any], None]
MOST_TAPPED = 4
"""Programs with further outputs that are remembered, the latest ones."""


class Runner(Protocol):
    """A model made ready to run by some provider; safe to run from many threads at once."""

    constants: frozenset[int]
    """Identities of arrays that results may be and that belong to the model."""
    sparse: frozenset[str]
    """Outputs to return as sparse tensors."""

    def run(
        self, outputs: Sequence[str] | None, inputs: Mapping[str, Any],
        watcher: Watcher | None = None, rooms: Mapping[str, Any] | None = None,
    ) -> list[Any]:  # fmt: skip
        """Run once; outputs may be any values of the main graph, by name.

        Who can writes an output into its array in `rooms`.
        """
        ...

    def run_again(
        self, outputs: Sequence[str] | None, inputs: Mapping[str, Any],
        rooms: Mapping[str, Any] | None = None,
    ) -> list[Any] | None:  # fmt: skip
        """Outputs, in memory of their own or in `rooms`, for arrays like those of a run before;
        else None."""
        ...

    def collect(
        self, outputs: Sequence[str] | None, inputs: Mapping[str, Any], wanted: re.Pattern[str],
        watcher: Watcher | None = None,
    ) -> tuple[list[Any], dict[str, Any]]:  # fmt: skip
        """Run once, and return inner values whose names are wanted too."""
        ...

    def explain(self) -> list[tuple[str, str]]:
        """Each node with what runs it."""
        ...

    def computed(self) -> dict[str, Computed]:
        """What each kernel computes."""
        ...

    def order(self) -> list[tuple[str, str]]:
        """The name of each node, and of its kernel; no name where its reference runs."""
        ...


class ReferenceRunner:
    """Runs each operator's reference, one node after another."""

    def __init__(
        self, source: ModelSource, catalog: Catalog | None, options: SessionOptions
    ) -> None:
        # It brings all that models are rewritten with, which a compiled one does not need.
        from sardonyx.ops.evaluate import Evaluator

        self._evaluator = Evaluator(
            source.model, catalog=catalog, seed=PROCESS.seed, work_limit=asked_work_limit(options)
        )
        self.model, self.graph = self._evaluator.model, self._evaluator.graph
        keep_in_memory(self.model)
        self.constants = constants_of(source.model) | constants_of(self.model)
        self.sparse = sparse_names(self.graph.outputs)

    def run(
        self, outputs: Sequence[str] | None, inputs: Mapping[str, Any],
        watcher: Watcher | None = None, rooms: Mapping[str, Any] | None = None,
    ) -> list[Any]:  # fmt: skip
        """Run once."""
        observe = None if watcher is None else watcher.observe
        return self._evaluator.run(outputs, inputs, observe=observe)

    def run_again(
        self, outputs: Sequence[str] | None, inputs: Mapping[str, Any],
        rooms: Mapping[str, Any] | None = None,
    ) -> list[Any] | None:  # fmt: skip
        """None: every run is the same here."""
        return None

    def collect(
        self, outputs: Sequence[str] | None, inputs: Mapping[str, Any], wanted: re.Pattern[str],
        watcher: Watcher | None = None,
    ) -> tuple[list[Any], dict[str, Any]]:  # fmt: skip
        """Run once, and return inner values whose names are wanted too."""
        kept: dict[str, Any] = {}

        def keep(value: Value, item: Any) -> None:
            if watcher is not None:
                watcher.observe(value, item)
            if value.name and wanted.search(value.name):
                kept[value.name] = item

        return self._evaluator.run(outputs, inputs, observe=keep), kept

    def explain(self) -> list[tuple[str, str]]:
        """Each node runs its reference."""
        return [(node.where(), "reference") for node in self.graph.nodes]

    def computed(self) -> dict[str, Computed]:
        """There are no kernels."""
        return {}

    def order(self) -> list[tuple[str, str]]:
        """The name of each node."""
        return [(node.where(), "") for node in self.graph.nodes]


class CompiledRunner:
    """Runs the model as native code; what has no native form runs its reference in between."""

    def __init__(
        self, source: ModelSource, catalog: Catalog | None, options: SessionOptions
    ) -> None:
        self._source, self._catalog, self._options = source, catalog, options
        asked = options.intra_op_num_threads or PROCESS.threads
        self._settings = Settings(
            target=asked_target(options),
            threads=asked if asked > 0 else thread_limits().threads,
            catalog=catalog,
            cache=open_cache(options),
            seed=PROCESS.seed,
            watching=partial(signs_of_life, "compiling the model", options),
            precision=asked_precision(options),
            checked=asked_checks(options),
            work_limit=asked_work_limit(options),
        )
        self._program = self._compile_optimized()
        self.constants: frozenset[int] = frozenset()
        self.sparse = self._program.sparse_outputs
        self._places = {name: place for place, name in enumerate(self._program.output_names)}
        self._tapped: OrderedDict[tuple[str, ...], Program | Specialized] = OrderedDict()
        self._reference: ReferenceRunner | None = None
        self._fed = frozenset(self._program.input_names)
        self._open: Program | Specialized | None = None

    def _compile_optimized(self, *, fixed: bool = True) -> Program | Specialized:
        """The program of the optimized model; the cache knows it by the model as it was.

        Constants that a feed may replace are `fixed` until one does.
        """
        cache = self._settings.cache
        identity = "" if cache is None else self._source.identity(cache)

        def read() -> Model:
            model = self._source.model
            return optimize_model(
                fix_constants(model) if fixed else model, self._options, self._catalog
            )

        return self._settings.open(read, identity if fixed else f"{identity} open")

    def _program_for(self, inputs: Mapping[str, Any]) -> Program | Specialized:
        """The program that takes what is fed: another one where it replaces constants."""
        if inputs.keys() <= self._fed:
            return self._program
        assert self._source.model.graph is not None
        replaceable = {value.name for value in overridable(self._source.model)}
        if not inputs.keys() & replaceable:
            return self._program
        if self._open is None:
            self._options.say(INFO, "compiling again, since a constant is replaced")
            self._open = self._compile_optimized(fixed=False)
        return self._open

    def run(
        self, outputs: Sequence[str] | None, inputs: Mapping[str, Any],
        watcher: Watcher | None = None, rooms: Mapping[str, Any] | None = None,
    ) -> list[Any]:  # fmt: skip
        """Run once; a program that has inner values as outputs is made where these are wanted."""
        program, places = self._program_for(inputs), self._places
        if outputs is not None:
            further = tuple(name for name in outputs if name not in places)
            if further:
                program = self._tap(further)
                places = {name: place for place, name in enumerate(program.output_names)}
        results = program.run(inputs, watcher, rooms)
        return results if outputs is None else [results[places[name]] for name in outputs]

    def run_again(
        self, outputs: Sequence[str] | None, inputs: Mapping[str, Any],
        rooms: Mapping[str, Any] | None = None,
    ) -> list[Any] | None:  # fmt: skip
        """What one native call gives for arrays of types and shapes that were there before."""
        if self.sparse or not isinstance(self._program, Program):
            return None
        if not outputs:
            return self._program.run_again(inputs, None, rooms)
        places = [self._places.get(name) for name in outputs]
        results = None if None in places else self._program.run_again(inputs, None, rooms)
        return results and [results[place] for place in places]  # type: ignore[index]

    def collect(
        self, outputs: Sequence[str] | None, inputs: Mapping[str, Any], wanted: re.Pattern[str],
        watcher: Watcher | None = None,
    ) -> tuple[list[Any], dict[str, Any]]:  # fmt: skip
        """Run once; inner values of subgraphs come from the reference, since only it has them."""
        graph = self._whole().graph
        named = [value.name for value in graph.values() if value.name]
        names = list(dict.fromkeys(name for name in named if wanted.search(name)))
        chosen = list(self._places) if outputs is None else list(outputs)
        found = self.run([*chosen, *names], inputs, watcher)
        kept = dict(zip(names, found[len(chosen) :], strict=True))
        if any(wanted.search(name) for name in _inner_names(graph)):
            kept = self._whole().collect(outputs, inputs, wanted, watcher)[1] | kept
        return found[: len(chosen)], kept

    def _whole(self) -> ReferenceRunner:
        if self._reference is None:
            self._reference = ReferenceRunner(self._source, self._catalog, self._options)
        return self._reference

    def _tap(self, names: tuple[str, ...]) -> Program | Specialized:
        """The program with further outputs; not optimized, so that every value is there."""
        program = self._tapped.get(names)
        if program is None:
            twin = clone_model(self._whole().model)
            assert twin.graph is not None
            known = {value.name: value for value in twin.graph.values()}
            for name in names:
                if name not in known:
                    have = ", ".join(self._places)
                    raise InputError(f"the model has no output '{name}'", hint=f"it has: {have}")
                twin.graph.outputs.append(known[name])
            self._options.say(INFO, "compiling again, with %d inner values", len(names))
            program = self._tapped[names] = self._settings.compile(twin)
            while len(self._tapped) > MOST_TAPPED:
                self._tapped.popitem(last=False)
        return program

    def explain(self) -> list[tuple[str, str]]:
        """Each node with its kernel and the nodes fused into it, or why it has none."""
        rows = []
        for item in self._program.explain():
            text = f"{item.kernel}: {item.reason}" if item.reason else item.kernel
            if item.together:
                text += f" (with {', '.join(item.together)})"
            rows.append((f"{item.operator} {item.node}".strip(), text))
        return rows

    def computed(self) -> dict[str, Computed]:
        """What each kernel computes."""
        found: dict[str, Computed] = {}
        for item in self._program.explain():
            former = found.get(item.kernel, Computed((), ()))
            found[item.kernel] = Computed(
                (*former.nodes, item.node), (*former.operators, item.operator)
            )
        return found

    def order(self) -> list[tuple[str, str]]:
        """The name of each node, and of its kernel."""
        return [(item.node, item.kernel) for item in self._program.explain()]


def sparse_names(outputs: Iterable[Value]) -> frozenset[str]:
    """The outputs that are sparse tensors."""
    return frozenset(value.name for value in outputs if isinstance(value.type, SparseTensorType))


def _inner_names(graph: Graph) -> set[str]:
    """Names of values inside of nodes' subgraphs."""
    inner = [part for part in graph.walk() if part is not graph]
    return {value.name for part in inner for value in part.values() if value.name}


CPU = "CPUExecutionProvider"
REFERENCE = "ReferenceExecutionProvider"

PROVIDERS: dict[str, Callable[[ModelSource, Catalog | None, SessionOptions], Runner]] = {
    CPU: CompiledRunner,
    REFERENCE: ReferenceRunner,
}
"""Providers by name, in the order of preference."""


def get_available_providers() -> list[str]:
    """The providers a session can use here, the preferred one first.

    >>> get_available_providers()
    ['CPUExecutionProvider', 'ReferenceExecutionProvider']
    """
    return list(PROVIDERS)


def choose_providers(
    wanted: Sequence[Any] | None, provider_options: Sequence[Mapping[Any, Any]] | None,
    options: SessionOptions,
) -> dict[str, dict[str, str]]:  # fmt: skip
    """Wanted providers that are known, with their options; the preferred one for none.

    >>> choose_providers(["CUDAExecutionProvider", (CPU, {})], None, SessionOptions())
    {'CPUExecutionProvider': {}}
    """
    pairs = [(item, {}) if isinstance(item, str) else tuple(item) for item in wanted or [CPU]]
    if provider_options:
        if len(provider_options) != len(pairs):
            raise InputError(
                f"there are {len(pairs)} providers and {len(provider_options)} sets of options"
            )
        given = zip(pairs, provider_options, strict=True)
        pairs = [(name, dict(more)) for (name, _), more in given]
    chosen: dict[str, dict[str, str]] = {}
    for name, more in pairs:
        if name not in PROVIDERS:
            continue
        for key in more:
            options.say(INFO, "the option %s of %s has no effect", key, name)
        chosen.setdefault(name, {str(key): str(value) for key, value in more.items()})
    if not chosen:
        raise UnsupportedError(
            f"none of the providers {[name for name, _ in pairs]} is available",
            hint=f"available are: {', '.join(get_available_providers())}",
        )
    missing = [name for name, _ in pairs if name not in PROVIDERS]
    if missing:
        options.say(WARNING, "not available: %s; %s runs", ", ".join(missing), next(iter(chosen)))
    return chosen


def make_runner(
    chosen: dict[str, dict[str, str]], source: ModelSource, catalog: Catalog | None,
    options: SessionOptions, *, fallback: bool,
) -> Runner:  # fmt: skip
    """The first provider's runner. Where that cannot take the model, the reference's runs it, with
    a warning; an error without `fallback`."""
    first = next(iter(chosen))
    try:
        return PROVIDERS[first](source, catalog, options)
    except UnsupportedError as error:
        if not fallback or PROVIDERS[first] is ReferenceRunner:
            raise
        options.say(WARNING, "the slow reference runs this model: %s", error)
        chosen.setdefault(REFERENCE, {})
        return ReferenceRunner(source, catalog, options)
