"""Verbs that show a model, or what is installed."""

from pathlib import Path
from typing import Annotated

import typer

ModelPath = Annotated[Path, typer.Argument(help="The model: .onnx, .onnxtxt, .textproto or .json.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Dims = Annotated[
    list[str] | None,
    typer.Option("--dim", help="SYMBOL=SIZE for a dynamic dimension; may be repeated."),
]


def inspect(
    model: ModelPath,
    nodes: Annotated[bool, typer.Option("--nodes", help="List every node.")] = False,
    weights: Annotated[
        bool, typer.Option("--weights", help="List every weight, with statistics.")
    ] = False,
    graph: Annotated[
        bool, typer.Option("--graph", help="Print the graph as text, without large weights.")
    ] = False,
    dim: Dims = None,
    json: AsJson = False,
) -> None:
    """Show what a model is: inputs, outputs, size, cost and more."""
    from sardonyx.cli.inspect import show_model

    show_model(model, nodes=nodes, weights=weights, graph=graph, dims=dim or [], as_json=json)


def check(
    model: ModelPath,
    full: Annotated[
        bool, typer.Option("--full", help="Infer types and shapes too, report contradictions.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Report everything that breaks ONNX's rules, with remedies."""
    from sardonyx.cli.inspect import report_problems

    if not report_problems(model, full=full, as_json=json):
        raise typer.Exit(1)


def diff(
    left: Annotated[Path, typer.Argument(help="A model.")],
    right: Annotated[Path, typer.Argument(help="The model to compare it with.")],
    runs: Annotated[
        int, typer.Option(min=0, help="Compare results on this many random inputs.")
    ] = 1,
    json: AsJson = False,
) -> None:
    """Show what differs between two models, if anything does."""
    from sardonyx.cli.inspect import show_differences

    if show_differences(left, right, runs, as_json=json):
        raise typer.Exit(1)


def text(
    model: ModelPath,
    output: Annotated[Path | None, typer.Option(help="Write to this file.")] = None,
    json: AsJson = False,
) -> None:
    """Print a model in ONNX's syntax; `parse` reads it back."""
    from sardonyx.cli.inspect import show_text

    show_text(model, output, as_json=json)


def explain(
    model: ModelPath,
    provider: Annotated[str | None, typer.Option(help="The execution provider.")] = None,
    json: AsJson = False,
) -> None:
    """Say for each node what runs it."""
    from sardonyx.cli.inspect import explain_nodes

    explain_nodes(model, provider, as_json=json)


def coverage(
    operators: Annotated[
        bool, typer.Option("--operators", help="List every operator with its versions.")
    ] = False,
    json: AsJson = False,
) -> None:
    """List how many operators of each domain are known."""
    from sardonyx.cli.coverage import show_coverage

    show_coverage(operators, as_json=json)


def doctor(json: AsJson = False) -> None:
    """Show versions, processor, limits and known problems."""
    from sardonyx.cli.doctor import show_machine

    show_machine(as_json=json)


def add_to(app: typer.Typer) -> None:
    """Make the verbs of this module known."""
    for verb in (inspect, check, diff, text, explain, coverage, doctor):
        app.command()(verb)
