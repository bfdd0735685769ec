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


def text(
    model: ModelPath,
    output: Annotated[Path | None, typer.Option(help="Write to this file.")] = None,
) -> None:
    """Print a model in ONNX's syntax; `parse` reads it back."""
    from sardonyx.cli.inspect import show_text

    show_text(model, output)


def show(
    model: ModelPath,
    after: Annotated[
        str, typer.Option(help="The stage: load, upgrade, inline or infer.")
    ] = "infer",
) -> None:
    """Print a model after a stage on its way to being run."""
    from sardonyx.cli.inspect import show_stage

    show_stage(model, after)


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
    """Show versions, processor, limits and optional packages."""
    from sardonyx.cli.doctor import show_machine

    show_machine(as_json=json)


def view(
    model: ModelPath,
    html: Annotated[Path | None, typer.Option(help="Write one page here instead.")] = None,
    compare: Annotated[Path | None, typer.Option(help="A second model, beside the first.")] = None,
    port: Annotated[int, typer.Option(help="The port on this machine; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open a browser.")] = True,
) -> None:
    """Show a model as a page that can be searched and zoomed."""
    from sardonyx.format.files import replacing
    from sardonyx.viewer import render_html, serve

    if html is None:
        serve(model, port=port, open_browser=browser, title=model.name, compare=compare)
        return
    page = render_html(model, title=model.name, compare=compare)
    with replacing(html) as staged:
        staged.write_text(page, encoding="utf-8")
    print(f"wrote {html}")


def add_to(app: typer.Typer) -> None:
    """Make the verbs of this module known."""
    for verb in (inspect, check, text, show, explain, coverage, view, doctor):
        app.command()(verb)
