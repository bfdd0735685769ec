"""Rules about constants: dense tensors and where their elements are stored."""

from pathlib import PureWindowsPath

import numpy as np

from sardonyx.checker.context import Context, kept_fields
from sardonyx.checker.findings import Place
from sardonyx.checker.metadata import check_metadata
from sardonyx.checker.versions import require_element
from sardonyx.dtypes import DataType, from_numpy
from sardonyx.errors import ExternalDataError, SardonyxError
from sardonyx.format.storage import (
    DOUBLE_DATA,
    FLOAT_DATA,
    INT32_DATA,
    INT64_DATA,
    RAW_DATA,
    STRING_DATA,
    UINT64_DATA,
    ExternalData,
    PackedData,
    RawData,
    StringData,
)
from sardonyx.format.tags import TENSOR
from sardonyx.format.wire import WireError, count_varints, decode_varints
from sardonyx.graph import ArrayData, Data, Tensor

_FIELDS = {
    FLOAT_DATA: "float_data",
    INT32_DATA: "int32_data",
    STRING_DATA: "string_data",
    INT64_DATA: "int64_data",
    RAW_DATA: "raw_data",
    DOUBLE_DATA: "double_data",
    UINT64_DATA: "uint64_data",
}
_ENTRY_BYTES = {FLOAT_DATA: 4, DOUBLE_DATA: 8}
_MOST_ELEMENTS = 2**63 - 1
_ELEMENTS = frozenset(DataType) - {DataType.UNDEFINED}


def check_tensor(context: Context, tensor: Tensor, place: Place) -> None:
    """All rules about one dense tensor."""
    report, data = context.report, tensor.data
    check_metadata(context, tensor, TENSOR, place)
    require_element(context, tensor.element, place)
    if tensor.segment is not None:
        report.add("tensor-segment", place, "the tensor is a segment of a larger one")
    if tensor.element == DataType.UNDEFINED:
        report.add("tensor-element-undefined", place, "the tensor has no element type")
        return
    if isinstance(data, ArrayData):
        _check_array(context, tensor, data, place)
        return
    kept = kept_fields(tensor.leftover)
    filled = _filled(data, kept)
    if isinstance(data, ExternalData):
        if filled:
            what = f"the data is in another file and in {_FIELDS[next(iter(filled))]} too"
            report.add("external-data-fields", place, what)
        _check_external(context, tensor, data, place)
        return
    if any(number == TENSOR.external_data >> 3 for number, _ in kept):
        what = "external_data has entries, but data_location does not say EXTERNAL"
        report.add("external-data-ignored", place, what)
    count = _count(context, tensor, place)
    if count is not None:
        _check_stored(context, tensor, count, filled, place)


def _count(context: Context, tensor: Tensor, place: Place) -> int | None:
    count = 1
    for size in tensor.shape:
        if size < 0:
            what = f"the dimensions {list(tensor.shape)} hold a negative size"
            context.report.add("tensor-dimension-negative", place, what)
            return None
        count *= size
        if count > _MOST_ELEMENTS:
            what = f"the dimensions {list(tensor.shape)} mean more than {_MOST_ELEMENTS} elements"
            context.report.add("tensor-too-large", place, what)
            return None
    return count


def _filled(data: Data, kept: list[tuple[int, bytes | None]]) -> dict[int, Data]:
    """The fields that hold elements: that of the tensor's data, and those kept beside it."""
    filled: dict[int, Data] = {}
    match data:
        case RawData(stored=stored) if len(stored):
            filled[RAW_DATA] = data
        case PackedData(number=number, stored=stored) if len(stored):
            filled[number] = data
        case StringData():
            filled[STRING_DATA] = data
    strings = [content or b"" for number, content in kept if number == STRING_DATA]
    if strings:
        filled[STRING_DATA] = StringData(b"", lambda _: strings)
    for number, content in kept:
        if number in _FIELDS and number != STRING_DATA and content:
            filled[number] = RawData(content) if number == RAW_DATA else PackedData(number, content)
    return filled


def _check_stored(
    context: Context, tensor: Tensor, count: int, filled: dict[int, Data], place: Place
) -> None:
    report, known = context.report, tensor.element in _ELEMENTS
    names = " and ".join(_FIELDS[number] for number in filled)
    if not known:
        rule = "raw-element-unknown" if RAW_DATA in filled else "tensor-element-unknown"
        report.add(rule, place, f"the element type {tensor.element} does not exist")
    if count == 0 and filled:
        report.add("tensor-empty-with-data", place, f"it has no elements but data in {names}")
    elif count and not filled:
        report.add("tensor-no-data", place, f"it has {count} elements but no data")
    elif count and len(filled) > 1:
        report.add("tensor-several-fields", place, f"its data is in {names}")
    elif count and known:
        _check_field(context, tensor, count, *next(iter(filled.items())), place)


def _check_field(
    context: Context, tensor: Tensor, count: int, number: int, data: Data, place: Place
) -> None:
    report, kind = context.report, tensor.dtype
    if number == RAW_DATA and kind == DataType.STRING:
        report.add("tensor-string-raw", place, "strings are stored in raw_data")
        return
    if number not in (RAW_DATA, _number(kind)):
        what = f"{kind.text} elements are stored in {_FIELDS[number]}, not in {kind.field}"
        report.add("tensor-data-field", place, what)
        return
    found, need, least = _entries(data, number), *_needed(kind, count, number)
    unit = "bytes" if number == RAW_DATA else "entries"
    what = f"{kind.text}{list(tensor.shape)} takes {need} {unit}, {_FIELDS[number]} has {found}"
    if found < least:
        report.add("tensor-data-short", place, what)
    elif found < need:
        report.add("tensor-packed-short", place, what)
    elif found > need:
        report.add("tensor-data-long", place, what)
    if (
        kind.bits == 6
        and found >= need
        and _has_stray_bits(data, kind.raw_size(count), 6 * count % 8)
    ):
        report.add("tensor-float6-bits", place, "bits are set that belong to no element")


def _number(kind: DataType) -> int:
    return next(number for number, name in _FIELDS.items() if name == kind.field)


def _entries(data: Data, number: int) -> int:
    """How many entries (bytes in raw_data) a field has."""
    match data:
        case StringData(load=load):
            return len(load())
        case RawData(stored=stored):
            return len(stored)
        case PackedData(stored=stored) if number in _ENTRY_BYTES:
            return len(stored) // _ENTRY_BYTES[number]
        case PackedData(buffer=buffer):
            return count_varints(buffer)
    return 0


def _needed(kind: DataType, count: int, number: int) -> tuple[int, int]:
    """How many entries a field must have, and how many if narrow elements filled whole entries."""
    if number == RAW_DATA:
        return kind.raw_size(count), kind.raw_size(count)
    if kind in (DataType.COMPLEX64, DataType.COMPLEX128):
        return 2 * count, 2 * count
    if kind.bits in (2, 4):
        return kind.raw_size(count), -(-count * kind.bits // 32)
    return count, count


def _has_stray_bits(data: Data, size: int, used: int) -> bool:
    """True where bits are set beyond the `used` ones of the last of `size` bytes, or in entries."""
    match data:
        case RawData(buffer=buffer):
            return bool(used and buffer[size - 1] >> used)
        case PackedData(buffer=buffer):
            try:
                return bool(np.any(decode_varints(buffer) > 0x3F))
            except WireError:
                return True
    return False


def _check_array(context: Context, tensor: Tensor, data: ArrayData, place: Place) -> None:
    try:
        kind = from_numpy(data.values.dtype)
    except SardonyxError as error:
        context.report.add("tensor-array-mismatch", place, error.what)
        return
    if data.values.shape != tensor.shape or kind != tensor.element:
        what = f"{tensor.type} holds an array of {kind.text}{list(data.values.shape)}"
        context.report.add("tensor-array-mismatch", place, what)


_IN_MEMORY = "#"
"""How the names of arrays begin that onnx's ModelContainer holds beside a model, in no file."""


def _check_external(context: Context, tensor: Tensor, data: ExternalData, place: Place) -> None:
    report = context.report
    keys = [key for key, _ in data.entries]
    if len(set(keys)) < len(keys):
        report.add("external-entry-duplicate", place, f"external_data has the keys {keys}")
    location = data.location
    if not location:
        report.add("external-location-missing", place, "the data's file is not named")
        return
    if _is_unsafe(location):
        what = f"the data's location {location!r} may lie outside the model's folder"
        report.add("external-location-unsafe", place, what)
        return
    if tensor.element not in _ELEMENTS:
        report.add(
            "raw-element-unknown", place, f"the element type {tensor.element} does not exist"
        )
        return
    if tensor.dtype == DataType.STRING:
        report.add("external-data-string", place, "strings cannot lie in another file")
        return
    try:
        offset, length = data.offset, data.length
    except ExternalDataError as error:
        report.add("external-data-number", place, error.what)
        return
    try:
        need = tensor.dtype.raw_size(tensor.size)
    except SardonyxError as error:
        report.add("external-data-size", place, error.what)
        return
    if length is not None and length != need:
        what = f"{tensor.type} takes {need} bytes, its external data has {length}"
        report.add("external-data-size", place, what)
        return
    if location.startswith(_IN_MEMORY):
        return
    try:
        data.open(location, offset, need)
    except (SardonyxError, OSError, ValueError) as error:
        what = error.what if isinstance(error, SardonyxError) else str(error)
        report.add("external-data-unreachable", place, what)


def _is_unsafe(location: str) -> bool:
    parts = location.replace("\\", "/").split("/")
    absolute = location.startswith(("/", "\\")) or bool(PureWindowsPath(location).drive)
    return absolute or ".." in parts or "\0" in location
