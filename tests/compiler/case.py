"""One-node models: static and symbolic sizes, and how they are judged."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

import sardonyx as sx
from sardonyx.compiler.program import compile_model
from sardonyx.dtypes import from_numpy
from sardonyx.graph import Tensor

FLOAT = np.float32


@dataclass(frozen=True)
class Case:
    """An operator, its inputs (constants where `fixed`) and its attributes."""

    op_type: str
    inputs: tuple[NDArray[Any] | None, ...]
    attributes: dict[str, Any] = field(default_factory=dict)
    fixed: tuple[int, ...] = ()
    outputs: int = 1
    label: str = ""
    symbolic: bool = True
    domain: str = ""
    rtol: float = 2e-5
    atol: float = 2e-5

    @property
    def name(self) -> str:
        return f"{self.op_type}{'-' if self.label else ''}{self.label}"

    def model(self, symbolic: bool) -> tuple[sx.Model, dict[str, NDArray[Any]]]:
        """A model of one node; symbolic sizes have one name for each number."""
        graph = sx.Graph("case")
        op = sx.Builder(graph, opset=28)
        feeds: dict[str, NDArray[Any]] = {}
        values: list[Any] = []
        for position, array in enumerate(self.inputs):
            if array is None:
                values.append(None)
            elif position in self.fixed:
                values.append(graph.add_initializer(Tensor(array), f"c{position}"))
            else:
                shape: Sequence[Any] = array.shape
                if symbolic:
                    shape = [f"d{size}" if size > 1 else size for size in array.shape]
                type_ = sx.TensorType(from_numpy(array.dtype), tuple(shape))
                values.append(graph.add_input(f"x{position}", type_))
                feeds[f"x{position}"] = array
        made = op.node(self.op_type, tuple(values), self.outputs, self.domain, self.attributes)
        graph.outputs.extend(made if isinstance(made, tuple) else (made,))
        opsets = sx.Opsets(
            {"": 28, "ai.onnx.ml": 5, "com.microsoft": 1, "ai.onnx.preview.training": 1}
        )
        return sx.Model(graph, opsets, ir_version=13), feeds


def run_cases(case: Case, target: str | None) -> None:
    """Compile, run and compare with the reference; nothing may fall back."""
    for symbolic in (False, True) if case.symbolic else (False,):
        model, feeds = case.model(symbolic)
        program = compile_model(model, target=target, threads=1)
        results = program.run(feeds)
        rows = program.explain()
        assert all(row.kernel != "reference" for row in rows), [row.reason for row in rows]
        expected = sx.evaluate(model, feeds)
        for found, wanted in zip(results, expected, strict=True):
            assert found.dtype == wanted.dtype and found.shape == wanted.shape
            compare(found, wanted, case.rtol, case.atol)


def compare(found: NDArray[Any], wanted: NDArray[Any], rtol: float, atol: float) -> None:
    """Equal up to a tolerance, and for narrow floats up to a few units of their last place."""
    if found.dtype.kind == "V" or found.dtype == np.float16:
        step = float(ml_dtypes.finfo(wanted.dtype).eps) if from_numpy(wanted.dtype).is_float else 0
        rtol, atol = max(rtol, 2 * step), max(atol, 2 * step)
        found, wanted = found.astype(np.float32), wanted.astype(np.float32)
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol)


_random = np.random.default_rng(7)


def normal(*shape: int) -> NDArray[Any]:
    """Random floats around 0."""
    return _random.standard_normal(shape).astype(FLOAT)


def positive(*shape: int) -> NDArray[Any]:
    """Random floats above 0."""
    return (np.abs(_random.standard_normal(shape)) + 0.1).astype(FLOAT)


def ints(*values: int) -> NDArray[Any]:
    """An int64 tensor of one axis."""
    return np.array(values, np.int64)


def flags(*shape: int) -> NDArray[Any]:
    """Random truth values."""
    return _random.random(shape) < 0.5
