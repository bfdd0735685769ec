"""Rules about what any part of a model may carry along: metadata, and fields nobody knows."""

from typing import Any

from sardonyx.checker.context import Context, kept_fields
from sardonyx.checker.findings import Place, Report
from sardonyx.checker.versions import METADATA


def check_metadata(context: Context, item: Any, tags: Any, place: Place) -> None:
    """Rules about the `metadata` of an item and about its `leftover` bytes."""
    if item.metadata:
        context.require_ir(METADATA, "metadata on parts of a model", place)
    if item.leftover:
        check_leftover(context.report, item.leftover, tags, place, "metadata-duplicate")


def check_leftover(
    report: Report, leftover: bytes, tags: Any, place: Place, duplicate: str
) -> None:
    """Note repeated metadata, by the rule `duplicate`, and fields without a meaning."""
    numbers = [number for number, _ in kept_fields(leftover)]
    if tags.metadata_props >> 3 in numbers:
        report.add(duplicate, place, "two metadata properties have the same key")
    for number in dict.fromkeys(numbers):
        if number not in tags.numbers:
            report.add("unknown-field", place, f"the field {number} is not known")
