"""How operators become forms: one function for each, found by domain and name."""

from sardonyx.compiler.lowerings import contraction, movement, pointwise, reduction
from sardonyx.compiler.lowerings.request import Agreement, Lowering, Lowerings, Request

LOWERINGS: Lowerings = (
    pointwise.LOWERINGS | movement.LOWERINGS | reduction.LOWERINGS | contraction.LOWERINGS
)
"""All lowerings."""

__all__ = ["LOWERINGS", "Agreement", "Lowering", "Lowerings", "Request"]
