"""Changes are what they say, and probes tell what runs."""

import ast
from pathlib import Path

import pytest

from tests.mutants.run import ROOT, judges
from tests.mutants.sites import HIT, Site, apply, choose, find, is_change, probed

CHANGES = [
    ("y = a < b", ["y = a <= b", "y = a > b"]),
    ("y = a not in b", ["y = a in b"]),
    ("y = a is  not b", ["y = a is b"]),
    ("y = (a + b) - c", ["y = (a + b) + c", "y = (a - b) - c"]),
    ("y = a and b and c", ["y = a or b and c"]),
    ("y = not a", ["y =  a"]),
    ("y = f(-a)", ["y = f(a)"]),
    ("y = 1 < a <= 2", ["y = 1 <= a <= 2", "y = 1 > a <= 2", "y = 1 < a < 2", "y = 1 < a > 2"]),
    ("y: a < b = 1", []),
    ("assert a < b", []),
    ("match a:\n case -1: pass", []),
    ("y = f'{a < b}'", []),
    ("y = 'ä' + b", ["y = 'ä' - b"]),
    ("if TYPE_CHECKING and a < b: pass", []),
]


@pytest.mark.parametrize(("before", "after"), CHANGES, ids=[before for before, _ in CHANGES])
def test_changes(before: str, after: list[str]) -> None:
    source = before.encode()
    assert [apply(source, site).decode() for site in find("f.py", source)] == after


def test_probes_say_which_expressions_run() -> None:
    source = b"def f(a, b):\n return a < b if a else b + 1\n"
    sites = [site for site in find("f.py", source) if site.new in ("<=", "-")]
    ran: list[int] = []
    space = {HIT: ran.append}
    exec(probed(source, dict(enumerate(sites))), space)
    function: object = space["f"]
    assert callable(function)
    assert (function(1, 2), function(0, 2)) == (True, 3)
    assert ran == [0, 1]


def test_chosen_changes_can_be_probed() -> None:
    sites = choose(ROOT, "sardonyx/loops", 30, seed=1)
    assert len({site.path for site in sites}) > 1
    for site in sites:
        source = (ROOT / site.path).read_bytes()
        assert is_change(source, site)
        ast.parse(probed(source, {0: site}))


def test_a_change_is_judged_by_its_package_and_the_official_suite() -> None:
    site = Site(str(Path("sardonyx/ops/cast.py")), 1, 0, 1, "<", ">", 0, 1)
    seconds = {
        "tests/ops/test_a.py::f[1]": 0.1, "tests/ops/test_a.py::f[2]": 0.0,
        "tests/conformance/test_suite.py::g": 0.2, "tests/cli/test_b.py::h": 0.0,
    }  # fmt: skip
    failing = "tests/ops/test_a.py::fails"
    assert judges(site, {""}, seconds) == judges(site, {*seconds}, seconds)
    assert judges(site, {*seconds, failing}, seconds) == [
        "tests/ops/test_a.py::f[2]",
        "tests/conformance/test_suite.py::g",
        "tests/ops/test_a.py::f[1]",
    ]
