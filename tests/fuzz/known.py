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


KNOWN = (
    Known("an empty input of axes with noop_with_empty_axes copies",
          r"^difference \[(Reduce|Cast.*Reduce)"),
    Known("coordinates beyond the floats' resolution", r"^difference \[GridSample"),
    Known("the largest of no samples", r"^difference \[RoiAlign"),
    Known("Elu near 0", r"^difference \[.*(Elu|Celu|Selu)"),
    Known("float8 without saturation, folded", r"^difference \[Cast.*float8"),
)  # fmt: skip


def known(finding: Finding) -> bool:
    """Whether a finding is in the table."""
    told = f"{finding.kind} [{finding.what}] {finding.place} {finding.text}"
    return any(re.search(item.pattern, told) for item in KNOWN)
