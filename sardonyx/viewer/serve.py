"""Show a model in the browser: a server for one page, reachable from this machine only."""

import webbrowser
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from sardonyx.boundary import public
from sardonyx.format.load import Source
from sardonyx.graph import Model
from sardonyx.viewer.render import render_html

LOOPBACK = "127.0.0.1"


@public("showing the model")
def serve(
    model: Model | Source,
    *,
    port: int = 0,
    open_browser: bool = True,
    title: str = "",
    compare: Model | Source | None = None,
    profile: Mapping[str, float] | None = None,
    ready: Callable[[str], Any] = print,
) -> None:
    """Serve the page of `render_html` until interrupted; `ready` is called with its address.

    The default `port` is any free one. Only this machine can connect.
    """
    page = render_html(model, title=title, compare=compare, profile=profile)
    serve_html(page, port=port, open_browser=open_browser, ready=ready)


def serve_html(
    page: str, *, port: int = 0, open_browser: bool = True, ready: Callable[[str], Any] = print
) -> None:
    """Serve one page until interrupted."""
    with page_server(page, port) as server:
        address = f"http://{LOOPBACK}:{server.server_port}/"
        ready(address)
        if open_browser:
            webbrowser.open(address)
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            return


def page_server(page: str, port: int = 0) -> ThreadingHTTPServer:
    """A server that answers requests for `/` with `page`, bound but not yet serving.

    >>> with page_server("<p>hello") as server:
    ...     server.server_address[0]
    '127.0.0.1'
    """
    content = page.encode()

    class Handler(BaseHTTPRequestHandler):
        """Answers for one page."""

        server_version = "sardonyx"
        sys_version = ""

        def do_GET(self) -> None:
            """The page, or why not."""
            self._answer(body=True)

        def do_HEAD(self) -> None:
            """The same without the page."""
            self._answer(body=False)

        def _answer(self, *, body: bool) -> None:
            if not self._is_local():
                self.send_error(HTTPStatus.FORBIDDEN, "this server answers for its own name only")
            elif self.path.partition("?")[0] != "/":
                self.send_error(HTTPStatus.NOT_FOUND)
            else:
                self.send_response(HTTPStatus.OK)
                for name, text in _headers(len(content)):
                    self.send_header(name, text)
                self.end_headers()
                if body:
                    self.wfile.write(content)

        def _is_local(self) -> bool:
            """False where another site's name was made to point here."""
            host = self.headers.get("Host", "").rpartition(":")[0] or self.headers.get("Host", "")
            return host in (LOOPBACK, "localhost")

        def log_message(self, format: str, *args: Any) -> None:
            """Requests for the page are not worth a line."""

    server = ThreadingHTTPServer((LOOPBACK, port), Handler)
    server.daemon_threads = True
    return server


def _headers(length: int) -> list[tuple[str, str]]:
    return [
        ("Content-Type", "text/html; charset=utf-8"),
        ("Content-Length", str(length)),
        ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
        ("Content-Security-Policy", "frame-ancestors 'none'"),
        ("Referrer-Policy", "no-referrer"),
        ("Cross-Origin-Resource-Policy", "same-origin"),
    ]
