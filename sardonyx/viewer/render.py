"""One HTML page that shows a model, with everything it needs inside it."""

import json
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import PurePath
from typing import Any

from sardonyx.boundary import public
from sardonyx.format.load import Source, load
from sardonyx.graph import Model
from sardonyx.viewer.compare import mark_differences
from sardonyx.viewer.describe import describe_model
from sardonyx.viewer.families import FAMILIES

SCRIPTS = (
    "page_view.js", "page_paint.js", "page_panel.js", "page_search.js", "page_input.js", "page.js",
)  # fmt: skip
"""The parts of the page's script, in order."""


@public("drawing the model")
def render_html(
    model: Model | Source,
    *,
    title: str = "",
    compare: Model | Source | None = None,
    names: tuple[str, str] | None = None,
    profile: Mapping[str, float] | None = None,
) -> str:
    """A page that draws a model, works offline, and asks the network for nothing.

    `compare` is a second model to show beside the first, with what differs marked; `names` says
    what to call the two. `profile` gives seconds for nodes, by name or by first output, which then
    colour the drawing.

    >>> import sardonyx as sx
    >>> page = render_html(sx.load("examples/digits.onnx"), title="digits")
    >>> page.startswith("<!doctype html>"), "<title>digits</title>" in page
    (True, True)
    """
    models = [_opened(model)] + ([] if compare is None else [_opened(compare)])
    sides = [describe_model(item, profile) for item in models]
    called = [_name(item) for item in models]
    heading = title or " and ".join(dict.fromkeys(called))
    if len(sides) == 2:
        mark_differences(*sides)
        called = called if called[0] != called[1] else ["left", "right"]
        called = list(names or called)
    for side, name in zip(sides, called, strict=True):
        side["name"] = name if len(sides) == 2 else title or name
    data = {
        "sides": sides,
        "families": [[family.key, family.title] for family in FAMILIES],
        "heat": bool(profile),
    }
    return _page(heading, data)


def embed(data: Any) -> str:
    """Data as JSON that can stand in a script element: ASCII, without anything markup begins with.

    >>> embed({"name": "</script>"})
    '{"name":"\\\\u003c/script\\\\u003e"}'
    """
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def policy() -> str:
    """What the page may do: run its own script, use its own style, and nothing else."""
    style, script = digest(_style()), digest(_script())
    return f"default-src 'none'; style-src '{style}'; script-src '{script}'; base-uri 'none'"


def digest(text: str) -> str:
    """The name by which a content security policy allows an inline script or style."""
    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()


def _page(title: str, data: Any) -> str:
    parts = {
        "POLICY": policy(),
        "TITLE": escape(title.encode("utf-8", "replace").decode()),
        "STYLE": _style(),
        "SCRIPT": _script(),
        "DATA": embed(data),
    }
    pieces = _read("page.html").split("%")
    return "".join(parts.get(piece, piece) if index % 2 else piece
                   for index, piece in enumerate(pieces))  # fmt: skip


def _read(name: str) -> str:
    return files("sardonyx.viewer").joinpath(name).read_text("utf-8")


def _style() -> str:
    return "\n" + _read("page.css")


def _script() -> str:
    return "\n" + "\n".join(map(_read, SCRIPTS))


def _opened(model: Model | Source) -> Model:
    return model if isinstance(model, Model) else load(model)


def _name(model: Model) -> str:
    path = PurePath(model.source.strip("'"))
    stem = f"{path.parent.name}/{path.name}" if path.stem == "model" else path.name
    return stem.strip("/") or (model.graph.name if model.graph is not None else "") or "model"
