"""Which operators are known, and what is known of each."""

from collections.abc import Iterable

from sardonyx.ops.catalog import Catalog, standard
from sardonyx.record import record


@record
class OperatorCoverage:
    """One operator: its versions, and which hooks it has."""

    domain: str
    name: str
    versions: tuple[int, ...]
    infer: bool
    reference: bool
    function: bool


@record
class DomainCoverage:
    """The operators of one domain, counted."""

    domain: str
    operators: int
    versions: int
    infer: int
    reference: int
    function: int


def cover_operators(catalog: Catalog | None = None) -> list[OperatorCoverage]:
    """Every operator, ordered by domain and name; the default domain is written `ai.onnx`.

    >>> [item.versions for item in cover_operators() if item.name == "Softmax"]
    [(1, 11, 13)]
    """
    known = standard() if catalog is None else catalog
    return [
        OperatorCoverage(
            domain or "ai.onnx",
            name,
            tuple(version.since for version in operator.versions()),
            operator.infer is not None,
            operator.reference is not None,
            operator.function is not None,
        )
        for (domain, name), operator in sorted(known.items())
    ]


def cover_domains(operators: Iterable[OperatorCoverage]) -> list[DomainCoverage]:
    """The same, counted by domain.

    >>> [item.domain for item in cover_domains(cover_operators())][:2]
    ['ai.onnx', 'ai.onnx.ml']
    """
    groups: dict[str, list[OperatorCoverage]] = {}
    for item in operators:
        groups.setdefault(item.domain, []).append(item)
    return [
        DomainCoverage(
            domain,
            len(items),
            sum(len(item.versions) for item in items),
            sum(item.infer for item in items),
            sum(item.reference for item in items),
            sum(item.function for item in items),
        )
        for domain, items in sorted(groups.items())
    ]
