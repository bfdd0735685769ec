"""Options of sessions and runs, with onnxruntime's names and defaults."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum, IntEnum
from logging import DEBUG, INFO, getLogger
from typing import Any

from sardonyx.boundary import public_methods
from sardonyx.compiler.stop import Stop
from sardonyx.errors import InputError
from sardonyx.ops.operator import Operator

_log = getLogger("sardonyx")
SEVERITIES = (10, 20, 30, 40, 50)
"""Levels of `logging` for onnxruntime's severities: verbose, info, warning, error, fatal."""


class GraphOptimizationLevel(IntEnum):
    """How much a session rewrites a graph before it runs."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(Enum):
    """Whether independent nodes may run at the same time; accepted, the planner decides."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(Enum):
    """In which order ready nodes run; accepted, the planner decides."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


@public_methods("setting options", plain=("__init__",))
class _Entries:
    """Configuration entries by key, and a log of one's own severity."""

    __slots__ = ("_entries", "log_severity_level", "log_verbosity_level", "logid")

    def __init__(self) -> None:
        self._entries: dict[str, str] = {}
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""

    def _set(self, key: str, value: str) -> None:
        self._entries[str(key)] = str(value)

    def _get(self, key: str) -> str:
        try:
            return self._entries[key]
        except KeyError:
            raise InputError(
                f"there is no configuration entry '{key}'", hint="add the entry before it is read"
            ) from None

    def entry(self, key: str, default: str = "") -> str:
        """A configuration entry, or what stands for it where none was added."""
        return self._entries.get(key, default)

    def say(self, level: int, message: str, *arguments: Any) -> None:
        """Log, unless these options want only what is more severe."""
        chosen = self.log_severity_level
        if 0 <= chosen < len(SEVERITIES) and level < SEVERITIES[chosen]:
            return
        _log.log(level, f"[{self.logid}] {message}" if self.logid else message, *arguments)


WITHOUT_EFFECT = {
    "enable_cpu_mem_arena": "inner values share one block of memory, and outputs have their own",
    "enable_mem_pattern": "memory is always planned before a run",
    "enable_mem_reuse": "memory is always used again",
    "execution_mode": "kernels run one after another, each on all threads",
    "execution_order": "kernels run in the order of the plan",
    "inter_op_num_threads": "kernels run one after another, each on intra_op_num_threads",
}
"""Fields that are accepted, and what is done whatever they say."""

KNOWN_ENTRIES = frozenset({
    "optimization.disable_specified_optimizers", "session.disable_cpu_ep_fallback",
    "session.load_model_format", "session.save_model_format", "session.disable_quant_qdq",
    "session.optimized_model_external_initializers_file_name",
    "session.optimized_model_external_initializers_min_size_in_bytes",
    "sardonyx.cache", "sardonyx.cache_limit", "sardonyx.check", "sardonyx.inline_limit",
    "sardonyx.precision", "sardonyx.target", "sardonyx.work_limit",
})  # fmt: skip
"""Configuration entries that change something."""


@public_methods("setting options")
class SessionOptions(_Entries):
    """How a session is made: every field and method of onnxruntime's class.

    What has no meaning here (arenas, memory patterns) is accepted; the session says so in the log.

    >>> options = SessionOptions()
    >>> options.intra_op_num_threads = 2
    >>> options.add_free_dimension_override_by_name("batch", 1)
    >>> options.free_dimensions
    {'batch': 1}
    """

    __slots__ = (
        "cancelled", "denoted_dimensions", "enable_cpu_mem_arena", "enable_mem_pattern",
        "enable_mem_reuse", "enable_profiling", "execution_mode", "execution_order",
        "external_files", "free_dimensions", "graph_optimization_level", "initializers",
        "inter_op_num_threads", "intra_op_num_threads", "operators", "optimized_model_filepath",
        "profile_file_prefix", "provider_choices", "use_deterministic_compute",
        "use_per_session_threads",
    )  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.enable_cpu_mem_arena = True
        self.enable_mem_pattern = True
        self.enable_mem_reuse = True
        self.enable_profiling = False
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.execution_order = ExecutionOrder.DEFAULT
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.intra_op_num_threads = 0
        self.inter_op_num_threads = 0
        self.use_per_session_threads = True
        self.use_deterministic_compute = False
        self.optimized_model_filepath = ""
        self.profile_file_prefix = "onnxruntime_profile_"
        self.free_dimensions: dict[str, int] = {}
        """Sizes of symbolic dimensions, by their names."""
        self.denoted_dimensions: dict[str, int] = {}
        """Sizes of symbolic dimensions, by their denotations."""
        self.initializers: dict[str, Any] = {}
        """Arrays that take the place of the model's constants."""
        self.external_files: dict[str, Any] = {}
        """What files beside the model hold, by their names, where it is in memory already."""
        self.operators: list[type[Operator]] = []
        """Custom operators."""
        self.provider_choices: list[tuple[str, dict[str, str]]] = []
        self.cancelled = False

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Set a configuration entry."""
        self._set(key, value)

    def get_session_config_entry(self, key: str) -> str:
        """A configuration entry."""
        return self._get(key)

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Fix the size of the dimension called `name`."""
        self.free_dimensions[name] = int(size)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        """Fix the size of the dimensions denoted so."""
        self.denoted_dimensions[denotation] = int(size)

    def add_initializer(self, name: str, value: Any) -> None:
        """Use this value (an OrtValue or array) for a constant."""
        self.initializers[name] = value

    def add_external_initializers(self, names: Sequence[str], values: Sequence[Any]) -> None:
        """Use these values for constants whose data lies in other files."""
        if len(names) != len(values):
            raise InputError(f"there are {len(names)} names and {len(values)} values")
        self.initializers.update(zip(names, values, strict=True))

    def add_external_initializers_from_files_in_memory(
        self, names: Sequence[str], buffers: Sequence[Any], sizes: Sequence[int]
    ) -> None:
        """Read constants from these buffers where the model names files called so."""
        if not len(names) == len(buffers) == len(sizes):
            raise InputError("file names, buffers and sizes must be equally many")
        for name, buffer, size in zip(names, buffers, sizes, strict=True):
            self.external_files[name] = memoryview(buffer).cast("B")[:size]

    def register_operators(self, *operators: type[Operator]) -> None:
        """Use custom operators: classes, or what `custom_operator` and `c_operator` make.

        >>> import sardonyx as sx
        >>> options = SessionOptions()
        >>> options.register_operators(sx.custom_operator("1(x: T) -> y: T; T: floats")(abs))
        >>> options.operators[0].name
        'abs'
        """
        self.operators.extend(operators)

    def register_custom_ops_library(self, path: str) -> None:
        """Libraries of another runtime's compiled operators cannot be loaded."""
        raise InputError(
            f"'{path}' is a library for onnxruntime, which cannot be used here",
            hint="register Python or C functions instead: SessionOptions.register_operators",
        )

    def add_provider(self, name: str, options: Mapping[str, str] | None = None) -> None:
        """Prefer a provider, after those added before."""
        self.provider_choices.append((name, dict(options or {})))

    def add_provider_for_devices(
        self, devices: Sequence[Any], options: Mapping[str, str] | None = None
    ) -> None:
        """Prefer the provider of these devices, after those added before."""
        for device in devices:
            self.add_provider(device.ep_name, options)

    def has_providers(self) -> bool:
        """True where providers were added."""
        return bool(self.provider_choices)

    def set_provider_selection_policy(self, policy: Any) -> None:
        """Accepted: there is one device."""
        self.say(INFO, "the selection policy %s has no effect: there is only the CPU", policy)

    def set_provider_selection_policy_delegate(self, delegate: Callable[..., Any]) -> None:
        """Accepted: there is one device."""
        self.say(INFO, "the selection delegate has no effect: there is only the CPU")

    def set_load_cancellation_flag(self, cancel: bool) -> None:
        """With True, a session that is being made with these options stops being made."""
        self.cancelled = bool(cancel)

    def set_ep_context_data_read_func(self, function: Any, limit: int = 0) -> None:
        """Accepted: no provider here keeps data of its own in a model."""
        self.say(INFO, "set_ep_context_data_read_func has no effect")

    def clear_ep_context_data_read_func(self) -> None:
        """Accepted: no provider here keeps data of its own in a model."""

    def log_what_has_no_effect(self) -> None:
        """Say which fields and entries were set and change nothing."""
        default = SessionOptions()
        for name, reason in WITHOUT_EFFECT.items():
            if getattr(self, name) != getattr(default, name):
                self.say(INFO, "SessionOptions.%s has no effect: %s", name, reason)
        for key in self._entries.keys() - KNOWN_ENTRIES:
            self.say(INFO, "the configuration entry %s has no effect", key)


@public_methods("setting options")
class RunOptions(_Entries):
    """Options of one run. `terminate = True`, also set while it goes on, ends it with an error.

    >>> RunOptions().terminate
    False
    """

    __slots__ = ("_stops", "_terminate", "adapters", "only_execute_path_to_fetches")

    def __init__(self) -> None:
        super().__init__()
        self.only_execute_path_to_fetches = False
        self._terminate = False
        self._stops: set[Stop] = set()
        self.adapters: list[Any] = []

    @property
    def terminate(self) -> bool:
        """Whether runs with these options end; setting it reaches those that go on."""
        return self._terminate

    @terminate.setter
    def terminate(self, value: bool) -> None:
        self._terminate = bool(value)
        if self._terminate:
            for stop in tuple(self._stops):
                stop.set()

    @contextmanager
    def stopping(self) -> Iterator[Stop]:
        """What ends a run, while it goes on."""
        stop = Stop()
        self._stops.add(stop)
        if self._terminate:
            stop.set()
        try:
            yield stop
        finally:
            self._stops.discard(stop)

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Set a configuration entry."""
        self._set(key, value)
        self.say(DEBUG, "the entry %s of a run has no effect", key)

    def get_run_config_entry(self, key: str) -> str:
        """A configuration entry."""
        return self._get(key)

    def add_active_adapter(self, adapter: Any) -> None:
        """Feed an adapter's `parameters` too; what is fed by itself comes before them."""
        self.adapters.append(adapter)

    def with_adapters(self, feeds: Mapping[str, Any]) -> Mapping[str, Any]:
        """What is fed, with the arrays of active adapters."""
        found: dict[str, Any] = {}
        for adapter in self.adapters:
            found |= adapter.parameters
        return found | dict(feeds) if found else feeds
