"""What an operator is: a class used as a record of hooks, one class for one operator."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from inspect import signature as python_signature
from typing import Any, ClassVar

import numpy as np

from sardonyx.errors import UnsupportedError
from sardonyx.graph import Attribute, AttributeType, Node, SparseTensor, Tensor
from sardonyx.graph.stored_list import StoredList, StoredText
from sardonyx.ops.signature import REQUIRED, Signature, attribute_fits, parse_signature

Hook = Callable[..., Any]
_HOOKS = ("infer", "reference", "view", "propagate", "function", "lower", "gradient")


class Operator:
    """Root of all operators. A subclass states its versions and how the newest one behaves.

    Hooks are static. Inputs come by position (an absent one is None, a variadic formal is spread),
    attributes by keyword with defaults filled in. A hook that names a parameter `context` gets a
    context (see `Context`).

    - `infer(*facts, **attributes)` -> a `Fact` for each output
    - `reference(*arrays, **attributes)` -> an array (list, dict, None) for each output
    - `view(*arrays, **attributes)` -> what `reference` gives, in memory of the inputs, or with what
      repeats in memory once; not to be changed
    - `propagate(*values, **attributes)` -> known elements of outputs, which may be symbolic sizes;
      `propagate = reference` where that works on arrays of objects too
    - `function(build, *values, **attributes)` -> the same outputs built of other operators that
      exist at `build.opset`
    - `lower(request, *forms, **attributes)` -> a form for each output, for the compiler; custom
      operators have it here, those of the standard in `compiler/lowerings`
    - `upgrade_N(node, build)`: version N -> the next version, in place, or by returning the values
      that take the place of the node's outputs. Nodes built belong to the opset at which the next
      version begins.
    - `downgrade_N(node, build)`: version N -> the one before it. Nodes built belong to opset N - 1.
      Raises `ConversionError` with the reason where that cannot be said.
    """

    domain: ClassVar[str] = ""
    name: ClassVar[str] = ""
    signatures: ClassVar[tuple[str, ...]] = ()
    random: ClassVar[bool] = False
    """True where equal inputs may give different outputs: never folded."""
    expands: ClassVar[bool] = True
    """False where the body of `function` takes far longer than `reference`, if both are at hand."""
    width_matters: ClassVar[bool] = False
    """True where computing in a wider element type would change results: saturation, bits."""
    output_counts: ClassVar[dict[int, tuple[int, ...]]] = {}
    """By version: the only numbers of outputs a node may have, where not every number will do."""
    choices: ClassVar[dict[str, tuple[str, ...]]] = {}
    """Attributes whose text is one of a few words; inference and references refuse any other."""
    open_attributes: ClassVar[bool] = False
    """True where a node may carry attributes that the signature does not name."""

    infer: ClassVar[Hook | None] = None
    reference: ClassVar[Hook | None] = None
    view: ClassVar[Hook | None] = None
    propagate: ClassVar[Hook | None] = None
    function: ClassVar[Hook | None] = None
    lower: ClassVar[Hook | None] = None

    def __init_subclass__(cls) -> None:
        if "name" not in cls.__dict__:
            cls.name = cls.__name__
        for key, hook in list(cls.__dict__.items()):
            is_hook = key in _HOOKS or key.startswith(("upgrade_", "downgrade_"))
            if is_hook and hook is not None and not isinstance(hook, staticmethod):
                setattr(cls, key, staticmethod(hook))

    @classmethod
    def versions(cls) -> tuple[Signature, ...]:
        """All signatures, oldest first."""
        return _versions(cls.signatures, cls.open_attributes)

    @classmethod
    def at(cls, opset: int) -> Signature | None:
        """The signature in force at an opset version; None where the operator is not there yet."""
        found = None
        for version in cls.versions():
            if version.since <= opset:
                found = version
        return found

    @classmethod
    def newest(cls) -> Signature:
        """The newest signature that is not merely a deprecation."""
        return _newest(cls.signatures, cls.open_attributes)


@cache
def _versions(lines: tuple[str, ...], open_attributes: bool) -> tuple[Signature, ...]:
    versions = sorted(map(parse_signature, lines), key=lambda version: version.since)
    return tuple(replace(version, open=open_attributes) for version in versions)


@cache
def _newest(lines: tuple[str, ...], open_attributes: bool) -> Signature:
    versions = _versions(lines, open_attributes)
    return [version for version in versions if version.inputs or version.outputs][-1]


@cache
def takes_context(hook: Hook) -> bool:
    """True where a hook asks for a context."""
    try:
        return "context" in python_signature(hook).parameters
    except ValueError:
        return False


def attribute_values(node: Node, version: Signature) -> dict[str, Any]:
    """A node's attributes as hooks take them, with the signature's defaults."""
    values: dict[str, Any] = {}
    for name, formal in version.attributes.items():
        given = node.attributes.get(name)
        if given is not None and given.value is not None:
            if given.type != formal.kind and not attribute_fits(given, formal):
                raise UnsupportedError(
                    f"{node.where()} has the attribute '{name}' as another kind than its operator",
                    hint=f"it takes {formal.kind.name}",
                )
            values[name] = plain_value(given)
        elif formal.default is REQUIRED:
            raise UnsupportedError(
                f"{node.where()} lacks the attribute '{name}'", hint="the operator requires it"
            )
        else:
            values[name] = formal.default
    for name in node.attributes:
        if name not in values and not version.open:
            raise UnsupportedError(
                f"{node.where()} has the attribute '{name}', which its operator does not know",
                hint="remove it, or check the model's opset version",
            )
    return values


def hook_attributes(node: Node, operator: type[Operator]) -> dict[str, Any]:
    """The attributes that an operator's hooks take, of which those with choices are one of them."""
    values = attribute_values(node, operator.newest())
    for name, words in operator.choices.items():
        if values[name] not in words:
            raise UnsupportedError(
                f"{name} '{values[name]}' is not one of {', '.join(words)}",
                hint="give one of these, or leave the attribute out where it has a default",
            )
    return values


def plain_value(attribute: Attribute) -> Any:
    """An attribute's value as hooks take it: text, numbers, arrays, graphs, types."""
    match attribute.type:
        case AttributeType.STRING:
            return attribute.text
        case AttributeType.STRINGS:
            if isinstance(attribute.value, StoredList):
                return StoredList(StoredText(attribute.value.stored))
            return tuple(str(item, "utf-8", "surrogateescape") for item in attribute.value)
        case AttributeType.TENSOR | AttributeType.SPARSE_TENSOR:
            return attribute.value.numpy()
        case AttributeType.TENSORS | AttributeType.SPARSE_TENSORS:
            return tuple(item.numpy() for item in attribute.value)
    return attribute.value


def as_outputs(result: Any) -> tuple[Any, ...]:
    """What a hook returned as a tuple of outputs."""
    return result if isinstance(result, tuple) else (result,)


def tensor_of(value: Any) -> Tensor:
    """A tensor to put into a model: from an array, a list, a number, or a tensor itself.

    Whole numbers become int64, floats float32, as operators' parameters usually are.
    """
    if isinstance(value, Tensor):
        return value
    if isinstance(value, SparseTensor):
        return Tensor(value.numpy(), value.name)
    if not isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        if array.size == 0 or array.dtype.kind in "iu":
            array = array.astype(np.int64)
        elif array.dtype.kind == "f":
            array = array.astype(np.float32)
        value = array
    return Tensor(value)
