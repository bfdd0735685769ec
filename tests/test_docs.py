"""Every Python block of the README and of docs/ runs, in a folder where examples/ is at hand."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.M | re.S)
BLOCKS = [
    pytest.param(page, number, code, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, code in enumerate(BLOCK.findall(page.read_text()))
]


@pytest.mark.parametrize(("page", "number", "code"), BLOCKS)
def test_block(
    page: Path, number: int, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    exec(compile(code, f"{page.name} block {number}", "exec"), {"__name__": "__main__"})


CLAIM = re.compile(r"^ *print\(.*\)\s+# (\S+|\[.*\])$", re.M)
CLAIMS = [block for block in BLOCKS if CLAIM.search(str(block.values[2]))]


@pytest.mark.parametrize(("page", "number", "code"), CLAIMS)
def test_comments_behind_prints_are_what_is_printed(
    page: Path,
    number: int,
    code: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    test_block(page, number, code, tmp_path, monkeypatch)
    printed = capsys.readouterr().out.splitlines()
    assert [text for text in CLAIM.findall(code) if text not in printed] == []


def test_pages_and_navigation_agree() -> None:
    listed = set(re.findall(r": ([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.M))
    written = {page.name for page in PAGES if page.parent.name == "docs"}
    assert listed == written | {"api.md", "operators.md"}


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([\w./-]+\.md)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_command_line_page_lists_every_verb() -> None:
    from typer.main import get_command

    from sardonyx.cli.main import app

    page = (ROOT / "docs" / "command-line.md").read_text()
    table = "\n".join(line for line in page.splitlines() if line.startswith("| `"))
    listed = {
        name
        for row in table.splitlines()
        for name in re.findall(r"`([\w-]+)`", row[: row.index("|", 2)])
    }
    assert listed == set(getattr(get_command(app), "commands", {}))
