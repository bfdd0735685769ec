"""Which IR version and operator sets each release of ONNX brought."""

from collections.abc import Sequence
from typing import Any

VersionRowType = tuple[str, int, int, int] | tuple[str, int, int, int, int]
VersionTableType = list[VersionRowType]
VersionMapType = dict[tuple[str, int], int]

VERSION_TABLE: VersionTableType = [
    ("1.0", 3, 1, 1),
    ("1.1", 3, 5, 1),
    ("1.1.2", 3, 6, 1),
    ("1.2", 3, 7, 1),
    ("1.3", 3, 8, 1),
    ("1.4.1", 4, 9, 1),
    ("1.5.0", 5, 10, 1),
    ("1.6.0", 6, 11, 2),
    ("1.7.0", 7, 12, 2, 1),
    ("1.8.0", 7, 13, 2, 1),
    ("1.8.1", 7, 13, 2, 1),
    ("1.9.0", 7, 14, 2, 1),
    ("1.10.0", 8, 15, 2, 1),
    ("1.10.1", 8, 15, 2, 1),
    ("1.10.2", 8, 15, 2, 1),
    ("1.11.0", 8, 16, 3, 1),
    ("1.12.0", 8, 17, 3, 1),
    ("1.13.0", 8, 18, 3, 1),
    ("1.13.1", 8, 18, 3, 1),
    ("1.14.0", 9, 19, 3, 1),
    ("1.14.1", 9, 19, 3, 1),
    ("1.15.0", 9, 20, 4, 1),
    ("1.16.0", 10, 21, 5, 1),
    ("1.16.1", 10, 21, 5, 1),
    ("1.16.2", 10, 21, 5, 1),
    ("1.17.0", 10, 22, 5, 1),
    ("1.18.0", 11, 23, 5, 1),
    ("1.19.0", 12, 24, 5, 1),
    ("1.19.1", 12, 24, 5, 1),
    ("1.20.0", 13, 25, 5, 1),
    ("1.20.1", 13, 25, 5, 1),
    ("1.21.0", 13, 26, 5, 1),
    ("1.22.0", 13, 27, 5, 1),
    ("1.23.0", 14, 28, 5, 1),
]
"""Release, IR version, then the versions of ai.onnx, ai.onnx.ml and ai.onnx.training."""

NEWEST_OPSET = VERSION_TABLE[-1][2]
"""The newest version of the default operator set."""

_OLDEST_IR = 3
_DOMAINS = ("ai.onnx", "ai.onnx.ml", "ai.onnx.training")
_PREVIEWS = {"ai.onnx": "ai.onnx.preview", "ai.onnx.training": "ai.onnx.preview.training"}


def create_op_set_id_version_map(table: VersionTableType) -> VersionMapType:
    """(domain, version) -> the IR version of the first release in `table` that had it.

    >>> from sardonyx.compat.onnx import helper
    >>> helper.create_op_set_id_version_map([("1.0", 3, 1, 1)])["ai.onnx.ml", 1]
    3
    """
    first_seen: VersionMapType = {}
    for row in table:
        ir_version = row[1]
        for domain, version in zip(_DOMAINS, row[2:], strict=False):
            if (domain, version) in first_seen:
                continue
            first_seen[domain, version] = ir_version
            if domain in _PREVIEWS:
                first_seen[_PREVIEWS[domain], version] = ir_version
    return first_seen


OP_SET_ID_VERSION_MAP = create_op_set_id_version_map(VERSION_TABLE)
"""(domain, version) of an operator set -> the lowest IR version that may import it."""


def find_min_ir_version_for(opsetidlist: Sequence[Any], ignore_unknown: bool = False) -> int:
    """The lowest IR version with which every one of these operator sets was released.

    An operator set in no release raises ValueError, or counts as the oldest IR version if
    `ignore_unknown`.

    >>> from sardonyx.compat.onnx import helper
    >>> helper.find_min_ir_version_for([helper.make_opsetid("", 17)])
    8
    """
    lowest = _OLDEST_IR
    for opset in opsetidlist or ():
        needed = OP_SET_ID_VERSION_MAP.get((opset.domain or "ai.onnx", opset.version))
        if needed is None and not ignore_unknown:
            raise ValueError(
                f"version {opset.version} of domain {opset.domain or 'ai.onnx'!r} is in no ONNX "
                "release; pass ignore_unknown=True to skip domains of your own"
            )
        lowest = max(lowest, needed or _OLDEST_IR)
    return lowest
