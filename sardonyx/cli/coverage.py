"""The verb `coverage`."""

from dataclasses import asdict

from sardonyx.cli.output import print_json, print_table
from sardonyx.ops.coverage import cover_domains, cover_operators


def show_coverage(each: bool, *, as_json: bool) -> None:
    """Print how many operators of each domain are known, or each operator."""
    operators = cover_operators()
    domains = cover_domains(operators)
    if as_json:
        said = {"domains": [asdict(item) for item in domains]}
        if each:
            said["operators"] = [asdict(item) for item in operators]
        print_json(said)
        return
    hooks = ("infer", "reference", "function")
    if each:
        rows = [
            (
                item.domain,
                item.name,
                " ".join(map(str, item.versions)),
                *("yes" if getattr(item, hook) else "-" for hook in hooks),
            )
            for item in operators
        ]
        print_table("operators", ("domain", "operator", "versions", *hooks), rows)
    else:
        columns = ("domain", "operators", "versions", *hooks)
        rows = [tuple(str(getattr(item, name)) for name in columns) for item in domains]
        print_table(
            "operators by domain", columns, rows, "operators versions infer reference function"
        )
