"""Where memory lies and what computes, as onnxruntime describes it: here, one processor."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum, IntFlag
from typing import Any

from sardonyx.compat.onnxruntime.version import VERSION
from sardonyx.errors import InputError, UnsupportedError
from sardonyx.runtime.providers import CPU
from sardonyx.runtime.values import OrtValue, plain, require_cpu


class OrtAllocatorType(Enum):
    """How memory is taken."""

    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


class OrtMemType(Enum):
    """What memory is for."""

    CPU_INPUT = -2
    CPU_OUTPUT = -1
    CPU = CPU_OUTPUT
    DEFAULT = 0


class OrtDeviceMemoryType(Enum):
    """Who can reach memory."""

    DEFAULT = 0
    HOST_ACCESSIBLE = 5


class OrtMemoryInfoDeviceType(Enum):
    """Kinds of devices that memory belongs to."""

    CPU = 0
    GPU = 1
    FPGA = 2
    NPU = 3


class OrtHardwareDeviceType(Enum):
    """Kinds of devices."""

    CPU = 0
    GPU = 1
    NPU = 2


class OrtExecutionProviderDevicePolicy(Enum):
    """Which device to prefer, where there are several."""

    DEFAULT = 0
    PREFER_CPU = 1
    PREFER_NPU = 2
    PREFER_GPU = 3
    MAX_PERFORMANCE = 4
    MAX_EFFICIENCY = 5
    MIN_OVERALL_POWER = 6


class OrtCompileApiFlags(IntFlag):
    """When `ModelCompiler` refuses to write."""

    NONE = 0
    ERROR_IF_NO_NODES_COMPILED = 1
    ERROR_IF_OUTPUT_FILE_EXISTS = 2


class OrtDeviceVendorId(IntEnum):
    """Numbers of vendors."""

    NONE = 0
    AMD = 0x1002
    NVIDIA = 0x10DE
    ARM = 0x13B5
    MICROSOFT = 0x1414
    HUAWEI = 0x19E5
    QUALCOMM = 0x5143
    INTEL = 0x8086


@dataclass(frozen=True)
class OrtDevice:
    """A device that holds memory.

    >>> OrtDevice.make("cpu", 0).device_id()
    0
    """

    _identity: int = 0
    _vendor: int = 0

    @staticmethod
    def make(
        ort_device_name: str, device_id: int, vendor_id: int | OrtDeviceVendorId = -1
    ) -> "OrtDevice":
        """The device of a name; there is only `cpu`."""
        require_cpu(ort_device_name)
        return OrtDevice(device_id)

    @staticmethod
    def cpu() -> int:
        """The number of the kind `cpu`."""
        return 0

    @staticmethod
    def default_memory() -> int:
        """The number of ordinary memory."""
        return 0

    def device_type(self) -> int:
        """The kind, as a number: 0 for the processor."""
        return 0

    def device_id(self) -> int:
        """Which of them."""
        return self._identity

    def device_vendor_id(self) -> int:
        """The vendor, where one is known."""
        return self._vendor

    def device_mem_type(self) -> int:
        """The kind of memory: 0 for ordinary."""
        return 0


@dataclass(frozen=True)
class OrtMemoryInfo:
    """Where a value's memory lies."""

    name: str = "Cpu"
    allocator_type: OrtAllocatorType = OrtAllocatorType.ORT_ARENA_ALLOCATOR
    device_id: int = 0
    mem_type: OrtMemType = OrtMemType.DEFAULT
    device_mem_type: OrtDeviceMemoryType = OrtDeviceMemoryType.DEFAULT
    device_vendor_id: int = 0

    @staticmethod
    def create_v2(
        name: str, device_type: OrtMemoryInfoDeviceType, vendor_id: int, device_id: int,
        mem_type: OrtDeviceMemoryType, alignment: int, allocator_type: OrtAllocatorType,
    ) -> "OrtMemoryInfo":  # fmt: skip
        """The same, with all that can be said; there is only memory of the processor."""
        if device_type is not OrtMemoryInfoDeviceType.CPU:
            raise UnsupportedError(f"there is no memory of {device_type.name}", hint="use CPU")
        return OrtMemoryInfo(
            name, allocator_type, device_id, OrtMemType.DEFAULT, mem_type, vendor_id
        )


class OrtArenaCfg:
    """How onnxruntime's arenas grow; accepted, since memory is planned here.

    >>> OrtArenaCfg({"max_mem": 1024}).max_mem
    1024
    """

    _FIELDS = (
        "max_mem", "arena_extend_strategy", "initial_chunk_size_bytes", "max_dead_bytes_per_chunk",
        "initial_growth_chunk_size_bytes", "max_power_of_two_extend_bytes",
    )  # fmt: skip

    def __init__(self, *settings: Any, **named: Any) -> None:
        given = dict(settings[0]) if settings and isinstance(settings[0], Mapping) else {}
        if not given:
            given = dict(zip(self._FIELDS, settings, strict=False))
        given |= named
        unknown = sorted(given.keys() - set(self._FIELDS))
        if unknown:
            raise InputError(
                f"an arena has no setting '{unknown[0]}'", hint=f"it has: {', '.join(self._FIELDS)}"
            )
        self.max_mem = int(given.get("max_mem", 0))
        self.arena_extend_strategy = int(given.get("arena_extend_strategy", -1))
        self.initial_chunk_size_bytes = int(given.get("initial_chunk_size_bytes", -1))
        self.max_dead_bytes_per_chunk = int(given.get("max_dead_bytes_per_chunk", -1))
        self.initial_growth_chunk_size_bytes = int(given.get(self._FIELDS[4], -1))
        self.max_power_of_two_extend_bytes = int(given.get(self._FIELDS[5], -1))


@dataclass(frozen=True)
class OrtHardwareDevice:
    """A device that computes."""

    type: OrtHardwareDeviceType = OrtHardwareDeviceType.CPU
    vendor: str = ""
    vendor_id: int = 0
    device_id: int = 0
    metadata: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class OrtSyncStream:
    """The order of work on a device; the processor has none but the program's."""

    def get_handle(self) -> int:
        """No address."""
        return 0


@dataclass(frozen=True)
class OrtEpDevice:
    """A provider on a device."""

    ep_name: str = CPU
    ep_vendor: str = "Sardonyx"
    ep_metadata: dict[str, str] = field(default_factory=lambda: {"version": VERSION})
    ep_options: dict[str, str] = field(default_factory=dict)
    device: OrtHardwareDevice = field(default_factory=OrtHardwareDevice)

    def memory_info(self, memory_type: OrtDeviceMemoryType) -> OrtMemoryInfo:
        """Where its memory lies."""
        return OrtMemoryInfo(device_mem_type=memory_type)

    def create_sync_stream(self) -> OrtSyncStream:
        """The order of its work."""
        return OrtSyncStream()


@dataclass(frozen=True)
class OrtExternalInitializerInfo:
    """Where a constant lies in another file."""

    filepath: str
    file_offset: int
    byte_size: int


@dataclass(frozen=True)
class OrtEpAssignedNode:
    """A node that a provider runs."""

    name: str
    domain: str
    op_type: str


@dataclass(frozen=True)
class OrtEpAssignedSubgraph:
    """Nodes that a provider runs."""

    ep_name: str
    nodes: tuple[OrtEpAssignedNode, ...]

    def get_nodes(self) -> list[OrtEpAssignedNode]:
        """The nodes."""
        return list(self.nodes)


def get_ep_devices() -> list[OrtEpDevice]:
    """Every provider on every device: one.

    >>> [device.ep_name for device in get_ep_devices()]
    ['CPUExecutionProvider']
    """
    return [OrtEpDevice()]


def copy_tensors(
    src: Sequence[OrtValue], dst: Sequence[OrtValue], stream: OrtSyncStream | None = None
) -> None:
    """Copy tensors into the memory of others of the same types and shapes."""
    if len(src) != len(dst):
        raise InputError(f"there are {len(src)} tensors to copy and {len(dst)} places for them")
    for source, target in zip(src, dst, strict=True):
        target.update_inplace(plain(source))
