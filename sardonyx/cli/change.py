"""Verbs that write a model."""

from pathlib import Path
from typing import Annotated

import typer

from sardonyx.cli.look import AsJson, Dims, ModelPath

Target = Annotated[Path, typer.Argument(help="Where to write; the suffix chooses the form.")]


def convert(
    model: ModelPath,
    target: Target,
    opset: Annotated[int | None, typer.Option(help="Convert to this opset version.")] = None,
    keep_types: Annotated[
        bool,
        typer.Option(
            "--keep-types", help="Keep element types that an older opset does not list, and say so."
        ),
    ] = False,
    ir: Annotated[int | None, typer.Option(help="Write this IR version.")] = None,
    compat: Annotated[
        str | None, typer.Option(help="Write what a release reads, such as 'onnxruntime>=1.20'.")
    ] = None,
    external_data: Annotated[
        str | None,
        typer.Option(
            help="Put weights into this file beside the model, or folder if it ends in /."
        ),
    ] = None,
    embed: Annotated[
        bool, typer.Option("--embed", help="Put all weights into the model file.")
    ] = False,
    fp16: Annotated[
        bool, typer.Option("--fp16", help="Compute in float16 where it computed in float32.")
    ] = False,
    bf16: Annotated[
        bool, typer.Option("--bf16", help="Compute in bfloat16 where it computed in float32.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Write a model in another form, version or precision."""
    from sardonyx.cli.write import convert_model

    convert_model(
        model, target, opset=opset, keep_types=keep_types, ir=ir, compat=compat,
        external=external_data, embed=embed,
        floats=[name for name, wanted in (("float16", fp16), ("bfloat16", bf16)) if wanted],
        as_json=json,
    )  # fmt: skip


def infer_shapes(
    model: ModelPath,
    target: Target,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at a contradiction.")] = False,
    json: AsJson = False,
) -> None:
    """Write a model with the types of all its values."""
    from sardonyx.cli.write import infer_model

    infer_model(model, target, strict=strict, as_json=json)


def extract(
    model: ModelPath,
    target: Target,
    inputs: Annotated[str, typer.Option(help="Names of values the part takes, with commas.")],
    outputs: Annotated[str, typer.Option(help="Names of values the part returns, with commas.")],
    json: AsJson = False,
) -> None:
    """Write the part of a model between some values."""
    from sardonyx.cli.write import extract_part

    extract_part(model, target, inputs, outputs, as_json=json)


def merge(
    first: Annotated[Path, typer.Argument(help="The model that runs first.")],
    second: Annotated[Path, typer.Argument(help="The model that runs on its results.")],
    target: Target,
    map: Annotated[
        list[str], typer.Option("--map", help="OUTPUT:INPUT to connect; may be repeated.")
    ],
    json: AsJson = False,
) -> None:
    """Write one model that runs two, one after the other."""
    from sardonyx.cli.write import merge_pair

    merge_pair(first, second, target, map, as_json=json)


def set_metadata(
    model: ModelPath,
    entries: Annotated[list[str], typer.Argument(help="KEY=VALUE; KEY= removes a key.")],
    output: Annotated[
        Path | None, typer.Option(help="Write here; the model itself is replaced if absent.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Add, change or remove a model's metadata."""
    from sardonyx.cli.write import change_metadata

    change_metadata(model, entries, output, as_json=json)


def parse(
    source: Annotated[Path, typer.Argument(help="Text in ONNX's syntax; - for standard input.")],
    target: Target,
    json: AsJson = False,
) -> None:
    """Write a model from its text."""
    from sardonyx.cli.write import parse_text

    parse_text(source, target, as_json=json)


def simplify(
    model: ModelPath,
    target: Target,
    input_shape: Annotated[
        list[str] | None, typer.Option(help="NAME=SIZE,SIZE,... fixes the shape of an input.")
    ] = None,
    dim: Dims = None,
    static: Annotated[
        bool, typer.Option("--static", help="Make every dimension that is left open 1.")
    ] = False,
    skip: Annotated[list[str] | None, typer.Option(help="Leave out the pass of this name.")] = None,
    fold_limit: Annotated[
        int | None, typer.Option(min=0, help="The most bytes a computed constant may take.")
    ] = None,
    opset: Annotated[
        int | None, typer.Option(help="Bring the model to this opset first, if it is newer.")
    ] = None,
    verify: Annotated[
        int, typer.Option(min=0, help="Compare both models on this many random inputs.")
    ] = 0,
    json: AsJson = False,
) -> None:
    """Write a smaller model that computes the same."""
    from sardonyx.cli.simplify import simplify_model

    simplify_model(
        model, target, shapes=input_shape or [], dims=dim or [], dynamic=not static,
        skip=skip or [], fold_limit=fold_limit, extra_opset=opset, verify=verify, as_json=json,
    )  # fmt: skip


def optimize(
    model: ModelPath,
    target: Target,
    level: Annotated[int, typer.Option(help="From 0, nothing, to 3, a newer opset too.")] = 2,
    fusions: Annotated[
        str, typer.Option(help="Operators of one runtime to end in: com.microsoft.")
    ] = "",
    json: AsJson = False,
) -> None:
    """Write a model made smaller, by level."""
    from sardonyx.cli.simplify import optimize_model

    optimize_model(model, target, level, fusions, as_json=json)


def add_to(app: typer.Typer) -> None:
    """Make the verbs of this module known."""
    for verb in (convert, infer_shapes, extract, merge, set_metadata, parse, simplify, optimize):
        app.command(verb.__name__.replace("_", "-"))(verb)
