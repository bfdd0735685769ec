"""The verb `view`."""

from pathlib import Path

from typer.testing import CliRunner

import sardonyx as sx
from sardonyx.cli.main import app
from tests.cli.invoke import DIGITS, fails, told


def test_a_page_is_written(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = CliRunner().invoke(app, ["view", "examples/digits.onnx", "--html", str(page)])
    assert result.exit_code == 0 and f"wrote {page}" in result.output
    assert "Softmax" in page.read_text() and page.read_text().startswith("<!doctype html>")


def test_a_missing_model_is_one_line(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = CliRunner().invoke(app, ["view", "nowhere.onnx", "--html", str(page)])
    assert result.exit_code == 1 and not page.exists()


def test_both_sides_and_times(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    said = told("view", DIGITS, "--html", page, "--simplified", "--profile", "--dim", "batch=2")
    assert said["file_bytes"] == page.stat().st_size
    text = page.read_text()
    assert '"as it is"' in text and '"simplified"' in text and '"heat":true' in text
    both = fails("view", DIGITS, "--html", page, "--simplified", "--compare", DIGITS)
    assert "contradict" in both


def test_constants_in_nodes_count_as_parameters(tmp_path: Path) -> None:
    model = sx.load_text(
        '<ir_version: 10, opset_import: ["": 21]>'
        "g (float[2] x) => (float[2] y) { c = Constant<value_floats = [1, 2]>()  y = Add(x, c)"
        " w = Constant<value = float[3] {1, 2, 3}>() }"
    )
    page = sx.render_html(model)
    assert '["parameters","3"]' in page
