"""How operators become forms: one function for each, found by domain and name."""

from sardonyx.compiler.lowerings import (
    cumulative,
    einsum,
    features,
    forest,
    indexing,
    integer_products,
    movement,
    pointwise,
    products,
    quantization,
    quantized_elements,
    reduction,
    resampling,
    scattering,
    sliding,
)
from sardonyx.compiler.lowerings.request import Agreement, Lowering, Lowerings, Request

MODULES = (
    pointwise, movement, reduction, indexing, cumulative, resampling, einsum,
    quantization, scattering, features, forest, sliding, integer_products,
    products, quantized_elements,
)  # fmt: skip
LOWERINGS: Lowerings = {
    key: lowering for module in MODULES for key, lowering in module.LOWERINGS.items()
}
"""All lowerings."""
TYPE_BLIND = (
    frozenset(movement.LOWERINGS)
    | frozenset(indexing.LOWERINGS)
    | frozenset(scattering.LOWERINGS)
    | frozenset(quantization.LOWERINGS)
    | frozenset(quantized_elements.LOWERINGS)
    | {("", name) for name in ("Cast", "CastLike", "BitCast", "Where")}
)
"""Operators that only move elements or cast them: they take every element type as it is."""

__all__ = ["LOWERINGS", "TYPE_BLIND", "Agreement", "Lowering", "Lowerings", "Request"]
