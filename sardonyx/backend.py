"""ONNX's backend interface: this module is a backend, for `onnx.backend.test` and others.

>>> import numpy as np
>>> import sardonyx as sx
>>> from sardonyx import backend
>>> model = sx.load_text('<ir_version: 10, opset_import: ["": 21]>'
...                      'g (float[2] x) => (float[2] y) { y = Neg(x) }')
>>> outputs = backend.prepare(model).run([np.array([1, 2], np.float32)])
>>> outputs["y"].tolist()
[-1.0, -2.0]
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sardonyx.boundary import public, public_methods
from sardonyx.dtypes import from_numpy
from sardonyx.errors import InputError, SardonyxError
from sardonyx.format.load import load
from sardonyx.format.protos import proto_class
from sardonyx.graph import Model
from sardonyx.ops.catalog import NEWEST_OPSETS
from sardonyx.ops.evaluate import Evaluator

__all__ = [
    "Outputs",
    "SardonyxBackendRep",
    "is_compatible",
    "prepare",
    "run_model",
    "run_node",
    "supports_device",
]

_NEWEST_IR = 14


class Outputs(tuple[Any, ...]):
    """What a model returned: by position, or by name in brackets or as an attribute."""

    names: tuple[str, ...]

    def __new__(cls, names: Sequence[str], values: Sequence[Any]) -> "Outputs":
        """Values with a name each."""
        made = super().__new__(cls, values)
        made.names = tuple(names)
        return made

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(self.names.index(key) if isinstance(key, str) else key)

    def __getattr__(self, name: str) -> Any:
        if name == "names" or name not in self.names:
            raise AttributeError(name)
        return self[name]


@public_methods("running the model")
class SardonyxBackendRep:
    """A model made ready to run, any number of times."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        graph = evaluator.graph
        constants = set(graph.initializers)
        self.input_names = [value.name for value in graph.inputs if value not in constants]
        self.output_names = [value.name for value in graph.outputs]

    def run(self, inputs: Any, **kwargs: Any) -> Outputs:
        """The outputs, by position or name, for inputs in the model's order or by name."""
        if isinstance(inputs, np.ndarray):
            inputs = [inputs]
        if not isinstance(inputs, Mapping):
            if len(inputs) > len(self.input_names):
                raise InputError(
                    f"{len(inputs)} inputs are fed to a model with {len(self.input_names)}"
                )
            inputs = dict(zip(self.input_names, inputs, strict=False))
        results = self._evaluator.run(None, inputs)
        return Outputs(self.output_names, results)


@public("making the model ready")
def prepare(
    model: Any, device: str = "CPU", provider: str = "reference", **kwargs: Any
) -> SardonyxBackendRep:
    """Make a model ready to run: a ModelProto of any package, bytes, a path, or a `Model`."""
    _require_device(device)
    if provider != "reference":
        raise InputError(f"there is no provider '{provider}'", hint="take 'reference'")
    loaded = model if isinstance(model, Model) else load(model)
    return SardonyxBackendRep(Evaluator(loaded, seed=kwargs.get("seed")))


@public("running the model")
def run_model(
    model: Any, inputs: Any, device: str = "CPU", provider: str = "reference", **kwargs: Any
) -> Outputs:
    """Make a model ready and run it once."""
    return prepare(model, device, provider, **kwargs).run(inputs)


@public("running the node")
def run_node(
    node: Any,
    inputs: Any,
    device: str = "CPU",
    outputs_info: Sequence[tuple[Any, tuple[int, ...]]] | None = None,
    **kwargs: Any,
) -> Outputs:
    """Run one NodeProto at the opset `opset_version`, by default the newest.

    >>> from sardonyx.compat import onnx
    >>> node = onnx.helper.make_node("Add", ["a", "b"], ["c"])
    >>> run_node(node, [np.int64([1]), np.int64([2])])[0].tolist()
    [3]
    """
    version = kwargs.pop("opset_version", None)
    message = proto_class("ModelProto")
    proto: Any = message(ir_version=_NEWEST_IR)
    proto.graph.name = "node"
    proto.graph.node.add().ParseFromString(node.SerializeToString())
    call = proto.graph.node[0]
    domain = "" if call.domain == "ai.onnx" else call.domain
    imports = {"": NEWEST_OPSETS[""], domain: NEWEST_OPSETS.get(domain, 1)}
    if version is not None:
        imports[domain] = version
    for name, number in imports.items():
        proto.opset_import.add(domain=name, version=number)
    names = list(dict.fromkeys(filter(None, call.input)))
    feeds = inputs if isinstance(inputs, Mapping) else dict(zip(names, inputs, strict=False))
    for name in names:
        _declare(proto.graph.input.add(name=name), feeds.get(name))
    for name in filter(None, call.output):
        proto.graph.output.add(name=name)
    return run_model(proto, feeds, device, **kwargs)


def _declare(value: Any, array: Any) -> None:
    """Give an input the type of what is fed, where that is a tensor."""
    if isinstance(array, np.ndarray | np.generic):
        kind = value.type.tensor_type
        text = array.dtype.kind in "US"
        kind.elem_type = int(from_numpy(np.dtype(object) if text else array.dtype))
        for size in array.shape:
            kind.shape.dim.add(dim_value=size)


def supports_device(device: str) -> bool:
    """True for the processor: `CPU`, or one of several, `CPU:0`.

    >>> supports_device("CPU"), supports_device("CUDA")
    (True, False)
    """
    return device.partition(":")[0] == "CPU"


@public("looking at the model")
def is_compatible(model: Any, device: str = "CPU", **kwargs: Any) -> bool:
    """True where a model can be run: its operators, versions and device are all known."""
    if not supports_device(device):
        return False
    try:
        prepare(model, device, **kwargs)
    except SardonyxError:
        return False
    return True


def _require_device(device: str) -> None:
    if not supports_device(device):
        raise InputError(f"there is no device '{device}'", hint="take 'CPU'")
