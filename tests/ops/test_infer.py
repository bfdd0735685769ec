"""What inference knows of constants, and how it names what it does not know."""

import numpy as np
import pytest

from sardonyx.dtypes import DataType
from sardonyx.format.storage import NoData
from sardonyx.graph import Graph, Model, Opsets, SparseTensor, Tensor
from sardonyx.ops.fact import LARGEST_VALUE
from sardonyx.ops.infer import constant_fact, infer_facts


@pytest.mark.parametrize(
    ("count", "known"), [(0, True), (1, True), (LARGEST_VALUE, True), (LARGEST_VALUE + 1, False)]
)
def test_elements_of_small_constants_are_known(count: int, known: bool) -> None:
    fact = constant_fact(Tensor(np.arange(count), "t"))
    assert (fact.value is not None) == known
    assert fact.shape == (count,) and fact.dtype == DataType.INT64


def test_constants_that_have_no_elements_to_know() -> None:
    untyped = constant_fact(Tensor.stored("t", (3,), 0, NoData()))
    assert untyped.value is None and untyped.dtype is None
    missing = constant_fact(Tensor.stored("t", (3,), DataType.FLOAT, NoData()))
    assert missing.value is None and missing.shape == (3,) and missing.dtype == DataType.FLOAT
    sparse = SparseTensor(Tensor(np.array([5.0]), "s"), Tensor(np.array([1])), (3,))
    assert constant_fact(sparse).value is None


def test_a_sparse_initializer_has_a_type() -> None:
    graph = Graph("g")
    sparse = SparseTensor(Tensor(np.float32([5]), "s"), Tensor(np.array([1])), (3,))
    value = graph.add_initializer(sparse)
    graph.outputs.append(graph.add("Identity", [value], ["y"]).output)
    facts = infer_facts(Model(graph, Opsets({"": 21}), 10))
    assert facts[value].value is None
