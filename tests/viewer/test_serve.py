"""The server: one page, on this machine only, gone when interrupted."""

import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from http.client import HTTPConnection
from pathlib import Path

import pytest

from sardonyx.viewer.serve import page_server

ROOT = Path(__file__).parents[2]


def answer(
    port: int, path: str = "/", host: str | None = None, method: str = "GET"
) -> tuple[int, bytes]:
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, path, headers={"Host": host or f"127.0.0.1:{port}"})
    response = connection.getresponse()
    return response.status, response.read()


def test_only_the_page_is_served() -> None:
    with page_server("<p>ü") as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            port = server.server_port
            assert server.server_address[0] == "127.0.0.1"
            assert answer(port) == (200, "<p>ü".encode())
            assert answer(port, method="HEAD") == (200, b"")
            assert answer(port, "/../etc/passwd")[0] == 404
            assert answer(port, host=f"localhost:{port}")[0] == 200
            assert answer(port, host="rebound.example")[0] == 403
            assert answer(port, method="POST")[0] == 501
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.skipif(sys.platform == "win32", reason="signals work otherwise there")
def test_an_interrupt_ends_it_quietly() -> None:
    script = (
        "from functools import partial\nfrom sardonyx.viewer import serve\n"
        "serve('examples/digits.onnx', open_browser=False, ready=partial(print, flush=True))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        with urllib.request.urlopen(address, timeout=10) as response:
            assert response.headers["X-Content-Type-Options"] == "nosniff"
            assert b"<title>digits.onnx</title>" in response.read()
        process.send_signal(signal.SIGINT)
        _, complaints = process.communicate(timeout=20)
        assert (process.returncode, complaints) == (0, "")
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(address, timeout=2)
