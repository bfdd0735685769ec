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
    Known("what a fed shape tells is not compared with the tensor",
          r"^refusal \[.*only the compiled runs: EvaluationError: .*\((Expand|Reshape)\)"),
    Known("a declared output size is believed",
          r"^(refusal|difference) \[.*(NonMaxSuppression|ConstantOfShape|Range).*"
          r"(does not fit|differ|the model needs|shape|cannot be padded|not int)"),
    Known("a stacked output of no trips has no sizes behind its first",
          r"^refusal \[nested .*(has the shape \[0|do not broadcast|must have the same shape)"),
    Known("NumPy refuses to reduce, frame or pool nothing, kernels do not",
          r"^refusal \[.*only the compiled runs: .*(zero-size array|window shape|of size 0|"
          r"out of bounds|do not fill|leave a cache|cannot be padded)"),
    Known("directions that are none", r"^refusal \[BitShift.*neither LEFT nor RIGHT"),
    Known("nodes with too few operands reach the passes",
          r"^foreign \[.* (passes/drop_identities|ops/operator|graph/node|passes/lift_constants|"
          r"compiler/kernels/copies|compiler/build)\.py"),
    Known("forms of damaged attributes", r"^rule \[.*(does not get the form|it failed)"),
    Known("ragged lists", r"^foreign \[.*runtime/(values|binding)\.py.*inhomogeneous"),
)  # fmt: skip


def known(finding: Finding) -> bool:
    """Whether a finding is in the table."""
    told = f"{finding.kind} [{finding.what}] {finding.place} {finding.text}"
    return any(re.search(item.pattern, told) for item in KNOWN)
