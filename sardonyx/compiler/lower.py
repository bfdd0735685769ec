"""A graph as forms: constants folded, operators lowered, and the reason where one is not."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sardonyx.compiler.derive import Definitions, NamingInference
from sardonyx.compiler.forms import (
    Form,
    Join,
    NotLowered,
    Scaled,
    Source,
    Trim,
    cast,
    number,
    unsqueeze,
)
from sardonyx.compiler.lowerings import TYPE_BLIND, Agreement, Lowering, Lowerings, Request
from sardonyx.compiler.reference import read_values, run_reference
from sardonyx.compiler.require import requirements
from sardonyx.compiler.specialize import LARGEST_CONTENT
from sardonyx.dims import LARGEST_ELEMENT, Size, is_small
from sardonyx.dtypes import DataType, from_numpy
from sardonyx.errors import SardonyxError
from sardonyx.graph import Node, Value
from sardonyx.loops.nodes import STORED, symbols
from sardonyx.ops.catalog import Catalog, canonical_domain
from sardonyx.ops.evaluate import Evaluator
from sardonyx.ops.fact import Fact
from sardonyx.ops.operator import attribute_values
from sardonyx.record import entity

NATIVE = frozenset({
    DataType.FLOAT, DataType.DOUBLE, DataType.BOOL, DataType.INT8, DataType.UINT8, DataType.INT16,
    DataType.UINT16, DataType.INT32, DataType.UINT32, DataType.INT64, DataType.UINT64,
}) | STORED  # fmt: skip
"""Element types that kernels read and write."""
NARROW = frozenset({DataType.FLOAT16, DataType.BFLOAT16})
"""Floats that kernels compute with as float32; each result is rounded to its own type."""
LARGEST_FOLDED = 1 << 24
"""Elements of a constant beyond which it is computed when the program runs."""


@entity
class Cut:
    """The value `output` is the first `count` elements of `whole` along an axis."""

    whole: Value
    count: Value
    axis: int
    output: Value


@dataclass(eq=False)
class Lowered:
    """What became of each value, and of each node that runs its reference."""

    definitions: Definitions
    """Names of sizes that follow from others."""
    forms: dict[Value, Form] = field(default_factory=dict)
    constants: dict[Value, Any] = field(default_factory=dict)
    made_by: dict[Form, Node] = field(default_factory=dict)
    """The node each form was first returned for."""
    reasons: dict[Node, str] = field(default_factory=dict)
    folded: list[Node] = field(default_factory=list)
    cuts: dict[Value, Cut] = field(default_factory=dict)
    """How values come about of which only a run tells how large they are."""
    bound: dict[str, Value] = field(default_factory=dict)
    """Names of sizes, each with the input, cut value or reference's output that tells it.

    One that follows from others has the value that tells the last of those.
    """
    believed: list[Value] = field(default_factory=list)
    """Values whose shape the model declares and nothing else tells: they are made to be checked."""
    agreements: list[Agreement] = field(default_factory=list)
    """Sizes that must be equal when the program runs."""
    wanted: dict[Value, None] = field(default_factory=dict)
    """Inputs of the graph that more nodes could be lowered for if their contents were known."""
    failures: dict[Node, str] = field(default_factory=dict)
    """What lowerings raised that they should not have."""


def lower_graph(
    evaluator: Evaluator, inference: NamingInference, lowerings: Lowerings,
    agreements: Sequence[Agreement] = (),
) -> Lowered:  # fmt: skip
    """Lower every node of a graph that is sorted and of the newest version; `agreements` are of
    nodes that became others before.

    A node that inference refuses runs its reference, which says what is wrong where it matters.
    """
    graph, facts, operators = evaluator.graph, inference.facts, inference.operators
    result = Lowered(inference.definitions, agreements=list(agreements))
    overridable = set(graph.inputs) if evaluator.model.ir_version >= 4 else set()
    for value in graph.initializers:
        if value.tensor is not None and value not in overridable:
            result.constants[value] = value.tensor.numpy()
    for value in [*graph.inputs, *graph.initializers]:
        _remember_source(result, value, facts)
    for node in graph.nodes:
        if node in inference.refused:
            _leave(result, node, inference.refused[node].what, facts)
        elif node in inference.believed:
            _leave(result, node, "only the model says what rank its result has", facts)
            result.believed += node.outputs
        elif not _fold(result, evaluator, node, facts, lowerings, operators):
            _lower(result, node, facts, lowerings, operators)
            if node not in result.reasons:
                pairs = inference.assumed.get(node, ())
                result.agreements += [Agreement(*pair) for pair in pairs]
    return result


def _remember_source(result: Lowered, value: Value, facts: dict[Value, Fact]) -> None:
    """A value that comes from outside of kernels, if kernels could read it."""
    constant = result.constants.get(value)
    if isinstance(constant, np.ndarray):
        if constant.dtype != object and from_numpy(constant.dtype) in NATIVE:
            dtype = from_numpy(constant.dtype)
            result.forms[value] = Source(constant.shape, dtype, value, constant)
        return
    fact = facts.get(value)
    if fact is None or not fact.is_tensor or fact.dtype not in NATIVE or fact.shape is None:
        return
    shape = tuple(size for size in fact.shape if size is not None)
    derived = result.definitions.sizes
    plain = {str(size) for size in shape if symbols(size) == {str(size)}} - derived.keys()
    if len(shape) == len(fact.shape) and size_names(shape) <= result.bound.keys() | plain:
        for name in sorted(plain):
            result.bound.setdefault(name, value)
        for name, size in derived.items():
            if name not in result.bound and symbols(size) <= result.bound.keys():
                result.bound[name] = value
        result.forms[value] = Source(shape, fact.dtype, value)


def size_names(shape: tuple[Size, ...]) -> set[str]:
    """The names a shape depends on."""
    return {name for size in shape for name in symbols(size)}


def _fold(
    result: Lowered, evaluator: Evaluator, node: Node, facts: dict[Value, Fact],
    lowerings: Lowerings, operators: Catalog,
) -> bool:  # fmt: skip
    """Compute a node now where that gives the same every time."""
    operator = operators[canonical_domain(node.domain), node.op_type]
    known = [value is None or value in result.constants for value in node.inputs]
    if operator.random or any(node.subgraphs) or operator.reference is None:
        return False
    if not all(facts.get(output, Fact()).is_tensor for output in node.outputs):
        return False
    if not all(known):
        values = [facts[value].constant if value in facts else None for value in node.outputs]
        if not values or any(value is None for value in values):
            return False
        made: tuple[Any, ...] = tuple(
            np.asarray(value, facts[output].dtype.numpy)  # type: ignore[union-attr]
            for value, output in zip(values, node.outputs, strict=True)
        )
    else:
        if any(output in facts and _is_large(facts[output]) for output in node.outputs):
            return False
        made = run_reference(evaluator, node, dict(result.constants))
    for output, array in zip(node.outputs, made, strict=False):
        result.constants[output] = array
        _remember_source(result, output, facts)
    result.folded.append(node)
    _keep_origin(result, node, facts, lowerings, operator)
    return True


def _keep_origin(
    result: Lowered, node: Node, facts: dict[Value, Fact], lowerings: Lowerings, operator: Any
) -> None:
    """Remember that a constant is bytes with a scale, where it was computed from those."""
    (output, *_) = node.outputs
    source, large = result.forms.get(output), result.constants[output]
    given = [result.constants.get(value) for value in node.inputs if value is not None]
    sizes = [array.nbytes for array in given if isinstance(array, np.ndarray)]
    if not isinstance(source, Source) or len(sizes) < len(given) or sum(sizes) >= large.nbytes:
        return
    try:
        (origin, *_) = _forms(result, node, facts, lowerings, operator)
    except NotLowered:
        return
    if isinstance(origin, Scaled):
        result.forms[output] = replace(source, origin=origin)


def _is_large(fact: Fact) -> bool:
    sizes = [size for size in fact.shape or () if isinstance(size, int)]
    return math.prod(sizes) > LARGEST_FOLDED


def _lower(
    result: Lowered, node: Node, facts: dict[Value, Fact], lowerings: Lowerings, operators: Catalog
) -> None:
    domain = canonical_domain(node.domain)
    try:
        forms = _sizes(result, node, facts) or _forms(
            result, node, facts, lowerings, operators[domain, node.op_type]
        )
    except NotLowered as reason:
        _leave(result, node, reason.what, facts)
        return
    for output, form in zip(node.outputs, forms, strict=False):
        if isinstance(form, Trim):
            result.cuts[output] = cut = Cut(Value(), Value(), form.axis, output)
            result.forms |= {cut.whole: form.whole, cut.count: form.count}
            result.made_by.setdefault(form.whole, node)
            _remember_source(result, output, facts)
        else:
            result.forms[output] = form
            result.made_by.setdefault(form, node)


def _leave(result: Lowered, node: Node, reason: str, facts: dict[Value, Fact]) -> None:
    """Let a node run its reference."""
    result.reasons[node] = reason
    for output in node.outputs:
        _remember_source(result, output, facts)


def _sizes(result: Lowered, node: Node, facts: dict[Value, Fact]) -> tuple[Form | Trim, ...]:
    """Outputs of which every element is a size that is known when the program runs."""
    forms: list[Form] = []
    for output in node.outputs:
        fact = facts.get(output, Fact())
        sizes = fact.sizes() if fact.dtype is DataType.INT64 and fact.value is not None else None
        if sizes is None or len(fact.shape or ()) > 1:
            return ()
        known = [size for size in sizes if size is not None]
        known = [size for size in known if size_names((size,)) <= result.bound.keys()
                 and (isinstance(size, int) or is_small(size, LARGEST_ELEMENT))]  # fmt: skip
        if len(known) < len(sizes) or not known:
            return ()
        numbers = [number(size, DataType.INT64) for size in known]
        parts = tuple(unsqueeze(item, [0]) for item in numbers)
        forms.append(Join((len(known),), DataType.INT64, parts, 0) if fact.shape else numbers[0])
    return tuple(forms)


def _forms(
    result: Lowered, node: Node, facts: dict[Value, Fact], lowerings: Lowerings, operator: Any
) -> tuple[Form | Trim, ...]:
    key = (canonical_domain(node.domain), node.op_type)
    lowering = operator.lower or lowerings.get(key)
    if lowering is None and operator.random:
        raise NotLowered("random numbers are drawn in the order of the reference")
    if lowering is None:
        raise NotLowered("the operator has no native form yet")
    for value in node.inputs:
        if value is not None and value not in result.forms:
            raise NotLowered(f"kernels do not read '{value.name}' ({facts.get(value, Fact())})")
    _require_whole(node, facts, operator)
    for output in node.outputs:
        fact = facts.get(output, Fact())
        if fact.dtype not in NATIVE:
            raise NotLowered(f"kernels do not compute with '{output.name}' ({fact})")
    request = Request(
        tuple(None if value is None else facts.get(value, Fact()) for value in node.inputs),
        tuple(facts.get(value, Fact()) for value in node.outputs),
        tuple(None if value is None else result.constants.get(value) for value in node.inputs),
        [],
        set(),
        result.bound,
    )
    inputs = [None if value is None else result.forms[value] for value in node.inputs]
    given = inputs if key in TYPE_BLIND else [_wide(form) for form in inputs]
    made = _call(lowering, result, node, request, given, operator, facts)
    several = made if isinstance(made, Sequence) else (made,)
    trims = [item if isinstance(item, Trim) else None for item in several]
    forms = [
        cast(form, fact.dtype) if fact.dtype in NARROW else form
        for form, fact in zip(map(_whole, several), request.outputs, strict=False)
    ]
    for form, fact, trim in zip(forms, request.outputs, trims, strict=False):
        if form.dtype not in NATIVE:
            raise NotLowered(f"kernels do not compute with {form.dtype.name.lower()}")
        _require_shape(form, fact, trim)
        unknown = size_names(form.shape) - result.bound.keys()
        if unknown:
            raise NotLowered(f"its size {', '.join(sorted(unknown))} is only known once it has run")
    result.agreements += request.agreements + requirements(
        forms, {form for form in inputs if form is not None}, result.definitions
    )
    return tuple(
        form if trim is None else replace(trim, whole=form)
        for form, trim in zip(forms, trims, strict=False)
    )


def _require_whole(node: Node, facts: dict[Value, Fact], operator: Any) -> None:
    """Axes, sizes, indices and conditions are no floats where the operator takes none."""
    signature = operator.newest() if operator.signatures else None
    for position, value in enumerate(node.inputs):
        dtype = None if value is None else facts.get(value, Fact()).dtype
        formal = None if signature is None else signature.formal_input(position)
        if dtype is None or not dtype.is_float or signature is None or formal is None:
            continue
        if not any("float" in kind or "double" in kind for kind in signature.types(formal)):
            raise NotLowered(f"'{formal.name}' is {dtype.text}, which its operator does not take")


def _require_shape(form: Form, fact: Fact, trim: Trim | None) -> None:
    """A form has the shape that inference found, as far as both are numbers."""
    shape = form.shape if fact.shape is None else fact.shape
    wrong = len(shape) != len(form.shape) or any(
        isinstance(size, int) and isinstance(found, int) and size != found
        for axis, (size, found) in enumerate(zip(shape, form.shape, strict=True))
        if trim is None or axis != trim.axis
    )
    if wrong:
        raise NotLowered(f"its form has the shape {list(form.shape)}, not {list(shape)}")


def _call(
    lowering: Lowering, result: Lowered, node: Node, request: Request, inputs: list[Form | None],
    operator: Any, facts: dict[Value, Fact],
) -> Any:  # fmt: skip
    """What a lowering returns; where it fails, the reference is left to say what is wrong."""
    attributes = attribute_values(node, operator.newest())
    _require_small(attributes)
    try:
        return lowering(request, *inputs, **attributes)
    except NotLowered:
        _note_wanted(result, node, request, facts)
        raise
    except SardonyxError as error:
        raise NotLowered(error.what) from error
    except Exception as error:
        result.failures[node] = describe_failure(node, error)
        raise NotLowered(f"its lowering failed: {type(error).__name__}: {error}") from error


def _require_small(attributes: dict[str, Any]) -> None:
    """Steps, pads and the like are numbers that kernels can compute with."""
    for name, value in attributes.items():
        short = isinstance(value, tuple) and len(value) <= LARGEST_CONTENT
        for item in value if short else (value,):
            if isinstance(item, int) and not is_small(item):
                raise NotLowered(f"'{name}' has numbers beyond any size")


def describe_failure(node: Node, error: Exception) -> str:
    """What a rule raised for a node that it should not have; the error itself holds all frames."""
    return f"{node.where()} does not get the form it should: {type(error).__name__}: {error}"


def _whole(item: Form | Trim) -> Form:
    return item.whole if isinstance(item, Trim) else item


def _wide(form: Form | None) -> Form | None:
    """A form as kernels compute with it."""
    return cast(form, DataType.FLOAT) if form is not None and form.dtype in NARROW else form


def _note_wanted(result: Lowered, node: Node, request: Request, facts: dict[Value, Fact]) -> None:
    """Remember the graph's inputs that tell the contents a lowering asked for in vain."""
    if not request.wanted:
        return
    found: dict[Value, None] = {}
    seen: set[Value] = set()
    others = range(min(request.wanted) + 1, len(node.inputs))
    alike = {place for place in others if _is_list(request.inputs[place])}
    waiting = [node.inputs[position] for position in request.wanted | alike]
    while waiting:
        value = waiting.pop()
        if value is None or value in result.constants or value in seen:
            continue
        seen.add(value)
        if value.producer is not None:
            waiting.extend(read_values(value.producer))
        elif _may_decide(facts.get(value, Fact())):
            found[value] = None
    result.wanted.update(found)


def _may_decide(fact: Fact) -> bool:
    """Whether an input's contents may decide what a program looks like: those of a short list, or
    of a few whole numbers."""
    shape = fact.shape or ()
    sizes = [size for size in shape if isinstance(size, int)]
    few = fact.dtype in (DataType.INT64, DataType.INT32) and len(sizes) == len(shape)
    return (len(shape) <= 1 or few) and math.prod(sizes) <= LARGEST_CONTENT


def _is_list(fact: Fact | None) -> bool:
    """True for a short list of integers, which is wanted where another one is."""
    integer = fact is not None and fact.dtype in (DataType.INT64, DataType.INT32)
    return integer and fact is not None and len(fact.shape or ()) == 1
