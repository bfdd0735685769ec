"""The verb `compare`."""

from dataclasses import asdict
from pathlib import Path

import sardonyx as sx
from sardonyx.cli.output import print_json, print_line, print_table, waiting
from sardonyx.cli.peers import open_peer
from sardonyx.cli.session import Request
from sardonyx.runtime.compare import Comparison


def compare_model(
    request: Request, against: str, rtol: float, atol: float, *, as_json: bool
) -> bool:
    """Compare with another runtime, or another model; True where all outputs agree."""
    second = sx.load(against) if Path(against).is_file() else open_peer(against)
    model = sx.load(request.path)
    feeds = request.feeds(model)
    with waiting("comparing"), request.blaming_sizes(model):
        result = sx.bisect(model, second, feeds, rtol=rtol, atol=atol)
    if as_json:
        print_json({"file": str(request.path), "agrees": result.agrees} | asdict(result))
    else:
        _print_comparison(request.path, against, result)
    return result.agrees


def _print_comparison(path: Path, against: str, result: Comparison) -> None:
    rows = [
        (
            item.name, f"{item.largest:.3g}", f"{item.relative:.3g}",
            "yes" if item.agrees else "NO", item.remark,
        )
        for item in result.outputs
    ]  # fmt: skip
    columns = ("output", "largest difference", "relative", "agrees", "remark")
    print_table(f"{path}: against {against}", columns, rows, "largest difference relative")
    if result.first_node and result.first_value is not None:
        first = result.first_value
        detail = first.remark or f"by {first.largest:.3g}"
        print_line(f"first difference: {result.first_node}, in '{first.name}', {detail}")
    elif not result.agrees:
        print_line("no node of the main graph differs by itself; look into subgraphs or functions")
