"""Opening and saving: sources, forms, external data, and what is left when a save is cut off."""

import contextlib
import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from sardonyx.errors import SaveError
from sardonyx.format import files
from sardonyx.format import save as saving
from sardonyx.format.load import load, load_tensor, load_text
from sardonyx.format.save import save, save_tensor, to_bytes, to_text
from sardonyx.graph import Model, Tensor


def make(scale: float = 1.0, size: int = 1000) -> onnx.ModelProto:
    weights = numpy_helper.from_array(np.full((size, 2), scale, np.float32), "w/0:x")
    small = numpy_helper.from_array(np.arange(3), "small")
    constant = helper.make_node(
        "Constant", [], ["c"], value=numpy_helper.from_array(np.full(500, scale), "inside")
    )
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", size])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2])
    nodes = [helper.make_node("MatMul", ["x", "w/0:x"], ["y"]), constant]
    return helper.make_model(helper.make_graph(nodes, "g", [x], [y], [weights, small]))


@pytest.fixture
def model() -> Model:
    return load(make())


@pytest.mark.parametrize(
    "wrap",
    [bytes, bytearray, memoryview, io.BytesIO, onnx.ModelProto.FromString],
    ids=["bytes", "bytearray", "memoryview", "file", "message"],
)
def test_sources(wrap) -> None:
    assert len(load(wrap(make().SerializeToString())).graph.nodes) == 2


def test_path_sources(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(make(), path)
    for source in (str(path), path):
        for mapped in (True, False):
            assert load(source, mapped=mapped).source == f"'{path}'"
    with open(path, "rb") as file:
        assert load(file).opset == make().opset_import[0].version


def test_a_reader_decrypts(tmp_path: Path) -> None:
    save(load(make()), tmp_path / "model.onnx", external_data="w.bin")
    for path in tmp_path.iterdir():
        path.write_bytes(bytes(byte ^ 0x5A for byte in path.read_bytes()))
    seen = []

    def reader(path: Path) -> bytes:
        seen.append(path.name)
        return bytes(byte ^ 0x5A for byte in path.read_bytes())

    model = load(tmp_path / "model.onnx", reader=reader)
    assert next(model.tensors()).numpy()[0, 0] == 1 and seen == ["model.onnx", "w.bin"]


@pytest.mark.parametrize("suffix", [".onnx", ".json", ".textproto", ".onnxtxt"])
def test_forms_by_suffix(tmp_path: Path, model: Model, suffix: str) -> None:
    path = tmp_path / f"model{suffix}"
    save(model, path)
    assert onnx.ModelProto.FromString(to_bytes(load(path))) == make()
    if suffix in (".onnx", ".json", ".textproto"):
        assert onnx.load(path) == make()


def test_text() -> None:
    model = load_text(
        '<ir_version: 10, opset_import: ["": 21]> g (float[N] x) => (float[N] y) { y = Neg(x) }'
    )
    assert to_bytes(load_text(to_text(model))) == to_bytes(model)


def test_tensor_files(tmp_path: Path) -> None:
    save_tensor(Tensor(np.eye(3), "t"), tmp_path / "t.pb")
    assert load_tensor(tmp_path / "t.pb").numpy().sum() == 3


def test_saving_to_an_open_file(model: Model) -> None:
    target = io.BytesIO()
    save(model, target)
    assert onnx.ModelProto.FromString(target.getvalue()) == make()
    with pytest.raises(SaveError, match="needs a path"):
        save(model, target, external_data="w.bin")


@pytest.mark.parametrize("location", ["/abs/w.bin", "../w.bin", "a/../../w.bin", "", "/"])
def test_places_external_data_cannot_go(tmp_path: Path, model: Model, location: str) -> None:
    with pytest.raises(SaveError, match="cannot go to"):
        save(model, tmp_path / "m.onnx", external_data=location)
    assert list(tmp_path.iterdir()) == []


def locations(path: Path) -> dict[str, dict[str, str]]:
    stored = onnx.load(path, load_external_data=False)
    tensors = [*stored.graph.initializer, *(a.t for n in stored.graph.node for a in n.attribute)]
    return {
        tensor.name: {entry.key: entry.value for entry in tensor.external_data}
        for tensor in tensors
        if tensor.data_location == TensorProto.EXTERNAL
    }


def test_external_data_in_one_file(tmp_path: Path, model: Model) -> None:
    path = tmp_path / "m.onnx"
    save(model, path, external_data="m.bin", external_attributes=True, checksums=True)
    placed = locations(path)
    assert list(placed) == ["w/0:x", "inside"]
    assert all(
        int(entry["offset"]) % 4096 == 0 and "checksum" in entry for entry in placed.values()
    )
    assert onnx.load(path).graph.initializer[0].raw_data == make().graph.initializer[0].raw_data
    for tensor, again in zip(model.tensors(), load(path).tensors(), strict=True):
        np.testing.assert_array_equal(tensor.numpy(), again.numpy())


def test_external_data_in_a_file_each(tmp_path: Path, model: Model) -> None:
    save(model, tmp_path / "m.onnx", external_data="weights/", size_threshold=0)
    assert sorted(path.name for path in (tmp_path / "weights").iterdir()) == ["small", "w_0_x"]
    assert list(locations(tmp_path / "m.onnx")) == ["w/0:x", "small"]


def test_external_data_with_a_name_of_its_own(tmp_path: Path, model: Model) -> None:
    save(model, tmp_path / "m.onnx", external_data=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.onnx", "m.onnx.data"]


def test_external_data_comes_back_into_one_file(tmp_path: Path, model: Model) -> None:
    save(model, tmp_path / "m.onnx", external_data="m.bin")
    save(load(tmp_path / "m.onnx"), tmp_path / "one.onnx")
    again = onnx.load(tmp_path / "one.onnx", load_external_data=False)
    again.graph.initializer[0].ClearField("data_location")
    assert again == make() and onnx.load(tmp_path / "m.onnx") == onnx.load(tmp_path / "one.onnx")


def test_saving_leaves_the_model_as_it_was(tmp_path: Path, model: Model) -> None:
    save(model, tmp_path / "m.onnx", external_data="m.bin")
    assert onnx.ModelProto.FromString(to_bytes(model)) == make()


@pytest.mark.parametrize("options", [{}, {"external_data": "m.bin"}, {"external_data": "w/"}])
def test_saving_over_the_file_it_is_mapped_from(tmp_path: Path, options: dict) -> None:
    path = tmp_path / "m.onnx"
    save(load(make(2.0)), path, **options)
    for _ in range(3):
        model = load(path)
        model.doc_string += "again "
        save(model, path, **options)
    assert next(load(path).tensors()).numpy()[0, 0] == 2
    assert load(path).doc_string == "again again again "
    names = {item.name for item in tmp_path.rglob("*") if item.is_file()}
    assert not [name for name in names if "tmp" in name or "link" in name]


def test_a_model_beyond_two_gibibytes_gets_external_data(
    tmp_path: Path, model: Model, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(saving, "LARGEST_MESSAGE", 4000)
    save(model, tmp_path / "m.onnx")
    assert "would be over 2 GiB" in caplog.text and (tmp_path / "m.onnx.data").exists()
    with pytest.raises(SaveError, match="over protobuf's limit"):
        save(model, io.BytesIO())
    with pytest.raises(SaveError, match="over protobuf's limit"):
        save(model, tmp_path / "m.json")


def test_modes_and_links_are_kept(tmp_path: Path, model: Model) -> None:
    real = tmp_path / "real.onnx"
    save(model, real)
    real.chmod(0o640)
    (tmp_path / "link.onnx").symlink_to(real)
    save(model, tmp_path / "link.onnx")
    assert (tmp_path / "link.onnx").is_symlink() and real.stat().st_mode & 0o777 == 0o640


def test_a_failing_write_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.onnx"
    save(load(make(1.0)), path)
    before = path.read_bytes()

    def full(target: Path, pieces: object) -> None:
        target.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(saving, "write_pieces", full)
    for options in ({}, {"external_data": "m.bin"}):
        with pytest.raises(SaveError, match="No space left"):
            save(load(make(2.0)), path, **options)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["m.onnx"]


@pytest.mark.parametrize("step", range(12))
def test_cut_off_at_every_step_a_whole_pair_is_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    path = tmp_path / "m.onnx"
    save(load(make(1.0)), path, external_data="m.bin")
    calls = 0

    class Killed(BaseException):
        pass

    def counted(original):
        def call(*arguments, **options):
            nonlocal calls
            calls += 1
            if calls > step:
                raise Killed
            return original(*arguments, **options)

        return call

    for module, name in ((os, "replace"), (os, "link"), (Path, "unlink"), (saving, "write_pieces")):
        monkeypatch.setattr(module, name, counted(getattr(module, name)))
    with contextlib.suppress(Killed):
        save(load(make(2.0, 1500)), path, external_data="m.bin")
    monkeypatch.undo()
    (tensor, *_) = load(path).tensors()
    assert tensor.numpy().shape in ((1000, 2), (1500, 2))
    assert np.unique(tensor.numpy()).tolist() == ([1.0] if tensor.shape == (1000, 2) else [2.0])


KILLED = """
import sys
from sardonyx.format.load import load
from sardonyx.format.save import save
model = load(sys.argv[1])
print("ready", flush=True)
while True:
    save(model, sys.argv[2], external_data="m.bin")
"""


def test_killed_at_random_moments(tmp_path: Path) -> None:
    source, path = tmp_path / "source.onnx", tmp_path / "m.onnx"
    onnx.save(make(2.0, 200_000), source)
    save(load(make(1.0)), path, external_data="m.bin")
    chance = np.random.default_rng(0)
    for _ in range(8):
        child = subprocess.Popen(
            [sys.executable, "-c", KILLED, source, path], stdout=subprocess.PIPE
        )
        child.stdout.readline()
        time.sleep(chance.random() * 0.05)
        child.send_signal(signal.SIGKILL)
        child.wait()
        (tensor, *_) = load(path).tensors()
        assert len(np.unique(tensor.numpy())) == 1


def test_large_files_are_parsed_through_windows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(make(size=100_000), path)
    monkeypatch.setattr(files, "LARGE", 1)
    model = load(path)
    assert onnx.ModelProto.FromString(to_bytes(model)) == make(size=100_000)
    assert not next(model.tensors()).numpy().flags.owndata


def test_weights_are_views(tmp_path: Path) -> None:
    save(load(make()), tmp_path / "m.onnx", external_data="m.bin")
    for name in ("m.onnx",):
        (weights, *_) = load(tmp_path / name).tensors()
        assert np.shares_memory(weights.numpy(), weights.numpy())
        assert not weights.numpy().flags.writeable
