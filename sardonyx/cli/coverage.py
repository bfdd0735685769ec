"""The verb `coverage`."""

from dataclasses import asdict
from typing import Any

from sardonyx.cli.output import print_json, print_line, print_table
from sardonyx.compiler.coverage import NativeForm, cover_native, official_cases
from sardonyx.ops.coverage import cover_domains, cover_operators


def _runs(form: NativeForm) -> str:
    return f"reference: {form.reason}" if form.reason else form.how


def show_coverage(each: bool, *, as_json: bool) -> None:
    """Print how many operators of each domain are known, or each operator; then what was recorded
    of the official cases."""
    operators = cover_operators()
    domains = cover_domains(operators)
    native = {(form.domain, form.name): form for form in cover_native()}
    cases = official_cases()
    if as_json:
        said: dict[str, Any] = {"domains": [asdict(item) for item in domains]}
        said["cases"] = asdict(cases) | {"native": cases.native}
        if each:
            said["operators"] = [
                asdict(item) | asdict(native[item.domain, item.name]) for item in operators
            ]
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
                _runs(native[item.domain, item.name]),
            )
            for item in operators
        ]
        print_table("operators", ("domain", "operator", "versions", *hooks, "runs by"), rows)
    else:
        columns = ("domain", "operators", "versions", *hooks)
        rows = [
            (
                *(str(getattr(item, name)) for name in columns),
                str(
                    sum(form.domain == item.domain and not form.reason for form in native.values())
                ),
            )
            for item in domains
        ]
        right = "operators versions infer reference function native"
        print_table("operators by domain", (*columns, "native"), rows, right)
    share = f"{cases.native} of {cases.count} ({cases.native / cases.count:.1%})"
    print_line(f"official node cases of onnx {cases.version} that run without a fallback: {share}")
