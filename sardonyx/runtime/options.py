"""Options of sessions and runs, with onnxruntime's names and defaults."""

from enum import Enum, IntEnum
from logging import getLogger
from typing import Any

from sardonyx.errors import InputError

_log = getLogger("sardonyx")


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


class _Entries:
    """Configuration entries by key."""

    def __init__(self) -> None:
        self._entries: dict[str, str] = {}

    def _set(self, key: str, value: str) -> None:
        self._entries[str(key)] = str(value)

    def _get(self, key: str) -> str:
        try:
            return self._entries[key]
        except KeyError:
            raise InputError(f"there is no configuration entry '{key}'") from None


class SessionOptions(_Entries):
    """How a session is made: every field and method of onnxruntime's class.

    What has no meaning here (arenas, memory patterns) is accepted.

    >>> options = SessionOptions()
    >>> options.intra_op_num_threads = 2
    >>> options.add_free_dimension_override_by_name("batch", 1)
    >>> options.free_dimensions
    {'batch': 1}
    """

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
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.optimized_model_filepath = ""
        self.profile_file_prefix = "onnxruntime_profile_"
        self.free_dimensions: dict[str, int] = {}
        """Sizes of symbolic dimensions, by their names."""
        self.denoted_dimensions: dict[str, int] = {}
        """Sizes of symbolic dimensions, by their denotations."""
        self.initializers: dict[str, Any] = {}
        """Arrays that take the place of the model's constants."""
        self.provider_choices: list[tuple[str, dict[str, str]]] = []

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

    def add_external_initializers(self, names: list[str], values: list[Any]) -> None:
        """Use these values for constants whose data lies in other files."""
        self.initializers.update(zip(names, values, strict=True))

    def add_provider(self, name: str, options: dict[str, str] | None = None) -> None:
        """Prefer a provider, after those added before."""
        self.provider_choices.append((name, dict(options or {})))

    def has_providers(self) -> bool:
        """True where providers were added."""
        return bool(self.provider_choices)

    def register_custom_ops_library(self, path: str) -> None:
        """Libraries of another runtime's compiled operators cannot be loaded."""
        raise InputError(
            f"'{path}' is a library for onnxruntime, which cannot be used here",
            hint="write the operators as Python classes, and pass them as operators=[...]",
        )

    def set_load_cancellation_flag(self, cancel: bool) -> None:
        """Accepted: loading takes too little time to be cancelled."""
        _log.info("set_load_cancellation_flag(%s) has no effect", cancel)


class RunOptions(_Entries):
    """Options of one run. With `terminate = True` runs given these options are refused.

    >>> RunOptions().terminate
    False
    """

    def __init__(self) -> None:
        super().__init__()
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.only_execute_path_to_fetches = False
        self.terminate = False

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Set a configuration entry."""
        self._set(key, value)

    def get_run_config_entry(self, key: str) -> str:
        """A configuration entry."""
        return self._get(key)
