"""The cycle collector, kept out of work that makes objects by the hundred thousand."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sardonyx.graph.model import Model


@contextmanager
def collection_paused() -> Iterator[None]:
    """Creating many objects that stay sets off the cycle collector again and again, in vain.

    >>> with collection_paused():
    ...     gc.isenabled()
    False
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def disband(model: "Model") -> None:
    """Cut the ties between nodes of a model that nobody needs: its memory is free at once.

    The model and everything in it are unusable afterwards.
    """
    for graph in list(model.graphs()):
        graph.nodes.disband()
        graph.inputs, graph.initializers, graph.declared = [], [], {}
        graph.outputs.clear()
        graph.owner = None
