"""`utils`: cutting parts out of models, in memory and in files, against the real `onnx`."""

import doctest
import inspect
import io
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx as real
import pytest

from sardonyx.compat import onnx as ours
from sardonyx.compat.onnx import utils
from tests.compat.differential import Call, assert_same
from tests.compat.text_models import model

DIAMOND = """<ir_version: 8, opset_import: ["" : 17]>
diamond (float[1, 2] A0, float[1, 2] A1) => (float[1, 2] D0) <float[1, 2] B0, float[1, 2] B1,
    float[1, 2] B2, float[1, 2] C0, float[1, 2] C1>
{
    [add] B0 = Add (A0, A1)
    [sub] B1 = Sub (A0, A1)
    [mul] B2 = Mul (A0, A1)
    C0 = Add (B0, B1)
    C1 = Sub (B1, B2)
    D0 = Mul (C0, C1)
}
"""
UNTYPED = DIAMOND.partition("<float[1, 2] B0")[0] + DIAMOND[DIAMOND.index("{") :]
WEIGHTS = """<ir_version: 8, producer_name: "someone", opset_import: ["" : 17, "ai.onnx.ml" : 3],
    metadata_props: ["k": "v"], doc_string: "text">
weights (float[2] x) => (float[2] y, float[2] z) <float[2] w = {1, 2}, float[2] v = {3, 4},
    float[2] unused = {5, 6}, float[2] t>
{
    t = Add (x, w)
    y = Mul (t, v)
    z = Sub (x, v)
}
"""
INITIALIZER_INPUT = """<ir_version: 3, opset_import: ["" : 8]>
old (float[2] x, float[2] w) => (float[2] y) <float[2] w = {1, 2}> { y = Add (x, w) }
"""
OPTIONAL = """<ir_version: 8, opset_import: ["" : 17]>
optional (float[2] x, float m) => (float[2] y) <float[2] t>
{
    t = Clip (x, , m)
    y, , k = Odd (t, )
}
"""
BRANCHES = """<ir_version: 8, opset_import: ["" : 17]>
branches (bool c, float[N] x) => (float[N] y, float[N] z) <float[N] t>
{
    t = Relu (x)
    y = If (c) <
        then_branch = yes () => (float[N] r) { r = Add (t, x) },
        else_branch = no () => (float[N] r) { r = Mul (x, t) }
    >
    z = Neg (y)
}
"""
FUNCTIONS = """<ir_version: 8, opset_import: ["" : 17, "local" : 1, "other" : 1]>
calls (bool c, float[N] x) => (float[N] y, float[N] z, float[N] q) <float[N] t>
{
    t = local.outer (x)
    y = local.inner (t)
    z = Neg (x)
    q = If (c) <
        then_branch = yes () => (float[N] r) { r = local.only_here (x) },
        else_branch = no () => (float[N] r) { r = Neg (x) }
    >
}
<domain: "local", opset_import: ["" : 17]> inner (a) => (b) { b = Abs (a) }
<domain: "local", opset_import: ["" : 17]> unused (a) => (b) { b = Abs (a) }
<domain: "local", opset_import: ["" : 17]> only_here (a) => (b) { b = Abs (a) }
<domain: "other", opset_import: ["" : 17]> inner (a) => (b) { b = Sqrt (a) }
<domain: "local", opset_import: ["" : 17, "local" : 1]>
outer (a) => (b) { s = local.inner (a)
    t = local.deep (s)
    b = Relu (t) }
<domain: "local", opset_import: ["" : 17]> deep (a) => (b) { b = Exp (a) }
"""

PARTS: dict[str, tuple[str, Any, Any]] = {
    "middle": (DIAMOND, ["B0", "B1", "B2"], ["C0", "C1"]),
    "everything": (DIAMOND, ["A0", "A1"], ["D0"]),
    "first layer": (DIAMOND, ["A0", "A1"], ["B0", "B1", "B2"]),
    "other order": (DIAMOND, ["A1", "A0"], ["B2", "B0"]),
    "one branch": (DIAMOND, ["A0", "A1"], ["C1"]),
    "cut on one side": (DIAMOND, ["A0", "A1", "B1"], ["C0"]),
    "needs more inputs": (DIAMOND, ["B0"], ["C0"]),
    "unrelated input": (DIAMOND, ["B2", "A0", "A1"], ["C0"]),
    "input is output": (DIAMOND, ["B0"], ["B0"]),
    "graph input as output": (DIAMOND, ["A0"], ["A0"]),
    "unknown input": (DIAMOND, ["nothing"], ["C0"]),
    "unknown output": (DIAMOND, ["A0"], ["nothing", "neither"]),
    "empty name": (DIAMOND, [""], ["C0"]),
    "no inputs": (DIAMOND, [], ["C0"]),
    "no outputs": (DIAMOND, ["A0"], []),
    "repeated inputs": (DIAMOND, ["B0", "B0", "B1"], ["C0"]),
    "repeated outputs": (DIAMOND, ["B0", "B1"], ["C0", "C0"]),
    "tuples": (DIAMOND, ("B0", "B1"), ("C0",)),
    "text": (DIAMOND, "B0", "C0"),
    "None": (DIAMOND, None, ["C0"]),
    "numbers": (DIAMOND, [1], ["C0"]),
    "untyped boundary": (UNTYPED, ["B0", "B1"], ["C0"]),
    "untyped inside": (UNTYPED, ["A0", "A1"], ["D0"]),
    "weights": (WEIGHTS, ["x"], ["y"]),
    "weights cut": (WEIGHTS, ["t"], ["y"]),
    "weights shared": (WEIGHTS, ["x"], ["z", "y"]),
    "weight as input": (WEIGHTS, ["w"], ["t"]),
    "initializer is input": (INITIALIZER_INPUT, ["x"], ["y"]),
    "initializer is cut": (INITIALIZER_INPUT, ["x", "w"], ["y"]),
    "optional values": (OPTIONAL, ["x", "m"], ["y"]),
    "optional values cut": (OPTIONAL, ["t"], ["y"]),
    "branches": (BRANCHES, ["c", "x"], ["y"]),
    "branches after": (BRANCHES, ["y"], ["z"]),
    "branches cut through": (BRANCHES, ["c", "t"], ["y"]),
    "functions": (FUNCTIONS, ["x"], ["t"]),
    "functions all": (FUNCTIONS, ["x"], ["y"]),
    "functions last": (FUNCTIONS, ["t"], ["y"]),
    "functions none": (FUNCTIONS, ["x"], ["z"]),
    "functions in a branch": (FUNCTIONS, ["c", "x"], ["q"]),
}


@pytest.mark.parametrize("name", PARTS)
def test_extractor(name: str, tmp_path: Path) -> None:
    text, inputs, outputs = PARTS[name]

    def call(o: Any, folder: Path) -> Any:
        whole = model(o, text)
        return o.utils.Extractor(whole).extract_model(inputs, outputs), whole

    assert_same(call, tmp_path)


CHECKS = [{}, {"check_model": False}, {"infer_shapes": False}, {"check_model": False,
          "infer_shapes": False}]  # fmt: skip


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("options", CHECKS, ids=str)
def test_extract_model(name: str, options: dict[str, bool], tmp_path: Path) -> None:
    text, inputs, outputs = PARTS[name]

    def call(o: Any, folder: Path) -> Any:
        whole, part = folder / "whole.onnx", str(folder / "part.onnx")
        whole.write_bytes(model(o, text).SerializeToString())
        result = o.utils.extract_model(whole, part, inputs, outputs, **options)
        return result, o.load(part), sorted(path.name for path in folder.iterdir())

    assert_same(call, tmp_path)


def _graph_parts(o: Any, folder: Path) -> Any:
    extractor = o.utils.Extractor(model(o, WEIGHTS))
    reached: set[int] = set()
    extractor._dfs_search_reachable_nodes("y", {"x"}, reached)
    nodes = extractor._collect_reachable_nodes(["x"], ["z"])
    return (
        extractor.model,
        extractor.graph,
        list(extractor.initializers.items()),
        list(extractor.value_infos.items()),
        list(extractor.outmap.items()),
        reached,
        nodes,
        extractor._collect_reachable_tensors(nodes),
        extractor._collect_referred_local_functions(nodes),
        extractor._collect_new_io(["t", "x"]),
        extractor._build_name2obj_dict(extractor.graph.output),
        extractor._build_output_dict(extractor.graph),
        extractor._make_model(nodes, [], [], [], [], []),
    )


def _changed(change: Callable[[Any, Any], None]) -> Call:
    def call(o: Any, folder: Path) -> Any:
        whole = model(o, DIAMOND)
        change(o, whole)
        return o.utils.Extractor(whole).extract_model(["B0", "B1"], ["C0"])

    return call


def _shared_names(o: Any, whole: Any) -> None:
    """One name among inputs, value types and initializers: who wins, and where it stands."""
    whole.graph.value_info.append(o.helper.make_tensor_value_info("A0", 7, [9]))
    whole.graph.value_info.append(o.helper.make_tensor_value_info("D0", 7, [9]))
    whole.graph.value_info.append(o.helper.make_tensor_value_info("B0", 7, [9]))
    for value in (1.0, 2.0):
        whole.graph.initializer.append(o.helper.make_tensor("B1", 1, [1], [value]))


def _written_elsewhere(location: str) -> Call:
    """A model whose weight lies in a file of its own."""

    def call(o: Any, folder: Path) -> Any:
        whole = model(o, WEIGHTS)
        for tensor in whole.graph.initializer:
            tensor.raw_data = np.array(tensor.float_data, np.float32).tobytes()
            del tensor.float_data[:]
        path = folder / "whole.onnx"
        o.save(whole, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
        if location:
            (folder / "weights.bin").rename(folder / location)
        o.utils.extract_model(path, folder / "part.onnx", ["x"], ["y"])
        return o.load(folder / "part.onnx", load_external_data=False)

    return call


def _to(output_path: Any) -> Call:
    def call(o: Any, folder: Path) -> Any:
        path = folder / "whole.onnx"
        path.write_bytes(model(o, DIAMOND).SerializeToString())
        return o.utils.extract_model(path, output_path, ["B0", "B1"], ["C0"])

    return call


def _from_file(content: bytes) -> Call:
    def call(o: Any, folder: Path) -> Any:
        path = folder / "whole.onnx"
        path.write_bytes(content)
        return o.utils.extract_model(str(path), str(folder / "part.onnx"), ["B0"], ["C0"])

    return call


SPECIAL: dict[str, Call] = {
    "attributes and steps": _graph_parts,
    "two makers": _changed(lambda o, whole: whole.graph.node.append(whole.graph.node[0])),
    "one node makes it twice": _changed(lambda o, whole: whole.graph.node[0].output.append("B0")),
    "sparse initializer": _changed(lambda o, whole: whole.graph.sparse_initializer.add()),
    "quantization": _changed(lambda o, whole: whole.graph.quantization_annotation.add()),
    "shared names": _changed(_shared_names),
    "cycle": _changed(lambda o, whole: whole.graph.node[3].input.append("D0")),
    "no versions": _changed(
        lambda o, whole: [whole.ClearField(name) for name in ("ir_version", "opset_import")]
    ),
    "empty model": lambda o, folder: o.utils.Extractor(o.ModelProto()).extract_model([], []),
    "no model": lambda o, folder: o.utils.Extractor(None),
    "a graph": lambda o, folder: o.utils.Extractor(o.GraphProto()),
    "missing file": lambda o, folder: o.utils.extract_model(folder / "no", folder, ["a"], ["b"]),
    "empty file": _from_file(b""),
    "broken file": _from_file(b"\xff\xfe\xfd"),
    "output path empty": _to(""),
    "output path None": _to(None),
    "output folder missing": _to("/nonexistent/folder/part.onnx"),
    "external data": _written_elsewhere(""),
    "external data lost": _written_elsewhere("moved.bin"),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_cases(name: str, tmp_path: Path) -> None:
    assert_same(SPECIAL[name], tmp_path)


def test_large_parts_get_a_data_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checker = ours.checker
    monkeypatch.setattr(checker, "MAXIMUM_PROTOBUF", 5_000)
    whole = model(ours, WEIGHTS)
    large = ours.helper.make_tensor("w", 1, [2], np.ones(2, np.float32).tobytes(), raw=True)
    large.dims[0] = 2_000
    large.raw_data = np.ones(2_000, np.float32).tobytes()
    whole.graph.initializer[0].CopyFrom(large)
    path = tmp_path / "whole.onnx"
    path.write_bytes(whole.SerializeToString())
    part = tmp_path / "part.onnx"
    utils.extract_model(path, part, ["x"], ["y"], check_model=False, infer_shapes=False)
    assert (tmp_path / "part.onnx.data").stat().st_size == 8_000
    assert ours.load(part).graph.initializer[0].raw_data == large.raw_data


def _archive(folder: Path, *members: tarfile.TarInfo) -> Path:
    path = folder / "archive.tar"
    with tarfile.open(path, "w") as archive:
        for member in members:
            archive.addfile(member, io.BytesIO(b"x" * member.size))
    return path


def _member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    member.size = 3 if kind == tarfile.REGTYPE else 0
    return member


MEMBERS = {
    "files": [_member("a/b.txt"), _member("c")],
    "up": [_member("../evil")],
    "sibling": [_member("../model_evil/x")],
    "absolute": [_member("/tmp/evil")],
    "symbolic link": [_member("l", tarfile.SYMTYPE, "/etc/passwd")],
    "inner link": [_member("c"), _member("l", tarfile.SYMTYPE, "c")],
    "hard link": [_member("c"), _member("l", tarfile.LNKTYPE, "c")],
    "folder": [_member("d", tarfile.DIRTYPE), _member("d/e")],
    "up and down": [_member("d/../e")],
    "nothing": [],
}


@pytest.mark.parametrize("name", MEMBERS)
def test_archives(name: str, tmp_path: Path) -> None:
    def filtered(o: Any, folder: Path) -> Any:
        with tarfile.open(_archive(folder, *MEMBERS[name])) as archive:
            return [
                member.name for member in o.utils._tar_members_filter(archive, folder / "model")
            ]

    def unpacked(o: Any, folder: Path) -> Any:
        target = folder / "model"
        o.utils._extract_model_safe(_archive(folder, *MEMBERS[name]), target)
        return sorted(str(path.relative_to(target)) for path in target.rglob("*"))

    for place, call in (("filtered", filtered), ("unpacked", unpacked)):
        (tmp_path / place).mkdir()
        assert_same(call, tmp_path / place)


METHODS = [name for name, _ in inspect.getmembers(real.utils.Extractor, inspect.isfunction)]


@pytest.mark.parametrize(
    "name", ["extract_model", "Extractor", *[f"Extractor.{method}" for method in METHODS]]
)
def test_signatures(name: str) -> None:
    def shape(module: Any) -> list[Any]:
        target = module
        for part in name.split("."):
            target = getattr(target, part)
        parameters = inspect.signature(target).parameters.values()
        return [(each.name, each.kind, each.default) for each in parameters]

    assert shape(utils) == shape(real.utils)


def test_examples() -> None:
    result = doctest.testmod(utils)
    assert result.attempted and not result.failed


@pytest.mark.parametrize("depth", [102, 20_000])
def test_endless_nesting_is_refused(depth: int) -> None:
    whole = model(ours, DIAMOND)
    inner = whole.graph.node[3].attribute.add(name="b").g
    for _ in range(depth):
        inner = inner.node.add().attribute.add(name="b").g
    with pytest.raises(RecursionError, match="nested more than"):
        utils.Extractor(whole).extract_model(["B0", "B1"], ["C0"])


def test_large_models_are_cut_in_seconds() -> None:
    whole = ours.ModelProto()
    for index in range(10_000):
        inputs = [f"v{index}", f"v{index // 2}"]
        whole.graph.node.add(op_type="Add", input=inputs, output=[f"v{index + 1}"])
        whole.graph.value_info.add(name=f"v{index + 1}")
    start = time.perf_counter()
    part = utils.Extractor(whole).extract_model(["v1"], ["v9999"])
    assert len(part.graph.node) == 9_998
    assert time.perf_counter() - start < 10
