"""Run the command line inside this process, or as a process of its own."""

import json
import os
import re
import select
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner, Result

from sardonyx.cli.main import app

ROOT = Path(__file__).parents[2]
DIGITS = ROOT / "examples" / "digits.onnx"
DIGITS_INPUT = ROOT / "examples" / "digits_input.npy"


ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


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


def in_terminal(width: int, *words: object, command: tuple[str, ...] = ()) -> tuple[str, int]:
    """What a verb, or another command, prints in a terminal so wide, and its exit code."""
    fcntl = pytest.importorskip("fcntl")
    pty = pytest.importorskip("pty")
    termios = pytest.importorskip("termios")
    mine, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    environment = {name: said for name, said in os.environ.items() if name != "COLUMNS"}
    running = subprocess.Popen(
        [sys.executable, *(command or ("-m", "sardonyx.cli.main")), *map(str, words)],
        stdin=its,
        stdout=its,
        stderr=its,
        env={**environment, "TERM": "xterm"},
        cwd=ROOT,
    )
    os.close(its)
    content = b""
    while True:
        ready, _, _ = select.select([mine], [], [], 120)
        try:
            piece = os.read(mine, 1 << 16) if ready else b""
        except OSError:
            break
        if not piece:
            break
        content += piece
    os.close(mine)
    return content.decode(), running.wait(60)


def shown_lines(content: str) -> list[str]:
    """The lines that stay in a terminal: of one that was written again and again, the last."""
    plain = ESCAPES.sub("", content)
    return [line.rstrip("\r").rpartition("\r")[2].rstrip() for line in plain.split("\n")]


def verbs() -> dict[str, Any]:
    """Every verb, those of groups too, by the words that call it."""
    found: dict[str, Any] = {}
    for name, command in getattr(get_command(app), "commands", {}).items():
        inner = getattr(command, "commands", None)
        found |= {name: command} if inner is None else {
            f"{name} {word}": item for word, item in inner.items()
        }  # fmt: skip
    return found
