"""The command line as a process: piped, in terminals of two widths, quick, interrupted."""

import os
import re
import select
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

import sardonyx as sx
from tests.cli.invoke import DIGITS, ROOT, fails, invoke, process

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
BOXES = re.compile("[\u2500-\u257f]")


def in_terminal(width: int, *words: object) -> tuple[str, int]:
    """What a verb prints in a terminal so wide, and its exit code."""
    fcntl = pytest.importorskip("fcntl")
    pty = pytest.importorskip("pty")
    termios = pytest.importorskip("termios")
    mine, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    environment = {name: said for name, said in os.environ.items() if name != "COLUMNS"}
    running = subprocess.Popen(
        [sys.executable, "-m", "sardonyx.cli.main", *map(str, words)],
        stdin=its,
        stdout=its,
        stderr=its,
        env={**environment, "TERM": "xterm"},
        cwd=ROOT,
    )
    os.close(its)
    content = b""
    while True:
        ready, _, _ = select.select([mine], [], [], 60)
        try:
            piece = os.read(mine, 1 << 16) if ready else b""
        except OSError:
            break
        if not piece:
            break
        content += piece
    os.close(mine)
    return content.decode(), running.wait(60)


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
    for line in ESCAPES.sub("", content).replace("\r", "").splitlines():
        assert len(line.rstrip()) <= columns, line


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


def test_help_is_quick() -> None:
    """Measured in processor time, which a busy machine does not change much."""
    resource = pytest.importorskip("resource")

    def spent() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        process("--help")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return float(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)

    process("--help")
    assert min(spent() for _ in range(3)) < 0.15


@pytest.mark.parametrize("verb", sorted(["inspect", "run", "convert", "merge", "compare"]))
def test_each_verb_has_help(verb: str) -> None:
    assert f"{verb} [OPTIONS]" in invoke(verb, "--help").stdout


def test_version_and_verbose() -> None:
    assert invoke("--version").stdout == f"sardonyx {sx.__version__}\n"
    assert invoke("--help").stdout == invoke("-h").stdout
    assert "Traceback" not in fails("check", "absent.onnx")
    for words in (["-v", "check", "absent.onnx"], ["check", "absent.onnx", "-v"]):
        shown = invoke(*words, code=1).stderr
        assert "Traceback" in shown and shown.splitlines()[-1].startswith("error: ")


def test_a_reader_that_goes_away_is_no_error() -> None:
    words = f"{sys.executable} -m sardonyx.cli.main coverage --operators"
    found = subprocess.run(
        f"{words} | head -n 2", shell=True, capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert "Traceback" not in found.stderr


def test_interrupted_runs_leave_no_file(tmp_path: Path) -> None:
    model, output = tmp_path / "endless.onnx", tmp_path / "out.npz"
    text = (
        '<ir_version: 10, opset_import: ["": 21]>'
        "g (float[1] x) => (float[1] y) <int64 m = {2000000000}>"
        "{ y = Loop <body = b (int64 i, bool c, float[1] a) => (bool d, float[1] z)"
        " { d = Identity(c)  z = Sin(a) }> (m, , x) }"
    )
    sx.save(sx.load_text(text), model)
    running = subprocess.Popen(
        [sys.executable, "-m", "sardonyx.cli.main", "run", str(model), "--output", str(output)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(4)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 130, errors
    assert errors.splitlines()[-1] == "error: interrupted"
    assert list(tmp_path.iterdir()) == [model]
