"""The order in which passes run: `simplify` and `optimize`."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from sardonyx.boundary import public
from sardonyx.errors import ConversionError, UnsupportedError
from sardonyx.graph import Dimension, Model
from sardonyx.ops.catalog import Catalog, standard
from sardonyx.ops.convert import convert_opset
from sardonyx.ops.well_formed import require_well_formed
from sardonyx.passes.clean_quantization import clean_quantization
from sardonyx.passes.drop_identities import drop_identities
from sardonyx.passes.drop_states import drop_states
from sardonyx.passes.flatten_products import flatten_products
from sardonyx.passes.fold_constants import fold_constants
from sardonyx.passes.fold_shapes import fold_shapes
from sardonyx.passes.fuse_affine import fuse_affine
from sardonyx.passes.fuse_convolution import fuse_convolution
from sardonyx.passes.fuse_microsoft import fuse_microsoft
from sardonyx.passes.fuse_products import fuse_products
from sardonyx.passes.inline_branches import inline_branches
from sardonyx.passes.inline_calls import inline_calls
from sardonyx.passes.know_values import Knowledge
from sardonyx.passes.lift_constants import lift_constants
from sardonyx.passes.merge_casts import merge_casts
from sardonyx.passes.merge_duplicates import merge_duplicates
from sardonyx.passes.merge_joins import merge_joins
from sardonyx.passes.merge_reshapes import merge_reshapes
from sardonyx.passes.merge_transposes import merge_transposes
from sardonyx.passes.options import FOLD_LIMIT, Options
from sardonyx.passes.pack_attention import pack_attention
from sardonyx.passes.prepare_model import prepare_model
from sardonyx.passes.raise_activations import raise_activations
from sardonyx.passes.raise_attention import raise_attention
from sardonyx.passes.raise_groups import raise_groups
from sardonyx.passes.raise_normalization import raise_normalization
from sardonyx.passes.raise_rotary import raise_rotary
from sardonyx.passes.remove_dead import drop_functions, forget_values, name_apart, remove_dead
from sardonyx.passes.resolve_lists import resolve_lists
from sardonyx.passes.unit import Unit
from sardonyx.passes.unroll_loops import unroll_loops

Pass = Callable[[Unit], bool]

CLEAN: tuple[Pass, ...] = (
    lift_constants,
    fold_shapes,
    fold_constants,
    inline_branches,
    unroll_loops,
    resolve_lists,
    drop_identities,
    drop_states,
    merge_duplicates,
    remove_dead,
)
"""What only takes away."""

PORTABLE: tuple[Pass, ...] = (
    *CLEAN[:-1],
    merge_casts,
    merge_joins,
    merge_reshapes,
    merge_transposes,
    raise_normalization,  # before constants are joined: the written-out forms must be whole
    raise_groups,
    raise_activations,
    raise_rotary,
    raise_attention,
    pack_attention,
    fuse_convolution,
    fuse_affine,
    flatten_products,
    fuse_products,
    clean_quantization,
    remove_dead,
)
"""What makes a model smaller and leaves it one that every runtime reads."""

EARLY: tuple[Pass, ...] = (merge_duplicates,)
"""What runs before inference, too: models with the same weight in a hundred places are inferred
and computed once for all of them."""

LEVELS: dict[int, tuple[Pass, ...]] = {0: (), 1: CLEAN, 2: PORTABLE, 3: PORTABLE}
"""Pipelines by level of `optimize`."""

FUSIONS: dict[str, tuple[Pass, ...]] = {"com.microsoft": (fuse_microsoft, remove_dead)}
"""Pipelines that end in operators of one runtime, by their domain."""

RAISED_OPSET = 24
"""The first opset that has every operator which passes put in the place of several others."""


@public("simplifying the model")
def simplify(
    model: Model,
    *,
    overwrite_input_shapes: Mapping[str, Sequence[Dimension]] | None = None,
    free_dimensions: Mapping[str, int] | None = None,
    skip: Iterable[str] = (),
    dynamic: bool = True,
    fold_limit: int = FOLD_LIMIT,
    extra_opset: int | None = None,
    verify: int = 0,
) -> Model:
    """A smaller model that computes the same, of the same opset, with the same inputs and outputs.

    `overwrite_input_shapes` fixes shapes of inputs by name, `free_dimensions` symbolic sizes by
    their symbol, and `dynamic=False` makes all that are left open 1. `skip` leaves out passes by
    name. Constants are computed where the result takes at most `fold_limit` bytes. `extra_opset`
    brings the model to that opset first, so that operators which are new in it (LayerNormalization
    in 17, Gelu in 20 ...) can be used. `verify=3` runs both models on three random inputs and
    raises, with the pass and the node to blame, where they differ.

    >>> import sardonyx as sx
    >>> model = sx.load_text('''<ir_version: 10, opset_import: ["": 21]>
    ... g (float[n,6] x) => (float[n,2,3] y) {
    ...   shape = Shape <end = 1> (x)
    ...   rest = Constant <value_ints = [2, 3]> ()
    ...   target = Concat <axis = 0> (shape, rest)
    ...   y = Reshape (x, target)
    ... }''')
    >>> [node.op_type for node in simplify(model).graph.nodes]
    ['Reshape']
    """
    options = Options(
        skip=tuple(skip),
        input_shapes=dict(overwrite_input_shapes or {}),
        free_dimensions=dict(free_dimensions or {}),
        dynamic=dynamic,
        fold_limit=fold_limit,
    )
    if extra_opset is not None and extra_opset > model.opset > 0:
        model = convert_opset(model, extra_opset)
    small = run_pipeline(model, PORTABLE, options)
    if verify:
        from sardonyx.passes.verify_result import verify_result

        verify_result(model, small, PORTABLE, options, verify)
    return small


@public("optimizing the model")
def optimize(
    model: Model, level: int = 2, *, options: Options | None = None, fusions: str = ""
) -> Model:
    """A model made smaller by a level's pipeline: 0 nothing, 1 only what is superfluous goes, 2
    what `simplify` does, 3 loops are unrolled too, and the opset is raised where that gives
    operators (Attention, RMSNormalization ...) which the model's own has not. With
    `fusions="com.microsoft"` it then gets operators that only onnxruntime must know.

    >>> import sardonyx as sx
    >>> model = sx.load("examples/digits.onnx")
    >>> len(optimize(model, 1).graph.nodes) <= len(model.graph.nodes)
    True
    """
    if level not in LEVELS:
        raise UnsupportedError(f"there is no level {level}", hint=f"choose one of {list(LEVELS)}")
    if fusions:
        if fusions not in FUSIONS:
            raise UnsupportedError(
                f"there are no fusions '{fusions}'", hint=f"choose one of {list(FUSIONS)}"
            )
        return run_pipeline(optimize(model, level, options=options), FUSIONS[fusions], options)
    if level < 3:
        return run_pipeline(model, LEVELS[level], options)
    chosen = options or Options(unroll_limit=8)
    raised = _with_raised_opset(model, chosen)
    return raised if raised is not None else run_pipeline(model, LEVELS[level], chosen)


def _with_raised_opset(model: Model, options: Options) -> Model | None:
    """What level 3 makes of a model at a newer opset; None where that brings no operator."""
    before = model.opset
    if not 0 < before < RAISED_OPSET:
        return None
    try:
        newer = convert_opset(model, RAISED_OPSET)
    except ConversionError:
        return None
    small = run_pipeline(newer, LEVELS[3], options)
    catalog = standard()
    used = {node.op_type for graph in small.graphs() for node in graph.nodes if not node.domain}
    known = [catalog[("", name)] for name in used if ("", name) in catalog]
    gained = any(operator.versions()[0].since > before for operator in known)
    return small if gained else None


def run_pipeline(
    model: Model,
    pipeline: tuple[Pass, ...],
    options: Options | None = None,
    *,
    catalog: Catalog | None = None,
    steps: int | None = None,
    record: list[str] | None = None,
) -> Model:
    """A copy of `model` on which a pipeline has run until nothing changes.

    `record` receives the name of each pass that changed something; after `steps` of these it stops.
    """
    chosen = options or Options()
    operators = standard() if catalog is None else catalog
    known = {item.__name__ for item in (*pipeline, inline_calls, *PORTABLE)}
    unknown = [name for name in chosen.skip if name not in known]
    if unknown:
        raise UnsupportedError(
            f"there is no pass '{unknown[0]}'", hint=f"there are: {', '.join(sorted(known))}"
        )
    require_well_formed(model, operators)
    twin = prepare_model(model, chosen, operators)
    names: list[str] = [] if record is None else record
    wanted = tuple(item for item in pipeline if item.__name__ not in chosen.skip)
    if pipeline and "inline_calls" not in chosen.skip and inline_calls(twin):
        names.append("inline_calls")
        require_well_formed(twin, operators)
    _run_rounds(twin, wanted, chosen, operators, names, steps)
    drop_functions(twin)
    forget_values(twin)
    name_apart(twin)
    return twin


def _run_rounds(
    model: Model, pipeline: tuple[Pass, ...], options: Options, catalog: Catalog,
    names: list[str], steps: int | None,
) -> None:  # fmt: skip
    knowledge = Knowledge(catalog)
    early = tuple(item for item in EARLY if item in pipeline)
    _run_round(make_units(model, options, None, catalog), early, names, steps)
    for _ in range(options.rounds):
        if not _run_round(make_units(model, options, knowledge, catalog), pipeline, names, steps):
            return


def _run_round(
    units: list[Unit], pipeline: tuple[Pass, ...], names: list[str], steps: int | None
) -> bool:
    changed = False
    for unit in units:
        for step in pipeline:
            if steps is not None and len(names) >= steps:
                return False
            if step(unit):
                names.append(step.__name__)
                changed = True
    return changed


def make_units(
    model: Model, options: Options, knowledge: Knowledge | None, catalog: Catalog
) -> list[Unit]:
    """What passes work on: the main graph, with what inference adds to knowledge, and functions."""
    units: list[Unit] = []
    if model.graph is not None:
        facts = {} if knowledge is None else knowledge.update(model)
        refused = set() if knowledge is None else knowledge.refused
        units.append(Unit(model, model.graph, model.opsets, catalog, options, facts, refused))
    for function in model.functions:
        unit = Unit(model, function.graph, function.opsets, catalog, options, is_function=True)
        units.append(unit)
    return units
