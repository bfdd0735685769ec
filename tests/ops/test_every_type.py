"""Operators that only move elements give the same ones back, in every element type they take."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from sardonyx.dtypes import DataType
from sardonyx.ops.catalog import standard
from tests.ops.direct import run, sample

SHAPE = (2, 4, 2, 2)
MOVERS: dict[str, Callable[[Any], Any]] = {
    "Identity": lambda x: run("Identity", x),
    "Reshape": lambda x: run("Reshape", x, np.int64([8, -1])),
    "Flatten": lambda x: run("Flatten", x, axis=2),
    "Squeeze": lambda x: run("Squeeze", x[:1], np.int64([0])),
    "Unsqueeze": lambda x: run("Unsqueeze", x, np.int64([0, -1])),
    "Transpose": lambda x: run("Transpose", x, perm=[2, 0, 3, 1]),
    "Expand": lambda x: run("Expand", x[:1], np.int64([3, 1, 1, 1])),
    "Tile": lambda x: run("Tile", x, np.int64([1, 2, 1, 1])),
    "Concat": lambda x: run("Concat", x, x[:1], axis=0),
    "Split": lambda x: run("Split", x, outputs=2, axis=1, num_outputs=2)[1],
    "Slice": lambda x: run("Slice", x, np.int64([3]), np.int64([0]), np.int64([1]), np.int64([-2])),
    "Gather": lambda x: run("Gather", x, np.int64([[3, -1]]), axis=1),
    "GatherElements": lambda x: run(
        "GatherElements", x, np.zeros((1, 2, 2, 2), np.int64) + 1, axis=1
    ),
    "GatherND": lambda x: run("GatherND", x, np.int64([[1, 2], [0, -1]])),
    "DepthToSpace": lambda x: run("DepthToSpace", x, blocksize=2, mode="CRD"),
    "SpaceToDepth": lambda x: run("SpaceToDepth", x, blocksize=2),
    "ReverseSequence": lambda x: run("ReverseSequence", x, np.int64([2, 1, 2, 1])),
    "Compress": lambda x: run("Compress", x, np.array([True, False, True]), axis=1),
    "Where": lambda x: run("Where", np.array([True, False]), x, x[::-1]),
    "ScatterElements": lambda x: run("ScatterElements", x, np.ones((1, 4, 2, 2), np.int64), x[:1]),
    "ScatterND": lambda x: run("ScatterND", x, np.int64([[1]]), x[:1]),
    "TensorScatter": lambda x: run("TensorScatter", x, x[:, :, :1], np.int64([1, 0])),
    "Pad": lambda x: run("Pad", x, np.int64([0, 1, 0, 0, 0, 2, 0, 1]), mode="wrap"),
    "Resize": lambda x: run("Resize", x, None, np.float32([1, 1, 2, 1.5])),
    "SequenceConstruct": lambda x: run("SequenceConstruct", x)[0],
    "SplitToSequence": lambda x: run("SplitToSequence", x, axis=1)[2],
    "OptionalGetElement": lambda x: run("OptionalGetElement", x),
}


def pairs() -> Iterator[tuple[str, DataType]]:
    """Every mover with every element type its newest version takes."""
    by_text = {f"tensor({kind.text})": kind for kind in DataType}
    for name in MOVERS:
        version = standard()["", name].newest()
        formal = version.inputs[1 if name == "Where" else 0]
        for text in version.types(formal):
            if text in by_text:
                yield name, by_text[text]


@pytest.mark.parametrize(
    ("name", "kind"), list(pairs()), ids=lambda item: getattr(item, "name", item)
)
def test_elements_are_kept(name: str, kind: DataType) -> None:
    x = sample(kind, SHAPE)
    result = MOVERS[name](x)
    places = MOVERS[name](np.arange(x.size).reshape(SHAPE))
    assert isinstance(result, np.ndarray)
    assert (result.dtype, result.shape) == (kind.numpy, places.shape)
    assert result.reshape(-1).tolist() == x.reshape(-1)[places.reshape(-1)].tolist()


@pytest.mark.parametrize("name", [name for name in MOVERS if name not in ("Gather", "GatherND")])
def test_inputs_are_not_written(name: str) -> None:
    x = sample(DataType.FLOAT, SHAPE)
    before = x.copy()
    x.flags.writeable = False
    MOVERS[name](x)
    assert (x == before).all()


def test_there_are_many() -> None:
    found = list(pairs())
    assert len(found) > 450
    assert {kind for _, kind in found} >= set(DataType) - {
        DataType.UNDEFINED, DataType.FLOAT6E2M3, DataType.FLOAT6E3M2,
    }  # fmt: skip
