"""The official ONNX backend suite: its cases, how to run one, and how outputs are compared."""

import argparse
import glob
import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test import loader

from sardonyx.compiler.targets import CHECKS

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
RANDOM = frozenset(
    f"test_{name}"
    for name in (
        "bernoulli", "bernoulli_double", "bernoulli_seed", "bernoulli_expanded",
        "bernoulli_double_expanded", "bernoulli_seed_expanded", "training_dropout",
        "training_dropout_mask", "training_dropout_default", "training_dropout_default_mask",
    )
)  # fmt: skip
"""Cases whose output is random by definition: compared in shape and type here, and statistically
in `test_random.py`."""

Run = Callable[[bytes, list[Any]], list[Any]]
"""Runs a serialized model on inputs in the graph's order."""


@dataclass(frozen=True)
class Case:
    """One case: a model, data sets of inputs and outputs, tolerances."""

    name: str
    kind: str
    model: onnx.ModelProto
    data_sets: tuple[tuple[list[Any], list[Any]], ...]
    rtol: float
    atol: float

    @property
    def operators(self) -> set[str]:
        """The operators the model's main graph uses."""
        return {node.op_type for node in self.model.graph.node}


@cache
def cases(kind: str) -> tuple[Case, ...]:
    """All cases of a kind."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tuple(_case(item) for item in loader.load_model_tests(kind=kind))


def _case(item: Any) -> Case:
    if item.model is not None:
        data = tuple(
            ([plain(value) for value in inputs], [plain(value) for value in outputs])
            for inputs, outputs in item.data_sets
        )
        return Case(item.name, item.kind, item.model, data, item.rtol, item.atol)
    model = onnx.load(os.path.join(item.model_dir, "model.onnx"))
    data = tuple(
        _stored(folder, model) for folder in sorted(glob.glob(f"{item.model_dir}/test_data_set_*"))
    )
    return Case(item.name, item.kind, model, data, item.rtol, item.atol)


def _stored(folder: str, model: onnx.ModelProto) -> tuple[list[Any], list[Any]]:
    def read(prefix: str, infos: Any) -> list[Any]:
        return [_load(f"{folder}/{prefix}_{i}.pb", infos[i].type) for i in range(len(infos))
                if os.path.exists(f"{folder}/{prefix}_{i}.pb")]  # fmt: skip

    constants = {tensor.name for tensor in model.graph.initializer}
    inputs = [info for info in model.graph.input if info.name not in constants]
    return read("input", inputs), read("output", model.graph.output)


def _load(path: str, kind: Any) -> Any:
    with open(path, "rb") as file:
        content = file.read()
    which = kind.WhichOneof("value")
    message = {"sequence_type": onnx.SequenceProto, "optional_type": onnx.OptionalProto}.get(
        which, onnx.TensorProto
    )
    return plain(message.FromString(content))


def plain(value: Any) -> Any:
    """A stored value as arrays, lists and None."""
    match value:
        case onnx.TensorProto():
            return numpy_helper.to_array(value)
        case onnx.SequenceProto():
            return numpy_helper.to_list(value)
        case onnx.OptionalProto():
            return numpy_helper.to_optional(value)
        case list():
            return [plain(item) for item in value]
        case None:
            return None
    return np.asarray(value)


def check(case: Case, run: Run) -> None:
    """Run every data set of a case and compare; random outputs in shape and type only."""
    content = case.model.SerializeToString()
    for inputs, expected in case.data_sets:
        actual = run(content, inputs)
        assert len(actual) == len(expected), f"{len(actual)} outputs, expected {len(expected)}"
        exact = case.name not in RANDOM
        for left, right in zip(actual, expected, strict=True):
            compare(left, right, case.rtol, case.atol, values=exact)


def compare(actual: Any, expected: Any, rtol: float, atol: float, *, values: bool = True) -> None:
    """Fail unless two outputs agree, by the suite's own rules."""
    if isinstance(expected, list | tuple):
        assert isinstance(actual, list | tuple), f"{type(actual)} where a list is expected"
        assert len(actual) == len(expected)
        for left, right in zip(actual, expected, strict=True):
            compare(left, right, rtol, atol, values=values)
        return
    if expected is None:
        assert actual is None
        return
    assert isinstance(actual, np.ndarray | np.generic), f"{type(actual)} where an array is expected"
    assert actual.shape == expected.shape, f"shape {actual.shape}, expected {expected.shape}"
    if expected.dtype.kind in "OUS":
        np.testing.assert_array_equal(actual.astype(object), expected.astype(object))
        return
    assert actual.dtype == expected.dtype, f"{actual.dtype}, expected {expected.dtype}"
    if not values:
        return
    if actual.dtype.kind == "V" or actual.dtype.name not in np.sctypeDict:
        rtol = max(rtol, 2**-6) if actual.dtype.name == "bfloat16" else rtol
        actual, expected = actual.astype(np.float32), expected.astype(np.float32)
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=atol)


def reference(content: bytes, inputs: list[Any]) -> list[Any]:
    """Run on the reference provider."""
    from sardonyx.format.read import read_model
    from sardonyx.ops.evaluate import Evaluator

    model = read_model(memoryview(content), "case", _no_file)
    evaluator = Evaluator(model, seed=0)
    assert model.graph is not None
    constants = set(model.graph.initializers)
    formals = [value for value in model.graph.inputs if value not in constants]
    return evaluator.run(
        None, {value.name: item for value, item in zip(formals, inputs, strict=False)}
    )


@dataclass
class Compiled:
    """Runs cases compiled for a target, and notes which nodes had no native form."""

    target: str | None = None
    checked: str = ""
    threads: int = 1
    fallbacks: Counter[str] = field(default_factory=Counter)
    native: int = 0

    def __call__(self, content: bytes, inputs: list[Any]) -> list[Any]:
        import sardonyx as sx
        from sardonyx.compiler.program import compile_model

        program = compile_model(
            sx.load(content), target=self.target, threads=self.threads, checked=self.checked
        )
        results = program.run(dict(zip(program.input_names, inputs, strict=False)))
        rows = [row for row in program.explain() if row.kernel == "reference"]
        self.fallbacks.update({row.operator for row in rows})
        self.native += not rows
        return results


def session(content: bytes, inputs: list[Any]) -> list[Any]:
    """Run on the compiled provider, as users do."""
    import sardonyx as sx

    session = sx.InferenceSession(content, providers=["CPUExecutionProvider"])
    names = [argument.name for argument in session.get_inputs()]
    return session.run(None, dict(zip(names, inputs, strict=False)))


def _no_file(*_: Any) -> bytes:
    raise AssertionError("the suite has no external data")


def select(wanted: list[str]) -> Iterator[Case]:
    """Cases whose name holds, or whose model uses, one of `wanted`; all of them for none."""
    for kind in KINDS:
        for case in cases(kind):
            if not wanted or any(word in case.operators or word in case.name for word in wanted):
                yield case


def main(arguments: list[str]) -> int:
    """Run cases, print those that fail and a table.

    `python -m tests.conformance.suite [--compiled [--target avx2]] [--every 12] [Conv ...]`
    """
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("wanted", nargs="*")
    parser.add_argument("--compiled", action="store_true", help="run natively")
    parser.add_argument("--target", default=None)
    parser.add_argument("--checked", default="", choices=CHECKS)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--every", type=int, default=1, help="take one of so many cases")
    given = parser.parse_args(arguments)
    run: Run = Compiled(given.target, given.checked, given.threads) if given.compiled else reference
    passed: Counter[str] = Counter()
    total: Counter[str] = Counter()
    natives = 0
    for case in islice(select(given.wanted), 0, None, given.every):
        total[case.kind] += 1
        before = run.native if isinstance(run, Compiled) else 0
        try:
            check(case, run)
            passed[case.kind] += 1
        except Exception as error:  # noqa: BLE001 - every failure is one line of the report
            print(f"{case.name}: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
        if isinstance(run, Compiled) and case.kind == "node":
            natives += run.native - before == len(case.data_sets)
    for kind in total:
        print(f"{kind:<20} {passed[kind]:5} of {total[kind]:5}")
    if isinstance(run, Compiled):
        print(f"{natives} of {total['node']} node cases ran without a fallback; fallbacks:")
        print(", ".join(f"{name} {count}" for name, count in run.fallbacks.most_common()))
    print(f"{passed.total()} passed, {total.total() - passed.total()} failed")
    return total.total() - passed.total()


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))
