"""The verb `view`."""

from pathlib import Path

from typer.testing import CliRunner

from sardonyx.cli.main import app


def test_a_page_is_written(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = CliRunner().invoke(app, ["view", "examples/digits.onnx", "--html", str(page)])
    assert result.exit_code == 0 and f"wrote {page}" in result.output
    assert "Softmax" in page.read_text() and page.read_text().startswith("<!doctype html>")


def test_a_missing_model_is_one_line(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = CliRunner().invoke(app, ["view", "nowhere.onnx", "--html", str(page)])
    assert result.exit_code == 1 and not page.exists()
