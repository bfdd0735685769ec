"""Files that are damaged or hostile: an error of our own that says what, where and what to do."""

import hashlib
import os
import resource
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from sardonyx.errors import (
    ExternalDataError,
    FormatError,
    SardonyxError,
    TensorError,
    UnsupportedError,
)
from sardonyx.format.load import load, load_tensor
from sardonyx.format.save import to_bytes


def content() -> bytes:
    weights = numpy_helper.from_array(np.arange(6, dtype=np.float32).reshape(2, 3), "w")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3])
    node = helper.make_node("MatMul", ["x", "w"], ["y"], name="product", alpha=[1, 2, 300])
    return helper.make_model(
        helper.make_graph([node], "g", [x], [y], [weights])
    ).SerializeToString()


def field(number: int, inside: bytes) -> bytes:
    from sardonyx.format.wire import varint

    return varint(number << 3 | 2) + varint(len(inside)) + inside


def test_cut_off_at_every_byte() -> None:
    whole = content()
    refused = 0
    for end in range(len(whole)):
        try:
            to_bytes(load(whole[:end]))
        except FormatError as error:
            assert "byte" in str(error) or "empty" in str(error)
            refused += 1
    assert refused > len(whole) * 0.9


def test_every_single_bit_flipped() -> None:
    whole = content()
    for position in range(len(whole) * 8):
        damaged = bytearray(whole)
        damaged[position // 8] ^= 1 << position % 8
        try:
            model = load(bytes(damaged))
            for tensor in model.tensors():
                tensor.numpy()
        except SardonyxError:
            continue


def test_the_place_is_named() -> None:
    node = field(1, b"x") + field(2, b"y") + b"\x2a\x7f\x0a\x01a"
    broken = b"\x08\x08" + field(7, field(1, field(4, b"Relu")) + field(1, node))
    with pytest.raises(FormatError) as caught:
        load(broken)
    assert "graph.node[1]" in str(caught.value) and "claims 127 bytes" in str(caught.value)


MESSAGES = {
    "model": (), "operator set": (8,), "metadata": (14,), "configuration": (26,), "graph": (7,),
    "input": (7, 11), "output": (7, 12), "value": (7, 13), "metadata of a value": (7, 11, 4),
    "type": (7, 11, 2), "tensor type": (7, 11, 2, 1), "shape": (7, 11, 2, 1, 2),
    "dimension": (7, 11, 2, 1, 2, 1), "sequence": (7, 11, 2, 4), "its element": (7, 11, 2, 4, 1),
    "map": (7, 11, 2, 5), "its value": (7, 11, 2, 5, 2), "opaque": (7, 11, 2, 7),
    "sparse type": (7, 11, 2, 8), "optional": (7, 11, 2, 9), "tensor": (7, 5),
    "segment": (7, 5, 3), "external data": (7, 5, 13), "sparse tensor": (7, 15),
    "its values": (7, 15, 1), "quantization": (7, 14), "its entry": (7, 14, 2), "node": (7, 1),
    "device": (7, 1, 10), "attribute": (7, 1, 5), "tensor of an attribute": (7, 1, 5, 5),
    "tensors of an attribute": (7, 1, 5, 10), "type of an attribute": (7, 1, 5, 14),
    "sparse attribute": (7, 1, 5, 22), "subgraph": (7, 1, 5, 6), "node inside": (7, 1, 5, 6, 1),
    "subgraphs": (7, 1, 5, 11), "function": (25,), "node of a function": (25, 7),
    "operator set of a function": (25, 9), "default": (25, 11), "value of a function": (25, 12),
    "training": (20,), "training graph": (20, 1), "binding": (20, 3),
}  # fmt: skip
"""Numbers of the fields that lead to a message of each kind."""
KEPT = {"segment", "operator set", "operator set of a function", "quantization"}
"""Messages that are written back as they are where they are not understood."""


@pytest.mark.parametrize("message", MESSAGES)
@pytest.mark.parametrize(
    ("broken", "after"), [(b"\x0f", 0), (b"\x0a\x7fabc", 0), (b"\x08", 1), (b"\xd5\x3e123", 0)]
)
def test_the_byte_is_named(message: str, broken: bytes, after: int) -> None:
    unknown = field(1000, b"ab")
    for pad in (b"", unknown, field(1001, bytes(1 << 14))):
        whole = pad + broken
        for number in reversed(MESSAGES[message]):
            whole = unknown + field(number, whole)
        place = 2 + len(whole) - len(broken) + after
        with pytest.raises(FormatError, match=rf"at byte {place}\b"):
            load(b"\x08\x08" + whole)


@pytest.mark.parametrize("message", sorted(MESSAGES.keys() - KEPT))
def test_the_byte_of_a_known_field_of_the_wrong_wire_type_is_named(message: str) -> None:
    unknown = field(1000, b"ab")
    for pad in (b"", unknown):
        whole = pad + b"\x0d1234"
        for number in reversed(MESSAGES[message]):
            whole = unknown + field(number, whole)
        with pytest.raises(FormatError, match=rf"wire type 5 \(at byte {len(whole) - 3}\b"):
            load(b"\x08\x08" + whole)


@pytest.mark.parametrize(
    "numbers",
    [
        (7, 11, 1), (7, 11, 2, 6), (7, 11, 2, 1, 2, 1, 2), (7, 11, 2, 1, 2, 1, 3), (7, 11, 2, 7, 1),
        (7, 11, 2, 4, 1, 6), (7, 5, 8), (14, 1), (14, 2), (7, 5, 13, 1), (25, 1),
    ],
)  # fmt: skip
def test_the_byte_that_is_not_text_is_named(numbers: tuple[int, ...]) -> None:
    whole = b"ab\xff"
    for number in reversed(numbers):
        whole = field(1000, b"ab") + field(number, whole)
    with pytest.raises(FormatError, match=rf"not UTF-8 text \(at byte {1 + len(whole)},"):
        load(b"\x08\x08" + whole)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (b"\x08", "ends inside a number"),
        (b"\x08" + b"\xff" * 10 + b"\x01", "more than ten bytes"),
        (b"\x00\x01", "number 0"),
        (b"\x0f", "wire type 7"),
        (b"\x0a\x01x", "wire type 2"),
        (b"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "claims 18446744073709551615 bytes"),
        (b"\x12\x02\xff\xfe", "not UTF-8"),
        (field(7, field(1, field(1, b"\xff"))), "not UTF-8"),
        (field(7, field(1, field(5, field(1, b"\xff")))), "not UTF-8"),
        (field(7, b"") * 2, "more than one graph"),
        (field(7, field(1, b"\x08\x01")), "wire type 0"),
        (field(7, field(1, field(5, b"\x3a\x03abc"))), "list of floats ends inside"),
        (b"\x0b\x13\x14", "data ends|did not begin"),
    ],
)
def test_broken_wire_format(broken: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        load(broken)


def nested_graph(depth: int) -> bytes:
    graph = b""
    for _ in range(depth):
        graph = field(1, field(5, field(1, b"body") + field(6, graph) + b"\xa0\x01\x05"))
    return b"\x08\x08" + field(7, graph)


def nested_type(depth: int) -> bytes:
    kind = field(1, b"\x08\x01")
    for _ in range(depth):
        kind = field(4, field(1, kind))
    return b"\x08\x08" + field(7, field(11, field(1, b"x") + field(2, kind)))


@pytest.mark.parametrize("make", [nested_graph, nested_type])
def test_nesting(make) -> None:
    assert load(make(25)).graph is not None
    start = time.perf_counter()
    for depth in (60, 200, 10_000):
        with pytest.raises(FormatError, match="inside one another"):
            load(make(depth))
    assert time.perf_counter() - start < 5


def test_deep_groups_of_unknown_fields() -> None:
    with pytest.raises(FormatError, match="groups lie inside"):
        load(b"\xf3\x07" * 10_000)
    with pytest.raises(FormatError, match="data ends inside"):
        load(b"\xf3\x07" * 10)


@pytest.mark.parametrize(
    ("tensor", "error", "message"),
    [
        (TensorProto(dims=[-1], data_type=1), TensorError, "negative"),
        (TensorProto(dims=[2**40, 2**40], data_type=1), TensorError, "claims"),
        (TensorProto(dims=[4], data_type=1, raw_data=b"abc"), TensorError, "needs 16 bytes"),
        (TensorProto(dims=[4], data_type=1), TensorError, "needs 4 entries, no data has 0"),
        (TensorProto(dims=[4], data_type=7, int64_data=[1]), TensorError, "int64_data has 1"),
        (TensorProto(dims=[4], data_type=8, string_data=[b"a"]), TensorError, "string_data has 1"),
        (TensorProto(dims=[1], data_type=8, raw_data=b"a"), TensorError, "strings in raw_data"),
        (TensorProto(dims=[1], data_type=1, string_data=[b"a"]), TensorError, "holds strings"),
        (TensorProto(dims=[1], data_type=1, int64_data=[1]), TensorError, "field 7"),
        (TensorProto(dims=[1], raw_data=b"a"), TensorError, "UNDEFINED"),
        (TensorProto(dims=[1], data_type=77, raw_data=b"a"), UnsupportedError, "element type 77"),
    ],
)
def test_tensors_that_do_not_fit(tensor: TensorProto, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        load_tensor(tensor).numpy()


def test_a_huge_tensor_in_few_bytes_takes_no_memory() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for dims in ([2**44], [2**20, 2**20], [2**30, 2**14]):
        with pytest.raises(TensorError):
            load_tensor(TensorProto(dims=dims, data_type=1)).numpy()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


@pytest.mark.parametrize(
    ("piece", "count"),
    [
        (b"\xfa\x07\x00", 400_000),
        (b"\x3a\x00", 1),
        (b"\x72\x02\x0a\x00", 200_000),
        (b"\x42\x00", 300_000),
    ],
)
def test_many_small_fields_take_linear_time(piece: bytes, count: int) -> None:
    start = time.perf_counter()
    load(b"\x08\x08" + piece * count)
    assert time.perf_counter() - start < 5


def test_empty_and_missing_files(tmp_path: Path) -> None:
    (tmp_path / "empty.onnx").touch()
    with pytest.raises(FormatError, match="is empty"):
        load(tmp_path / "empty.onnx")
    with pytest.raises(FormatError, match="No such file"):
        load(tmp_path / "missing.onnx")
    with pytest.raises(FormatError, match="is not a file"):
        load(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FormatError, match="is not a file"):
        load(tmp_path / "pipe")


def test_sources_that_are_no_model() -> None:
    with pytest.raises(FormatError, match="cannot be read from a int"):
        load(3)
    with pytest.raises(FormatError, match="no format 'yaml'"):
        load(b"x", format="yaml")
    for form in ("json", "textproto", "onnxtxt"):
        with pytest.raises(FormatError):
            load(b"{ nonsense", format=form)
        with pytest.raises(FormatError):
            load(b"\xff\xfe", format=form)


def external(folder: Path, **entries: str) -> Path:
    model = onnx.ModelProto.FromString(content())
    tensor = model.graph.initializer[0]
    (folder / "weights.bin").write_bytes(bytes(8) + tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (
        {"location": "weights.bin", "offset": "8", "length": "24"} | entries
    ).items():
        if value is not None:
            tensor.external_data.add(key=key, value=value)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def test_external_data_is_read(tmp_path: Path) -> None:
    good = hashlib.sha1(np.arange(6, dtype=np.float32).tobytes()).hexdigest()
    for entries in ({}, {"length": None}, {"checksum": good}, {"checksum": good.upper()}):
        (tensor,) = load(external(tmp_path, **entries)).tensors()
        assert tensor.numpy().tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"location": "/etc/passwd"}, "absolute"),
        ({"location": "C:\\windows\\x"}, "absolute"),
        ({"location": "\\\\host\\x"}, "absolute"),
        ({"location": "../weights.bin"}, "leaves the model's folder"),
        ({"location": "a/../../weights.bin"}, "leaves the model's folder"),
        ({"location": ""}, "location ''"),
        ({"location": None}, "location ''"),
        ({"location": "missing.bin"}, "cannot be opened"),
        ({"location": "folder"}, "not a plain file"),
        ({"location": "link.bin"}, "passes through a link"),
        ({"location": "linked/weights.bin"}, "passes through a link"),
        ({"location": "pipe"}, "not a plain file"),
        ({"location": "weights.bin\0.txt"}, "location"),
        ({"offset": "-8"}, "offset '-8'"),
        ({"offset": "eight"}, "offset 'eight'"),
        ({"offset": "9" * 30}, "offset"),
        ({"offset": "16"}, "wants bytes 16 to 40"),
        ({"length": "25"}, "needs 24 bytes, its external data has 25"),
        ({"length": "0"}, "needs 24 bytes"),
    ],
)
def test_external_data_that_is_refused(tmp_path: Path, entries: dict, message: str) -> None:
    path = external(tmp_path, **entries)
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.bin").symlink_to(tmp_path / "weights.bin")
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "weights.bin").write_bytes(bytes(32))
    (tmp_path / "linked").symlink_to(tmp_path / "real")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ExternalDataError, match=message):
        load(path)
    with pytest.raises(SardonyxError):
        next(load(path, external_data=False).tensors()).numpy()


def test_a_wrong_checksum_is_found_when_the_weight_is_used(tmp_path: Path) -> None:
    (tensor,) = load(external(tmp_path, checksum="0" * 40)).tensors()
    with pytest.raises(ExternalDataError, match="does not match its checksum"):
        tensor.numpy()


def test_external_data_of_a_model_in_memory(tmp_path: Path) -> None:
    raw = external(tmp_path).read_bytes()
    with pytest.raises(ExternalDataError, match="was not read from a file"):
        load(raw)
    (tensor,) = load(raw, base_dir=tmp_path).tensors()
    assert tensor.numpy().shape == (2, 3)


def test_a_newer_ir_version(caplog: pytest.LogCaptureFixture) -> None:
    model = onnx.ModelProto.FromString(content())
    model.ir_version = 99
    assert load(model).ir_version == 99
    assert "IR version 99" in caplog.text
    with pytest.raises(UnsupportedError, match=r"unknown field GraphProto\.100"):
        load(_with_unknown(model))


def _with_unknown(model: onnx.ModelProto) -> bytes:
    graph = model.graph.SerializeToString() + field(100, b"new")
    model.ClearField("graph")
    return model.SerializeToString() + field(7, graph)
