"""Verbs that show a model on its way, or as a page."""

from pathlib import Path
from typing import Annotated

import typer

from sardonyx.cli.look import AsJson, Dims, ModelPath
from sardonyx.cli.measure import Inputs, Seed


def show(
    model: ModelPath,
    after: Annotated[
        str,
        typer.Option(
            help="The stage: load, upgrade, inline, infer; fuse, loops, llvm or assembly."
        ),
    ] = "infer",
    json: AsJson = False,
) -> None:
    """Print a model after a stage on its way to being run."""
    from sardonyx.cli.inspect import show_stage

    show_stage(model, after, as_json=json)


def view(
    model: ModelPath,
    html: Annotated[Path | None, typer.Option(help="Write one page here instead.")] = None,
    compare: Annotated[Path | None, typer.Option(help="A second model, beside the first.")] = None,
    simplified: Annotated[
        bool, typer.Option("--simplified", help="Put what `simplify` makes of it beside it.")
    ] = False,
    profile: Annotated[
        bool, typer.Option("--profile", help="Run the model, and colour nodes by their time.")
    ] = False,
    input: Inputs = None,
    dim: Dims = None,
    seed: Seed = 0,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port on this machine; 0 takes a free one.")
    ] = 0,
    browser: Annotated[bool, typer.Option(help="Open a browser.")] = True,
    json: AsJson = False,
) -> None:
    """Show a model as a page that can be searched and zoomed."""
    from sardonyx.cli.session import Request
    from sardonyx.cli.view import serve_page, write_page

    request = Request(model, tuple(input or ()), tuple(dim or ()), None, seed)
    sides = {"compare": compare, "simplified": simplified, "profile": profile}
    if html is None:
        serve_page(request, port, browser, as_json=json, **sides)
    else:
        write_page(request, html, as_json=json, **sides)


def add_to(app: typer.Typer) -> None:
    """Make the verbs of this module known."""
    for verb in (view, show):
        app.command()(verb)
