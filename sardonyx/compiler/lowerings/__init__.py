"""How operators become forms: one function for each, found by domain and name."""

from sardonyx.compiler.lowerings import (
    attention,
    bit_products,
    choosing,
    cumulative,
    determinant,
    einsum,
    features,
    folding,
    forest,
    fused,
    group_attention,
    indexing,
    integer_products,
    losses,
    movement,
    ordering,
    pointwise,
    products,
    quantization,
    quantized_elements,
    recurrent,
    reduction,
    regions,
    resampling,
    scattering,
    signal,
    sliding,
    state_attention,
    suppression,
    tokens,
    training,
)
from sardonyx.compiler.lowerings.request import Agreement, Lowering, Lowerings, Request

MODULES = (
    pointwise, movement, reduction, indexing, cumulative, resampling, einsum,
    quantization, scattering, features, forest, sliding, recurrent, ordering, choosing,
    suppression, training, signal, tokens, state_attention, regions, determinant, fused, attention,
    group_attention, integer_products, products, quantized_elements, losses, bit_products,
    folding,
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
    | {("", "Compress")}
    | frozenset(quantized_elements.LOWERINGS)
    | {("", name) for name in ("Cast", "CastLike", "BitCast", "Where")}
)
"""Operators that only move elements or cast them: they take every element type as it is."""

__all__ = ["LOWERINGS", "TYPE_BLIND", "Agreement", "Lowering", "Lowerings", "Request"]
