"""A model as one WebAssembly module: its kernels, its constants, and the plan for fixed shapes.

The module exports `memory`, `run` and the kernels, and imports functions of `Math` where a kernel
calls them in float64. A custom section `sardonyx` says in JSON where everything lies:

    {"inputs": [{"name", "type", "shape", "address", "bytes"}], "outputs": [the same],
     "runs": [{"record": address, "status": address or null}]}

To run it, write the inputs at their addresses and, for each of the runs, call `run(record)`, which
returns 0, or 1 where memory cannot grow as kernels need it; an `int64` at `status` that is not 0
then says that an index was out of range, until it is overwritten. Memory may grow in a run, so look
at its buffer again. Nothing is shared: runs of one instance go one after another, in one thread.
Types have ONNX's names; what is narrower than a byte has one to itself. Where the size of an output
is known only by a run, it has a `count`, the address of an `int64`: so many elements along its
`axis` are the result, of as many as `shape` has room for.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sardonyx.compiler.compile import compile_image
from sardonyx.compiler.emit_wasm import MATH, support_objects
from sardonyx.compiler.image import (
    ARENA,
    FIRST_INPUT,
    STOP,
    CutImage,
    Image,
    ReferenceImage,
    SegmentImage,
    Told,
    Wanted,
)
from sardonyx.compiler.limits import check_bound
from sardonyx.compiler.plan import ALIGNMENT
from sardonyx.compiler.program import check_sizes
from sardonyx.compiler.sizes import function
from sardonyx.compiler.specialize import Contents, with_contents
from sardonyx.compiler.targets import WASM
from sardonyx.compiler.wasm_link import Joined, check_memory
from sardonyx.compiler.wasm_object import MAGIC, Reader
from sardonyx.dims import HIDDEN
from sardonyx.dtypes import data_type, from_numpy
from sardonyx.errors import FormatError, InputError, UnsupportedError
from sardonyx.graph import Model
from sardonyx.ops.catalog import Catalog, standard
from sardonyx.passes.options import Options
from sardonyx.passes.pipeline import CLEAN, run_pipeline
from sardonyx.record import record

SECTION = "sardonyx"
Shapes = Mapping[str, Sequence[int]]


def compile_wasm(
    model: Model, shapes: Shapes | None = None, contents: Contents | None = None, *,
    catalog: Catalog | None = None,
) -> bytes:  # fmt: skip
    """A module that runs a model on inputs of these shapes; needed where the model's are open.

    Inputs whose `contents` are given, or that have a default, are constants of the module.

    >>> import sardonyx as sx
    >>> model = sx.load_text('<ir_version: 10, opset_import: ["": 21]>'
    ...                      'g (float[n] x) => (float[n] y) { y = Relu(x) }')
    >>> compile_wasm(model, {"x": [5]})[:4]
    b'\\x00asm'
    """
    operators = catalog or standard()
    fixed = with_contents(model, _constants(model, contents or {}))
    options = Options(input_shapes=shapes or {})
    fixed = run_pipeline(fixed, CLEAN, options, catalog=operators)
    image = compile_image(fixed, WASM, operators, specialize=True)
    if isinstance(image, Wanted):
        raise UnsupportedError(
            f"the contents of inputs decide what the program is: {', '.join(image.names)}",
            hint="give their contents, which become constants of the module",
        )
    _refuse_references(image)
    return _Program(image.whole()).module()


def description(module: bytes) -> dict[str, Any]:
    """What a module says of itself, as data."""
    reader = Reader(module, len(MAGIC))
    while reader.more:
        number = reader.byte()
        section = Reader(reader.take(reader.number()))
        if number == 0 and section.name() == SECTION:
            found: dict[str, Any] = json.loads(section.content[section.at :])
            return found
    raise FormatError(f"the module has no section '{SECTION}'", hint="make it by compile_wasm")


@record
class _Array:
    """An array in memory, of which maybe only a part counts, so many along an axis."""

    address: int
    shape: tuple[int, ...]
    dtype: int
    cut: dict[str, int] | None = None

    def described(self, name: str) -> dict[str, Any]:
        kind = data_type(self.dtype)
        size = math.prod(self.shape) * kind.numpy.itemsize
        return {"name": name, "type": kind.text, "shape": list(self.shape),
                "address": self.address, "bytes": size} | (self.cut or {})  # fmt: skip


class _Program:
    """Lays out a program's memory, from the end of the code's own data on."""

    def __init__(self, image: Image) -> None:
        self.image, self.tables = image, image.tables
        segments = [step for step in self.tables.steps if isinstance(step, SegmentImage)]
        kernels = 1 + max((call[0] for step in segments for call in step.calls), default=-1)
        self.kernels = [f"kernel{number}" for number in range(kernels)]
        objects = [*image.code, *support_objects(image.code)]
        self.joined = Joined(objects, MATH, self.kernels)
        self.end = self.joined.end
        self.data: list[tuple[int, bytes]] = []
        self.constants: dict[int, _Array] = {}
        self.arrays = {
            array: self.constant(number)
            for array, number in self.tables.held
            if _is_numbers(image.constants[number])
        }
        self.inputs = self.place_inputs()
        self.runs = [run for step in self.tables.steps if (run := self.step(step))]

    def module(self) -> bytes:
        """The module, with its description."""
        outputs = []
        for name, number in zip(self.tables.names, self.tables.outputs, strict=True):
            if number not in self.arrays:
                raise UnsupportedError(
                    f"output '{name}' is no tensor of numbers", hint="leave it out of the model"
                )
            outputs.append(self.arrays[number].described(name))
        told = {"inputs": self.inputs, "outputs": outputs, "runs": self.runs}
        notes = {SECTION: json.dumps(told).encode()}
        return self.joined.module(["run", *self.kernels], self.data, self.end, notes)

    def room(self, size: int) -> int:
        """The address of so many bytes that nothing else uses."""
        begin = -(-self.end // ALIGNMENT) * ALIGNMENT
        self.end = begin + size
        check_memory(self.end)
        return begin

    def put(self, content: NDArray[Any]) -> int:
        """The address of bytes that are there from the beginning."""
        address = self.room(content.nbytes)
        if content.nbytes:
            self.data.append((address, content.tobytes()))
        return address

    def table(self, numbers: Sequence[Any]) -> int:
        """The address of numbers that `run` reads."""
        return self.put(np.array(numbers, np.int64))

    def constant(self, number: int) -> _Array:
        if number not in self.constants:
            array = self.image.constants[number]
            kind = int(from_numpy(array.dtype))
            self.constants[number] = _Array(self.put(array), array.shape, kind)
        return self.constants[number]

    def place_inputs(self) -> list[dict[str, Any]]:
        """Room for what is fed; inputs that nobody reads have none."""
        told = {item.array: item for item in self.tables.told}
        found = []
        for fed in self.tables.fed:
            if fed.array not in told:
                continue
            item = told[fed.array]
            dtype = data_type(item.dtype).numpy
            shape = _shape(item)
            address = self.room(math.prod(shape) * dtype.itemsize)
            self.arrays[fed.array] = _Array(address, shape, item.dtype)
            found.append(self.arrays[fed.array].described(fed.name))
        check_sizes([], self.tables.checks)
        return found

    def step(self, step: SegmentImage | ReferenceImage | CutImage) -> dict[str, Any] | None:
        """What is to be run for a step, if anything is."""
        if isinstance(step, SegmentImage):
            return self.segment(step)
        assert isinstance(step, CutImage), "references are refused before"
        cut = {"count": self.arrays[step.count].address, "axis": step.axis}
        self.arrays[step.output] = replace(self.arrays[step.whole], cut=cut)
        return None

    def segment(self, image: SegmentImage) -> dict[str, Any]:
        """Tables of a segment and the record that `run` takes, in the order it says."""
        if image.symbols or any(self.arrays[number].cut for number in image.inputs):
            raise UnsupportedError(
                "a size that is known only by a run is needed while it goes on",
                hint="let operators such as NonZero or NonMaxSuppression make outputs only",
            )
        check_bound(image.bound, (), ())
        values, arena_bytes, shapes, *_ = function(image.source)(lambda tasks, stepwise: 1)
        for number, dtype, shape in zip(image.outputs, image.dtypes, shapes, strict=True):
            size = math.prod(shape) * data_type(dtype).numpy.itemsize
            self.arrays[number] = _Array(self.room(size), shape, dtype)
        arena = self.room(arena_bytes)
        offsets = np.array(image.offsets, np.int64)
        if values:
            offsets[list(image.positions)] = np.array(values, np.int64)[list(image.chosen)]
        outside = [self.arrays[number] for number in (*image.inputs, *image.outputs)]
        constants = [self.constant(number) for number in image.constants]
        addresses = [0] * FIRST_INPUT + [item.address for item in (*outside, *constants)]
        addresses[ARENA] = arena
        addresses[STOP] = self.table([0])
        calls = [(1 + kernel, start, last) for kernel, start, last in image.calls]
        record_address = self.table([
            0, arena, self.table(addresses), self.table(image.bases), self.put(offsets),
            len(image.bases), self.table(calls), len(calls),
        ])  # fmt: skip
        status = arena + len(image.bases) * 8 if image.reports else None
        return {"record": record_address, "status": status}


def _constants(model: Model, contents: Contents) -> Contents:
    """What inputs are constants: those with a default, and those whose contents are given."""
    inputs = {} if model.graph is None else {value.name: value for value in model.graph.inputs}
    if unknown := [name for name in contents if name not in inputs]:
        raise InputError(
            f"the model has no input '{unknown[0]}'", hint=f"its inputs are: {', '.join(inputs)}"
        )
    tensors = {name: value.tensor for name, value in inputs.items() if value.tensor is not None}
    return {name: tensor.numpy() for name, tensor in tensors.items()} | contents


def _is_numbers(constant: Any) -> bool:
    return isinstance(constant, np.ndarray) and constant.dtype != object


def _shape(told: Told) -> tuple[int, ...]:
    """The shape of an input, which must be known."""
    known = [size for size in told.shape if isinstance(size, int)]
    if len(known) < len(told.shape):
        shape = ", ".join("?" if str(size).startswith(HIDDEN) else str(size) for size in told.shape)
        raise UnsupportedError(
            f"input '{told.name}' has sizes that are not known: [{shape}]",
            hint="give its shape: a WebAssembly module has its memory laid out beforehand",
        )
    return tuple(known)


def _refuse_references(image: Image) -> None:
    """An error where something runs between kernels that only Python can."""
    if not any(isinstance(step, ReferenceImage) for step in image.tables.steps):
        return
    node, operator, _, _, reason = next(
        row for row in image.rows if row[2] in ("reference", "subgraphs")
    )
    raise UnsupportedError(
        f"{operator} cannot become WebAssembly: {reason or 'its subgraphs are run by Python'}",
        where=node,
        hint="simplify the model first; `sardonyx coverage` says which operators have kernels",
    )
