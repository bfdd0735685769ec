"""`sardonyx`, also `sdx`: one command with a verb for each thing to do with a model."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from sardonyx.errors import SardonyxError

app = typer.Typer(
    help="Read, check, change and run ONNX models.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
ModelPath = Annotated[Path, typer.Argument(help="The model: .onnx, .onnxtxt, .textproto or .json.")]


def main() -> None:
    """Run the command line; a user's mistake is one line, not a traceback."""
    try:
        app()
    except SardonyxError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)


@app.command()
def run(
    model: ModelPath,
    input: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=FILE (.npy, .npz, .pb) or NAME=random|zeros|ones; random if absent."
        ),
    ] = None,
    dim: Annotated[
        list[str] | None,
        typer.Option(help="SYMBOL=SIZE for a dynamic dimension of generated inputs; 1 if absent."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Write the outputs to this .npz file.")
    ] = None,
    seed: Annotated[int, typer.Option(help="For random inputs.")] = 0,
) -> None:
    """Check and run a model, and show what ran, how long it took and what came out."""
    from sardonyx.cli.run import run_model

    run_model(model, input or [], dim or [], output, seed)


@app.command()
def check(
    model: ModelPath,
    full: Annotated[
        bool, typer.Option(help="Infer types and shapes too, and report contradictions.")
    ] = False,
) -> None:
    """Report everything that breaks the ONNX specification, with a remedy for each."""
    from sardonyx.cli.inspect import report_problems

    if not report_problems(model, full):
        raise typer.Exit(1)


@app.command()
def inspect(
    model: ModelPath,
    nodes: Annotated[bool, typer.Option(help="List every node.")] = False,
    weights: Annotated[bool, typer.Option(help="List every weight.")] = False,
) -> None:
    """Show what a model is: producer, versions, inputs, outputs, operators, size."""
    from sardonyx.cli.inspect import show_model

    show_model(model, nodes=nodes, weights=weights)


@app.command()
def convert(
    model: ModelPath,
    target: Annotated[Path, typer.Argument(help="Where to write; the suffix chooses the form.")],
    opset: Annotated[int | None, typer.Option(help="Convert to this opset version.")] = None,
    compat: Annotated[
        str | None, typer.Option(help="Write what a release reads, such as 'onnxruntime>=1.20'.")
    ] = None,
    external_data: Annotated[
        str | None,
        typer.Option(
            help="Put weights into this file beside the model, or folder if it ends in /."
        ),
    ] = None,
) -> None:
    """Write a model in another form, opset version, or with its weights in other files."""
    import sardonyx as sx

    loaded = sx.load(model)
    if opset is not None:
        loaded = sx.convert_opset(loaded, opset)
    sx.save(loaded, target, compat=compat, external_data=external_data)
    print(f"wrote {target}")


@app.command("infer-shapes")
def infer_shapes(
    model: ModelPath,
    target: Annotated[Path, typer.Argument(help="Where to write.")],
    strict: Annotated[bool, typer.Option(help="Stop at a contradiction.")] = False,
) -> None:
    """Write a model with the types of all its values."""
    import sardonyx as sx

    sx.save(sx.infer_shapes(sx.load(model), strict=strict), target)
    print(f"wrote {target}")


@app.command()
def text(model: ModelPath) -> None:
    """Print a model in ONNX's textual syntax; `convert` reads it back."""
    import sardonyx as sx

    print(sx.to_text(sx.load(model)))


@app.command()
def coverage() -> None:
    """List how many operators of each domain are known."""
    from sardonyx.cli.coverage import show_coverage

    show_coverage()


if __name__ == "__main__":
    main()
