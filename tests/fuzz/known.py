"""Findings that are known and not yet mended: what each is, and a pattern of how it is told.

The aim is an empty table. Whoever mends one takes its row out.
"""

import re
from dataclasses import dataclass

from tests.fuzz.judge import Finding


@dataclass(frozen=True)
class Known:
    """What is known, and what `kind [what] place text` of its findings matches."""

    reason: str
    pattern: str


KNOWN: tuple[Known, ...] = ()


def known(finding: Finding) -> bool:
    """Whether a finding is in the table."""
    told = f"{finding.kind} [{finding.what}] {finding.place} {finding.text}"
    return any(re.search(item.pattern, told) for item in KNOWN)
