"""Findings: what is wrong with a model, where, by which rule, and what to do about it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from sardonyx.checker.rules import RULES
from sardonyx.errors import CheckError
from sardonyx.graph import Node

Severity = Literal["error", "warning"]
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem of a model.

    >>> print(Finding("cycle", "graph 'g'", "two nodes wait for each other", "break the cycle"))
    graph 'g': two nodes wait for each other [cycle]; break the cycle
    """

    rule: str
    where: str
    what: str
    remedy: str = ""
    severity: Severity = "error"

    def __str__(self) -> str:
        text = f"{self.where}: {self.what} [{self.rule}]"
        return f"{text}; {self.remedy}" if self.remedy else text


class Place:
    """A path into a model; its text is only made when something is found there.

    >>> print(Place("graph 'g'") / Node("Relu", name="n") / "input 0")
    graph 'g' > node 'n' (Relu) > input 0
    """

    __slots__ = ("_label", "_parent")

    def __init__(self, label: "str | Node", parent: "Place | None" = None) -> None:
        self._label = label
        self._parent = parent

    def __truediv__(self, label: "str | Node") -> "Place":
        return Place(label, self)

    def __str__(self) -> str:
        labels: list[str] = []
        place: Place | None = self
        while place is not None:
            label = place._label
            labels.append(label.where() if isinstance(label, Node) else label)
            place = place._parent
        return " > ".join(reversed(labels))


class Report:
    """Collects findings."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self._features: set[str] = set()

    def add(self, rule: str, place: Place, what: str) -> None:
        """Note that `rule` is broken at `place`."""
        known = RULES[rule]
        severity: Severity = "warning" if known.warning else "error"
        self.findings.append(Finding(rule, str(place), what, known.remedy, severity))

    def add_once(self, feature: str, rule: str, place: Place, what: str) -> None:
        """Note a problem that would come up at every use of `feature` at its first use only."""
        if feature not in self._features:
            self._features.add(feature)
            self.add(rule, place, what)


def errors_of(findings: Iterable[Finding]) -> list[Finding]:
    """The findings that make a model wrong, without the warnings."""
    return [finding for finding in findings if finding.severity == "error"]


def check_error(findings: list[Finding], source: str) -> CheckError:
    """The error that lists findings, errors before warnings."""
    errors = errors_of(findings)
    warnings = [finding for finding in findings if finding.severity == "warning"]
    count = f"{len(errors)} problem{'s' if len(errors) > 1 else ''}"
    lines = [f"{source or 'the model'} has {count}:"]
    lines += [f"  {finding}" for finding in errors[:_SHOWN]]
    if len(errors) > _SHOWN:
        lines.append(f"  and {len(errors) - _SHOWN} more")
    return CheckError("\n".join(lines), findings=(*errors, *warnings))
