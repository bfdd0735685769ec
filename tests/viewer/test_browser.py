"""The page in a real browser: it paints, moves, finds, and shows what is clicked."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sardonyx.graph import Model
from sardonyx.viewer import render_html
from tests.viewer.browser import Browser, browser, needs_chromium
from tests.viewer.models import HOSTILE, hostile, nested, network

pytestmark = [pytest.mark.slow, needs_chromium]

ENTER, ESCAPE, DOWN, BACKSPACE = "\ue007", "\ue00c", "\ue015", "\ue003"


@pytest.fixture(scope="module")
def window() -> Iterator[Browser]:
    with browser() as opened:
        yield opened


def show(window: Browser, folder: Path, model: Model, **options: Any) -> None:
    page = folder / "page.html"
    page.write_text(render_html(model, **options), encoding="utf-8")
    window.open(page.as_uri())
    assert window.problems() == []


def place_of(window: Browser, title: str, side: int = 0) -> tuple[float, float]:
    """Where in the window the middle of a node's title is."""
    script = """
    const view = app.views[arguments[1]], frame = view.canvas.getBoundingClientRect();
    const node = view.graph.nodes.find((item) => item.title === arguments[0]);
    const [x, y, width] = node.box, { camera } = view;
    return [frame.left + (x + width / 2 - camera.x) * camera.scale,
            frame.top + (y + 12 - camera.y) * camera.scale];
    """
    x, y = window.run(script, title, side)
    return x, y


def camera(window: Browser) -> dict[str, float]:
    found: dict[str, float] = window.run("return { ...app.current.camera }")
    return found


def test_five_thousand_nodes_paint_at_every_scale(window: Browser, tmp_path: Path) -> None:
    """How soon and how smoothly is measured by `benchmarks.viewer`."""
    show(window, tmp_path, network(5_000))
    assert window.run("return performance.getEntriesByName('graph-painted').length") == 1
    for scale in (0.9, 0.1, 0.005):
        window.run("const v = app.current; v.show(v.graph.width / 2, 9000, arguments[0])", scale)
        before = window.run("return { ...app.current.camera }")
        window.run("app.current.moveBy(3, 12)")
        after = window.run("return { ...app.current.camera }")
        assert after["y"] != before["y"]
        assert window.run_later("requestAnimationFrame(() => done(app.current.drawn.nodes))") > 0


def test_labels_are_shapes(window: Browser, tmp_path: Path) -> None:
    show(window, tmp_path, network(5))
    types = ["float[1,3,n]", "float[]", "float[a,min(b, c),2]", "seq(float)"]
    labels = window.run("return arguments[0].map(shapeLabel)", types)
    assert labels == ["1×3×n", "scalar", "a×min(b, c)×2", ""]


def test_the_page_asks_the_network_for_nothing(window: Browser, tmp_path: Path) -> None:
    show(window, tmp_path, network(50))
    fetched = window.run("return performance.getEntriesByType('resource').map((one) => one.name)")
    assert fetched == []


def test_only_what_is_visible_is_drawn(window: Browser, tmp_path: Path) -> None:
    show(window, tmp_path, network(5_000))
    drawn = window.run("return app.current.drawn")
    assert 0 < drawn["nodes"] < 60
    assert drawn["edges"] < 120
    window.keys("f")
    time.sleep(0.3)
    assert window.run("return app.current.drawn")["nodes"] == 5_003


def test_search_finds_and_jumps(window: Browser, tmp_path: Path) -> None:
    show(window, tmp_path, network(500))
    window.keys("/")
    window.keys("node333")
    assert "block66/node333" in window.text("#results")
    window.keys(ENTER)
    assert "block66/node333" in window.text("#panel")
    x, y = place_of_selected(window)
    assert 0 < x < 1_060 and 0 < y < 800
    window.keys("/")
    window.keys("sigmoid" + DOWN + ENTER)
    assert window.text("#panel h2") == "Sigmoid"
    assert "node9" in window.text("#panel")
    window.keys("/")
    window.keys("weight5")
    assert "weight5" in window.text("#results li")
    window.keys("qqq")
    assert window.text("#results") == "nothing found"


def place_of_selected(window: Browser) -> tuple[float, float]:
    script = """
    const view = app.current, [x, y] = view.graph.nodes[view.selected].box;
    return [(x - view.camera.x) * view.camera.scale, (y - view.camera.y) * view.camera.scale];
    """
    x, y = window.run(script)
    return x, y


def test_a_click_shows_details(window: Browser, tmp_path: Path) -> None:
    show(window, tmp_path, network(10))
    assert "64,000" not in window.text("#panel") and "OPERATORS" in window.text("#panel")
    window.click(*place_of(window, "Conv"))
    panel = window.text("#panel")
    assert window.text("#panel h2") == "Conv"
    for text in ("block0/node0", "image", "float[1,8,16,16]", "weight0", "float[8,8,1,1]", "range"):
        assert text in panel
    assert window.run("return document.querySelectorAll('#panel .weight canvas').length") == 1
    window.keys("n")
    assert window.text("#panel h2") == "Relu"
    window.keys("b")
    assert window.text("#panel h2") == "Conv"
    window.click(*place_of(window, "image"))
    assert "Input of the graph" in window.text("#panel")
    window.keys(ESCAPE)
    assert "OPERATORS" in window.text("#panel")


def test_keys_and_pointer_move_and_zoom(window: Browser, tmp_path: Path) -> None:
    show(window, tmp_path, network(500))
    start = camera(window)
    window.keys(DOWN)
    assert camera(window)["y"] > start["y"]
    window.keys("+")
    assert camera(window)["scale"] > start["scale"]
    window.keys("--")
    assert camera(window)["scale"] < start["scale"]
    before = camera(window)
    window.drag([(300, 500), (320, 470), (340, 400)])
    after = camera(window)
    assert after["y"] - before["y"] == pytest.approx(100 / before["scale"], rel=0.2)
    assert window.run("return app.current.selected") == -1
    window.keys("f")
    assert camera(window)["scale"] < before["scale"] / 10
    frame = window.run("return app.current.map.getBoundingClientRect().toJSON()")
    window.keys("+++++++")
    window.click(frame["left"] + 10, frame["bottom"] - 12)
    assert camera(window)["y"] > window.run("return app.current.graph.height") / 2


def test_subgraphs_open_and_lead_back(window: Browser, tmp_path: Path) -> None:
    show(window, tmp_path, nested())
    window.click(*place_of(window, "If"), times=2)
    assert "then_branch" in window.text("#trail")
    window.click(*place_of(window, "If"))
    window.run("document.querySelector('#panel .open').click()")
    trail = window.text("#trail").split("\n")
    assert [step for step in trail if step != "›"] == [
        "main", "outer_if : then_branch", "inner_if : then_branch"
    ]  # fmt: skip
    window.click(*place_of(window, "x"))
    assert "Value of an outer graph" in window.text("#panel")
    window.run("document.querySelector('#panel .open').click()")
    assert window.text("#trail") == "main"
    assert window.run("return app.current.graph.nodes[app.current.selected].title") == "x"
    window.click(*place_of(window, "Twice"), times=2)
    assert "function local.Twice" in window.text("#trail")
    window.run("app.open(app.current, 1)")
    window.keys(BACKSPACE)
    assert window.text("#trail") == "main"


def test_hostile_texts_are_only_text(window: Browser, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(render_html(hostile(), title=HOSTILE[0]), encoding="utf-8")
    window.open(page.as_uri())
    window.run("""
      app.current.graph.nodes.forEach((node, index) => app.jump(app.current, 0, index));
      for (const text of arguments[0]) showMatches(text);
      hover(app.current, 300, 300);
    """, list(HOSTILE[:6]))  # fmt: skip
    assert window.run("return document.title") == HOSTILE[0]
    assert window.run("return document.scripts.length") == 2
    assert window.run("return document.images.length") == 0
    window.run("app.jump(app.current, 0, 1)")
    assert HOSTILE[0] in window.text("#panel h2")
    assert window.problems() == []


def test_what_the_policy_forbids_does_not_run(window: Browser, tmp_path: Path) -> None:
    show(window, tmp_path, nested())
    window.run("""
      const script = document.createElement("script");
      script.textContent = "window.intruded = true";
      document.body.append(script);
    """)
    assert window.run("return window.intruded === undefined")
    assert any("Content Security Policy" in text for text in window.problems())


def test_comparison_selects_twins_and_shares_the_legend(window: Browser, tmp_path: Path) -> None:
    before, after = network(20), network(20)
    relu = after.graph.nodes[1]
    relu.output.replace_all_uses(relu.inputs[0])
    after.graph.nodes.remove(relu)
    show(window, tmp_path, before, compare=after)
    assert window.run("return app.views.length") == 2
    assert "4 → 3 (−1)" in window.text("#panel")
    window.click(*place_of(window, "Add"))
    titles = window.run("return app.views.map((view) => view.graph.nodes[view.selected].title)")
    assert titles == ["Add", "Add"]
    window.click(*place_of(window, "Relu"))
    assert "only here" in window.text("#panel")
    assert window.run("return app.views[1].selected") == -1
    window.run("document.querySelector('#legend button').click()")
    families = window.run("return app.views.map((view) => view.family)")
    assert families[0] == families[1] >= 0
    show(window, tmp_path, before, compare=after, names=("before", "after"))
    assert "only before" in window.text("#legend")
    assert "OPERATORS: BEFORE, AFTER" in window.text("#panel")


def test_a_profile_colours_and_lists(window: Browser, tmp_path: Path) -> None:
    show(window, tmp_path, network(10), profile={"block0/node0": 0.004, "block1/node6": 0.001})
    assert "SLOWEST OF 5.00 MS" in window.text("#panel")
    assert "4.00 ms 80.0%" in window.text("#panel")
    hot, cold = window.run("""
      const view = app.current;
      const of = (name) => nodeColour(view, view.graph.nodes.find((node) => node.name === name));
      return [of("block0/node0"), of("block0/node1")];
    """)
    assert hot != cold


def test_dark_follows_the_preference(tmp_path: Path) -> None:
    with browser(900, 600, "--blink-settings=preferredColorScheme=0") as window:
        show(window, tmp_path, nested())
        dark = window.run("return matchMedia('(prefers-color-scheme: dark)').matches")
        colour = window.run("return colours.page")
        assert (dark, colour) == (True, "#14181d")
        pixel = window.run("""
          const view = app.current;
          return [...view.context.getImageData(2, view.canvas.height - 3, 1, 1).data];
        """)
        assert pixel == [0x14, 0x18, 0x1D, 255]
