"""Changed official cases end in results like the reference's or in our errors, never in a crash."""

import pytest

from tests.fuzz.calls import run_batch


def crashes(start: int, count: int) -> list[str]:
    """Ends by a signal, and exceptions that are not ours; what only differs has other tests."""
    wrong = (": ended with ", "Error: ")
    return [
        line
        for line in run_batch(start, count)
        if any(text in line.split("]", 1)[-1][:40] for text in wrong) or wrong[0] in line
    ]


def test_no_changed_case_ends_the_process() -> None:
    assert crashes(360, 12) == []


@pytest.mark.slow
def test_no_changed_case_ends_the_process_at_length() -> None:
    assert crashes(2000, 400) == []


@pytest.mark.parametrize("seed", [369, 1242, 1065, 351])
def test_cases_that_once_ended_otherwise(seed: int) -> None:
    """A scatter of too many updates, a size divided by zero, too much memory, no such output."""
    assert crashes(seed, 1) == []
