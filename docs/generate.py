"""Pages made when the site is built: the public names, and the table of operators."""

from importlib import import_module
from typing import Any

from mkdocs.structure.files import File, Files

import sardonyx
from sardonyx.ops.coverage import cover_domains, cover_operators


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages to those that are written by hand."""
    for name, content in (("api.md", api_page()), ("operators.md", operators_page())):
        files.append(File.generated(config, name, content=content))
    return files


def api_page() -> str:
    """Every public name, with its docstring."""
    lines = ["# Python API", "", "Everything here is a name of `sardonyx`.", ""]
    for name in sorted(set(sardonyx.__all__) - {"__version__"}, key=str.lower):
        value = getattr(sardonyx, name)
        home = getattr(value, "__module__", "sardonyx")
        known = hasattr(import_module(home), name)
        lines += [f"::: {home}.{name}" if known else f"### `{name}`", ""]
    return "\n".join(lines)


def operators_page() -> str:
    """The operators that are known, counted and listed."""
    operators = cover_operators()
    lines = [
        "# Operators",
        "",
        "`infer` follows types and shapes, `reference` runs the operator, and `function` says it",
        "in terms of other operators.",
        "",
        "| domain | operators | versions | infer | reference | function |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for item in cover_domains(operators):
        counts = (item.operators, item.versions, item.infer, item.reference, item.function)
        lines.append(f"| {item.domain} | " + " | ".join(map(str, counts)) + " |")
    domain = ""
    for each in operators:
        if each.domain != domain:
            domain = each.domain
            lines += [
                "",
                f"## {domain}",
                "",
                "| operator | versions | hooks |",
                "| --- | --- | --- |",
            ]
        hooks = [hook for hook in ("infer", "reference", "function") if getattr(each, hook)]
        versions = " ".join(map(str, each.versions))
        lines.append(f"| {each.name} | {versions} | {' '.join(hooks)} |")
    return "\n".join(lines) + "\n"
