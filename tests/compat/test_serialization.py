"""Models and tensors in files and strings of every format, beside the real onnx."""

import io
import os
import re
import stat
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx as real
import pytest

from sardonyx.compat import onnx as ours
from tests.compat.differential import Call, assert_same

SUFFIXES = (
    ".onnx .pb .txtpb .textproto .prototxt .pbtxt .json .onnxjson .bin .ONNX .txt".split()  # noqa: SIM905
)
FORMATS = ("protobuf", "textproto", "json")


def model(onnx: Any, size: int = 600) -> Any:
    helper = onnx.helper
    value = helper.make_tensor_value_info
    weight = onnx.numpy_helper.from_array(np.arange(size, dtype=np.float32), "w")
    constant = onnx.numpy_helper.from_array(np.arange(size, dtype=np.int64), "c")
    nodes = [
        helper.make_node("Constant", [], ["c"], value=constant),
        helper.make_node(
            "Mul", ["x", "w"], ["y"], name="m\u00fcl", alpha=0.1, s=b"\xff\x00", i=[1, -2]
        ),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [value("x", onnx.TensorProto.FLOAT, ["n", size])],
        [value("y", onnx.TensorProto.FLOAT, None)],
        [weight],
    )
    return helper.make_model(graph, producer_name="p")


def tensor(onnx: Any) -> Any:
    return onnx.helper.make_tensor("t", onnx.TensorProto.FLOAT, [2], [1.5, float("inf")])


def content(folder: Path) -> dict[str, bytes]:
    """All files of a folder, with random names made equal."""
    random = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    return {
        re.sub(random, "RANDOM", path.name): re.sub(random.encode(), b"RANDOM", path.read_bytes())
        for path in sorted(folder.iterdir())
        if path.is_file()
    }


def saved(name: str, *arguments: Any, **options: Any) -> Call:
    """Save a model, and load it again."""

    def call(onnx: Any, folder: Path) -> Any:
        made = model(onnx)
        onnx.save_model(made, str(folder / name), *arguments, **options)
        fmt = arguments[0] if arguments else options.get("format")
        return onnx.load_model(str(folder / name), fmt) == model(onnx), content(folder)

    return call


def saved_tensor(name: str, *arguments: Any) -> Call:
    def call(onnx: Any, folder: Path) -> Any:
        onnx.save_tensor(tensor(onnx), folder / name, *arguments)
        return onnx.load_tensor(folder / name, *arguments), content(folder)

    return call


def in_memory(fmt: str | None, kind: str = "model") -> Call:
    def call(onnx: Any, folder: Path) -> Any:
        file = io.BytesIO()
        made = model(onnx) if kind == "model" else tensor(onnx)
        getattr(onnx, f"save_{kind}")(made, file, fmt)
        text = file.getvalue()
        return text, getattr(onnx, f"load_{kind}")(io.BytesIO(text), fmt)

    return call


def from_string(kind: str, text: Any, *arguments: Any) -> Call:
    return lambda onnx, folder: getattr(onnx, f"load_{kind}_from_string")(text, *arguments)


def loaded_by_open_file(onnx: Any, folder: Path) -> Any:
    onnx.save(model(onnx), folder / "m.json", save_as_external_data=True, location="w.data")
    with open(folder / "m.json", "rb") as file:
        return onnx.load(file)


def loaded(onnx: Any, folder: Path, *, remove: bool = False, **options: Any) -> Any:
    onnx.save(model(onnx), folder / "m.onnx", save_as_external_data=True, location="w.data")
    if remove:
        (folder / "w.data").unlink()
    return onnx.load(folder / "m.onnx", **options)


def registered(onnx: Any, folder: Path) -> Any:
    class Reversed:
        supported_format = "reversed"
        file_extensions = frozenset({".xnno"})

        def serialize_proto(self, proto: Any) -> bytes:
            return proto.SerializeToString()[::-1]

        def deserialize_proto(self, data: bytes, proto: Any) -> Any:
            proto.ParseFromString(data[::-1])
            return proto

    onnx.serialization.registry.register(Reversed())
    onnx.save(model(onnx), folder / "m.xnno")
    return onnx.load(folder / "m.xnno"), onnx.load(folder / "m.xnno", "reversed"), content(folder)


MODEL_BYTES = real.helper.make_model(real.helper.make_graph([], "g", [], [])).SerializeToString()

CASES: dict[str, Call] = {}
for _suffix in SUFFIXES:
    CASES[f"save {_suffix}"] = saved(f"m{_suffix}")
    CASES[f"save tensor {_suffix}"] = saved_tensor(f"t{_suffix}")
for _format in (*FORMATS, "unknown", "", 3):
    CASES[f"save as {_format}"] = saved("m.onnx", _format)
    CASES[f"save json as {_format}"] = saved("m.json", format=_format)
    CASES[f"save tensor as {_format}"] = saved_tensor("t.x", _format)
    CASES[f"in memory as {_format}"] = in_memory(_format)
    CASES[f"tensor in memory as {_format}"] = in_memory(_format, "tensor")
    for _kind in ("model", "tensor"):
        CASES[f"{_kind} of no bytes as {_format}"] = from_string(_kind, b"", _format)
        CASES[f"{_kind} of no text as {_format}"] = from_string(_kind, "", _format)
        CASES[f"{_kind} of garbage as {_format}"] = from_string(_kind, b"\xff\xff garbage", _format)
        CASES[f"{_kind} of bad text as {_format}"] = from_string(_kind, "{bad", _format)
        CASES[f"{_kind} of None as {_format}"] = from_string(_kind, None, _format)
        CASES[f"{_kind} of number as {_format}"] = from_string(_kind, 3, _format)
        CASES[f"{_kind} of bytearray as {_format}"] = from_string(_kind, bytearray(b""), _format)
EXTERNAL: dict[str, dict[str, Any]] = {
    "default": {},
    "located": {"location": "w.data"},
    "everything": {"location": "w.data", "size_threshold": 0, "convert_attribute": True},
    "apart": {"all_tensors_to_one_file": False, "size_threshold": 0, "convert_attribute": True},
    "nothing large": {"size_threshold": 10**6},
    "absolute": {"location": "/tmp/w.data"},
    "outside": {"location": "../w.data"},
    "missing folder": {"location": "none/w.data"},
}
for _name, _options in EXTERNAL.items():
    CASES[f"external {_name}"] = saved("m.onnx", save_as_external_data=True, **_options)
    CASES[f"external {_name} as text"] = saved(
        "m.textproto", save_as_external_data=True, **_options
    )
    CASES[f"not external {_name}"] = saved("m.onnx", **_options)


def saved_by(open_file: Any) -> Call:
    """Save with external data through an open file."""

    def call(onnx: Any, folder: Path) -> Any:
        with open_file(folder) as file:
            onnx.save_model(model(onnx), file, save_as_external_data=True, location="w.data")
        return content(folder)

    return call


CASES |= {
    "path object": lambda onnx, folder: (
        onnx.save(model(onnx), folder / "m.onnx"),
        onnx.load(folder / "m.onnx"),
        content(folder),
    ),
    "bytes as model": lambda onnx, folder: (
        onnx.save(model(onnx).SerializeToString(), folder / "m.textproto"),
        content(folder),
    ),
    "bad bytes as model": lambda onnx, folder: onnx.save(b"\xff\xff", folder / "m.onnx"),
    "text as model": lambda onnx, folder: onnx.save("model", folder / "m.onnx"),
    "None as model": lambda onnx, folder: onnx.save(None, folder / "m.onnx"),
    "graph as model": lambda onnx, folder: onnx.save(model(onnx).graph, folder / "m.onnx"),
    "graph as model in memory": lambda onnx, folder: onnx.save(model(onnx).graph, io.BytesIO()),
    "number as model in memory": lambda onnx, folder: onnx.save(3, io.BytesIO()),
    "None as tensor": lambda onnx, folder: onnx.save_tensor(None, folder / "t.pb"),
    "model as tensor": lambda onnx, folder: (
        onnx.save_tensor(model(onnx), folder / "t.pb"),
        content(folder),
    ),
    "into missing folder": lambda onnx, folder: onnx.save(model(onnx), folder / "none" / "m.onnx"),
    "into a folder": lambda onnx, folder: onnx.save(model(onnx), folder),
    "with a trailing slash": lambda onnx, folder: onnx.save(model(onnx), f"{folder}/m.onnx/"),
    "without a name": lambda onnx, folder: onnx.save(model(onnx), ""),
    "into None": lambda onnx, folder: onnx.save(model(onnx), None),
    "into a list": lambda onnx, folder: onnx.save(model(onnx), []),
    "below a file": lambda onnx, folder: (
        (folder / "f").write_bytes(b""),
        onnx.save(model(onnx), folder / "f" / "m.onnx"),
    ),
    "load missing": lambda onnx, folder: onnx.load(folder / "m.onnx"),
    "load a folder": lambda onnx, folder: onnx.load(folder),
    "load None": lambda onnx, folder: onnx.load(None),
    "load nothing": lambda onnx, folder: onnx.load(""),
    "load empty": lambda onnx, folder: (
        (folder / "m.onnx").write_bytes(b""),
        onnx.load(folder / "m.onnx"),
    ),
    "load truncated": lambda onnx, folder: (
        (folder / "m.onnx").write_bytes(MODEL_BYTES[:-3]),
        onnx.load(folder / "m.onnx"),
    ),
    "load tensor missing": lambda onnx, folder: onnx.load_tensor(folder / "t.pb"),
    "load text file": lambda onnx, folder: onnx.load(io.StringIO("ir_version: 3"), "textproto"),
    "load text file as bytes": lambda onnx, folder: onnx.load(io.StringIO("ir_version: 3")),
    "load with bytes path": lambda onnx, folder: (
        onnx.save(model(onnx), folder / "m.onnx"),
        onnx.load(os.fsencode(folder / "m.onnx")),
    ),
    "save with bytes path": lambda onnx, folder: (
        onnx.save(model(onnx), os.fsencode(folder / "m.onnx")),
        content(folder),
    ),
    "save by open file": saved_by(lambda folder: (folder / "m.onnx").open("wb")),
    "save by open text format": saved_by(lambda folder: (folder / "m.textproto").open("wb")),
    "save by memory file": saved_by(lambda folder: io.BytesIO()),
    "save by file for text": saved_by(lambda folder: (folder / "m.onnx").open("w")),
    "load by open file": loaded_by_open_file,
    "load without external data": lambda onnx, folder: loaded(
        onnx, folder, load_external_data=False
    ),
    "load external data": loaded,
    "load external data missing": lambda onnx, folder: loaded(onnx, folder, remove=True),
    "registry formats": lambda onnx, folder: [
        onnx.serialization.registry.get(name).supported_format for name in (*FORMATS, "onnxtxt")
    ],
    "registry suffixes": lambda onnx, folder: [
        onnx.serialization.registry.get_format_from_file_extension(suffix)
        for suffix in (*SUFFIXES, ".onnxtxt", ".onnxtext", "onnx", "")
    ],
    "registry extensions": lambda onnx, folder: [
        sorted(onnx.serialization.registry.get(name).file_extensions)
        for name in (*FORMATS, "onnxtxt")
    ],
    "registry unknown": lambda onnx, folder: onnx.serialization.registry.get("unknown"),
    "registry None": lambda onnx, folder: onnx.serialization.registry.get(None),
    "registry list": lambda onnx, folder: onnx.serialization.registry.get([]),
    "register": registered,
    "external aliases": lambda onnx, folder: [
        getattr(onnx, name) is getattr(onnx.external_data_helper, name)
        for name in (
            "convert_model_to_external_data",
            "load_external_data_for_model",
            "write_external_data_tensors",
        )
    ],
    "aliases": lambda onnx, folder: (
        onnx.load is onnx.load_model,
        onnx.save is onnx.save_model,
        onnx.load_from_string is onnx.load_model_from_string,
    ),
}
for _format in FORMATS:
    for _kind in ("ModelProto", "GraphProto", "NodeProto", "TensorProto", "TypeProto", "MapProto"):
        CASES[f"{_kind} as {_format}"] = lambda onnx, folder, kind=_kind, fmt=_format: serialized(
            onnx, kind, fmt
        )


def serialized(onnx: Any, kind: str, fmt: str) -> Any:
    made = model(onnx, 3)
    messages = {
        "ModelProto": made,
        "GraphProto": made.graph,
        "NodeProto": made.graph.node[1],
        "TensorProto": tensor(onnx),
        "TypeProto": made.graph.input[0].type,
        "MapProto": onnx.numpy_helper.from_dict({1: np.zeros(2)}),
    }
    serializer = onnx.serialization.registry.get(fmt)
    text = serializer.serialize_proto(messages[kind])
    return text, serializer.deserialize_proto(text, getattr(onnx, kind)())


@pytest.mark.parametrize("name", CASES)
def test_same_as_onnx(name: str, tmp_path: Path) -> None:
    assert_same(CASES[name], tmp_path)


TEXT = '<ir_version: 8, opset_import: ["" : 17]> g (float[n] x) => (float[n] y) { y = Relu(x) }'
HAS_TEXT = all(hasattr(ours, name) for name in ("parser", "printer"))


@pytest.mark.skipif(not HAS_TEXT, reason="parser and printer are separate modules")
@pytest.mark.filterwarnings("ignore:.*onnxtxt")
@pytest.mark.parametrize("suffix", [".onnxtxt", ".onnxtext"])
def test_textual_syntax_same_as_onnx(suffix: str, tmp_path: Path) -> None:
    def call(onnx: Any, folder: Path) -> Any:
        made = onnx.load_model_from_string(TEXT, "onnxtxt")
        onnx.save(made, folder / f"m{suffix}")
        serializer = onnx.serialization.registry.get("onnxtxt")
        node = serializer.deserialize_proto("y = Relu(x)", onnx.NodeProto())
        return made, onnx.load(folder / f"m{suffix}"), content(folder), node

    assert_same(call, tmp_path)


@pytest.mark.skipif(not HAS_TEXT, reason="parser and printer are separate modules")
@pytest.mark.filterwarnings("ignore:.*onnxtxt")
@pytest.mark.parametrize("text", ["", b"", b"\xff", "garbage", None, 3], ids=repr)
@pytest.mark.parametrize("kind", ["ModelProto", "GraphProto", "FunctionProto", "TensorProto"])
def test_bad_textual_syntax_same_as_onnx(kind: str, text: Any, tmp_path: Path) -> None:
    def call(onnx: Any, folder: Path) -> Any:
        serializer = onnx.serialization.registry.get("onnxtxt")
        return serializer.deserialize_proto(text, getattr(onnx, kind)())

    assert_same(call, tmp_path)


def test_files_without_a_name_can_be_saved() -> None:
    """onnx takes the number that Python has for a name as a path."""
    for onnx in (ours, real):
        with tempfile.TemporaryFile() as file:
            if onnx is ours:
                ours.save(model(ours), file)
                file.seek(0)
                assert ours.load(file) == model(ours)
            else:
                with pytest.raises(TypeError):
                    real.save(model(real), file)


class Broken:
    """A serializer that fails."""

    supported_format = "broken"
    file_extensions = frozenset({".broken"})

    def serialize_proto(self, proto: Any) -> Any:
        raise RuntimeError("broken")

    def deserialize_proto(self, serialized: Any, proto: Any) -> Any:
        raise RuntimeError("broken")


def test_failed_saves_change_nothing(tmp_path: Path) -> None:
    """Neither the files nor the tensors of the model: onnx leaves both changed."""
    ours.serialization.registry.register(Broken())
    (tmp_path / "m.broken").write_bytes(b"old model")
    (tmp_path / "w.data").write_bytes(b"old weights")
    made = model(ours)
    ours.convert_model_to_external_data(made, location="w.data", size_threshold=0)
    before = made.SerializeToString()
    with pytest.raises(RuntimeError, match="broken"):
        ours.save(made, tmp_path / "m.broken")
    assert made.SerializeToString() == before
    assert content(tmp_path) == {"m.broken": b"old model", "w.data": b"old weights"}


def test_weights_cannot_share_the_file_of_the_model(tmp_path: Path) -> None:
    """onnx writes the model over the weights, which are lost."""
    for onnx in (ours, real):
        path = tmp_path / onnx.__name__ / "m.onnx"
        path.parent.mkdir()
        made = model(onnx)
        if onnx is ours:
            with pytest.raises(ValueError, match="another location"):
                ours.save(made, path, save_as_external_data=True, location="m.onnx")
            assert made.graph.initializer[0].raw_data
            assert content(path.parent) == {}
        else:
            real.save(made, path, save_as_external_data=True, location="m.onnx")
            assert not made.graph.initializer[0].raw_data
            assert real.load(path).graph.initializer != model(real).graph.initializer


@pytest.mark.parametrize("failing", [1, 2])
def test_failed_renames_keep_the_old_model(
    failing: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "m.onnx").write_bytes(b"old model")
    made = model(ours)
    calls = []
    rename = os.replace

    def fail_late(*arguments: Any, **options: Any) -> None:
        calls.append(arguments)
        if len(calls) == failing:
            raise OSError("no space left on device")
        rename(*arguments, **options)

    monkeypatch.setattr(os, "replace", fail_late)
    with pytest.raises(OSError, match="no space"):
        ours.save(made, tmp_path / "m.onnx", save_as_external_data=True, location="w.data")
    assert content(tmp_path) == {"m.onnx": b"old model"}
    assert made.graph.initializer[0].raw_data == model(ours).graph.initializer[0].raw_data


def test_saving_keeps_permissions_and_follows_links(tmp_path: Path) -> None:
    target = tmp_path / "target.onnx"
    target.write_bytes(b"old")
    target.chmod(0o640)
    (tmp_path / "link.onnx").symlink_to("target.onnx")
    ours.save(model(ours), tmp_path / "link.onnx")
    assert (tmp_path / "link.onnx").is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert ours.load(target) == model(ours)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.onnx", "target.onnx"]


def test_new_files_follow_the_umask(tmp_path: Path) -> None:
    """onnx makes weights readable for their owner only, whatever the model file is."""
    before = os.umask(0o027)
    try:
        ours.save(model(ours), tmp_path / "m.onnx", save_as_external_data=True, location="w.data")
    finally:
        os.umask(before)
    for name in ("m.onnx", "w.data"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o640


def test_devices_can_be_written() -> None:
    ours.save(model(ours), os.devnull)
    assert not stat.S_ISREG(os.stat(os.devnull).st_mode)
