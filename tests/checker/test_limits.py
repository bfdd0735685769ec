"""Constants and versions at the limits of the rules, on the side that is allowed."""

from pathlib import Path
from typing import Any

import onnx
import pytest

from sardonyx.checker import find_problems
from sardonyx.dtypes import DataType
from tests.checker.broken_models import PLAIN, sound
from tests.checker.broken_tensors import FIELDS

KINDS = [kind for kind in DataType if kind != DataType.UNDEFINED]


def rules(path: Path | None = None, **fields: Any) -> list[str]:
    """The rules that a model with one more initializer breaks."""
    model = onnx.ModelProto.FromString(sound(PLAIN))
    made = model.graph.initializer.add(name="q")
    for name, value in fields.items():
        if isinstance(value, dict):
            made.data_location = 1
            made.external_data.extend(
                onnx.StringStringEntryProto(key=key, value=item) for key, item in value.items()
            )
        elif isinstance(value, list):
            getattr(made, name).extend(value)
        else:
            setattr(made, name, value)
    if path is None:
        return [finding.rule for finding in find_problems(model)]
    path.write_bytes(model.SerializeToString())
    return [finding.rule for finding in find_problems(path)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 8])
def test_exactly_as_much_data_as_a_type_takes(kind: DataType, count: int) -> None:
    entries = {2: kind.raw_size(count), 4: kind.raw_size(count)}.get(kind.bits, count)
    if kind in (DataType.COMPLEX64, DataType.COMPLEX128):
        entries = 2 * count
    typed = {kind.field: FIELDS[kind.field] * entries}
    assert rules(dims=[count], data_type=int(kind), **typed) == []
    if kind != DataType.STRING:
        raw = bytes(kind.raw_size(count))
        assert rules(dims=[count], data_type=int(kind), raw_data=raw) == []


@pytest.mark.parametrize(
    ("content", "count", "expected"),
    [
        (b"\x3f", 1, []),
        (b"\x40", 1, ["tensor-float6-bits"]),
        (b"\xff\x0f", 2, []),
        (b"\xff\x10", 2, ["tensor-float6-bits"]),
        (b"\xff\xff\x03", 3, []),
        (b"\xff\xff\x04", 3, ["tensor-float6-bits"]),
        (b"\xff\xff\xff", 4, []),
        (b"\xff\xff\xff\x3f", 5, []),
    ],
)
def test_bits_that_belong_to_elements_of_six(
    content: bytes, count: int, expected: list[str]
) -> None:
    assert rules(dims=[count], data_type=27, raw_data=content) == expected


@pytest.mark.parametrize(("entry", "expected"), [(63, []), (64, ["tensor-float6-bits"])])
def test_entries_of_six_bits(entry: int, expected: list[str]) -> None:
    assert rules(dims=[1], data_type=27, int32_data=[entry]) == expected


@pytest.mark.parametrize(
    ("dims", "expected"),
    [
        ([2**63 - 1, 0], []),
        ([2**62, 2, 0], ["tensor-too-large"]),
        ([0, 2**62, 2**62], []),
        ([2**63 - 1], ["tensor-no-data"]),
        ([0], []),
    ],
)
def test_the_most_elements(dims: list[int], expected: list[str]) -> None:
    assert rules(dims=dims, data_type=1) == expected


@pytest.mark.parametrize("location", ["w.bin", "a..b", "...", "..w.bin", "sub/w.bin"])
@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, []),
        ({"offset": "0", "length": "8"}, []),
        ({"offset": "2"}, []),
        ({"offset": "3"}, ["external-data-unreachable"]),
        ({"length": "7"}, ["external-data-size"]),
        ({"length": "9"}, ["external-data-size"]),
    ],
)
def test_data_in_another_file(
    location: str, more: dict[str, str], expected: list[str], tmp_path: Path
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / location).write_bytes(bytes(10))
    entries = {"location": location, **more}
    assert rules(tmp_path / "m.onnx", dims=[2], data_type=1, external_data=entries) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_types_begin_with_an_ir_version(kind: DataType) -> None:
    model = onnx.ModelProto.FromString(sound(PLAIN))
    model.graph.initializer.add(name="q", dims=[0], data_type=int(kind))
    for version in range(4, 15):
        model.ir_version = version
        found = [finding.rule for finding in find_problems(model)]
        assert ("ir-version-too-old" in found) == (version < kind.since_ir)
        assert "ir-version-too-new" not in found


@pytest.mark.parametrize(("version", "findings"), [(14, 0), (15, 1)])
def test_the_newest_ir_version(version: int, findings: int) -> None:
    model = onnx.ModelProto.FromString(sound(PLAIN))
    model.ir_version = version
    assert len(find_problems(model)) == findings


@pytest.mark.parametrize(
    ("domain", "version", "findings"),
    [("", 28, 0), ("", 29, 1), ("ai.onnx.ml", 5, 0), ("ai.onnx.ml", 6, 1), ("own", 2**31 - 1, 0)],
)
def test_the_newest_versions_of_operator_sets(domain: str, version: int, findings: int) -> None:
    model = onnx.ModelProto.FromString(sound(PLAIN))
    kept = [item for item in model.opset_import if item.domain != domain]
    del model.opset_import[:]
    model.opset_import.extend(kept)
    model.opset_import.add(domain=domain, version=version)
    assert [item.rule for item in find_problems(model)] == ["opset-too-new"] * findings
