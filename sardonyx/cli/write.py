"""The verbs that write a model."""

import sys
from pathlib import Path
from typing import Any

import sardonyx as sx
from sardonyx.cli.output import print_line, waiting
from sardonyx.cli.session import split_pair
from sardonyx.errors import InputError
from sardonyx.format.storage import ExternalData
from sardonyx.passes.extract import extract_model
from sardonyx.passes.merge import merge_models


def write(model: sx.Model, target: Path, **options: Any) -> None:
    """Write a model, and say so."""
    save_as_asked(model, target, **options)
    print_line(f"wrote {target}")


def save_as_asked(
    model: sx.Model, target: Path, *, external: str | None = None, embed: bool = False, **more: Any
) -> None:
    """Save a model. Weights that lay in other files lie in one beside the target, unless told."""
    where: str | bool | None = external
    if external is None and not embed and _is_external(model):
        where = True
    with waiting("writing"):
        sx.save(model, target, external_data=where, **more)


def _is_external(model: sx.Model) -> bool:
    return any(isinstance(tensor.data, ExternalData) for tensor in model.tensors())


def convert_model(
    path: Path, target: Path, *, opset: int | None, keep_types: bool, ir: int | None,
    compat: str | None, external: str | None, embed: bool,
) -> None:  # fmt: skip
    """Write a model in another form or version."""
    if external is not None and embed:
        raise InputError("--external-data and --embed contradict each other", hint="give one")
    if keep_types and opset is None:
        raise InputError("--keep-types says how to convert, and --opset is not given")
    model = sx.load(path)
    if opset is not None:
        model = sx.convert_opset(model, opset, types="keep" if keep_types else "strict")
    if ir is not None:
        model.ir_version = ir
        sx.check(model)
    write(model, target, external=external, embed=embed, compat=compat)


def infer_model(path: Path, target: Path, *, strict: bool) -> None:
    """Write a model with inferred types."""
    with waiting("inferring"):
        model = sx.infer_shapes(sx.load(path), strict=strict)
    write(model, target)


def extract_part(path: Path, target: Path, inputs: str, outputs: str) -> None:
    """Write a part of a model."""
    write(extract_model(sx.load(path), _names(inputs), _names(outputs)), target)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def merge_pair(first: Path, second: Path, target: Path, connections: list[str]) -> None:
    """Write two models as one."""
    pairs = {}
    for word in connections:
        source, sign, end = word.partition(":")
        if not sign or not source or not end:
            raise InputError(f"'{word}' is not of the form OUTPUT:INPUT")
        pairs[source] = end
    write(merge_models(sx.load(first), sx.load(second), pairs), target)


def change_metadata(path: Path, entries: list[str], output: Path | None) -> None:
    """Write a model with other metadata."""
    model = sx.load(path)
    for word in entries:
        key, said = split_pair(word, "KEY=VALUE")
        if said:
            model.metadata[key] = said
        elif model.metadata.pop(key, None) is None:
            raise InputError(
                f"the model has no metadata '{key}' to remove",
                hint=f"it has: {', '.join(model.metadata) or 'none'}",
            )
    write(model, output or path)


def parse_text(source: Path, target: Path) -> None:
    """Write a model from its text."""
    if str(source) == "-":
        model = sx.load_text(sys.stdin.read())
    else:
        model = sx.load(source, format="onnxtxt")
    write(model, target)
