"""Run the command line inside this process, or as a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from sardonyx.cli.main import app

ROOT = Path(__file__).parents[2]
DIGITS = ROOT / "examples" / "digits.onnx"
DIGITS_INPUT = ROOT / "examples" / "digits_input.npy"


def invoke(*words: object, code: int = 0, stdin: str | None = None) -> Result:
    """Run a verb; the exit code must be as expected."""
    result = CliRunner().invoke(app, [str(word) for word in words], input=stdin)
    assert result.exit_code == code, f"{result.exit_code}\n{result.stdout}\n{result.stderr}"
    return result


def fails(*words: object, code: int = 1) -> str:
    """Run a verb that must fail, with one line on stderr and nothing else; returns that line."""
    result = invoke(*words, code=code)
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("error: "), result.stderr
    return lines[0]


def told(*words: object, code: int = 0) -> Any:
    """What a verb says with --json."""
    return json.loads(invoke(*words, "--json", code=code).stdout)


def process(*words: object, columns: int = 80) -> subprocess.CompletedProcess[str]:
    """Run a verb as a process of its own, with its output piped."""
    return subprocess.run(
        [sys.executable, "-m", "sardonyx.cli.main", *map(str, words)],
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": str(columns), "PYTHONIOENCODING": "utf-8"},
        cwd=ROOT,
        check=False,
        timeout=120,
    )
