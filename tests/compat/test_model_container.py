"""Models with large arrays beside them, beside the real onnx."""

import importlib
import os
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx as real
import pytest

from sardonyx.compat import onnx as ours
from tests.compat.differential import Call, assert_same

importlib.import_module("onnx.model_container")

A, B = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(4, dtype=np.int64)
ARRAYS = {"#a": A, "#b": B}


def graph(onnx: Any, names: tuple[str, ...] = ("#a", "#b")) -> Any:
    """A graph with external tensors, one of them in an inner graph."""
    helper, make = onnx.helper, onnx.model_container.make_large_tensor_proto
    arrays = {"#a": A, "#b": B}
    tensors = [
        make(name, f"t{name}", helper.np_dtype_to_tensor_dtype(arrays.get(name, A).dtype), shape)
        for name, shape in ((name, arrays.get(name, A).shape) for name in names)
    ]
    inner = helper.make_graph([], "inner", [], [], tensors[1:])
    nodes = [helper.make_node("If", ["c"], ["y"], then_branch=inner, bodies=[inner])]
    return helper.make_graph(nodes, "g", [], [], tensors[:1])


def container(onnx: Any, arrays: Any = None, **options: Any) -> Any:
    arrays = dict(ARRAYS) if arrays is None else arrays
    return onnx.model_container.make_large_model(graph(onnx), arrays, **options)


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def saved(name: str = "m.onnx", *arguments: Any, **options: Any) -> Call:
    """Save a container and load it into another."""

    def call(onnx: Any, folder: Path) -> Any:
        large = container(onnx)
        copy = large.save(str(folder / name), *arguments, **options)
        again = onnx.model_container.ModelContainer()
        again.load(str(folder / name))
        return (
            copy,
            content(folder),
            again.model_proto,
            again.large_initializers,
            large.model_proto == onnx.helper.make_model(graph(onnx)),
            onnx.load(str(folder / name)),
        )

    return call


def made(arrays: Any, **options: Any) -> Call:
    return lambda onnx, folder: container(onnx, arrays, **options).large_initializers


def loaded(onnx: Any, folder: Path, *, arrays: bool = True, remove: bool = False) -> Any:
    container(onnx).save(str(folder / "m.onnx"), all_tensors_to_one_file=True)
    if remove:
        (folder / "m.onnx.weight").unlink()
    again = onnx.model_container.ModelContainer()
    again.load(str(folder / "m.onnx"), arrays)
    return again.model_proto, again.large_initializers


def renamed(onnx: Any, folder: Path, names: tuple[str, ...]) -> Any:
    """Save arrays whose names clash or hold forbidden characters."""
    arrays = dict.fromkeys(names, A)
    tensors = [
        onnx.model_container.make_large_tensor_proto(
            name, f"t{index}", onnx.TensorProto.FLOAT, (2, 3)
        )
        for index, name in enumerate(names)
    ]
    made = onnx.helper.make_graph([], "g", [], [], tensors)
    large = onnx.model_container.make_large_model(made, arrays)
    return large.save(str(folder / "m.x.onnx")), content(folder)


def empty(onnx: Any) -> Any:
    return onnx.model_container.ModelContainer()


def tampered(onnx: Any, folder: Path, **entries: Any) -> Any:
    """Load after an entry of the saved model was changed."""
    copy = container(onnx).save(str(folder / "m.onnx"), all_tensors_to_one_file=True)
    tensor = copy.graph.initializer[0]
    for entry in tensor.external_data:
        entry.value = str(entries.get(entry.key, entry.value))
    (folder / "m.onnx").write_bytes(copy.SerializeToString())
    empty(onnx).load(str(folder / "m.onnx"))


def without_location(onnx: Any) -> Any:
    made = graph(onnx)
    del made.initializer[0].external_data[:]
    return onnx.model_container.make_large_model(made, dict(ARRAYS))


CASES: dict[str, Call] = {
    "tensor": lambda onnx, folder: onnx.model_container.make_large_tensor_proto(
        "#a", "a", 1, (2, 3)
    ),
    "tensor in a file": lambda onnx, folder: onnx.model_container.make_large_tensor_proto(
        "a", "a", 7, []
    ),
    "tensor of bad shape": lambda onnx, folder: onnx.model_container.make_large_tensor_proto(
        "#a", "a", 1, ("n",)
    ),
    "tensor of bad type": lambda onnx, folder: onnx.model_container.make_large_tensor_proto(
        "#a", "a", "FLOAT", (1,)
    ),
    "tensor without location": lambda onnx, folder: onnx.model_container.make_large_tensor_proto(
        None, "a", 1, (1,)
    ),
    "made": made(dict(ARRAYS)),
    "made of too few": made({"#a": A}),
    "made of too many": made({**ARRAYS, "#c": A}),
    "made of nothing": made({}),
    "made of bad names": made({"a": A}),
    "made with options": lambda onnx, folder: container(onnx, producer_name="p").model_proto,
    "made with bad options": made(dict(ARRAYS), color="red"),
    "made of None": lambda onnx, folder: onnx.model_container.make_large_model(None),
    "made without location": lambda onnx, folder: without_location(onnx),
    "item": lambda onnx, folder: container(onnx)["#a"],
    "item missing": lambda onnx, folder: container(onnx)["#c"],
    "item of empty": lambda onnx, folder: empty(onnx)["#c"],
    "empty model": lambda onnx, folder: empty(onnx).model_proto,
    "empty arrays": lambda onnx, folder: empty(onnx).large_initializers,
    "empty graphs": lambda onnx, folder: list(empty(onnx).enumerate_graph_protos()),
    "empty check": lambda onnx, folder: empty(onnx).check_model(),
    "empty check of arrays": lambda onnx, folder: empty(onnx).check_large_initializers(),
    "empty save": lambda onnx, folder: empty(onnx).save(str(folder / "m.onnx")),
    "empty load of arrays": lambda onnx, folder: empty(onnx)._load_large_initializers("x"),
    "graphs": lambda onnx, folder: [item.name for item in container(onnx).enumerate_graph_protos()],
    "graphs kept": lambda onnx, folder: [item.name for item in container(onnx).graphs_],
    "in memory": lambda onnx, folder: [
        empty(onnx).is_in_memory_external_initializer(name) for name in ("#a", "a", "", "a#")
    ],
    "in memory of None": lambda onnx, folder: empty(onnx).is_in_memory_external_initializer(None),
    "save": saved(),
    "save together": saved("m.onnx", True),
    "save by name": saved("m.onnx", all_tensors_to_one_file=True),
    "save without suffix": saved("model"),
    "save with dots": saved("a.b.c"),
    "save into missing folder": saved("none/m.onnx"),
    "save of bad name": lambda onnx, folder: container(onnx).save(None),
    "save without arrays": lambda onnx, folder: container(onnx, {}).save(str(folder / "m.onnx")),
    "save without arrays together": lambda onnx, folder: container(onnx, {}).save(
        str(folder / "m.onnx"), True
    ),
    "save plain model": lambda onnx, folder: onnx.model_container.make_large_model(
        onnx.helper.make_graph([], "g", [], [])
    ).save(str(folder / "m.onnx"), True),
    "save forbidden characters": lambda onnx, folder: renamed(onnx, folder, ("#a:/\\;,!b", "#c")),
    "save clashing names": lambda onnx, folder: renamed(onnx, folder, ("#a", "#a:", "#a/")),
    "save over old files": lambda onnx, folder: (
        (folder / "m.onnx.weight").write_bytes(bytes(1000)),
        saved("m.onnx", True)(onnx, folder),
    ),
    "load": loaded,
    "load without arrays": lambda onnx, folder: loaded(onnx, folder, arrays=False),
    "load without file": lambda onnx, folder: loaded(onnx, folder, remove=True),
    "load missing": lambda onnx, folder: empty(onnx).load(str(folder / "m.onnx")),
    "load bad offset": lambda onnx, folder: tampered(onnx, folder, offset=10**6),
    "load bad length": lambda onnx, folder: tampered(onnx, folder, length=10**6),
    "load short length": lambda onnx, folder: tampered(onnx, folder, length=8),
    "load negative offset": lambda onnx, folder: tampered(onnx, folder, offset=-1),
    "load from outside": lambda onnx, folder: tampered(onnx, folder, location="../x"),
    "load from absolute path": lambda onnx, folder: tampered(
        onnx, folder, location="/etc/hostname"
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_same_as_onnx(name: str, tmp_path: Path) -> None:
    assert_same(CASES[name], tmp_path)


def test_narrow_elements_are_packed(tmp_path: Path) -> None:
    """onnx writes a byte for each, which is not how ONNX stores them."""
    narrow = np.array([1, -2, 3], ml_dtypes.int4)
    for onnx in (ours, real):
        make = onnx.model_container.make_large_tensor_proto
        tensor = make("#a", "a", onnx.TensorProto.INT4, (3,))
        made = onnx.helper.make_graph([], "g", [], [], [tensor])
        large = onnx.model_container.make_large_model(made, {"#a": narrow})
        path = tmp_path / onnx.__name__ / "m.onnx"
        path.parent.mkdir()
        large.save(str(path))
        stored = onnx.load(path).graph.initializer[0].raw_data
        if onnx is ours:
            assert stored == b"\xe1\x03"
            again = empty(ours)
            again.load(str(path))
            assert again["#t0"].tolist() == [1, -2, 3]
        else:
            assert len(stored) == 3


def test_saving_beside_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """onnx takes the folder of a bare file name for missing."""
    monkeypatch.chdir(tmp_path)
    container(ours).save("m.onnx")
    again = empty(ours)
    again.load("m.onnx")
    assert len(again.large_initializers) == 3
    with pytest.raises(FileNotFoundError):
        container(real).save("n.onnx")


def test_failed_saves_keep_old_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """onnx empties the file of weights first."""
    path = tmp_path / "m.onnx"
    container(ours).save(str(path), True)
    before = content(tmp_path)
    monkeypatch.setattr(os, "replace", None)
    with pytest.raises(TypeError):
        container(ours).save(str(path), True)
    assert content(tmp_path) == before
    large = container(ours)
    large.large_initializers = {"#a": A}
    with pytest.raises(RuntimeError):
        large.save(str(path), True)
    assert content(tmp_path) == before
