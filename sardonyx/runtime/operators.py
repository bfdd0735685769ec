"""Custom operators from Python functions and from compiled C functions."""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from sardonyx.boundary import public
from sardonyx.errors import EvaluationError, UnsupportedError
from sardonyx.graph import AttributeType
from sardonyx.ops.fact import Fact, of_array
from sardonyx.ops.operator import Hook, Operator, as_outputs
from sardonyx.ops.signature import parse_signature

_POINTERS = ctypes.POINTER(ctypes.c_void_p)
_TENSORS = (_POINTERS, _POINTERS, ctypes.POINTER(ctypes.c_int32), ctypes.c_int32)
C_SIGNATURE = ctypes.CFUNCTYPE(
    ctypes.c_int32, *_TENSORS, *_TENSORS, ctypes.POINTER(ctypes.c_double)
)  # fmt: skip
"""What `c_operator` calls; see there."""


@public("making an operator")
def custom_operator(
    signature: str, *, name: str = "", domain: str = "custom", infer: Hook | None = None,
    lower: Hook | None = None, random: bool = False,
) -> Callable[[Callable[..., Any]], type[Operator]]:  # fmt: skip
    """Make an operator of a function of arrays: inputs by position, attributes by keyword.

    Without `infer` its outputs have unknown types and shapes until they are there. `lower` gives
    the compiler a native form (see `Operator`).

    >>> import sardonyx as sx
    >>> @sx.custom_operator("1(x: T, by: float = 1.0) -> y: T; T: floats", infer=lambda x, by: x)
    ... def Shift(x, by):
    ...     return x + np.asarray(by, x.dtype)
    >>> model = sx.load_text('<ir_version: 10, opset_import: ["": 21, "custom": 1]>'
    ...                      'g (float[2] x) => (float[2] y) { y = custom.Shift<by = 2.0>(x) }')
    >>> session = sx.InferenceSession(model, operators=[Shift])
    >>> session.run(None, {"x": np.zeros(2, np.float32)})[0].tolist()
    [2.0, 2.0]
    """
    parse_signature(signature)

    def make(function: Callable[..., Any]) -> type[Operator]:
        hooks: dict[str, Any] = {
            "name": name or function.__name__,
            "domain": domain,
            "signatures": (signature,),
            "random": random,
            "reference": function,
            "__doc__": function.__doc__,
        }
        if infer is not None:
            hooks["infer"] = infer
        if lower is not None:
            hooks["lower"] = lower
        return type(hooks["name"], (Operator,), hooks)

    return make


@public("making an operator")
def c_operator(
    signature: str, function: Any, *, name: str, infer: Hook, domain: str = "custom",
    lower: Hook | None = None,
) -> type[Operator]:  # fmt: skip
    """Make an operator of a C function: its address, or a function of a `ctypes` library.

    `infer` says the outputs' types and shapes, whose memory is then ready when C is called:

        int32_t f(const void *const *inputs, const int64_t *const *input_shapes,
                  const int32_t *input_ranks, int32_t input_count,
                  void *const *outputs, const int64_t *const *output_shapes,
                  const int32_t *output_ranks, int32_t output_count,
                  const double *attributes);

    Tensors are dense and in C's order; an absent input is NULL with rank -1. `attributes` are the
    int and float ones in the signature's order. All but 0 is an error. Calls may go on at once.

    >>> def double(ins, in_shapes, in_ranks, count, outs, out_shapes, out_ranks, n, attributes):
    ...     floats = ctypes.POINTER(ctypes.c_float)
    ...     ctypes.cast(outs[0], floats)[0] = ctypes.cast(ins[0], floats)[0] * 2
    ...     return 0
    >>> Double = c_operator("1(x: T) -> y: T; T: float", C_SIGNATURE(double), name="Double",
    ...                     infer=lambda x: x)
    >>> Double.reference(np.array([4], np.float32))[0].tolist()
    [8.0]
    """
    address = function if isinstance(function, int) else _address(function)
    if not address:
        raise UnsupportedError(
            f"the operator {name} has no function", hint="pass the address of a C function"
        )
    names = list(_number_attributes(signature, name))
    formals = [item for item in parse_signature(signature).inputs if not item.arity.variadic]
    call = C_SIGNATURE(address)

    def reference(*inputs: Any, **attributes: Any) -> tuple[Any, ...]:
        arrays = [None if item is None else np.ascontiguousarray(item) for item in inputs]
        arrays += [None] * (len(formals) - len(arrays))
        facts = [Fact() if item is None else of_array(item) for item in arrays]
        made = [_memory(fact, name) for fact in as_outputs(infer(*facts, **attributes))]
        numbers = (ctypes.c_double * max(len(names), 1))(*(attributes[item] for item in names))
        given, wanted = _shapes(arrays), _shapes(made)
        code = call(*_arguments(arrays, given), *_arguments(made, wanted), numbers)
        if code:
            raise EvaluationError(f"the C function of {name} returned {code}")
        return tuple(made)

    reference._function = function  # type: ignore[attr-defined]
    make = custom_operator(signature, name=name, domain=domain, infer=infer, lower=lower)
    return make(reference)


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _number_attributes(signature: str, name: str) -> list[str]:
    attributes = parse_signature(signature).attributes
    for item in attributes.values():
        if item.kind not in (AttributeType.INT, AttributeType.FLOAT):
            raise UnsupportedError(
                f"the attribute '{item.name}' of {name} is a {item.kind.name.lower()}",
                hint="C functions get int and float attributes; write a Python operator otherwise",
            )
    return list(attributes)


def _memory(fact: Fact, name: str) -> Any:
    shape = fact.shape
    if fact.dtype is None or shape is None or not all(isinstance(size, int) for size in shape):
        raise EvaluationError(
            f"`infer` of {name} does not say its output's type and shape: {fact}",
            hint="they must follow from the inputs' types and shapes",
        )
    return np.zeros(tuple(shape), fact.dtype.numpy)


def _shapes(arrays: list[Any]) -> list[Any]:
    return [None if item is None else (ctypes.c_int64 * item.ndim)(*item.shape) for item in arrays]


def _arguments(arrays: list[Any], shapes: list[Any]) -> tuple[Any, Any, Any, int]:
    """Data, shapes, ranks and the number of tensors; what is passed must stay alive."""
    count = len(arrays)
    data = [None if item is None else item.ctypes.data for item in arrays]
    places = [None if shape is None else ctypes.addressof(shape) for shape in shapes]
    ranks = [-1 if item is None else item.ndim for item in arrays]
    pointers, numbers = ctypes.c_void_p * max(count, 1), ctypes.c_int32 * max(count, 1)
    return pointers(*data), pointers(*places), numbers(*ranks), count
