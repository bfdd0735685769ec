"""All rules about a whole model, in the order in which they are looked at."""

from dataclasses import replace

from sardonyx.checker.context import Context, Interface, Scope
from sardonyx.checker.devices import device_counts
from sardonyx.checker.findings import Finding, Place, Report, errors_of
from sardonyx.checker.functions import check_functions
from sardonyx.checker.graphs import check_graph
from sardonyx.checker.inference import infer_problems
from sardonyx.checker.metadata import check_leftover
from sardonyx.checker.training import check_training
from sardonyx.checker.versions import (
    DEVICES,
    IMPORTS,
    check_imports,
    check_ir_version,
    effective_imports,
)
from sardonyx.format.tags import MODEL
from sardonyx.graph import Model
from sardonyx.ops.catalog import Catalog, standard

_STEP = " > "
WHOLE = Place("model")
"""Where findings are that belong to no graph."""


def find_model_problems(
    model: Model, full: bool = False, *, catalog: Catalog | None = None, custom_domains: bool = True
) -> list[Finding]:
    """Every problem of a model; with `full` also what inference of types and shapes finds."""
    report = Report()
    operators = standard() if catalog is None else catalog
    context = model_context(report, model, operators, custom_domains=custom_domains)
    inferred: list[Finding] = []
    if full:
        inferred, type_of = infer_problems(model, operators)
        context = replace(context, type_of=type_of)
    check_ir_version(report, model, WHOLE)
    check_imports(report, model, WHOLE)
    check_leftover(report, model.leftover, MODEL, WHOLE, "model-metadata-duplicate")
    scope = Scope()
    if model.graph is None:
        report.add("model-graph-missing", WHOLE, "the model has no graph")
    else:
        scope = check_graph(context, model.graph, Place(f"graph '{model.graph.name}'"))
    check_functions(context, model.functions, WHOLE)
    check_training(context, model, scope, WHOLE)
    return report.findings + _remaining(inferred, report.findings)


def model_context(
    report: Report, model: Model, catalog: Catalog, *, custom_domains: bool
) -> Context:
    """What holds for the nodes of a model's main graph."""
    devices = device_counts(report, model, WHOLE)
    opsets = effective_imports(model)
    if not opsets and model.ir_version < IMPORTS:
        opsets[""] = 1
    context = Context(
        report,
        catalog,
        model.ir_version,
        opsets,
        {function.key: Interface.of(function) for function in model.functions},
        devices,
        custom_domains=custom_domains,
    )
    if devices:
        context.require_ir(DEVICES, "device configurations", WHOLE)
    return context


def _remaining(inferred: list[Finding], known: list[Finding]) -> list[Finding]:
    """What inference found beyond the consequences of errors that are known already."""
    wrong: set[str] = set()
    for finding in errors_of(known):
        steps = finding.where.split(_STEP)
        wrong.update(_STEP.join(steps[:count]) for count in range(1, len(steps) + 1))
    if wrong:
        inferred = [finding for finding in inferred if finding.rule != "inference-failed"]
    return [finding for finding in inferred if finding.where not in wrong]
