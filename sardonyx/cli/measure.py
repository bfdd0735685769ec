"""Verbs that run a model."""

from pathlib import Path
from typing import Annotated

import typer

from sardonyx.cli.look import AsJson, Dims, ModelPath

Inputs = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        help="NAME=FILE (.npy .npz .pb .json .png .wav), NAME=JSON, NAME=random|zeros|ones, or "
        "without NAME= for the only input; FILE.npz may hold arrays by name. Random if absent. "
        "May be repeated.",
    ),
]
Provider = Annotated[str | None, typer.Option("--provider", help="The execution provider.")]
Seed = Annotated[int, typer.Option("--seed", help="For random inputs.")]
Threads = Annotated[
    int | None, typer.Option("--threads", min=1, max=1024, help="How many threads a run may use.")
]

Precision = Annotated[
    str | None,
    typer.Option("--precision", help="What products of float32 may lose: highest, high or medium."),
]


def run(
    model: ModelPath,
    input: Inputs = None,
    dim: Dims = None,
    output: Annotated[
        Path | None, typer.Option("--output", help="Write the outputs to this .npz file.")
    ] = None,
    intermediates: Annotated[
        str | None, typer.Option(help="Show inner values whose names match this expression too.")
    ] = None,
    provider: Provider = None,
    threads: Threads = None,
    precision: Precision = None,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Check and run a model, and show what came out."""
    from sardonyx.cli.run import run_model
    from sardonyx.cli.session import Request

    given = tuple(input or ()), tuple(dim or ())
    request = Request(model, *given, provider, seed, threads, precision=precision)
    run_model(request, output, intermediates, as_json=json)


def bench(
    model: ModelPath,
    input: Inputs = None,
    dim: Dims = None,
    runs: Annotated[int, typer.Option("--runs", "-n", min=1, help="How many runs count.")] = 10,
    warmups: Annotated[int, typer.Option(min=0, help="How many runs before that do not.")] = 1,
    against: Annotated[
        list[str] | None,
        typer.Option(help="Other runtimes to take turns with, such as onnxruntime,openvino."),
    ] = None,
    threads: Threads = None,
    batch: Annotated[
        int | None, typer.Option(min=1, help="The size of the inputs' first dimension.")
    ] = None,
    provider: Provider = None,
    precision: Precision = None,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Time a model: the best and the median of some runs."""
    from sardonyx.cli.bench import bench_model
    from sardonyx.cli.peers import read_names
    from sardonyx.cli.session import Request

    given = tuple(input or ()), tuple(dim or ())
    request = Request(model, *given, provider, seed, threads, batch, precision)
    bench_model(request, runs, warmups, read_names(against or []), as_json=json)


def profile(
    model: ModelPath,
    input: Inputs = None,
    dim: Dims = None,
    runs: Annotated[int, typer.Option("--runs", "-n", min=1, help="How many runs.")] = 1,
    top: Annotated[int, typer.Option(min=0, help="How many nodes or kernels to list.")] = 20,
    trace: Annotated[
        Path | None, typer.Option(help="Write a trace for chrome://tracing or Perfetto.")
    ] = None,
    roofline: Annotated[
        bool,
        typer.Option("--roofline", help="Show each kernel beside what the machine can do."),
    ] = False,
    threads: Threads = None,
    provider: Provider = None,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Show where the time goes: by operator, node or kernel."""
    from sardonyx.cli.profile import profile_model
    from sardonyx.cli.roofline import show_roofline
    from sardonyx.cli.session import Request

    request = Request(model, tuple(input or ()), tuple(dim or ()), provider, seed, threads)
    if roofline:
        show_roofline(request, runs, top, trace, as_json=json)
        return
    profile_model(request, runs, top, trace, as_json=json)


def compare(
    model: ModelPath,
    input: Inputs = None,
    dim: Dims = None,
    against: Annotated[
        str, typer.Option("--against", help="Another runtime, onnxruntime or openvino, or a model.")
    ] = "onnxruntime",
    rtol: Annotated[float, typer.Option(help="Relative tolerance.")] = 1e-3,
    atol: Annotated[float, typer.Option(help="Absolute tolerance.")] = 1e-5,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Compare outputs with another runtime or model."""
    from sardonyx.cli.compare import compare_model
    from sardonyx.cli.session import Request

    request = Request(model, tuple(input or ()), tuple(dim or ()), None, seed)
    if not compare_model(request, against, rtol, atol, as_json=json):
        raise typer.Exit(1)


def add_to(app: typer.Typer) -> None:
    """Make the verbs of this module known."""
    for verb in (run, bench, profile, compare):
        app.command()(verb)
