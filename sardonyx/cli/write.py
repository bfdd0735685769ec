"""The verbs that write a model."""

import sys
from pathlib import Path
from typing import Any

import sardonyx as sx
from sardonyx.cli.output import report_written, waiting
from sardonyx.cli.session import split_pair
from sardonyx.errors import InputError
from sardonyx.format.storage import ExternalData


def write(model: sx.Model, target: Path, *, as_json: bool, **options: Any) -> None:
    """Write a model, and say so."""
    save_as_asked(model, target, **options)
    said = {
        "ir_version": model.ir_version,
        "opsets": {domain or "ai.onnx": version for domain, version in model.opsets.items()},
        "nodes": sum(len(graph.nodes) for graph in model.graphs()),
    }
    report_written(target, said, as_json=as_json)


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
    compat: str | None, external: str | None, embed: bool, floats: list[str], as_json: bool,
) -> None:  # fmt: skip
    """Write a model in another form, version or precision."""
    if external is not None and embed:
        raise InputError("--external-data and --embed contradict each other", hint="give one")
    if len(floats) > 1:
        raise InputError("--fp16 and --bf16 contradict each other", hint="give one")
    if keep_types and opset is None:
        raise InputError("--keep-types says how to convert, and --opset is not given")
    model = sx.load(path)
    with waiting("converting"):
        if opset is not None:
            model = sx.convert_opset(model, opset, types="keep" if keep_types else "strict")
        for name in floats:
            model = sx.convert_floats(model, name)
    if ir is not None:
        model.ir_version = ir
        sx.check(model)
    write(model, target, as_json=as_json, external=external, embed=embed, compat=compat)


def infer_model(path: Path, target: Path, *, strict: bool, as_json: bool) -> None:
    """Write a model with inferred types."""
    with waiting("inferring"):
        model = sx.infer_shapes(sx.load(path), strict=strict)
    write(model, target, as_json=as_json)


def extract_part(path: Path, target: Path, inputs: str, outputs: str, *, as_json: bool) -> None:
    """Write a part of a model."""
    with waiting("extracting"):
        part = sx.extract_model(sx.load(path), _names(inputs), _names(outputs))
    write(part, target, as_json=as_json)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def merge_pair(
    first: Path, second: Path, target: Path, connections: list[str], *, as_json: bool
) -> None:
    """Write two models as one."""
    pairs = {}
    for word in connections:
        source, sign, end = word.partition(":")
        if not sign or not source or not end:
            raise InputError(f"'{word}' is not of the form OUTPUT:INPUT")
        pairs[source] = end
    with waiting("merging"):
        both = sx.merge_models(sx.load(first), sx.load(second), pairs)
    write(both, target, as_json=as_json)


def change_metadata(path: Path, entries: list[str], output: Path | None, *, as_json: bool) -> None:
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
    write(model, output or path, as_json=as_json)


def parse_text(source: Path, target: Path, *, as_json: bool) -> None:
    """Write a model from its text."""
    if str(source) == "-":
        model = sx.load_text(sys.stdin.read())
    else:
        model = sx.load(source, format="onnxtxt")
    write(model, target, as_json=as_json)
