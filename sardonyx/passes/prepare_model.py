"""A model as it was read -> one that passes can work on: sorted, with the sizes asked for."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sardonyx.errors import InputError
from sardonyx.graph import Dimension, Graph, Model, TensorType, Value
from sardonyx.graph.clone import clone_model
from sardonyx.graph.sort import sort_graph
from sardonyx.ops.catalog import Catalog, canonical_domain
from sardonyx.ops.tolerate import unite_constants
from sardonyx.passes.options import Options


def prepare_model(model: Model, options: Options, catalog: Catalog) -> Model:
    """A copy with nodes in order, weights that are constants, and the input shapes asked for.

    Before IR version 4 weights had to be listed as inputs; such a model becomes one of version 4.
    """
    twin = clone_model(model)
    graph = twin.graph
    if graph is None:
        return twin
    unite_constants(graph)
    sort_graph(graph)
    if twin.ir_version < 4:
        twin.ir_version = 4
        weights = set(graph.initializers)
        graph.inputs = [value for value in graph.inputs if value not in weights]
    fix_shapes(graph, options.input_shapes, options.free_dimensions, dynamic=options.dynamic)
    _forget_types(graph, catalog)
    return twin


def fix_shapes(
    graph: Graph,
    shapes: Mapping[str, Sequence[Dimension]],
    sizes_of: Mapping[str, int],
    *,
    dynamic: bool = True,
) -> None:
    """Give inputs these shapes; a symbol that becomes a number does so wherever it stands."""
    inputs = {value.name: value for value in graph.inputs}
    symbols = _checked_sizes(graph, sizes_of)
    for name, shape in shapes.items():
        value = inputs.get(name)
        if value is None:
            known = ", ".join(inputs)
            raise InputError(f"the model has no input '{name}'", hint=f"its inputs are: {known}")
        _fix(value, tuple(shape), symbols)
    for value in [*graph.inputs, *graph.outputs]:
        declared = value.declared
        if not isinstance(declared, TensorType) or declared.shape is None:
            continue
        sizes = tuple(symbols.get(size, size) if isinstance(size, str) else size
                      for size in declared.shape)  # fmt: skip
        if not dynamic and value in graph.inputs:
            sizes = tuple(size if isinstance(size, int) and size >= 0 else 1 for size in sizes)
            symbols |= {
                old: new for old, new in zip(declared.shape, sizes, strict=True)
                if isinstance(old, str)
            }  # fmt: skip
        if sizes != declared.shape:
            value.declared = declared.with_shape(sizes)


def _checked_sizes(graph: Graph, sizes: Mapping[str, int]) -> dict[str, Dimension]:
    """Numbers for symbols; fails where an input has no such symbol, or a number is no size."""
    shapes = (getattr(value.declared, "shape", None) or () for value in graph.inputs)
    known = dict.fromkeys(size for shape in shapes for size in shape if isinstance(size, str))
    for name, size in sizes.items():
        if name not in known:
            raise InputError(
                f"no input has a dimension '{name}'",
                hint=f"the open ones are: {', '.join(known) or 'none'}",
            )
        if size < 0:
            raise InputError(f"the dimension '{name}' cannot have the size {size}")
    return dict(sizes)


def _fix(value: Value, shape: tuple[Dimension, ...], symbols: dict[str, Dimension]) -> None:
    declared = value.declared
    if not isinstance(declared, TensorType):
        raise InputError(f"input '{value.name}' is no tensor: it has no shape")
    if declared.shape is not None:
        if len(declared.shape) != len(shape):
            raise InputError(
                f"input '{value.name}' has {len(declared.shape)} dimensions, not {len(shape)}"
            )
        for old, new in zip(declared.shape, shape, strict=True):
            if isinstance(old, str) and isinstance(new, int):
                symbols[old] = new
            elif isinstance(old, int) and old > 0 and isinstance(new, int) and old != new:
                raise InputError(
                    f"input '{value.name}' has the size {old} where {new} is asked for",
                    hint="only open sizes can be fixed",
                )
    value.declared = replace(declared, shape=shape, dim_denotations=None, verbatim=None)


def _forget_types(graph: Graph, catalog: Catalog) -> None:
    """Drop what a file says of values that inference finds by itself: it may be out of date."""
    for part in graph.walk():
        for node in part.nodes:
            if (canonical_domain(node.domain), node.op_type) not in catalog:
                continue
            if node.op_type in ("Loop", "Scan", "If", "SequenceMap") or node.domain:
                continue
            for value in node.outputs:
                if not value.is_output and value.declared is not None:
                    value.declared = None
                    part.declared.pop(value, None)
