"""What an operator's definition says: `OpSchema` and its parts."""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum, IntEnum
from typing import Any

from sardonyx.compat.onnx.onnx_ml_pb2 import AttributeProto, FunctionProto

UNLIMITED = 2**31 - 1
"""What `max_input` and `max_output` are where any number is allowed."""


class _Named(IntEnum):
    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    __str__ = __repr__

    def __format__(self, format_spec: str) -> str:
        return format(repr(self), format_spec)


class FormalParameterOption(_Named):
    """How often a formal input or output may stand."""

    Single = 0
    Optional = 1
    Variadic = 2


class DifferentiationCategory(_Named):
    """Whether a gradient flows through an input or output."""

    Unknown = 0
    Differentiable = 1
    NonDifferentiable = 2


class AttrType(_Named):
    """The kind of an attribute's value."""

    FLOAT = 1
    INT = 2
    STRING = 3
    TENSOR = 4
    GRAPH = 5
    FLOATS = 6
    INTS = 7
    STRINGS = 8
    TENSORS = 9
    GRAPHS = 10
    SPARSE_TENSOR = 11
    SPARSE_TENSORS = 12
    TYPE_PROTO = 13
    TYPE_PROTOS = 14


class SupportType(_Named):
    """Whether an operator is here to stay."""

    COMMON = 0
    EXPERIMENTAL = 1


class NodeDeterminism(Enum):
    """Whether equal inputs give equal outputs."""

    Deterministic = 2
    NonDeterministic = 1
    Unknown = 0

    def __repr__(self) -> str:
        return f"NodeDeterminism.{self.name}"


class SchemaError(Exception):
    """An operator is not defined, or is defined twice.

    >>> issubclass(SchemaError, ValueError)
    False
    """


class FormalParameter:
    """A formal input or output of an operator.

    >>> FormalParameter("X", "tensor(float)").option.name
    'Single'
    """

    __slots__ = (
        "description", "differentiation_category", "is_homogeneous", "min_arity", "name", "option",
        "type_str", "types",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        type_str: str,
        description: str = "",
        *,
        param_option: FormalParameterOption = FormalParameterOption.Single,
        is_homogeneous: bool = True,
        min_arity: int = 1,
        differentiation_category: DifferentiationCategory = DifferentiationCategory.Unknown,
    ) -> None:
        require_text(name=name, type_str=type_str, description=description)
        self.name = name
        self.type_str = type_str
        self.description = description
        self.option = param_option
        self.is_homogeneous = is_homogeneous
        self.min_arity = min_arity
        self.differentiation_category = differentiation_category
        self.types: set[str] = set()

    def with_types(self, types: Sequence[str]) -> "FormalParameter":
        """The same parameter as a part of a schema, in which its type stands for `types`."""
        twin = FormalParameter(
            self.name, self.type_str, self.description, param_option=self.option,
            is_homogeneous=self.is_homogeneous, min_arity=self.min_arity,
            differentiation_category=self.differentiation_category,
        )  # fmt: skip
        twin.types = set(types)
        return twin

    def __repr__(self) -> str:
        return (
            f"OpSchema.FormalParameter(name={self.name!r}, type_str={self.type_str!r}, "
            f"description={self.description!r}, param_option={self.option!r}, "
            f"is_homogeneous={self.is_homogeneous!r}, min_arity={self.min_arity!r}, "
            f"differentiation_category={self.differentiation_category!r})"
        )


class Attribute:
    """A formal attribute: of a type, required or not, or with a default value.

    >>> Attribute("axis", AttrType.INT, required=False).required
    False
    """

    __slots__ = ("_default_value", "description", "name", "required", "type")

    def __init__(
        self, name: str, type: Any = None, description: str = "", *, required: bool = True,
        default_value: Any = None,
    ) -> None:  # fmt: skip
        require_text(name=name, description=description)
        if isinstance(type, AttrType):
            self.type, self.required, self._default_value = type, required, b""
        else:
            value = default_value if type is None else type
            if value is None:
                raise TypeError(f"attribute {name!r} needs a type or a default value")
            self._default_value = value.SerializeToString()
            self.type, self.required = AttrType(value.type), False
        self.name = name
        self.description = description

    @property
    def default_value(self) -> Any:
        """The default as an AttributeProto, empty where there is none."""
        return AttributeProto.FromString(self._default_value)

    def __repr__(self) -> str:
        return (
            f"OpSchema.Attribute(name={self.name!r}, type={self.type!r}, "
            f"description={self.description!r}, default_value={self.default_value!r}, "
            f"required={self.required!r})"
        )


class TypeConstraintParam:
    """A name that stands for one of several types in a schema.

    >>> TypeConstraintParam("T", ["tensor(float)"]).allowed_type_strs
    ['tensor(float)']
    """

    __slots__ = ("allowed_type_strs", "description", "type_param_str")

    def __init__(
        self, type_param_str: str, allowed_type_strs: Sequence[str], description: str = ""
    ) -> None:
        require_text(type_param_str=type_param_str, description=description)
        self.type_param_str = type_param_str
        self.allowed_type_strs = list(allowed_type_strs)
        self.description = description

    def __repr__(self) -> str:
        return (
            f"OpSchema.TypeConstraintParam(type_param_str={self.type_param_str!r}, "
            f"allowed_type_strs={self.allowed_type_strs!r}, description={self.description!r})"
        )


def require_text(**arguments: Any) -> None:
    """Refuse arguments that are not strings."""
    for name, value in arguments.items():
        if not isinstance(value, str):
            raise TypeError(f"{name} must be a string, not {type(value).__name__}")


class Bodies:
    """The functions an operator stands for: for any node, and for one node."""

    def __init__(
        self, opsets: Sequence[int] = (), per_node: bool = False,
        general: Callable[[int], bytes] | None = None,
        specific: Callable[[int, bytes, Sequence[bytes]], bytes] | None = None,
    ) -> None:  # fmt: skip
        self.opsets = list(opsets)
        self.per_node = per_node
        self.general = general
        self.specific = specific


_Formals = Sequence[FormalParameter]
_Attributes = Sequence[Attribute]
_Determinism = NodeDeterminism


class OpSchema:
    """The definition of one version of an operator.

    >>> schema = OpSchema("Twice", "local", 1, inputs=[FormalParameter("x", "tensor(float)")],
    ...                   outputs=[FormalParameter("y", "tensor(float)")])
    >>> schema.min_input, schema.max_input, schema.outputs[0].types
    (1, 1, {'tensor(float)'})
    """

    FormalParameter = FormalParameter
    FormalParameterOption = FormalParameterOption
    DifferentiationCategory = DifferentiationCategory
    NodeDeterminism = NodeDeterminism
    Attribute = Attribute
    AttrType = AttrType
    SupportType = SupportType
    TypeConstraintParam = TypeConstraintParam

    def __init__(
        self,
        name: str,
        domain: str,
        since_version: int,
        doc: str = "",
        *,
        inputs: _Formals = (),
        outputs: _Formals = (),
        type_constraints: Sequence[tuple[str, Sequence[str], str]] = (),
        attributes: _Attributes = (),
        node_determinism: _Determinism = NodeDeterminism.Unknown,
    ) -> None:
        require_text(name=name, domain=domain, doc=doc)
        if not isinstance(since_version, int):
            raise TypeError("since_version must be a whole number")
        self.name = name
        self.domain = domain
        self.since_version = since_version
        self.doc = doc or None
        self.type_constraints = [TypeConstraintParam(*item) for item in type_constraints]
        types = {item.type_param_str: item.allowed_type_strs for item in self.type_constraints}
        self.inputs = [item.with_types(_types(item.type_str, types)) for item in _formals(inputs)]
        self.outputs = [item.with_types(_types(item.type_str, types)) for item in _formals(outputs)]
        self.attributes: dict[str, Any] = {item.name: item for item in attributes}
        self.min_input, self.max_input = _arity(self.inputs)
        self.min_output, self.max_output = _arity(self.outputs)
        self.deprecated = False
        self.support_level = SupportType.COMMON
        self.node_determinism: _Determinism = (
            NodeDeterminism.Deterministic
            if node_determinism is NodeDeterminism.Unknown
            else node_determinism
        )
        self.has_type_and_shape_inference_function = False
        self.has_data_propagation_function = False
        self.file = "unknown"
        self.line = 0
        self._bodies = Bodies()
        self._infer: Callable[[Any], None] | None = None

    @staticmethod
    def is_infinite(v: int, /) -> bool:
        """True for the number that stands for no limit."""
        return v == UNLIMITED

    @property
    def non_deterministic(self) -> bool:
        """True unless equal inputs are said to give equal outputs."""
        return self.node_determinism is not NodeDeterminism.Deterministic

    @property
    def has_function(self) -> bool:
        """True where the operator stands for one and the same function in every node."""
        return bool(self._bodies.opsets) and not self._bodies.per_node

    @property
    def has_context_dependent_function(self) -> bool:
        """True where the operator stands for a function that depends on the node."""
        return bool(self._bodies.opsets) and self._bodies.per_node

    @property
    def function_opset_versions(self) -> list[int]:
        """The opsets for which there is a function that holds for every node."""
        return list(self._bodies.opsets) if self.has_function else []

    @property
    def context_dependent_function_opset_versions(self) -> list[int]:
        """The opsets for which there is a function that depends on the node."""
        return list(self._bodies.opsets) if self.has_context_dependent_function else []

    @property
    def all_function_opset_versions(self) -> list[int]:
        """The opsets for which there is a function of either kind."""
        return list(self._bodies.opsets)

    @property
    def _function_body(self) -> bytes:
        if not self.has_function:
            return b""
        return self.get_function_with_opset_version(self._bodies.opsets[0])

    @property
    def function_body(self) -> Any:
        """The function the operator stands for, as a FunctionProto; empty where there is none."""
        return FunctionProto.FromString(self._function_body)

    def get_function_with_opset_version(self, arg: int, /) -> bytes:
        """The function for an opset, as bytes of a FunctionProto; empty where there is none."""
        found = [opset for opset in self.function_opset_versions if opset <= arg]
        return self._bodies.general(found[-1]) if found and self._bodies.general else b""

    def get_context_dependent_function(self, arg0: bytes, arg1: Sequence[bytes], /) -> bytes:
        """The function for a NodeProto with inputs of these TypeProtos; empty if there is none."""
        opset = (self.context_dependent_function_opset_versions or [0])[0]
        return self.get_context_dependent_function_with_opset_version(opset, arg0, arg1)

    def get_context_dependent_function_with_opset_version(
        self, arg0: int, arg1: bytes, arg2: Sequence[bytes], /
    ) -> bytes:
        """The function for a node at an opset; empty where there is none."""
        found = [opset for opset in self.context_dependent_function_opset_versions if opset <= arg0]
        return (
            self._bodies.specific(found[-1], arg1, arg2) if found and self._bodies.specific else b""
        )

    def set_type_and_shape_inference_function(self, arg: Callable[[Any], None], /) -> "OpSchema":
        """Let `arg` infer the types of outputs; it gets a `shape_inference.InferenceContext`."""
        self._infer = arg
        self.has_type_and_shape_inference_function = True
        return self

    def get_type_and_shape_inference_function(self) -> Callable[[Any], None]:
        """What infers the types of outputs, given a `shape_inference.InferenceContext`."""
        if self._infer is not None:
            return self._infer
        from sardonyx.compat.onnx.shape_inference import inference_function

        return inference_function(self)

    def _infer_node_outputs(
        self,
        nodeBytes: bytes,
        valueTypesByNameBytes: Mapping[str, bytes],
        inputDataByNameBytes: Mapping[str, bytes] = {},
        inputSparseDataByNameBytes: Mapping[str, bytes] = {},
        opsetImports: Mapping[str, int] = {},
        irVersion: int = 14,
    ) -> dict[str, bytes]:
        from sardonyx.compat.onnx.shape_inference import infer_one_node

        return infer_one_node(
            self, nodeBytes, valueTypesByNameBytes, inputDataByNameBytes,
            inputSparseDataByNameBytes, opsetImports, irVersion,
        )  # fmt: skip

    def __repr__(self) -> str:
        names = ("name", "domain", "since_version", "doc", "type_constraints", "inputs", "outputs")
        lines = [f"    {name}={getattr(self, name)!r},\n" for name in names]
        return f"OpSchema(\n{''.join(lines)}    attributes={self.attributes!r}\n)"


def _formals(items: Sequence[FormalParameter]) -> Sequence[FormalParameter]:
    for item in items:
        if not isinstance(item, FormalParameter):
            raise TypeError(f"{item!r} is not an OpSchema.FormalParameter")
    return items


def _types(name: str, constraints: Mapping[str, Sequence[str]]) -> Sequence[str]:
    types = constraints.get(name)
    if types is None:
        return [normal_type(name)]
    return [normal_type(item) for item in types]


def normal_type(text: str) -> str:
    """A type's usual spelling: element types stand for tensors of them.

    >>> normal_type("int32"), normal_type(" seq( tensor(float))")
    ('tensor(int32)', 'seq(tensor(float))')
    """
    plain = "".join(text.split())
    if not is_type(plain):
        raise ValueError(f"{text!r} is not a type")
    return _spelled(plain)


def _spelled(text: str) -> str:
    head, bracket, rest = text.partition("(")
    inner = rest.removesuffix(")")
    match head:
        case "map":
            key, _, value = inner.partition(",")
            return f"map({key},{_spelled(value)})"
        case "seq" | "optional":
            return f"{head}({_spelled(inner)})"
    return text if bracket else f"tensor({text})"


def is_type(text: str) -> bool:
    """True for the text of a type, or of an element type."""
    from sardonyx.dtypes import DataType

    elements = {item.text for item in DataType if item}
    head, bracket, rest = text.partition("(")
    if not bracket:
        return text in elements
    inner = rest.removesuffix(")")
    if inner == rest:
        return False
    match head:
        case "tensor" | "sparse_tensor":
            return inner in elements
        case "seq" | "optional":
            return is_type(inner)
        case "map":
            key, comma, value = inner.partition(",")
            return bool(comma) and key in elements and is_type(value)
        case "opaque":
            return True
    return False


def _arity(formals: Sequence[FormalParameter]) -> tuple[int, int]:
    least = most = 0
    for position, formal in enumerate(formals):
        match formal.option:
            case FormalParameterOption.Single:
                least = most = position + 1
            case FormalParameterOption.Optional:
                most = position + 1
            case FormalParameterOption.Variadic:
                least, most = position + formal.min_arity, UNLIMITED
    return least, most
