"""Inputs and outputs bound to memory before a run."""

import ctypes
import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.boundary import public_methods
from sardonyx.errors import InputError
from sardonyx.graph.tensor import HIGHEST_RANK
from sardonyx.runtime.sparse import zeros
from sardonyx.runtime.values import OrtValue, array_of, element_kind, plain, require_cpu

if TYPE_CHECKING:
    from sardonyx.runtime.session import InferenceSession


@public_methods("binding values", plain=("requests", "rooms", "accept"))
class IOBinding:
    """What a session's inputs and outputs are bound to.

    >>> import sardonyx as sx
    >>> session = sx.InferenceSession("examples/digits.onnx")
    >>> binding = session.io_binding()
    >>> binding.bind_cpu_input("pixels", np.zeros((1, 64), np.float32))
    >>> binding.bind_output("probabilities")
    >>> session.run_with_iobinding(binding)
    >>> binding.copy_outputs_to_cpu()[0].shape
    (1, 10)
    """

    def __init__(self, session: "InferenceSession") -> None:
        self._session = session
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, OrtValue | None] = {}
        self._results: list[OrtValue] = []

    def bind_cpu_input(self, name: str, arr_on_cpu: NDArray[Any]) -> None:
        """Feed an array."""
        self._inputs[name] = array_of(arr_on_cpu, f"input '{name}'")

    def bind_input(
        self,
        name: str,
        device_type: str,
        device_id: int,
        element_type: Any,
        shape: Any,
        buffer_ptr: int,
    ) -> None:
        """Feed memory at an address, which must stay alive until the run is over."""
        require_cpu(device_type)
        self._inputs[name] = _memory(element_type, shape, buffer_ptr)

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Feed a value."""
        self._inputs[name] = plain(ortvalue)

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: Any = None,
        shape: Any = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Fetch an output, into memory at an address where one is given."""
        require_cpu(device_type)
        given = buffer_ptr is not None
        self._outputs[name] = OrtValue(_memory(element_type, shape, buffer_ptr)) if given else None

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Fetch an output into a value's memory."""
        self._outputs[name] = ortvalue

    def synchronize_inputs(self) -> None:
        """Accepted: memory of the CPU is always up to date."""

    def synchronize_outputs(self) -> None:
        """Accepted: memory of the CPU is always up to date."""

    def get_outputs(self) -> list[OrtValue]:
        """The outputs of the last run."""
        return list(self._results)

    def get_outputs_as_ortvaluevector(self) -> list[OrtValue]:
        """The outputs of the last run."""
        return list(self._results)

    def copy_outputs_to_cpu(self) -> list[Any]:
        """The outputs of the last run, as arrays."""
        return [value.numpy() for value in self._results]

    def clear_binding_inputs(self) -> None:
        """Forget the inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Forget the outputs."""
        self._outputs.clear()

    def requests(self) -> tuple[list[str], dict[str, Any]]:
        """The outputs to fetch and the inputs to feed."""
        return list(self._outputs), dict(self._inputs)

    def rooms(self) -> dict[str, NDArray[Any]]:
        """The arrays that outputs are bound to."""
        bound = {name: value.numpy() for name, value in self._outputs.items() if value is not None}
        return {name: item for name, item in bound.items() if isinstance(item, np.ndarray)}

    def accept(self, results: list[Any]) -> None:
        """Take over the results of a run: into bound memory where there is some."""
        self._results = []
        bound = self._outputs or {f"output {at}": None for at in range(len(results))}
        for (name, place), result in zip(bound.items(), results, strict=True):
            if place is None:
                self._results.append(OrtValue(result))
                continue
            try:
                if result is not place.numpy():
                    place.update_inplace(result)
            except InputError as error:
                raise InputError(
                    f"output '{name}' does not fit what it is bound to: {error.what}",
                    hint="bind memory of the output's type and shape",
                ) from None
            self._results.append(place)


def _memory(element_type: Any, shape: Any, address: int | None) -> NDArray[Any]:
    """An array over memory that somebody else owns."""
    if element_type is None or shape is None or address is None:
        raise InputError("binding memory needs its element type, shape and address")
    kind = element_kind(element_type)
    sizes = [int(size) for size in shape]
    if any(size < 0 for size in sizes) or kind.kind == "O" or len(sizes) > HIGHEST_RANK:
        raise InputError(f"memory cannot hold {kind} of the shape {sizes}")
    length = math.prod(sizes) * kind.itemsize
    if not length:
        return zeros(sizes, kind)
    if not address:
        raise InputError("the address of the bound memory is 0", hint="pass a tensor's data_ptr()")
    raw = (ctypes.c_char * length).from_address(int(address))
    return np.frombuffer(memoryview(raw), kind).reshape(sizes)
