"""The command line as a process: piped, in terminals of two widths, quick, interrupted."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import sardonyx as sx
from tests.cli.invoke import (
    DIGITS,
    ESCAPES,
    ROOT,
    fails,
    in_terminal,
    invoke,
    process,
    shown_lines,
    verbs,
)

BOXES = re.compile("[\u2500-\u257f]")

VERBS = (
    ("inspect", DIGITS, "--nodes", "--weights"),
    ("check", DIGITS),
    ("run", DIGITS),
    ("profile", DIGITS),
    ("coverage",),
    ("doctor",),
    ("--help",),
)


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("words", VERBS, ids=lambda words: str(words[0]))
def test_terminal(columns: int, words: tuple[object, ...]) -> None:
    content, code = in_terminal(columns, *words)
    assert code == 0, content
    assert [line for line in shown_lines(content) if len(line) > columns] == []


@pytest.mark.parametrize("words", [VERBS[0], VERBS[4]], ids=lambda words: str(words[0]))
def test_pipe_is_plain_and_does_not_depend_on_the_width(words: tuple[object, ...]) -> None:
    narrow, wide = process(*words, columns=80), process(*words, columns=120)
    assert narrow.returncode == 0, narrow.stderr
    assert narrow.stdout == wide.stdout
    assert not BOXES.search(narrow.stdout) and not ESCAPES.search(narrow.stdout)
    assert all(line == line.rstrip() for line in narrow.stdout.splitlines())


def test_help_needs_neither_numpy_nor_rich() -> None:
    probe = (
        "import sys; sys.argv = ['sardonyx', '--help']\n"
        "from sardonyx.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'rich', 'google', 'llvmlite'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    found = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    assert all(f"  {verb} " in found.stdout for verb in ("inspect", "run", "merge", "doctor"))
    assert "..." not in found.stdout.split("Commands:")[1]


@pytest.mark.parametrize("verb", sorted(verbs()))
def test_each_verb_has_help_and_json(verb: str) -> None:
    shown = invoke(*verb.split(), "--help").stdout
    assert f"{verb} [OPTIONS]" in shown and "--json" in shown
    for parameter in verbs()[verb].params:
        if parameter.param_type_name == "option":
            assert parameter.help, f"{verb} {parameter.opts} has no help"


def test_help_says_what_exit_codes_mean() -> None:
    text = " ".join(invoke("--help").stdout.split())
    assert "0 all is well, 1 a mistake or a finding, 2 wrong usage, 130 interrupted" in text


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_verbs(shell: str) -> None:
    """The script that a shell loads names this program, and asking it completes a verb."""
    program = "import sys; sys.argv[0] = 'sardonyx'; from sardonyx.cli.main import main; main()"
    asked = {
        "bash": {"COMP_WORDS": "sardonyx ins", "COMP_CWORD": "1"},
        "zsh": {"_TYPER_COMPLETE_ARGS": "sardonyx ins"},
        "fish": {"_TYPER_COMPLETE_ARGS": "sardonyx ins", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }[shell]
    for instruction, more, expected in (
        (f"source_{shell}", {}, "_SARDONYX_COMPLETE"),
        (f"complete_{shell}", asked, "inspect"),
    ):
        found = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "_SARDONYX_COMPLETE": instruction, **more},
            capture_output=True, text=True, check=False, cwd=ROOT,
        )  # fmt: skip
        assert expected in found.stdout, found.stderr


def test_version_and_verbose() -> None:
    assert invoke("--version").stdout == f"sardonyx {sx.__version__}\n"
    assert invoke("--help").stdout == invoke("-h").stdout
    assert "Traceback" not in fails("check", "absent.onnx")
    for words in (["-v", "check", "absent.onnx"], ["check", "absent.onnx", "-v"]):
        shown = invoke(*words, code=1).stderr
        lines = shown.splitlines()
        assert lines[0].startswith("error: ") and lines[1].startswith("Traceback")


def test_an_error_in_a_terminal_is_marked() -> None:
    content, code = in_terminal(80, "check", "absent.onnx")
    assert code == 1 and content.startswith("\x1b[1;31merror\x1b[0m: cannot open")


def test_lines_that_repeat_are_counted(tmp_path: Path) -> None:
    """A model that uses operators of two domains without importing these."""
    path = tmp_path / "domains.onnx"
    nodes = "a = com.microsoft.Gelu(x) y = ai.onnx.ml.Binarizer(a)"
    head = '<ir_version: 10, opset_import: ["": 21]>'
    sx.save(sx.load_text(f"{head} g (float[n] x) => (float[n] y) {{ {nodes} }}"), path)
    lines = invoke("explain", path).stderr.splitlines()
    assert lines[0].startswith("warning: the model uses 'com.microsoft' without importing it")
    assert lines[1:] == ["warning: 1 more like it, which -v shows"]
    assert len(invoke("-v", "explain", path).stderr.splitlines()) == 2


def test_a_reader_that_goes_away_is_no_error() -> None:
    words = f"{sys.executable} -m sardonyx.cli.main coverage --operators"
    found = subprocess.run(
        f"{words} | head -n 2", shell=True, capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert "Traceback" not in found.stderr


ENDLESS = (
    '<ir_version: 10, opset_import: ["": 21]>'
    "g (float[1] x) => (float[1] y) <int64 m = {2000000000}>"
    "{ y = Loop <body = b (int64 i, bool c, float[1] a) => (bool d, float[1] z)"
    " { d = Identity(c)  z = Sin(a) }> (m, , x) }"
)


def wait_for_verb(process: int) -> None:
    """Wait until a process is well inside its verb: before, it has nothing of NumPy loaded."""
    loaded = Path(f"/proc/{process}/maps")
    for _ in range(600):
        if not loaded.exists() or "multiarray" in loaded.read_text():
            break
        time.sleep(0.1)
    time.sleep(2 if loaded.exists() else 6)


@pytest.mark.parametrize(
    "words",
    [
        ["run", "MODEL", "--output", "out.npz"],
        ["profile", "MODEL", "--trace", "trace.json"],
        ["view", "MODEL", "--profile", "--html", "page.html"],
        ["simplify", "MODEL", "small.onnx", "--verify", "1"],
    ],
    ids=lambda words: str(words[0]),
)
def test_interrupted_verbs_leave_no_file(words: list[str], tmp_path: Path) -> None:
    model = tmp_path / "endless.onnx"
    sx.save(sx.load_text(ENDLESS), model)
    running = subprocess.Popen(
        [sys.executable, "-m", "sardonyx.cli.main", "-v", *words[:1], str(model), *words[2:]],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    wait_for_verb(running.pid)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 130, errors
    assert errors.splitlines()[-1] == "error: interrupted"
    assert list(tmp_path.iterdir()) == [model]


def test_an_interrupt_inside_an_exec_has_the_same_code(tmp_path: Path) -> None:
    """A module's process ends by the signal if Python last saw one escape from an `exec`."""
    program = (
        "import sardonyx.cli.inspect as verb\n"
        "def stop(*words, **options): exec('raise KeyboardInterrupt')\n"
        "verb.show_model = stop\n"
        "from sardonyx.cli.main import app\n"
        "app(['inspect', 'm.onnx'])"
    )
    (tmp_path / "stopped.py").write_text(program)
    found = subprocess.run(
        [sys.executable, "-m", "stopped"], capture_output=True, text=True, check=False,
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert (found.returncode, found.stderr) == (130, "error: interrupted\n")


def test_a_write_that_is_interrupted_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while the new file is being written beside the one it is to replace."""
    target = tmp_path / "model.onnx"
    target.write_bytes(DIGITS.read_bytes())
    replace = os.replace

    def interrupted(*names: Any, **options: Any) -> None:
        assert list(tmp_path.iterdir()) != [target]
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    for words in (["convert", DIGITS, target], ["set-metadata", target, "a=b"]):
        assert invoke(*words, code=130).stderr == "error: interrupted\n"
    monkeypatch.setattr(os, "replace", replace)
    assert list(tmp_path.iterdir()) == [target]
    assert target.read_bytes() == DIGITS.read_bytes()


def test_the_server_ends_with_an_interrupt(tmp_path: Path) -> None:
    running = subprocess.Popen(
        [sys.executable, "-m", "sardonyx.cli.main", "view", str(DIGITS), "--no-browser", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert running.stdout is not None
    address = json.loads(running.stdout.readline())["address"]
    with urllib.request.urlopen(address, timeout=20) as answer:
        assert b"Softmax" in answer.read()
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=30)
    assert (running.returncode, errors) == (0, "")
