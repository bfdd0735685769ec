"""Every block of code in the README and in docs/ runs, in a folder where examples/ is at hand."""

import importlib.util
import json
import re
import shlex
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import sardonyx as sx
from tests.cli.invoke import invoke, verbs

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.M | re.S)
BLOCKS = [
    pytest.param(page, number, code, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, code in enumerate(BLOCK.findall(page.read_text()))
]


FENCE = re.compile(r"^```(.*)$", re.M)


def test_every_block_is_of_a_kind_that_runs() -> None:
    """Python, or lines for a shell; a block of another kind would be shown without being tried."""
    for page in PAGES:
        openings = FENCE.findall(page.read_text())[::2]
        assert set(openings) <= {"python", "sh"}, page.name


@pytest.mark.parametrize(("page", "number", "code"), BLOCKS)
def test_block(
    page: Path, number: int, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    exec(compile(code, f"{page.name} block {number}", "exec"), {"__name__": "__main__"})


SHELL = [
    pytest.param(page, code, id=f"{page.stem}-sh{number}")
    for page in PAGES
    for number, code in enumerate(re.findall(r"^```sh\n(.*?)^```", page.read_text(), re.M | re.S))
]


@pytest.mark.parametrize(("page", "code"), SHELL)
def test_shell_block(
    page: Path, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines of a block one after another; `# exit code 1` behind one says that it ends so."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for line in code.splitlines():
        command, _, remark = line.partition("#")
        program, *words = shlex.split(command)
        expected = int(remark.rpartition(" ")[2]) if "exit code" in remark else 0
        if program == "make":
            assert re.search(rf"^{words[0]}:", (ROOT / "Makefile").read_text(), re.M)
        else:
            assert program == "sardonyx", line
            invoke(*words, code=expected)


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
    made = {name for name in generator().generated_files() if name.endswith(".md")}
    assert listed == written | made


def generator() -> Any:
    """The module that makes pages, which the site's builder loads by its path."""
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pictures_are_drawn_from_stages() -> None:
    made = generator().generated_files()
    shown = {
        name: page.parent / name
        for page in PAGES
        for name in re.findall(r"!\[[^]]+\]\((.*?)\)", page.read_text())
    }
    drawn = {name for name, path in shown.items() if not path.is_file()}
    assert drawn == {name for name in made if name.endswith(".svg")}
    for name in drawn:
        root = ElementTree.fromstring(made[name])
        assert len(root) > 5, name


def test_texts_of_stages_take_their_places() -> None:
    module = generator()
    for page in PAGES:
        for name in re.findall(r"^\{\{ (\w+) \}\}$", page.read_text(), re.M):
            assert module.TEXTS[name]().strip()
    filled = module.on_page_markdown("a\n\n{{ fused }}\n")
    assert "```text\ncontraction 0: MatMul, Add, Relu" in filled


def test_the_api_page_has_every_name_and_its_examples_as_code() -> None:
    page = generator().api_page()
    for name in set(sx.__all__) - {"__version__"}:
        assert f"\n### {name}\n" in page
    assert "#### InferenceSession.run\n" in page
    inside = False
    for line in page.splitlines():
        inside = not inside if line.startswith("```") else inside
        assert inside or not line.startswith(">>>")


def test_the_benchmarks_page_with_and_without_results(tmp_path: Path) -> None:
    page = generator().benchmarks_page
    assert "has not run yet" in page(tmp_path / "results.json")
    rows = [{"model": "a|b", "ours": 1.5, "peer": None}, {"model": "c", "ours": 2000.0}]
    results = {"machine": "some", "latency": rows, "start": {"cold": {"seconds": 0.25}}}
    (tmp_path / "results.json").write_text(json.dumps(results))
    text = page(tmp_path / "results.json")
    assert "- machine: some" in text and "## latency" in text
    assert "| model | ours | peer |\n| --- | ---: | ---: |" in text
    assert "| a\\|b | 1.5 | - |" in text and "| c | 2,000 | - |" in text
    assert "### cold" in text and "- seconds: 0.25" in text
    (tmp_path / "results.json").write_text(json.dumps(rows))
    assert "| c | 2,000 | - |" in page(tmp_path / "results.json")


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([\w./-]+\.md)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_names_and_options_in_prose_exist() -> None:
    """Every `sx.name`, and every option behind a `sardonyx verb` or in a verb's row."""
    known = verbs()
    for page in PAGES:
        text = page.read_text()
        absent = [name for name in re.findall(r"\bsx\.(\w+)", text) if not hasattr(sx, name)]
        assert absent == [], page.name
        for verb, rest in re.findall(r"sardonyx ([a-z-]+)((?: [^`\n]*)?)", text):
            if verb not in known:
                continue
            options = {option for item in known[verb].params for option in item.opts}
            used = set(re.findall(r"(?<!\S)--[a-z0-9-]+", rest))
            assert used <= options | {"--help"}, f"{page.name}: {verb} {used - options}"


def test_the_command_line_page_lists_every_verb() -> None:
    page = (ROOT / "docs" / "command-line.md").read_text()
    table = [line for line in page.splitlines() if line.startswith("| `")]
    listed = {name for row in table for name in re.findall(r"`(.*?)`", row[: row.index("|", 2)])}
    assert listed == set(verbs())
