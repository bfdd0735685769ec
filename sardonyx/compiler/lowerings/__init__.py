"""How operators become forms: one function for each, found by domain and name."""

from sardonyx.compiler.lowerings import (
    contraction,
    cumulative,
    indexing,
    movement,
    pointwise,
    reduction,
)
from sardonyx.compiler.lowerings.request import Agreement, Lowering, Lowerings, Request

LOWERINGS: Lowerings = (
    pointwise.LOWERINGS
    | movement.LOWERINGS
    | reduction.LOWERINGS
    | contraction.LOWERINGS
    | indexing.LOWERINGS
    | cumulative.LOWERINGS
)
"""All lowerings."""
TYPE_BLIND = (
    frozenset(movement.LOWERINGS) | frozenset(indexing.LOWERINGS) | {("", "Cast"), ("", "Where")}
)
"""Operators that only move elements or cast them: they take every element type as it is."""

__all__ = ["LOWERINGS", "TYPE_BLIND", "Agreement", "Lowering", "Lowerings", "Request"]
