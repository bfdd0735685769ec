"""Pages made when the site is built: public names, operators, benchmarks, pictures of stages."""

import enum
import inspect
import json
import re
import sys
from pathlib import Path
from typing import Any

import sardonyx
from sardonyx.ops.coverage import cover_domains, cover_operators

sys.path.insert(0, str(Path(__file__).parent))
from pictures import PICTURES, TEXTS

WIDEST = 88
RESULTS = Path(__file__).parents[1] / "benchmarks" / "results.json"
PICTURE = Path(__file__).parent / "benchmarks.svg"


def generated_files() -> dict[str, str]:
    """Every file of the site that is not written by hand."""
    pages = {
        "api.md": api_page(),
        "operators.md": operators_page(),
        "benchmarks.md": benchmarks_page(RESULTS),
    }
    return pages | {name: draw() for name, draw in PICTURES.items()}


def on_files(files: Any, config: Any) -> Any:
    """Add the generated files to those that are written by hand."""
    from mkdocs.structure.files import File

    for name, content in generated_files().items():
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the text of a stage in the place of each line `{{ name }}`."""
    return re.sub(
        r"^\{\{ (\w+) \}\}$",
        lambda found: f"```text\n{TEXTS[found[1]]()}\n```",
        markdown,
        flags=re.M,
    )


def api_page() -> str:
    """Every public name with its signature, its docstring and its methods."""
    names = sorted(set(sardonyx.__all__) - {"__version__"}, key=str.lower)
    values = {name: getattr(sardonyx, name) for name in names}
    kinds = {
        "Functions": [name for name, value in values.items() if inspect.isfunction(value)],
        "Classes": [
            name
            for name, value in values.items()
            if inspect.isclass(value) and not issubclass(value, BaseException)
        ],
        "Errors": [
            name
            for name, value in values.items()
            if inspect.isclass(value) and issubclass(value, BaseException)
        ],
    }
    lines = ["# Python API", "", "Everything here is a name of `sardonyx`.", ""]
    for title, members in kinds.items():
        lines += [f"## {title}", ""]
        for name in members:
            lines += [f"### {name}", "", *described(name, values[name])]
            if inspect.isclass(values[name]):
                for method, value in public_members(values[name]).items():
                    lines += [f"#### {name}.{method}", "", *described(method, value)]
    return "\n".join(lines) + "\n"


def public_members(kind: type) -> dict[str, Any]:
    """Methods and properties that a class of ours defines or inherits from one of ours."""
    if issubclass(kind, enum.Enum | BaseException):
        return {}
    found: dict[str, Any] = {}
    for parent in reversed(kind.__mro__):
        if not parent.__module__.startswith("sardonyx"):
            continue
        for name, value in vars(parent).items():
            plain = getattr(value, "__func__", value)
            if not name.startswith("_") and (
                inspect.isfunction(plain) or isinstance(value, property)
            ):
                found[name] = plain
    return found


def described(name: str, value: Any) -> list[str]:
    """A signature and a docstring in Markdown; examples in it become blocks of code."""
    lines: list[str] = []
    try:
        if not isinstance(value, property) and not (
            inspect.isclass(value) and issubclass(value, enum.Enum)
        ):
            lines += ["```python", signature_text(name, inspect.signature(value)), "```", ""]
    except (TypeError, ValueError):
        lines = []
    fenced = False
    for line in (inspect.getdoc(value) or "").splitlines():
        if line.startswith(">>>") and not fenced:
            lines.append("```pycon")
            fenced = True
        elif not line and fenced:
            lines.append("```")
            fenced = False
        lines.append(line)
    return [*lines, *(["```"] if fenced else []), ""]


def signature_text(name: str, signature: inspect.Signature) -> str:
    """A signature without the homes of its types; a long one with a line for each parameter."""
    text = re.sub(r"\b(?:[a-z_]\w*\.)+(?=\w)", "", f"{name}{signature}")
    if len(text) <= WIDEST:
        return text
    rows, marked = [], False
    for parameter in signature.parameters.values():
        if parameter.kind == parameter.KEYWORD_ONLY and not marked:
            rows.append("*")
        marked = marked or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        rows.append(re.sub(r"\b(?:[a-z_]\w*\.)+(?=\w)", "", str(parameter)))
    end = text.rpartition(") -> ")[2] if ") -> " in text else ""
    lines = [f"{name}(", *(f"    {row}," for row in rows), f") -> {end}" if end else ")"]
    return "\n".join(lines)


def operators_page() -> str:
    """The operators that are known, counted and listed."""
    operators = cover_operators()
    hooks = ("infer", "reference", "function")
    lines = [
        "# Operators",
        "",
        "`infer` follows types and shapes, `reference` runs the operator, and `function` says it",
        "in terms of other operators.",
        "",
    ]
    counts = [
        [item.domain, item.operators, item.versions, *(getattr(item, hook) for hook in hooks)]
        for item in cover_domains(operators)
    ]
    lines += table(["domain", "operators", "versions", *hooks], counts)
    for domain in dict.fromkeys(each.domain for each in operators):
        rows = [
            [
                each.name,
                " ".join(map(str, each.versions)),
                " ".join(hook for hook in hooks if getattr(each, hook)),
            ]
            for each in operators
            if each.domain == domain
        ]
        lines += ["", f"## {domain}", "", *table(["operator", "versions", "hooks"], rows)]
    return "\n".join(lines) + "\n"


def benchmarks_page(results: Path) -> str:
    """What the last `make bench` measured, on the machine that its results name.

    The file is JSON: an object's lists of objects become tables under their names, its objects
    sections, and its other values facts.
    """
    lines = ["# Benchmarks", ""]
    if not results.is_file():
        lines += ["`make bench` has not run yet."]
        return "\n".join(lines) + "\n"
    lines += [
        "Measured by `make bench`, in turns with the peers, on the machine named below. Ratios say",
        "more than times: in the tables, sardonyx's time over a peer's. Below 1, it is faster.",
        "",
    ]
    if PICTURE.is_file():
        shown = "The picture shows how many times faster it is: a peer's time over sardonyx's."
        lines += [shown, "", f"![Times of peers over that of sardonyx]({PICTURE.name})", ""]
    return "\n".join(lines + list(section("", json.loads(results.read_text()), 2))) + "\n"


def section(title: str, said: Any, level: int) -> list[str]:
    """A part of the results under its heading."""
    lines = [f"{'#' * level} {title}", ""] if title else []
    if isinstance(said, list) and said and all(isinstance(row, dict) for row in said):
        columns = list(dict.fromkeys(name for row in said for name in row))
        rows = [[cell(row.get(name)) for name in columns] for row in said]
        return [*lines, *table(columns, rows), ""]
    if not isinstance(said, dict):
        return [*lines, cell(said), ""]
    plain = {name: item for name, item in said.items() if not isinstance(item, dict | list)}
    lines += [f"- {name}: {cell(item)}" for name, item in plain.items()]
    lines += [""] if plain else []
    for name, item in said.items():
        if isinstance(item, dict | list):
            lines += section(name, item, min(level + (1 if title else 0), 6))
    return lines


def cell(item: Any) -> str:
    """A figure as a page shows it."""
    if item is None:
        return "-"
    text = f"{item:,.4g}" if isinstance(item, float) else str(item)
    return text.replace("|", "\\|").replace("\n", " ")


def table(columns: list[str], rows: list[list[Any]]) -> list[str]:
    """Rows as a Markdown table; columns that hold only numbers are aligned right."""
    right = [
        bool(rows) and all(re.fullmatch(r"-|[-+\d.,e]+%?", str(row[at])) for row in rows)
        for at in range(len(columns))
    ]
    rule = ["---:" if number else "---" for number in right]
    return ["| " + " | ".join(map(str, row)) + " |" for row in (columns, rule, *rows)]
