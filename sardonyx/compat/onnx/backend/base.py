"""What a backend offers: `prepare` a model, then `run` it.

>>> from sardonyx.compat.onnx.backend.base import Device
>>> Device("CUDA:1").device_id
1
"""

from collections import namedtuple
from collections.abc import Sequence
from typing import Any, NewType

from sardonyx.compat.onnx import IR_VERSION, ModelProto, NodeProto, checker


class DeviceType:
    """Kinds of devices."""

    _Type = NewType("_Type", int)
    CPU: _Type = _Type(0)
    CUDA: _Type = _Type(1)


class Device:
    """A device from text such as `CPU` or `CUDA:1`."""

    def __init__(self, device: str) -> None:
        kind, _, number = device.partition(":")
        self.type = getattr(DeviceType, kind)
        self.device_id = int(number) if number else 0


def namedtupledict(
    typename: str, field_names: Sequence[str], *args: Any, **kwargs: Any
) -> type[tuple[Any, ...]]:
    """A named tuple whose fields can also be had by name in brackets, whatever the names are.

    >>> outputs = namedtupledict("Outputs", ["0", "y"])(1, 2)
    >>> outputs["0"], outputs.y, outputs[1]
    (1, 2, 2)
    """
    positions = {name: position for position, name in enumerate(field_names)}
    kwargs.setdefault("rename", True)
    made = namedtuple(typename, field_names, *args, **kwargs)  # type: ignore[misc]

    def get(self: Any, key: Any) -> Any:
        return tuple.__getitem__(self, positions[key] if isinstance(key, str) else key)

    return type(typename, (made,), {"__getitem__": get, "__slots__": ()})


class BackendRep:
    """A model made ready to run."""

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The outputs for inputs; a backend defines it."""
        return (None,)


class Backend:
    """What runs models; a backend overrides these, after calling them for the checks they make."""

    @classmethod
    def is_compatible(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """True where the backend can run a model."""
        return True

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> BackendRep | None:
        """Make a model ready to run; here it is only checked."""
        checker.check_model(model)
        return None

    @classmethod
    def run_model(
        cls, model: ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any
    ) -> tuple[Any, ...]:
        """Prepare a model and run it once."""
        backend = cls.prepare(model, device, **kwargs)
        assert backend is not None
        return backend.run(inputs)

    @classmethod
    def run_node(
        cls,
        node: NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[Any, tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...] | None:
        """Run one node; here it is only checked, at the opset `opset_version` if that is given."""
        if "opset_version" not in kwargs:
            checker.check_node(node)
            return None
        context = checker.C.CheckerContext()
        context.ir_version = IR_VERSION
        context.opset_imports = {"": kwargs["opset_version"]}
        checker.check_node(node, context)
        return None

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """True where the backend runs on a device."""
        return True
