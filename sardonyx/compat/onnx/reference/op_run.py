"""Operators written in Python by users: classes derived from `OpRun`."""

import abc
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.compat.onnx import defs, helper, numpy_helper
from sardonyx.compat.onnx.onnx_ml_pb2 import AttributeProto, TypeProto


class RuntimeTypeError(RuntimeError):
    """A value is of a type that was not expected."""


class RuntimeContextError(RuntimeError):
    """An operator depends on types that are not known."""


class RuntimeImplementationError(NotImplementedError):
    """An operator has no implementation."""


class RefAttrName:
    """An attribute of a node in a function that takes the value of the function's own.

    >>> RefAttrName("alpha")
    RefAttrName('alpha')
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class OnnxType:
    """A type as the value of an attribute."""

    def __init__(self, type_proto: Any) -> None:
        if not isinstance(type_proto, TypeProto):
            raise TypeError(f"a TypeProto is needed, not {type(type_proto).__name__}")
        self.type_proto = type_proto

    def __repr__(self) -> str:
        return f"OnnxType({self.type_proto!r})"


class SparseTensor:
    """Values at places of a tensor that is zero elsewhere."""

    def __init__(self, values: NDArray[Any], indices: NDArray[Any], shape: tuple[int, ...]) -> None:
        self.values = values
        self.indices = indices
        self.shape = shape

    @property
    def dtype(self) -> Any:
        """The type of the elements."""
        return self.values.dtype


class Graph:
    """A graph as one of several in an attribute."""

    __slots__ = ("g",)

    def __init__(self, g: Any) -> None:
        self.g = g


def to_sparse_tensor(att: Any) -> SparseTensor:
    """The sparse tensor a SparseTensorProto holds."""
    values, indices = numpy_helper.to_array(att.values), numpy_helper.to_array(att.indices)
    return SparseTensor(values, indices, tuple(att.dims))


_VALUES: dict[int, Any] = {
    AttributeProto.FLOAT: lambda att: np.float32(att.f),
    AttributeProto.FLOATS: lambda att: [np.float32(item) for item in att.floats],
    AttributeProto.GRAPHS: lambda att: [Graph(item) for item in att.graphs],
    AttributeProto.INT: lambda att: int(att.i),
    AttributeProto.INTS: lambda att: [int(item) for item in att.ints],
    AttributeProto.SPARSE_TENSOR: lambda att: to_sparse_tensor(att.sparse_tensor),
    AttributeProto.SPARSE_TENSORS: lambda att: [to_sparse_tensor(i) for i in att.sparse_tensors],
    AttributeProto.STRING: lambda att: att.s.decode("utf-8"),
    AttributeProto.STRINGS: lambda att: [item.decode("utf-8") for item in att.strings],
    AttributeProto.TENSOR: lambda att: numpy_helper.to_array(att.t),
    AttributeProto.TENSORS: lambda att: [numpy_helper.to_array(item) for item in att.tensors],
    AttributeProto.TYPE_PROTO: lambda att: OnnxType(att.tp),
    AttributeProto.TYPE_PROTOS: lambda att: [OnnxType(item) for item in att.type_protos],
}
"""What an operator gets to see of an attribute of each kind."""


class OpRun(abc.ABC):
    """An operator: `op_domain` says where it belongs, `_run` what it does; its name is the class's.

    Inputs come by position, attributes by keyword; the result is a tuple.

    >>> class Twice(OpRun):
    ...     op_domain = "custom"
    ...     def _run(self, x, factor=None):
    ...         return (x * factor,)
    >>> from sardonyx.compat import onnx
    >>> node = onnx.helper.make_node("Twice", ["x"], ["y"], domain="custom", factor=2.0)
    >>> evaluator = onnx.reference.ReferenceEvaluator(node, new_ops=[Twice])
    >>> evaluator.run(None, {"x": np.array([1, 2], np.float32)})[0].tolist()
    [2.0, 4.0]
    """

    op_domain = ""

    def __init__(self, onnx_node: Any, run_params: dict[str, Any], schema: Any = None) -> None:
        if not isinstance(run_params, dict):
            raise TypeError(f"run_params must be a dictionary, not {type(run_params).__name__}")
        missing = [name for name in ("opsets", "new_ops") if name not in run_params]
        if missing:
            raise RuntimeError(f"run_params lacks {missing[0]!r}; it has {sorted(run_params)}")
        if "log" not in run_params:
            raise KeyError("run_params lacks 'log'")
        self.onnx_node = onnx_node
        self.run_params = run_params
        self._schema = schema or getattr(type(self), "op_schema", None) or self._find_schema()
        self.has_subgraph = False
        self._load_attributes()

    def _find_schema(self) -> Any:
        name, version = self.infer_name()
        domain = self.op_domain
        for op_type in (name, self.onnx_node.op_type):
            if defs.has(op_type, version, domain):
                return defs.get_schema(op_type, version, domain)
        return None

    def _log(self, pattern: str, *args: Any) -> None:
        self.run_params["log"](pattern, *args)

    def _load_attributes(self) -> None:
        self.has_linked_attribute = False
        self.attributes_names_: set[str] = set()
        for attribute in self.onnx_node.attribute:
            value = self._extract_attribute_value(attribute)
            setattr(self, attribute.name, value)
            self.attributes_names_.add(attribute.name)
            self.has_linked_attribute |= isinstance(value, RefAttrName)
            if attribute.type == AttributeProto.GRAPH and not attribute.ref_attr_name:
                self.has_subgraph = True
                setattr(self, f"_run_{attribute.name}", _subgraph_runner(value))
        if self._schema is None or self.onnx_node.op_type == "Constant":
            return
        for name, formal in self._schema.attributes.items():
            if hasattr(self, name):
                continue
            if formal.required:
                raise RuntimeError(f"{self.onnx_node.op_type} lacks the attribute {name!r}")
            default = formal.default_value
            value = self._extract_attribute_value(default) if default.name else None
            setattr(self, name, value)
            self.attributes_names_.add(name)

    def _extract_attribute_value(self, att: Any, ref_att: Any = None) -> Any:
        """An attribute's value as Python sees it; a graph becomes an evaluator of it."""
        if att.ref_attr_name:
            return RefAttrName(att.ref_attr_name)
        if att.type != AttributeProto.GRAPH:
            return _VALUES[att.type](att)
        functions = self.run_params.get("existing_functions")
        new_ops = self.run_params.get("new_ops")
        return self.run_params["evaluator_cls"](
            att.g,
            opsets=self.run_params["opsets"],
            verbose=max(0, self.run_params.get("verbose", 0) - 2),
            new_ops=None if new_ops is None else list(new_ops.values()),
            functions=None if functions is None else list(functions.values()),
        )

    @property
    def input(self) -> Any:
        """The names of the node's inputs."""
        return self.onnx_node.input

    @property
    def output(self) -> Any:
        """The names of the node's outputs."""
        return self.onnx_node.output

    @property
    def op_type(self) -> str:
        """The operator's name."""
        return str(self.onnx_node.op_type)

    @property
    def domain(self) -> str:
        """The operator's domain."""
        return str(self.onnx_node.domain)

    def need_context(self) -> bool:
        """True where `_run` wants, as `context`, everything computed before: for subgraphs."""
        return False

    def __str__(self) -> str:
        lines = [f"{type(self).__name__}(", f"    op_type={self.op_type}"]
        for name in sorted(self.attributes_names_):
            lines.append(f"    {name}={getattr(self, name)},")
        return "\n".join([*lines, ")"])

    @abc.abstractmethod
    def _run(self, *args: Any, **kwargs: Any) -> Any:
        """The outputs as a tuple, for inputs by position and attributes by keyword."""
        raise NotImplementedError(f"{type(self).__name__} does not define _run")

    def run(
        self, *args: Any, linked_attributes: Any = None, context: Any = None, bindings: Any = None
    ) -> tuple[Any, ...]:
        """Call `_run` with the node's attributes, and check what it returns."""
        if self.need_context() and context is None:
            raise RuntimeError(f"{type(self).__name__} needs a context")
        if not self.need_context() and context is not None:
            raise RuntimeError(f"{type(self).__name__} takes no context")
        attributes = {
            name: self._linked(name, linked_attributes) for name in self.attributes_names_
        }
        if self.has_subgraph:
            attributes["attributes"] = linked_attributes
        if context is not None:
            attributes["context"] = context
        self._log("-- begin %s.run(%d inputs)", type(self).__name__, len(args))
        try:
            results = self._run(*args, **attributes)
        except (TypeError, AttributeError) as error:
            kinds = [type(item).__name__ for item in args]
            raise TypeError(
                f"{type(self).__name__} does not take inputs {kinds} with attributes "
                f"{sorted(attributes)}: {error}"
            ) from error
        outputs = self._check_and_fix_outputs(results)
        self._log("-- done %s.run -> %d outputs", type(self).__name__, len(outputs))
        return outputs

    def _linked(self, name: str, linked: Any) -> Any:
        value = getattr(self, name)
        if not isinstance(value, RefAttrName):
            return value
        if not linked or value.name not in linked:
            raise ValueError(f"attribute {name!r} takes {value.name!r}, which is not given")
        return linked[value.name]

    def _check_and_fix_outputs(self, res: Any) -> tuple[Any, ...]:
        """Outputs with numbers as arrays; an error where one is nothing ONNX has a type for."""
        name = type(self).__name__
        if not isinstance(res, tuple):
            raise TypeError(f"_run of {name} returned {type(res).__name__}, not a tuple")
        if not res:
            raise ValueError(f"_run of {name} returned no result")
        results = tuple(np.array(item) if np.isscalar(item) else item for item in res)
        for item in results:
            if not isinstance(item, np.ndarray | list | dict) and not hasattr(item, "todense"):
                raise TypeError(f"_run of {name} returned a {type(item).__name__} as an output")
        return results

    @classmethod
    def infer_name(cls) -> tuple[str, int]:
        """The operator's name and version, from the name of the class: `Cast_19`.

        >>> class Cast_19(OpRunExpand): pass
        >>> Cast_19.infer_name()
        ('Cast', 19)
        """
        name, _, version = cls.__name__.rpartition("_")
        if name and version.isdigit():
            return name, int(version)
        return cls.__name__, defs.onnx_opset_version()

    @classmethod
    def make_node(
        cls, n_inputs: int | None = None, n_outputs: int | None = None, **kwargs: Any
    ) -> Any:
        """A node of this operator with attributes; the numbers default to the fewest allowed."""
        name, version = cls.infer_name()
        if n_inputs is None or n_outputs is None:
            schema = defs.get_schema(name, version, cls.op_domain)
            n_inputs = schema.min_input if n_inputs is None else n_inputs
            n_outputs = schema.min_output if n_outputs is None else n_outputs
        inputs = [f"x{index}" for index in range(n_inputs)]
        outputs = [f"y{index}" for index in range(n_outputs)]
        return helper.make_node(name, inputs, outputs, domain=cls.op_domain or None, **kwargs)

    @classmethod
    def create(
        cls, n_inputs: int | None = None, n_outputs: int | None = None, verbose: int = 0,
        **kwargs: Any,
    ) -> Any:  # fmt: skip
        """An instance for a node with these attributes."""

        def log(pattern: str, *args: Any) -> None:
            if verbose > 1:
                print(pattern % tuple(args))

        opsets = {"": defs.onnx_opset_version(), cls.op_domain: cls.infer_name()[1]}
        parameters = {"verbose": verbose, "log": log, "new_ops": None, "opsets": opsets}
        return cls(cls.make_node(n_inputs, n_outputs, **kwargs), parameters)

    @classmethod
    def eval(cls, *args: Any, n_outputs: int | None = None, verbose: int = 0, **kwargs: Any) -> Any:
        """What the operator makes of inputs and attributes; a tuple where there are several."""
        instance = cls.create(len(args), n_outputs=n_outputs, verbose=verbose, **kwargs)
        results = instance.run(*args)
        return results[0] if len(results) == 1 else results


def _subgraph_runner(evaluator: Any) -> Any:
    def run(context: Any, attributes: Any = None, bindings: Any = None) -> Any:
        return evaluator.run(None, context or {}, attributes=attributes)

    return run


class OpRunExpand(OpRun):
    """A standard operator that is to be replaced by the function it stands for."""

    def __new__(cls, *args: Any, **kwargs: Any) -> "OpRunExpand":
        """Refuse: such a class only names an operator."""
        raise RuntimeError(f"{cls.__name__} is to be replaced by its function, not run")

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"{type(self).__name__} is to be replaced by its function, not run")
