"""A sign of life while something takes long."""

import logging
import os
import subprocess
import sys
import time

import pytest

from sardonyx.runtime.options import SessionOptions
from sardonyx.runtime.progress import signs_of_life


def test_what_is_quick_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "sardonyx"), signs_of_life("this", SessionOptions()):
        pass
    assert caplog.text == ""


def test_what_takes_long_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with (
        caplog.at_level(logging.INFO, "sardonyx"),
        signs_of_life("compiling 'g'", SessionOptions(), patience=0.01),
    ):
        time.sleep(0.2)
    messages = [record.getMessage() for record in caplog.records]
    assert messages[0] == "compiling 'g' takes a while" and "took 0." in messages[1]


def test_errors_pass(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(KeyError), signs_of_life("this", SessionOptions(), patience=0.01):
        raise KeyError


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="the system has no terminals")
def test_a_bar_on_a_terminal_only() -> None:
    code = (
        "import time\n"
        "from sardonyx.runtime.options import SessionOptions\n"
        "from sardonyx.runtime.progress import signs_of_life\n"
        "with signs_of_life('compiling', SessionOptions(), patience=0.01): time.sleep(0.6)\n"
    )
    outer, inner = os.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "80"}
    subprocess.run([sys.executable, "-c", code], stderr=inner, check=True, env=environment)
    os.close(inner)
    assert b"compiling" in os.read(outer, 65536)
    os.close(outer)
    plain = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert plain.stderr == b"" and plain.stdout == b""
