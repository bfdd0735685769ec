"""The verbs `inspect` and `check`."""

from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.table import Table

import sardonyx as sx


def show_model(path: Path, *, nodes: bool, weights: bool) -> None:
    """Print what a model is."""
    console = Console()
    model = sx.load(path)
    graph = model.graph
    facts = Table(show_header=False, box=None)
    facts.add_row("file", f"{path} ({_size(path.stat().st_size)})")
    facts.add_row("producer", f"{model.producer_name or '-'} {model.producer_version}")
    imports = [f"{domain or 'ai.onnx'} {version}" for domain, version in model.opsets.items()]
    facts.add_row("versions", ", ".join([f"IR {model.ir_version}", *imports]))
    parameters = sum(tensor.size for tensor in model.tensors())
    stored = sum(tensor.nbytes for tensor in model.tensors())
    facts.add_row("weights", f"{parameters:,} parameters, {_size(stored)}")
    if model.functions:
        facts.add_row("functions", ", ".join(function.name for function in model.functions))
    for key, said in model.metadata.items():
        facts.add_row(key, said)
    if graph is not None:
        constants = set(graph.initializers)
        for value in graph.inputs:
            if value not in constants:
                facts.add_row("input", f"{value.name}: {value.type or '?'}")
        for value in graph.outputs:
            facts.add_row("output", f"{value.name}: {value.type or '?'}")
        counts = Counter(node.op_type for node in graph.all_nodes())
        listed = ", ".join(f"{name} {count}" for name, count in counts.most_common())
        facts.add_row("operators", f"{sum(counts.values())} nodes: {listed}")
    console.print(facts)
    if nodes and graph is not None:
        console.print(_nodes_table(graph))
    if weights:
        console.print(_weights_table(model))


def _nodes_table(graph: sx.Graph) -> Table:
    table = Table(title="nodes", title_justify="left")
    for column in ("name", "operator", "inputs", "outputs"):
        table.add_column(column, overflow="fold")
    for node in graph.all_nodes():
        inputs = ", ".join("-" if value is None else value.name for value in node.inputs)
        table.add_row(
            node.name, node.op_type, inputs, ", ".join(value.name for value in node.outputs)
        )
    return table


def _weights_table(model: sx.Model) -> Table:
    table = Table(title="weights", title_justify="left")
    for column in ("name", "type", "size"):
        table.add_column(column, overflow="fold")
    for tensor in model.tensors():
        table.add_row(tensor.name, str(tensor.type), _size(tensor.nbytes))
    return table


def _size(count: int) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:,.0f} {unit}" if unit == "bytes" else f"{count:,.1f} {unit}"
        count /= 1024  # type: ignore[assignment]
    return f"{count:,.1f} GiB"


def report_problems(path: Path, full: bool) -> bool:
    """Print every finding; True where none is an error."""
    console = Console()
    findings = sx.find_problems(sx.load(path), full=full)
    if not findings:
        console.print(f"{path}: no problem found")
        return True
    table = Table(title=f"{path}: {len(findings)} findings", title_justify="left")
    for column in ("severity", "where", "what", "remedy"):
        table.add_column(column, overflow="fold")
    for finding in findings:
        table.add_row(finding.severity, finding.where, finding.what, finding.remedy)
    console.print(table)
    return all(finding.severity != "error" for finding in findings)
