"""The verb `coverage`."""

from rich.console import Console
from rich.table import Table

from sardonyx.ops.catalog import standard


def show_coverage() -> None:
    """Print how many operators of each domain are known, and which hooks they have."""
    console = Console()
    table = Table(title="operators", title_justify="left")
    for column in ("domain", "operators", "versions", "infer", "reference", "function"):
        table.add_column(column, justify="left" if column == "domain" else "right")
    for domain in sorted({domain for domain, _ in standard()}):
        mine = [operator for (place, _), operator in standard().items() if place == domain]
        table.add_row(
            domain or "ai.onnx",
            str(len(mine)),
            str(sum(len(operator.versions()) for operator in mine)),
            *(str(sum(getattr(operator, hook) is not None for operator in mine))
              for hook in ("infer", "reference", "function")),
        )  # fmt: skip
    console.print(table)
