"""Arrays in odd memory, and things that are almost arrays, as feeds in every way of calling."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np

import sardonyx as sx
from tests.fuzz.extremes import element_number
from tests.fuzz.maker import Maker
from tests.fuzz.trial import Feeds, Trial, call_run
from tests.fuzz.values import Array

RUNS = 24
SHARE = 22
KINDS = ("float32", "float32", "float64", "float16", "int64", "int32", "int8", "uint8", "bool",
         "str", "bfloat16")  # fmt: skip
MODELS = ("Add", "Transpose", "Concat", "ReduceMax", "Slice", "Identity", "MatMul", "Gather")


def make(seed: int) -> Trial:
    """A small model whose feeds are laid out oddly; the same elements in order are `plain`."""
    maker = Maker(seed)
    maker.mode = maker.rng.choice(("named", "open", "fixed"))
    op = MODELS[seed % len(MODELS)]
    kind = maker.rng.choice(KINDS)
    if op in ("Add", "MatMul") and kind in ("bool", "str", "int8", "uint8"):
        kind = "float32"
    if op == "ReduceMax" and kind in ("bool", "str"):
        kind = "int32"
    shape = maker.rng.choice((("h", "w"), ("h", "h"), ("h", "w", 2)))
    if op in ("MatMul",):
        shape = ("h", "h")
    x = maker.data(shape, kind)
    result = _node(maker, op, x, shape, kind)
    way = maker.rng.choice((call_run, call_run, call_values, call_bound))
    outputs = [(result, element_number(kind))]
    plain = maker.feeds
    return Trial(
        maker.model(outputs), f"{op} {kind}", lambda run: _odd_feeds(seed, run, plain(run)),
        plain, way, threads=maker.rng.choice((1, 1, 1, 2)),
    )  # fmt: skip


def _node(maker: Maker, op: str, x: str, shape: Any, kind: str) -> str:
    if op in ("Add", "MatMul"):
        return str(maker.node(op, x, maker.data(shape, kind)))
    if op == "Concat":
        return str(maker.node(op, x, maker.data(shape, kind), axis=0))
    if op == "Slice":
        ends = [maker.constant(np.array([item])) for item in (1, 3)]
        return str(maker.node(op, x, *ends))
    if op == "Gather":
        return str(maker.node(op, x, maker.data((2,), "int64", 0.0), axis=0))
    if op == "ReduceMax":
        return str(maker.node(op, x, maker.constant(np.array([0]))))
    return str(maker.node(op, x))


def call_values(session: Any, feeds: Feeds) -> list[Any]:
    """Through values that hold the arrays."""
    held = {name: sx.OrtValue.ortvalue_from_numpy(item) for name, item in feeds.items()}
    return [item.numpy() for item in session.run_with_ort_values(None, held)]


def call_bound(session: Any, feeds: Feeds) -> list[Any]:
    """Through a binding."""
    binding = session.io_binding()
    for name, item in feeds.items():
        binding.bind_cpu_input(name, item)
    for output in session.get_outputs():
        binding.bind_output(output.name)
    session.run_with_iobinding(binding)
    return list(binding.copy_outputs_to_cpu())


def _odd_feeds(seed: int, run: int, plain: Feeds) -> Feeds:
    rng = random.Random(seed << 8 | run | 1 << 60)
    found = dict(plain)
    for name in plain:
        if rng.random() < 0.7:
            found[name] = rng.choice(LAYOUTS)(rng, plain[name])
    return found


def _strided(rng: random.Random, array: Array) -> Any:
    """Every second or third element of a larger one."""
    if not array.ndim:
        return array
    step = rng.choice((2, 3))
    room = np.zeros([size * step for size in array.shape], array.dtype)
    view = room[tuple(slice(None, None, step) for _ in array.shape)]
    view[...] = array
    return view


def _fortran(_: random.Random, array: Array) -> Any:
    return np.asfortranarray(array)


def _reversed(rng: random.Random, array: Array) -> Any:
    """Negative strides."""
    ways = tuple(slice(None, None, rng.choice((-1, 1))) for _ in array.shape)
    return np.ascontiguousarray(array[ways])[ways] if array.ndim else array


def _transposed(rng: random.Random, array: Array) -> Any:
    order = rng.sample(range(array.ndim), array.ndim)
    back = np.argsort(order)
    return np.ascontiguousarray(array.transpose(order)).transpose(back) if array.ndim else array


def _big_endian(_: random.Random, array: Array) -> Any:
    if array.dtype.kind in "OVb" or array.dtype.itemsize == 1:
        return array
    return array.astype(array.dtype.newbyteorder(">"))


def _unaligned(rng: random.Random, array: Array) -> Any:
    if array.dtype == object:
        return array
    room = np.zeros(array.nbytes + 8, np.uint8)
    at = rng.randint(1, 7)
    view = room[at : at + array.nbytes].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


def _read_only(_: random.Random, array: Array) -> Any:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def _stretched(_: random.Random, array: Array) -> Any:
    """A stride of 0, where the elements allow it."""
    if array.ndim and array.shape[0] and (array == array[:1]).all():
        return np.broadcast_to(array[0], array.shape)
    return array


class Sub(np.ndarray[Any, Any]):
    """A subclass of arrays."""


def _subclass(_: random.Random, array: Array) -> Any:
    return array.view(Sub)


def _list(_: random.Random, array: Array) -> Any:
    return array.tolist()


def _scalar(_: random.Random, array: Array) -> Any:
    return array.reshape(-1)[0] if array.size == 1 else array


def _masked(_: random.Random, array: Array) -> Any:
    return np.ma.masked_array(array) if array.dtype != object else array


def _other_type(rng: random.Random, array: Array) -> Any:
    kind = rng.choice(("float64", "float32", "int64", "object", "complex64", "U4", "S3", "M8[s]"))
    try:
        return array.astype(kind)
    except (TypeError, ValueError):
        return array


def _other_rank(rng: random.Random, array: Array) -> Any:
    return rng.choice((array[None], array.reshape(-1), np.array(1, array.dtype)))


def _nothing(rng: random.Random, _: Array) -> Any:
    return rng.choice((None, "text", b"bytes", 3, 2.5, [], {}, object(), [[1], [2, 3]], float, ()))


def _memory(_: random.Random, array: Array) -> Any:
    return memoryview(array) if array.dtype.kind in "iufb" and array.flags.c_contiguous else array


LAYOUTS: tuple[Callable[[random.Random, Array], Any], ...] = (
    _strided, _strided, _fortran, _reversed, _transposed, _big_endian, _unaligned, _unaligned,
    _read_only, _stretched, _subclass, _list, _scalar, _masked, _other_type, _other_rank, _nothing,
    _memory,
)  # fmt: skip
