"""The verbs that show models: inspect, check, diff, text, show, explain."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import sardonyx as sx
from sardonyx.cli.output import (
    bytes_text,
    count_text,
    counting,
    print_facts,
    print_json,
    print_line,
    print_table,
    report_written,
    waiting,
)
from sardonyx.dims import HIDDEN
from sardonyx.format.files import replacing
from sardonyx.format.outline import outline
from sardonyx.passes.summarize import Summary, WeightStatistics, weight_statistics

_LONGEST = 60
"""A symbolic cost longer than this is not shown."""


def show_model(
    path: Path, *, nodes: bool, weights: bool, graph: bool, dims: list[str], as_json: bool
) -> None:
    """Print what a model is."""
    model = sx.load(path)
    sizes = _sizes(model, dims) if dims else {}
    with waiting("looking at the model"):
        summary = sx.summarize(model, sizes)
    statistics = _statistics(model) if weights else []
    if as_json:
        said: dict[str, Any] = {"file": str(path), "file_bytes": disk_size(path, summary)}
        said |= asdict(summary)
        if nodes:
            said["node_list"] = _node_facts(model)
        if weights:
            said["weights"] = [asdict(item) for item in statistics]
        if graph:
            said["graph"] = outline(model)
        print_json(said)
        return
    print_facts(_facts(path, model, summary, sizes))
    if nodes:
        rows = [
            (item["name"], item["operator"], ", ".join(item["inputs"]), ", ".join(item["outputs"]))
            for item in _node_facts(model)
        ]
        print_line()
        print_table("nodes", ("name", "operator", "inputs", "outputs"), rows)
    if weights:
        print_line()
        _print_weights(statistics)
    if graph:
        print_line()
        print(outline(model))


def _sizes(model: sx.Model, dims: list[str]) -> dict[str, int]:
    """What --dim says; what runs models is only loaded for this."""
    from sardonyx.cli.session import known_sizes

    return known_sizes(model, dims)


def disk_size(path: Path, summary: Summary) -> int:
    """Bytes of a model's file and of the data files beside it."""
    files = [path, *(path.parent / location for location in summary.external_data)]
    return sum(file.stat().st_size for file in files if file.is_file())


def _facts(
    path: Path, model: sx.Model, summary: Summary, sizes: dict[str, int]
) -> list[tuple[str, str]]:
    rows = [
        ("file", f"{path} ({bytes_text(disk_size(path, summary))})"),
        ("producer", summary.producer or "-"),
        ("IR version", str(summary.ir_version)),
        ("opsets", ", ".join(f"{name} {version}" for name, version in summary.opsets.items())),
    ]
    if model.doc_string:
        rows.append(("about", model.doc_string.splitlines()[0][:200]))
    rows += [("input", f"{item.name}: {item.type}") for item in summary.inputs]
    rows += [("output", f"{item.name}: {item.type}") for item in summary.outputs]
    if summary.dynamic_dimensions:
        rows.append(("dynamic", ", ".join(summary.dynamic_dimensions)))
    rows.append(
        ("weights", f"{summary.parameters:,} parameters, {bytes_text(summary.weight_bytes)} "
                    f"stored, {bytes_text(summary.memory_bytes)} in memory")
    )  # fmt: skip
    rows.append(("cost", _cost(summary, sizes)))
    listed = ", ".join(f"{name} {count}" for name, count in summary.operators.items())
    rows.append(("operators", f"{summary.nodes} nodes: {listed or '-'}"))
    if summary.functions:
        rows.append(("functions", ", ".join(summary.functions)))
    if summary.quantization:
        found = ", ".join(f"{name} {count}" for name, count in summary.quantization.items())
        rows.append(("quantization", found))
    for location, size in summary.external_data.items():
        rows.append(("external data", f"{location} ({bytes_text(size)} used)"))
    rows += [("metadata", f"{key}: {said}") for key, said in summary.metadata.items()]
    rows += [("warning", text) for text in summary.warnings]
    return rows


def _cost(summary: Summary, sizes: dict[str, int]) -> str:
    missing = f"; {summary.uncounted} nodes have unknown shapes" if summary.uncounted else ""
    if summary.flops.isdigit():
        text = count_text(int(summary.flops), "FLOPs")
    elif len(summary.flops) <= _LONGEST and HIDDEN not in summary.flops:
        text = f"{summary.flops} FLOPs"
    elif free := [name for name in summary.dynamic_dimensions if name not in sizes]:
        names = ", ".join(free)
        return f"depends on {names}, which --dim NAME=SIZE sets{missing}"
    else:
        return f"depends on sizes that are known only at run time{missing}"
    return f"{text} in matrix products and convolutions{missing}"


def _node_facts(model: sx.Model) -> list[dict[str, Any]]:
    return [
        {
            "name": node.name,
            "operator": f"{node.domain}.{node.op_type}" if node.domain else node.op_type,
            "inputs": ["-" if value is None else value.name for value in node.inputs],
            "outputs": [value.name for value in node.outputs],
        }
        for graph in model.graphs()
        for node in graph.nodes
    ]


def _statistics(model: sx.Model) -> list[WeightStatistics]:
    tensors = list(model.tensors())
    found = []
    with counting("reading weights", len(tensors)) as advance:
        for tensor in tensors:
            found.append(weight_statistics(tensor))
            advance()
    return found


def _print_weights(statistics: list[WeightStatistics]) -> None:
    rows = [
        (
            item.name,
            item.type,
            bytes_text(item.bytes),
            "-" if item.minimum is None else f"{item.minimum:.4g} .. {item.maximum:.4g}",
            "-" if item.mean is None else f"{item.mean:.3g}",
            "-" if item.zeros is None else f"{item.zeros:.1%}",
            str(item.nans),
            str(item.infinities),
        )
        for item in statistics
    ]
    columns = ("name", "type", "size", "range", "mean", "zeros", "nan", "inf")
    print_table("weights", columns, rows, "size range mean zeros nan inf")


def report_problems(path: Path, *, full: bool, as_json: bool) -> bool:
    """Print every finding; True where none is an error."""
    with waiting("checking"):
        findings = sx.find_problems(sx.load(path), full=full)
    sound = all(finding.severity != "error" for finding in findings)
    if as_json:
        print_json({"file": str(path), "valid": sound, "findings": [asdict(f) for f in findings]})
    elif not findings:
        print_line(f"{path}: no problem found")
    else:
        errors = sum(finding.severity == "error" for finding in findings)
        for finding in findings:
            print_line(str(finding), finding.severity)
        print_line(f"{path}: {errors} errors, {len(findings) - errors} warnings")
    return sound


def show_differences(left: Path, right: Path, runs: int, *, as_json: bool) -> bool:
    """Print what differs between two models; True where anything does."""
    with waiting("comparing"):
        found = sx.diff(sx.load(left), sx.load(right), runs=runs)
    if as_json:
        print_json({"left": str(left), "right": str(right), "equal": not found} | asdict(found))
    elif not found:
        print_line("no difference")
    else:
        rows = [
            (item.kind, item.name, _side(item.left), _side(item.right))
            for item in (*found.structure, *found.weights, *found.numerics)
        ]
        print_table("", ("what", "name", "left", "right"), rows)
    return bool(found)


def _side(item: Any) -> str:
    return "-" if item is None else f"{item:.3g}" if isinstance(item, float) else str(item)


def show_text(path: Path, output: Path | None, *, as_json: bool) -> None:
    """Print a model's text, or write it."""
    with waiting("writing text"):
        text = sx.to_text(sx.load(path))
    if output is None:
        _print_text({"file": str(path)}, text, as_json=as_json)
        return
    with replacing(output) as staged:
        staged.write_text(text)
    report_written(output, {}, as_json=as_json)


def show_stage(path: Path, stage: str, *, as_json: bool) -> None:
    """Print a model's text after a stage."""
    model = sx.load(path)
    with waiting(f"preparing {path.name}"):
        text = sx.text_after(model, stage)
    _print_text({"file": str(path), "stage": stage}, text, as_json=as_json)


def _print_text(said: dict[str, Any], text: str, *, as_json: bool) -> None:
    if as_json:
        print_json(said | {"text": text})
    else:
        sys.stdout.write(text.rstrip("\n") + "\n")


def explain_nodes(path: Path, provider: str | None, *, as_json: bool) -> None:
    """Print what runs each node."""
    providers = None if provider is None else [provider]
    with waiting(f"preparing {path.name}"):
        session = sx.InferenceSession(path, providers=providers)
    rows = [
        tuple(part.strip() for part in line.rsplit("    ", 1))
        for line in session.explain().splitlines()
    ]
    if as_json:
        nodes = [{"node": row[0], "runs": row[-1]} for row in rows]
        print_json({"providers": session.get_providers(), "nodes": nodes})
        return
    print_table(f"providers: {', '.join(session.get_providers())}", ("node", "runs on"), rows)
