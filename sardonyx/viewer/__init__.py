"""See a model: one self-contained page that draws it, and a server that shows the page."""

from sardonyx.viewer.render import render_html
from sardonyx.viewer.serve import serve

__all__ = ["render_html", "serve"]
