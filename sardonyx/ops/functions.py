"""Operators that ONNX defines as functions, and their bodies out of other operators."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from sardonyx.errors import ConversionError
from sardonyx.graph import Attribute, Function, Graph, Node, Opsets, Type, Value
from sardonyx.ops.build import Builder
from sardonyx.ops.catalog import NEWEST_OPSETS, canonical_domain, standard
from sardonyx.ops.convert import function_results
from sardonyx.ops.operator import Operator
from sardonyx.ops.signature import Formal, Signature
from sardonyx.record import record

_TABLE = """
AffineGrid 20
Attention 23! 24! 25!
Bernoulli 15! 22!
BlackmanWindow 17
CastLike 15! 19! 21! 23! 24! 25!
CausalConvWithState 27!
Celu 12! 28
CenterCropPad 18!
Clip 13!
DepthToSpace 28!
DynamicQuantizeLinear 11
Elu 6:18 22:18
Gelu 20!
GreaterOrEqual 12 16
GroupNormalization 18! 21!
HammingWindow 17
HannWindow 17
HardSigmoid 6:18 22:18
HardSwish 14 22
LayerNormalization 17:17,18!
LeakyRelu 16
LessOrEqual 12 16
LinearAttention 27!
LogSoftmax 13:13,18!
MeanVarianceNormalization 9 13:13,18
Mish 18 22
NegativeLogLikelihoodLoss 12! 13! 22!
PRelu 16
RMSNormalization 23!
Range 11 27!
ReduceL1 18
ReduceL2 18
ReduceLogSum 18 28
ReduceLogSumExp 18 28
ReduceSumSquare 18
Relu 14:18
RotaryEmbedding 23!
Selu 6:18 22:18
SequenceMap 17!
Shrink 9:18
Softmax 13:13,18!
SoftmaxCrossEntropyLoss 12! 13!
Softplus 1:18 22:18
Softsign 1:18 22:18
SpaceToDepth 28!
SwiGLU 28
Swish 24
ThresholdedRelu 10:18 22:18
ai.onnx.preview.FlexAttention 1!
"""
"""Versions of operators that are functions; `:` the opsets a body is defined for where these are
others, `!` that the body depends on a node's attributes and types."""


@record
class Definition:
    """How a version of an operator is a function: from which opsets on, and on what it depends."""

    opsets: tuple[int, ...]
    per_node: bool


@cache
def definitions() -> Mapping[tuple[str, str, int], Definition]:
    """What ONNX defines as functions: domain, name and version of the operator.

    >>> definitions()["", "Softplus", 22].opsets
    (18,)
    """
    found: dict[tuple[str, str, int], Definition] = {}
    for line in _TABLE.split("\n"):
        words = line.split()
        for word in words[1:]:
            domain, _, name = words[0].rpartition(".")
            since, _, opsets = word.rstrip("!").partition(":")
            numbers = tuple(map(int, (opsets or since).split(",")))
            found[domain, name, int(since)] = Definition(numbers, word.endswith("!"))
    return found


def is_function(domain: str, op_type: str, opset_imports: Mapping[str, int]) -> bool:
    """True where an operator is defined as a function at these versions of operator sets."""
    found = _version(domain, op_type, opset_imports)
    if found is None:
        return False
    definition = definitions().get((canonical_domain(domain), op_type, found[1].since))
    return definition is not None and definition.opsets[0] <= opset_imports[domain]


def node_function(
    node: Node, opset_imports: Mapping[str, int], types: Callable[[], list[Type | None]] = list
) -> Function:
    """The function that one node calls: specialised to its attributes, inputs and outputs."""
    found = _version(node.domain, node.op_type, opset_imports)
    assert found is not None, "ask is_function first"
    operator, version = found
    body = Graph(node.op_type)
    names = _formal_names(version.inputs, len(node.inputs))
    for position, (name, actual) in enumerate(zip(names, node.inputs, strict=True)):
        body.inputs.append(_Input(name, position, types) if actual is not None else Value(name))
    given = [
        formal if actual is not None else None
        for formal, actual in zip(body.inputs, node.inputs, strict=True)
    ]
    attributes = {name: item for name, item in node.attributes.items() if not item.reference}
    outputs = _formal_names(version.outputs, len(node.outputs))
    call = Node(node.op_type, given, outputs, dict(attributes), domain=node.domain)
    return _finish(body, call, operator, version, opset_imports)


def schema_function(operator: type[Operator], version: Signature, opset: int) -> Function:
    """The function that an operator is for any node: attributes are references to the caller's."""
    body = Graph(operator.name)
    body.inputs = [Value(formal.name) for formal in version.inputs]
    attributes = {
        name: Unbound.refer(name, formal.kind, name) for name, formal in version.attributes.items()
    }
    call = Node(
        operator.name, body.inputs, [formal.name for formal in version.outputs], attributes,
        domain=operator.domain,
    )  # fmt: skip
    function = _finish(body, call, operator, version, {"": opset})
    function.attributes = [
        name for name, item in version.attributes.items() if item.default is None
    ]
    function.attribute_defaults = [
        Attribute(name, formal.default, formal.kind)
        for name, formal in version.attributes.items()
        if formal.default is not None
    ]
    return function


class Unbound(Attribute):
    """A reference to a function's attribute, whose value a hook may pass on but not look at."""

    __slots__ = ()

    def _refuse(self, *_: object) -> Any:
        raise ConversionError(f"the function depends on the value of '{self.reference}'")

    __bool__ = __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = _refuse
    __neg__ = __float__ = __int__ = __index__ = __iter__ = __len__ = __array__ = _refuse
    __rtruediv__ = _refuse

    __hash__ = object.__hash__


def _version(
    domain: str, op_type: str, opset_imports: Mapping[str, int]
) -> tuple[type[Operator], Signature] | None:
    operator = standard().get((canonical_domain(domain), op_type))
    if operator is None or operator.function is None or domain not in opset_imports:
        return None
    version = operator.at(opset_imports[domain])
    return None if version is None or version.deprecated else (operator, version)


def _finish(
    body: Graph, call: Node, operator: type[Operator], version: Signature,
    opset_imports: Mapping[str, int],
) -> Function:  # fmt: skip
    """The function with a body in which `call`, its only node, is replaced."""
    opset = opset_imports.get("", opset_imports.get("ai.onnx", NEWEST_OPSETS[""]))
    body.nodes.append(call)
    build = Builder(body, opset, call, constants_as_nodes=True)
    outputs: list[Value] = []
    for result in function_results(call, operator, version, build):
        own = result.producer is not None and result.producer.graph is body
        outputs.append(result if own and result not in outputs else build.Identity(result))
    names = [output.name for output in call.outputs]
    body.nodes.remove(call)
    for name, output in zip(names, outputs, strict=False):
        output.name = name
        body.outputs.append(output)
    function = Function(call.domain, call.op_type, body, Opsets({"": opset}))
    if call.domain not in ("", "ai.onnx"):
        function.opsets[call.domain] = opset_imports[call.domain]
    return function


def _formal_names(formals: tuple[Formal, ...], count: int) -> list[str]:
    names = []
    for position in range(count):
        formal = formals[min(position, len(formals) - 1)]
        variadic = formal.arity.variadic
        names.append(f"{formal.name}_{position - len(formals) + 1}" if variadic else formal.name)
    return names


class _Input(Value):
    """A function's input whose type is asked for only where it matters."""

    __slots__ = ("_position", "_types")

    def __init__(self, name: str, position: int, types: Callable[[], list[Type | None]]) -> None:
        self._position = position
        self._types: Callable[[], list[Type | None]] | list[Type | None] = types
        super().__init__(name)

    @property
    def declared(self) -> Type | None:
        """The type of the argument, or None where it is not known."""
        if callable(self._types):
            self._types = self._types()
        return self._types[self._position] if self._position < len(self._types) else None

    @declared.setter
    def declared(self, type_: Any) -> None:
        """Ignore the type that a new value is given."""
