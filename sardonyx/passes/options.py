"""What a caller may ask of the passes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sardonyx.graph import Dimension

FOLD_LIMIT = 16 * 1024 * 1024
"""Bytes that a folded constant may take, where nothing else is asked for."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to simplify a model.

    >>> Options(skip=("merge_duplicates",)).fold_limit
    16777216
    """

    skip: tuple[str, ...] = ()
    """Names of passes to leave out."""
    input_shapes: Mapping[str, Sequence[Dimension]] = field(default_factory=dict)
    """Shapes to give to inputs, by name."""
    free_dimensions: Mapping[str, int] = field(default_factory=dict)
    """Numbers for symbolic sizes of inputs, by the symbol."""
    dynamic: bool = True
    """False makes every size that is left open 1."""
    fold_limit: int = FOLD_LIMIT
    """Results of constant folding above this many bytes stay computed, unless they are smaller
    than what they are computed from."""
    unroll_limit: int = 1
    """Loops of at most this many rounds are unrolled, where that does not make the model larger
    than `unroll_nodes`."""
    unroll_nodes: int = 200
    rounds: int = 8
    """How often the pipeline is repeated at most."""
    provenance: bool = True
    """Write into the metadata of new nodes which nodes they came from, where the IR has it."""
