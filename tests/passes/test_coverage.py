"""Every pass has tests of every kind."""

import subprocess
import sys

import pytest

from tests.passes.cases import Run
from tests.passes.coverage import NAMES, cover, reasons_of


def test_reasons_are_read_from_the_source() -> None:
    assert "the first cast loses" in reasons_of("merge_casts")
    assert len(NAMES) == len(set(NAMES))


def test_what_is_missing_is_seen() -> None:
    runs = [
        Run("merge_casts", changed, symbolic=True, inner=changed, reasons=("MergeCasts: " + text,))
        for changed in (True, False)
        for text in reasons_of("merge_casts")
    ]
    assert cover("merge_casts", runs).complete
    fewer = [run for run in runs if "loses" not in run.reasons[0]]
    assert cover("merge_casts", fewer).missing == ("the first cast loses",)
    assert not cover("merge_joins", runs).complete
    assert not cover("merge_casts", [run._replace(inner=False) for run in runs]).complete


@pytest.mark.slow
def test_every_pass_is_covered() -> None:
    command = [sys.executable, "-m", "tests.passes.coverage"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout[-5000:]
