"""Tensors in files beside the model: what is read, written and refused, beside the real onnx."""

import os
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx as real
import pytest

from sardonyx.compat import onnx as ours
from tests.compat.differential import Call, assert_same

RAW = bytes(range(64))


def tensor(onnx: Any, name: str = "w", raw: bytes = RAW, **entries: Any) -> Any:
    """A tensor with raw data, marked as external if entries are given."""
    made = onnx.TensorProto(
        name=name, data_type=onnx.TensorProto.UINT8, dims=[len(raw)], raw_data=raw
    )
    for key, value in entries.items():
        made.data_location = onnx.TensorProto.EXTERNAL
        made.external_data.add(key=key, value=str(value))
    return made


def info(onnx: Any, **entries: Any) -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = onnx.external_data_helper.ExternalDataInfo(tensor(onnx, **entries))
    return vars(found), [warning.category.__name__ for warning in caught]


def files(folder: Path) -> dict[str, bytes]:
    """Every file below a folder with its content."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def load(location: str, prepare: Any = None, base: str = "m", **entries: Any) -> Call:
    """Load a tensor whose data is at `location` in the folder `m`."""

    def call(onnx: Any, folder: Path) -> Any:
        prepare_folder(folder, prepare)
        wanted = tensor(onnx, raw=b"", location=location, **entries)
        wanted.ClearField("raw_data")
        onnx.external_data_helper.load_external_data_for_tensor(wanted, str(folder / base))
        return wanted

    return call


def save(
    location: str, prepare: Any = None, base: str = "m", raw: bytes = RAW, **entries: Any
) -> Call:
    """Save a tensor to `location` in the folder `m`; the outcome includes all files."""

    def call(onnx: Any, folder: Path) -> Any:
        prepare_folder(folder, prepare)
        wanted = tensor(onnx, raw=raw, location=location, **entries)
        onnx.external_data_helper.save_external_data(wanted, str(folder / base))
        return wanted, files(folder)

    return call


def prepare_folder(folder: Path, prepare: Any) -> None:
    (folder / "m" / "sub").mkdir(parents=True)
    (folder / "out").mkdir()
    (folder / "m" / "plain.bin").write_bytes(RAW)
    (folder / "m" / "sub" / "deep.bin").write_bytes(RAW[:8])
    (folder / "out" / "secret.bin").write_bytes(b"secret")
    if prepare is not None:
        prepare(folder)


def link_file(folder: Path) -> None:
    (folder / "m" / "link").symlink_to("plain.bin")


def link_outside(folder: Path) -> None:
    (folder / "m" / "link").symlink_to(folder / "out" / "secret.bin")


def link_folder_outside(folder: Path) -> None:
    (folder / "m" / "link").symlink_to(folder / "out")


def link_folder_inside(folder: Path) -> None:
    (folder / "m" / "link").symlink_to("sub")


def link_nowhere(folder: Path) -> None:
    (folder / "m" / "link").symlink_to("missing")


def link_base(folder: Path) -> None:
    (folder / "link").symlink_to("m")


def hard_link(folder: Path) -> None:
    os.link(folder / "out" / "secret.bin", folder / "m" / "link")


def pipe(folder: Path) -> None:
    os.mkfifo(folder / "m" / "link")


def odd_names(folder: Path) -> None:
    for name in ("..x", "x..y", "#q", "\u00e9.bin", "a b", "back\\slash"):
        (folder / "m" / name).write_bytes(RAW)


LOCATIONS: dict[str, tuple[str, Any]] = {
    "plain": ("plain.bin", None),
    "dotted": ("./plain.bin", None),
    "nested": ("sub/deep.bin", None),
    "nested twice": ("sub//deep.bin", None),
    "in and out": ("sub/../plain.bin", None),
    "in and out of nothing": ("none/../plain.bin", None),
    "parent": ("../out/secret.bin", None),
    "parent inside": ("sub/../../out/secret.bin", None),
    "parent only": ("..", None),
    "dots in front": ("..x", odd_names),
    "dots inside": ("x..y", odd_names),
    "hash": ("#q", odd_names),
    "accent": ("\u00e9.bin", odd_names),
    "space": ("a b", odd_names),
    "backslash": ("back\\slash", odd_names),
    "absolute": ("/etc/hostname", None),
    "empty": ("", None),
    "current folder": (".", None),
    "folder": ("sub", None),
    "folder with slash": ("sub/", None),
    "file with slash": ("plain.bin/", None),
    "file as folder": ("plain.bin/x", None),
    "missing folder": ("none/x.bin", None),
    "link": ("link", link_file),
    "link outside": ("link", link_outside),
    "link nowhere": ("link", link_nowhere),
    "through link outside": ("link/secret.bin", link_folder_outside),
    "through link inside": ("link/deep.bin", link_folder_inside),
    "hard link": ("link", hard_link),
}

CASES: dict[str, Call] = {}
for _name, (_location, _prepare) in LOCATIONS.items():
    CASES[f"load {_name}"] = load(_location, _prepare)
    CASES[f"save {_name}"] = save(_location, _prepare)
for _name, _value in {
    "0": 0,
    "8": 8,
    "64": 64,
    "65": 65,
    "-1": -1,
    "text": "abc",
    "empty": "",
    "spaces": " 4 ",
    "underscore": "1_0",
    "hexadecimal": "0x10",
    "float": 1.5,
    "huge": 2**70,
}.items():
    CASES[f"load at offset {_name}"] = load("plain.bin", offset=_value)
    CASES[f"load of length {_name}"] = load("plain.bin", length=_value)
    CASES[f"load offset and length {_name}"] = load("plain.bin", offset=8, length=_value)
    CASES[f"save at offset {_name}"] = save("plain.bin", offset=_value)
    CASES[f"save new at offset {_name}"] = save("new.bin", offset=_value)
    CASES[f"info offset {_name}"] = lambda onnx, folder, value=_value: info(onnx, offset=value)
    CASES[f"info length {_name}"] = lambda onnx, folder, value=_value: info(onnx, length=value)
CASES |= {
    "load missing": load("missing.bin"),
    "load pipe": load("link", pipe),
    "load through linked base": load("plain.bin", link_base, base="link"),
    "load missing base": load("plain.bin", base="none"),
    "load base is a file": load("plain.bin", base="m/plain.bin"),
    "load checksum": load("plain.bin", checksum="abc"),
    "load basepath": load("plain.bin", basepath="/etc"),
    "save new": save("new.bin"),
    "save through linked base": save("new.bin", link_base, base="link"),
    "save empty": save("new.bin", raw=b""),
    "save at largest gap": save("plain.bin", offset=64 + 65536),
    "save beyond largest gap": save("plain.bin", offset=64 + 65537),
    "save missing base": save("new.bin", base="none"),
    "save with checksum": save("new.bin", checksum="abc", length=3),
    "save without raw data": lambda onnx, folder: onnx.external_data_helper.save_external_data(
        onnx.TensorProto(name="w"), str(folder)
    ),
    "info all": lambda onnx, folder: info(
        onnx, location="w", offset=1, length=2, checksum="c", basepath="b"
    ),
    "info nothing": lambda onnx, folder: info(onnx),
    "info unknown": lambda onnx, folder: info(onnx, location="w", color="red"),
    "info dunder": lambda onnx, folder: info(onnx, location="w", __class__="x", __dict__="y"),
    "info many unknown": lambda onnx, folder: info(onnx, **{f"k{i}" * 60: i for i in range(30)}),
    "info repeated": lambda onnx, folder: repeated_info(onnx),
    "uses": lambda onnx, folder: [
        onnx.external_data_helper.uses_external_data(made)
        for made in (
            tensor(onnx),
            tensor(onnx, location="w"),
            onnx.TensorProto(data_location=onnx.TensorProto.DEFAULT),
            onnx.TensorProto(),
        )
    ],
}


def repeated_info(onnx: Any) -> Any:
    made = tensor(onnx, location="a", offset=-1)
    made.external_data.add(key="location", value="b")
    made.external_data.add(key="offset", value="4")
    return vars(onnx.external_data_helper.ExternalDataInfo(made))


def marked(*arguments: Any, **options: Any) -> Call:
    """Mark a tensor as external."""

    def call(onnx: Any, folder: Path) -> Any:
        made = tensor(onnx, location="old")
        onnx.external_data_helper.set_external_data(made, *arguments, **options)
        return made

    return call


def removed(key: str) -> Call:
    def call(onnx: Any, folder: Path) -> Any:
        made = tensor(onnx, location="a", offset=1, checksum="c")
        onnx.external_data_helper.remove_external_data_field(made, key)
        return made

    return call


CASES |= {
    "set location": marked("w.bin"),
    "set all": marked("w.bin", 1, 2, "c", "b"),
    "set by name": marked(location="w.bin", length=np.int64(4)),
    "set float": marked("w.bin", 1.7),
    "set text": marked("w.bin", "12"),
    "set bad text": marked("w.bin", "x"),
    "set negative": marked("w.bin", -4),
    "set zero": marked("w.bin", 0, 0),
    "set None": marked(None),
    "set path": marked(Path("a/b")),
    "set empty": marked(""),
    "set without raw data": lambda onnx, folder: onnx.external_data_helper.set_external_data(
        onnx.TensorProto(), "w"
    ),
    "remove location": removed("location"),
    "remove last": removed("checksum"),
    "remove absent": removed("nothing"),
}


def model(onnx: Any) -> Any:
    """A model with tensors in every place a tensor can be."""
    helper = onnx.helper
    inner = helper.make_graph(
        [helper.make_node("Constant", [], ["ic"], value=tensor(onnx, "inner_attribute"))],
        "inner",
        [],
        [],
        [tensor(onnx, "inner_weight")],
    )
    nodes = [
        helper.make_node("Constant", [], ["c"], value=tensor(onnx, "attribute")),
        helper.make_node("Many", [], ["d"], values=[tensor(onnx, "one"), tensor(onnx, "two")]),
        helper.make_node("If", ["p"], ["e"], then_branch=inner, else_branch=inner),
        helper.make_node("Loops", [], ["f"], bodies=[inner]),
    ]
    typed = helper.make_tensor("typed", onnx.TensorProto.FLOAT, [300], [0.5] * 300)
    weights = [
        tensor(onnx, "weight"),
        tensor(onnx, "large", bytes(2000)),
        typed,
        tensor(onnx, "a/b"),
    ]
    function = helper.make_function(
        "d",
        "f",
        [],
        ["x"],
        [helper.make_node("Constant", [], ["x"], value=tensor(onnx, "in_f"))],
        [],
    )
    graph = helper.make_graph(nodes, "g", [], [], weights)
    return helper.make_model(graph, functions=[function])


def known(text: str) -> str:
    """Text with random file names made equal."""
    return re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "RANDOM", text)


def locations(onnx: Any, made: Any) -> list[tuple[str, list[tuple[str, str]], int, bool]]:
    return [
        (
            found.name,
            [(entry.key, known(entry.value)) for entry in found.external_data],
            found.data_location,
            found.HasField("raw_data"),
        )
        for found in onnx.external_data_helper._get_all_tensors(made)
    ]


def converted(*arguments: Any, **options: Any) -> Call:
    def call(onnx: Any, folder: Path) -> Any:
        made = model(onnx)
        onnx.external_data_helper.convert_model_to_external_data(made, *arguments, **options)
        return locations(onnx, made)

    return call


def written(*arguments: Any, **options: Any) -> Call:
    def call(onnx: Any, folder: Path) -> Any:
        made = model(onnx)
        onnx.external_data_helper.convert_model_to_external_data(made, *arguments, **options)
        returned = onnx.external_data_helper.write_external_data_tensors(made, str(folder))
        after = locations(onnx, made)
        content = {known(name): data for name, data in files(folder).items()}
        onnx.external_data_helper.load_external_data_for_model(made, str(folder))
        return returned is made, after, content, made

    return call


OPTIONS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "by default": ((), {}),
    "located": ((True, "w.data"), {}),
    "everything": ((), {"location": "w.data", "size_threshold": 0, "convert_attribute": True}),
    "small": ((), {"location": "w.data", "size_threshold": 97}),
    "smaller": ((), {"location": "w.data", "size_threshold": 98}),
    "nothing": ((), {"size_threshold": 10**9}),
    "apart": ((False,), {"size_threshold": 0}),
    "apart, everything": ((False,), {"size_threshold": 0, "convert_attribute": True}),
    "apart with location": ((False, "/absolute"), {"size_threshold": 0}),
    "empty location": ((True, ""), {}),
    "deep location": ((True, "none/w.data"), {}),
    "parent location": ((True, "../w.data"), {}),
    "absolute location": ((True, "/tmp/w.data"), {}),
    "existing location": ((True, os.path.relpath(__file__)), {}),
    "negative threshold": ((), {"location": "w.data", "size_threshold": -1}),
    "bad threshold": ((), {"location": "w.data", "size_threshold": "big"}),
    "threshold None": ((), {"location": "w.data", "size_threshold": None}),
}
for _name, (_arguments, _options) in OPTIONS.items():
    CASES[f"convert {_name}"] = converted(*_arguments, **_options)
    CASES[f"write {_name}"] = written(*_arguments, **_options)


def from_external(onnx: Any, *, loaded: bool) -> Any:
    made = model(onnx)
    onnx.external_data_helper.convert_model_to_external_data(
        made, location="w.data", size_threshold=0
    )
    if not loaded:
        made.graph.initializer[0].ClearField("raw_data")
    onnx.external_data_helper.convert_model_from_external_data(made)
    return made


CASES |= {
    "convert back": lambda onnx, folder: from_external(onnx, loaded=True),
    "convert back unloaded": lambda onnx, folder: from_external(onnx, loaded=False),
    "convert back plain": lambda onnx, folder: (
        onnx.external_data_helper.convert_model_from_external_data(model(onnx))
    ),
    "convert None": lambda onnx, folder: onnx.external_data_helper.convert_model_to_external_data(
        None
    ),
    "load None": lambda onnx, folder: onnx.external_data_helper.load_external_data_for_model(
        None, ""
    ),
    "load plain model": lambda onnx, folder: onnx.external_data_helper.load_external_data_for_model(
        model(onnx), str(folder)
    ),
    "write plain model": lambda onnx, folder: onnx.external_data_helper.write_external_data_tensors(
        model(onnx), str(folder)
    ),
}


def written_twice(onnx: Any, folder: Path) -> Any:
    """A second model's data goes after the first one's, which stays valid."""
    models = [model(onnx), model(onnx)]
    for made in models:
        onnx.external_data_helper.convert_model_to_external_data(made, location="w.data")
        onnx.external_data_helper.write_external_data_tensors(made, str(folder))
    for made in models:
        onnx.external_data_helper.load_external_data_for_model(made, str(folder))
    return models, files(folder)


CASES["write twice"] = written_twice


@pytest.mark.parametrize("name", CASES)
def test_same_as_onnx(name: str, tmp_path: Path) -> None:
    assert_same(CASES[name], tmp_path)


@pytest.mark.parametrize("location", ["x" * 300, "a\0b"], ids=["too long", "zero byte"])
def test_impossible_names_are_refused(location: str, tmp_path: Path) -> None:
    """onnx raises RuntimeError for the first, and reads only up to the zero byte of the second."""
    (tmp_path / "a").write_bytes(RAW)
    made = tensor(ours, location=location)
    with pytest.raises(ours.external_data_helper.ValidationError):
        ours.external_data_helper.load_external_data_for_tensor(made, str(tmp_path))
    with pytest.raises(ours.external_data_helper.ValidationError):
        ours.external_data_helper.save_external_data(made, str(tmp_path))
    assert files(tmp_path) == {"a": RAW}


def test_pipes_are_not_written(tmp_path: Path) -> None:
    """onnx opens them."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ours.external_data_helper.ValidationError, match="regular"):
        ours.external_data_helper.save_external_data(tensor(ours, location="pipe"), str(tmp_path))


def test_names_with_dots_get_a_file(tmp_path: Path) -> None:
    """onnx chooses a file name that it then refuses to write."""
    for onnx in (ours, real):
        graph = onnx.helper.make_graph([], "g", [], [], [tensor(onnx, "a..b")])
        made = onnx.helper.make_model(graph)
        onnx.external_data_helper.convert_model_to_external_data(made, False, size_threshold=0)
        folder = tmp_path / onnx.__name__
        folder.mkdir()
        if onnx is ours:
            ours.external_data_helper.write_external_data_tensors(made, str(folder))
            assert list(files(folder).values()) == [RAW]
        else:
            with pytest.raises(real.checker.ValidationError):
                real.external_data_helper.write_external_data_tensors(made, str(folder))


def test_failed_writes_change_nothing(tmp_path: Path) -> None:
    """Two files are fine, the third is a link: all is as before, on disk and in the model."""
    (tmp_path / "old").write_bytes(b"old content")
    (tmp_path / "bad").symlink_to("elsewhere")
    weights = [tensor(ours, name, location=name) for name in ("old", "new", "bad")]
    made = ours.helper.make_model(ours.helper.make_graph([], "g", [], [], weights))
    before = made.SerializeToString()
    with pytest.raises(ours.external_data_helper.ValidationError):
        ours.external_data_helper.write_external_data_tensors(made, str(tmp_path))
    assert made.SerializeToString() == before
    assert files(tmp_path) == {"old": b"old content"}
    assert not (tmp_path / "elsewhere").exists()


def test_disk_errors_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rename at the end fails."""
    weights = [tensor(ours, name, location=name) for name in ("one", "two")]
    made = ours.helper.make_model(ours.helper.make_graph([], "g", [], [], weights))
    before = made.SerializeToString()

    def fail(*arguments: Any, **options: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no space"):
        ours.external_data_helper.write_external_data_tensors(made, str(tmp_path))
    assert made.SerializeToString() == before
    assert not files(tmp_path)


def test_huge_lengths_take_no_memory(tmp_path: Path) -> None:
    (tmp_path / "w").write_bytes(RAW)
    with pytest.raises(ValueError, match="exceeds"):
        ours.external_data_helper.load_external_data_for_tensor(
            tensor(ours, location="w", length=2**50), str(tmp_path)
        )
