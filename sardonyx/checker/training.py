"""Rules about training information: its graphs, and what their outputs are bound to."""

from collections import Counter
from dataclasses import replace

from sardonyx.checker.context import Context, Scope
from sardonyx.checker.findings import Place
from sardonyx.checker.graphs import check_graph
from sardonyx.checker.versions import TRAINING
from sardonyx.graph import Graph, Model, TrainingInfo


def check_training(context: Context, model: Model, scope: Scope, place: Place) -> None:
    """All rules about a model's training information; `scope` is that of its main graph."""
    for position, info in enumerate(model.training):
        here = place / f"training info {position}"
        context.require_ir(TRAINING, "training information", here)
        _check_info(context, model, info, scope, here)


def _check_info(
    context: Context, model: Model, info: TrainingInfo, scope: Scope, place: Place
) -> None:
    constants = {value.name for value in model.graph.initializers} if model.graph else set()
    first, step = info.initialization, info.algorithm
    if first is not None:
        here = place / f"initialization '{first.name}'"
        check_graph(context, first, here)
        if first.inputs:
            what = f"the initialization has {len(first.inputs)} inputs"
            context.report.add("training-initialization-inputs", here, what)
    if step is not None:
        inner = replace(context, depth=context.depth + 1)
        check_graph(inner, step, place / f"algorithm '{step.name}'", scope)
        constants |= {value.name for value in step.initializers}
    bindings = (
        ("initialization_binding", info.initialization_binding, first),
        ("update_binding", info.update_binding, step),
    )
    for label, pairs, graph in bindings:
        _check_bindings(context, pairs, graph, constants, place / label)


def _check_bindings(
    context: Context,
    pairs: list[tuple[str, str]],
    graph: Graph | None,
    constants: set[str],
    place: Place,
) -> None:
    report = context.report
    outputs = {value.name for value in graph.outputs} if graph is not None else set()
    for name, count in Counter(key for key, _ in pairs).items():
        if count > 1:
            report.add("training-binding-duplicate", place, f"'{name}' is bound {count} times")
        if name not in constants:
            what = f"'{name}' is not an initializer of the model"
            report.add("training-binding-key", place, what)
    for _, name in pairs:
        if name not in outputs:
            what = f"'{name}' is not an output of the training graph"
            report.add("training-binding-value", place, what)
