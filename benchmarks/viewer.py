"""How soon the viewer paints a graph of 5,000 nodes in headless Chromium, and how it pans.

`python -m benchmarks.viewer` needs the chromium and chromium-driver packages.
"""

import statistics
import tempfile
import time
from pathlib import Path

from sardonyx.graph import Graph, Model
from sardonyx.viewer import render_html
from tests.viewer.browser import browser
from tests.viewer.models import network

NODES = 5_000
RUNS = 5
PAN = """
const view = app.current, frames = [];
let last = performance.now();
requestAnimationFrame(function step(now) {
  frames.push(now - last);
  last = now;
  view.moveBy(3, 12);
  if (frames.length < 60) requestAnimationFrame(step);
  else done(frames.slice(2).sort((a, b) => a - b));
});
"""


def main() -> None:
    """Measure and print."""
    start = time.perf_counter()
    page = render_html(network(NODES))
    print(f"page made in {time.perf_counter() - start:.2f} s, {len(page) / 1e6:.2f} MB in all,")
    empty = len(render_html(Model(Graph("empty"))))
    print(f"of which without the model {empty / 1e6:.3f} MB (bar 2)")
    with tempfile.TemporaryDirectory() as folder, browser() as window:
        path = Path(folder) / "page.html"
        path.write_text(page, encoding="utf-8")
        paints = []
        for _ in range(RUNS):
            window.open(path.as_uri())
            mark = "return performance.getEntriesByName('graph-painted')[0].startTime"
            paints.append(window.run(mark))
        print(f"first paint: best {min(paints):.0f} ms, worst {max(paints):.0f} ms (bar 3000)")
        for scale in (0.9, 0.1, 0.005):
            window.run(
                "const v = app.current; v.show(v.graph.width / 2, 9000, arguments[0])", scale
            )
            frames = min((window.run_later(PAN) for _ in range(RUNS)), key=lambda times: times[-1])
            print(
                f"panning at scale {scale}: a frame takes {statistics.median(frames):.0f} ms, "
                f"the longest {frames[-1]:.0f} ms"
            )


if __name__ == "__main__":
    main()
