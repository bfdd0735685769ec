"""The verb `view`: a model as a page, written or served."""

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import sardonyx as sx
from sardonyx.cli.output import report_written, waiting
from sardonyx.cli.profile import record_events
from sardonyx.cli.session import Request
from sardonyx.errors import InputError
from sardonyx.format.files import replacing
from sardonyx.viewer.serve import serve_html


def write_page(request: Request, target: Path, *, as_json: bool, **sides: Any) -> None:
    """Write the page of a model."""
    page = _page(request, **sides)
    with replacing(target) as staged:
        staged.write_text(page, encoding="utf-8")
    report_written(target, {}, as_json=as_json)


def serve_page(request: Request, port: int, browser: bool, *, as_json: bool, **sides: Any) -> None:
    """Serve the page of a model on this machine until interrupted."""
    page = _page(request, **sides)

    def ready(address: str) -> None:
        print(json.dumps({"address": address}) if as_json else address, flush=True)
        if not as_json and sys.stdout.isatty():
            print("Ctrl-C ends it.", flush=True)

    serve_html(page, port=port, open_browser=browser, ready=ready)


def _page(request: Request, compare: Path | None, simplified: bool, profile: bool) -> str:
    if compare is not None and simplified:
        raise InputError("--compare and --simplified contradict each other", hint="give one")
    model = sx.load(request.path)
    times: dict[str, float] | None = None
    if profile:
        times = defaultdict(float)
        for event in record_events(request, 1):
            times[event["args"]["output"]] += event["dur"] / 1e6
    with waiting("drawing"):
        if simplified:
            return sx.render_html(
                model, compare=sx.simplify(model), names=("as it is", "simplified"), profile=times
            )
        return sx.render_html(model, title=request.path.name, compare=compare, profile=times)
