"""A headless Chromium for tests, driven through chromedriver's own HTTP interface."""

import base64
import json
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars",
)  # fmt: skip

needs_chromium = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None, reason="chromium or chromedriver is not installed"
)


class Browser:
    """One window."""

    def __init__(self, address: str, session: str) -> None:
        self._base = f"{address}/session/{session}"

    def open(self, url: str) -> None:
        """Load a page and wait until it has painted its graph."""
        self.call("url", {"url": url})
        for _ in range(200):
            if self.run("return document.documentElement.dataset.painted"):
                return
            time.sleep(0.05)
        raise AssertionError("the page never painted a graph")

    def run(self, script: str, *arguments: Any) -> Any:
        """Run JavaScript; its `return` comes back."""
        return self.call("execute/sync", {"script": script, "args": list(arguments)})

    def run_later(self, script: str) -> Any:
        """Run JavaScript that calls `done(result)`."""
        text = f"const done = arguments[arguments.length - 1]; {script}"
        return self.call("execute/async", {"script": text, "args": []})

    def click(self, x: float, y: float, *, times: int = 1) -> None:
        """Press the mouse at a place in the window."""
        moves: list[dict[str, Any]] = [
            {"type": "pointerMove", "duration": 0, "x": round(x), "y": round(y)}
        ]
        for _ in range(times):
            moves += [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        self._act({"type": "pointer", "id": "mouse", "actions": moves})

    def drag(self, points: list[tuple[float, float]]) -> None:
        """Press at the first point, move along the others, release."""
        moves: list[dict[str, Any]] = []
        for index, (x, y) in enumerate(points):
            step = {"type": "pointerMove", "duration": 16, "x": round(x), "y": round(y)}
            moves.append(step)
            if index == 0:
                moves.append({"type": "pointerDown", "button": 0})
        moves.append({"type": "pointerUp", "button": 0})
        self._act({"type": "pointer", "id": "mouse", "actions": moves})

    def keys(self, text: str) -> None:
        """Type keys, whatever has the focus."""
        actions = [{"type": kind, "value": key} for key in text for kind in ("keyDown", "keyUp")]
        self._act({"type": "key", "id": "keyboard", "actions": actions})

    def screenshot(self, path: Path) -> None:
        """Write what the window shows."""
        path.write_bytes(base64.b64decode(self.call("screenshot", None)))

    def text(self, selector: str) -> str:
        """The visible text of an element."""
        return str(self.run("return document.querySelector(arguments[0]).innerText", selector))

    def problems(self) -> list[str]:
        """What the console complained about since the last call."""
        entries = self.call("se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] in ("SEVERE", "WARNING")]

    def _act(self, source: dict[str, Any]) -> None:
        self.call("actions", {"actions": [source]})

    def call(self, path: str, content: Any) -> Any:
        """One command of the WebDriver protocol."""
        return request(f"{self._base}/{path}", content)


def request(url: str, content: Any, method: str | None = None) -> Any:
    """Send JSON, get the answer's value."""
    body = None if content is None else json.dumps(content).encode()
    message = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(message, timeout=60) as answer:
            return json.load(answer)["value"]
    except urllib.error.HTTPError as error:
        raise AssertionError(f"{url}: {error.read().decode()[:800]}") from None


@contextmanager
def browser(width: int = 1400, height: int = 880, *flags: str) -> Iterator[Browser]:
    """A fresh browser with a profile of its own."""
    assert CHROMIUM is not None
    assert DRIVER is not None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        log = Path(profile) / "driver.log"
        with log.open("w") as stream:
            process = subprocess.Popen([DRIVER, "--port=0"], stdout=stream, stderr=stream)
        try:
            address = _address(log)
            arguments = [*FLAGS, f"--user-data-dir={profile}/data",
                         f"--window-size={width},{height}", *flags]  # fmt: skip
            options = {
                "browserName": "chrome",
                "goog:chromeOptions": {"binary": CHROMIUM, "args": arguments},
                "goog:loggingPrefs": {"browser": "ALL"},
            }
            wanted = {"capabilities": {"alwaysMatch": options}}
            session = request(f"{address}/session", wanted)["sessionId"]
            try:
                yield Browser(address, session)
            finally:
                request(f"{address}/session/{session}", None, "DELETE")
        finally:
            process.terminate()
            process.wait(20)


def _address(log: Path) -> str:
    """Where the driver says that it listens."""
    for _ in range(200):
        for line in log.read_text().splitlines():
            if "started successfully on port" in line:
                return "http://127.0.0.1:" + line.rstrip(".").rpartition(" ")[2]
        time.sleep(0.05)
    raise AssertionError(f"chromedriver did not start: {log.read_text()}")
