"""What runs natively, and the reasons for what does not."""

from sardonyx.compiler.coverage import RARE, cover_native, stays
from sardonyx.ops.catalog import standard


def test_reasons_are_only_given_for_operators_that_stay() -> None:
    rows = {(row.domain, row.name): row for row in cover_native()}
    for (domain, name), reason in stays().items():
        assert (domain, name) in standard()
        row = rows[domain or "ai.onnx", name]
        assert (row.how, row.reason) == ("reference", reason)


def test_few_operators_stay_for_being_rare() -> None:
    rare = [row for row in cover_native() if row.reason == RARE]
    assert [row.name for row in rare if row.domain == "ai.onnx"] == ["GlobalLpPool", "MaxRoiPool"]
    assert len(rare) <= 30
