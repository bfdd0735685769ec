"""WebAssembly modules run in Node, one process for many of them."""

import json
import shutil
import struct
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sardonyx as sx
from sardonyx.compiler import emit_ir as ir
from sardonyx.compiler.compile import lower
from sardonyx.compiler.emit_engine import compile_module
from sardonyx.compiler.emit_loops import emit_kernel
from sardonyx.compiler.emit_wasm import MATH, support_objects
from sardonyx.compiler.specialize import with_contents
from sardonyx.compiler.targets import WASM
from sardonyx.compiler.wasm import compile_wasm, description
from sardonyx.compiler.wasm_link import Joined
from sardonyx.dims import Expression
from sardonyx.dtypes import DataType
from sardonyx.loops import Kernel
from sardonyx.ops.catalog import standard

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="there is no Node to run WebAssembly: node")
_TYPES = {kind.text: kind for kind in DataType}
_WORDS = struct.Struct("<II")
Call = tuple[str, list[int | str]]
"""An export and its arguments; those of 64 bits are texts."""


class Node:
    """A process that runs modules; ended with the last reference to it."""

    def __init__(self) -> None:
        assert NODE is not None
        script = Path(__file__).with_name("run_wasm.js")
        self._process = subprocess.Popen(
            [NODE, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def run(
        self, module: bytes, write: Sequence[tuple[int, bytes]], calls: Sequence[Call],
        read: Sequence[tuple[int, int]],
    ) -> tuple[list[int], list[bytes]]:  # fmt: skip
        """What calls return, and what memory holds then at addresses, each with its bytes."""
        contents = [content for _, content in write]
        head = json.dumps({
            "module": len(module), "write": [(at, len(content)) for at, content in write],
            "calls": calls, "read": read,
        }).encode()  # fmt: skip
        content = b"".join([module, *contents])
        pipe, answers = self._process.stdin, self._process.stdout
        assert pipe is not None and answers is not None
        pipe.write(_WORDS.pack(len(head), len(content)) + head + content)
        pipe.flush()
        code, size = _WORDS.unpack(answers.read(_WORDS.size))
        found = answers.read(size)
        if code:
            raise RuntimeError(found.decode())
        at = 8 * len(calls)
        parts = []
        for _, count in read:
            parts.append(found[at : at + count])
            at += count
        return list(struct.unpack_from(f"<{len(calls)}q", found)), parts


@cache
def node() -> Node:
    """This process's Node."""
    return Node()


def run_module(module: bytes, feeds: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
    """The outputs of a module that `compile_wasm` made."""
    told = description(module)
    write = [(item["address"], np.ascontiguousarray(feeds[item["name"]]).tobytes())
             for item in told["inputs"] if item["name"] in feeds]  # fmt: skip
    status = [(item["status"], 8) for item in told["runs"] if item["status"] is not None]
    read = [(item["address"], item["bytes"]) for item in told["outputs"]]
    counts = [(item["count"], 8) for item in told["outputs"] if "count" in item]
    calls: list[Call] = [("run", [item["record"]]) for item in told["runs"]]
    codes, found = node().run(module, write, calls, [*status, *counts, *read])
    assert not any(codes), "there is no memory"
    if any(any(content) for content in found[: len(status)]):
        raise sx.EvaluationError("an index is out of range")
    numbers = [int.from_bytes(content, "little") for content in found[len(status) : -len(read)]]
    arrays = []
    for item, content in zip(told["outputs"], found[-len(read) :], strict=True):
        array = np.frombuffer(content, _TYPES[item["type"]].numpy).reshape(item["shape"])
        kept = (slice(None),) * item["axis"] + (slice(numbers.pop(0)),) if "count" in item else ...
        arrays.append(array[kept])
    return arrays


def run_model(model: sx.Model, feeds: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
    """A model's outputs, by WebAssembly; what decides about the program becomes constant."""
    contents: dict[str, NDArray[Any]] = {}
    while wanted := lower(with_contents(model, contents), standard())[1].wanted:
        contents |= {value.name: _content(value, feeds) for value in wanted}
    fed = {name: item for name, item in feeds.items() if name not in contents}
    shapes = {name: item.shape for name, item in fed.items() if isinstance(item, np.ndarray)}
    return run_module(compile_wasm(model, shapes, contents), feeds)


def _content(value: sx.Value, feeds: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    if value.name in feeds:
        return np.asarray(feeds[value.name])
    assert value.tensor is not None, f"'{value.name}' is not fed"
    return value.tensor.numpy()


def run_kernel(
    kernel: Kernel, memories: Mapping[str, NDArray[Any]], parameters: Mapping[str, int]
) -> None:
    """Compile and run; the arrays change."""
    module = ir.Module()
    emit_kernel(module, "kernel", kernel, WASM)
    content = compile_module(module, WASM)
    joined = Joined([content, *support_objects([content])], MATH)
    end, write, values = joined.end, [], []
    for name in kernel.memories:
        address = -(-end // 64) * 64
        end = address + memories[name].nbytes
        write.append((address, memories[name].tobytes()))
        values.append(address)
    read = [(address, len(content)) for address, content in write]
    values += [parameters[name] for name in kernel.parameters]
    frame = -(-end // 64) * 64
    write.append((frame, np.array([*values, 0, 0, 0, frame + 8 * len(values)], np.int64).tobytes()))
    tasks = 0 if kernel.parallel is None else _number(kernel.parallel.extent, parameters)
    steps = 1 if kernel.steps is None else _number(kernel.steps.extent, parameters)
    calls: list[Call] = [("kernel", [frame, "0", str(tasks), str(step)]) for step in range(steps)]
    made = joined.module(["kernel"], end=frame + 8 * len(values) + 32)
    _, found = node().run(made, write, calls, read)
    for name, part in zip(kernel.memories, found, strict=True):
        memories[name][...] = np.frombuffer(part, memories[name].dtype).reshape(
            memories[name].shape
        )


def _number(extent: Any, given: Mapping[str, int]) -> int:
    return extent.substitute(given) if isinstance(extent, Expression) else extent
