"""Whether tests notice small changes of the code: `python -m tests.mutants.run --count 300`.

Each change (a comparison, a sign, an and/or) is made alone in a copy of the tree and judged by the
tests of its package, the examples of its docstrings and the official suite. First all tests run
once on a tree in which the chosen places say which tests run them, so that a change is judged by
those alone, quickest first.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from queue import Queue
from xml.etree import ElementTree

from tests.mutants.probe import read_hits
from tests.mutants.sites import Site, apply, choose, probed

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "sardonyx"
LEFT_OUT = (".git", ".venv", "build", "dist", "*.egg-info", ".*_cache", "__pycache__")
MOST_TESTS = 800
"""Tests that judge one change, the quickest of each function first."""
MOST_SECONDS = 240
"""Of a change that nothing has noticed by then; one that hangs the tests is noticed."""
SITE = "from tests.mutants.probe import install\ninstall({!r})\n"


@dataclass(frozen=True)
class Baseline:
    """What a run of all tests told: seconds of each that passes, and who runs which site."""

    seconds: dict[str, float]
    hits: dict[int, set[str]]


def copy_tree(where: Path) -> Path:
    shutil.copytree(ROOT, where, ignore=shutil.ignore_patterns(*LEFT_OUT), dirs_exist_ok=True)
    return where


def environment(tree: Path, *more: Path) -> dict[str, str]:
    given = os.environ.get("PYTHONPATH", "")
    others = [part for part in given.split(os.pathsep) if part and Path(part).resolve() != ROOT]
    path = os.pathsep.join(map(str, [*more, tree, *others]))
    return {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}


def pytest_command(*more: str) -> list[str]:
    quiet = ("-q", "-p", "no:cacheprovider", "--tb=no", "-m", "not slow")
    return [sys.executable, "-m", "pytest", *quiet, *more]


def run_baseline(sites: list[Site], folder: Path, workers: int) -> Baseline:
    """Run every test on a tree with probes."""
    tree = copy_tree(folder / "probed")
    by_file: dict[str, dict[int, Site]] = defaultdict(dict)
    for number, site in enumerate(sites):
        by_file[site.path][number] = site
    for path, here in by_file.items():
        (tree / path).write_bytes(probed((tree / path).read_bytes(), here))
    hits, start = folder / "hits", folder / "start"
    hits.mkdir()
    start.mkdir()
    (start / "sitecustomize.py").write_text(SITE.format(str(hits)))
    report = folder / "report.xml"
    files = [str(path.relative_to(tree)) for path in sorted(tree.glob("tests/**/test_*.py"))]
    prefixes = tuple({prefix for site in sites for prefix in judging(site)})
    command = pytest_command(
        "-n", str(workers), f"--junitxml={report}", "-o", "junit_family=xunit1",
        *(file for file in files if file.startswith(prefixes)),
    )  # fmt: skip
    subprocess.run(command, cwd=tree, env=environment(tree, start), check=False,
                   stdout=subprocess.DEVNULL)  # fmt: skip
    seconds = {}
    for case in ElementTree.parse(report).iter("testcase"):
        if len(case) == 0:
            names = (case.get("classname") or "").split(".")
            file = case.get("file") or ""
            inner = names[len(Path(file).with_suffix("").parts) :]
            name = "::".join([file, *inner, case.get("name") or ""])
            seconds[name] = float(case.get("time") or 0)
    return Baseline(seconds, read_hits(hits))


def judging(site: Site) -> tuple[str, ...]:
    """How the paths of the tests that judge a site begin."""
    _, package, *inner = Path(site.path).parts
    own = (f"tests/{package}/", f"tests/test_{package}") if inner else ("tests/test_",)
    return (*own, "tests/test_docstrings.py", "tests/conformance/")


def judges(site: Site, tests: set[str], seconds: dict[str, float]) -> list[str]:
    """The tests of a site's package and the official suite's, the quickest of each function, then
    the second of each, and so on."""
    if "" in tests:
        tests = set(seconds)
    groups: dict[str, list[str]] = defaultdict(list)
    for test in sorted(tests, key=lambda name: seconds.get(name, 0)):
        if test in seconds and test.startswith(judging(site)):
            groups[test.split("[")[0]].append(test)
    rounds = zip_longest(*sorted(groups.values(), key=lambda group: seconds[group[0]]))
    return [test for row in rounds for test in row if test is not None][:MOST_TESTS]


def judge(site: Site, tests: list[str], tree: Path) -> str:
    """What noticed a change: a test, the time; or nothing."""
    path = tree / site.path
    before = path.read_bytes()
    listed = tree / "judges.txt"
    listed.write_text("\n".join(tests))
    try:
        path.write_bytes(apply(before, site))
        done = subprocess.run(
            pytest_command("-x", f"@{listed}"), cwd=tree, env=environment(tree),
            timeout=MOST_SECONDS, capture_output=True, text=True, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "time"
    finally:
        path.write_bytes(before)
    if done.returncode == 0:
        return ""
    named = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return named[0] if named else f"exit {done.returncode}"


def judge_all(sites: list[Site], baseline: Baseline, folder: Path, workers: int) -> list[str]:
    """For each site what noticed its change."""
    trees: Queue[Path] = Queue()
    for number in range(workers):
        trees.put(copy_tree(folder / f"tree{number}"))

    def one(number: int) -> str:
        tests = judges(sites[number], baseline.hits.get(number, set()), baseline.seconds)
        tree = trees.get()
        try:
            noticed = judge(sites[number], tests, tree) if tests else ""
        finally:
            trees.put(tree)
        told = noticed or f"NOT NOTICED by {len(tests)} tests"
        print(f"{number:4} {sites[number]}  {told}", flush=True)
        return noticed

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(one, range(len(sites))))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--package", default=PACKAGE, help="change only what lies in this folder")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--only", help="numbers of changes, as an earlier run printed them")
    parser.add_argument("--json", type=Path, help="where to write what was found")
    given = parser.parse_args()
    sites = choose(ROOT, given.package, given.count, given.seed)
    if given.only:
        sites = [sites[int(number)] for number in given.only.split(",")]
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        folder = Path(name)
        baseline = run_baseline(sites, folder, given.workers)
        told = (
            f"{len(baseline.seconds)} tests pass, {len(baseline.hits)} of {len(sites)} places run"
        )
        print(f"{told}, {time.monotonic() - begun:.0f} s", flush=True)
        noticed = judge_all(sites, baseline, folder, given.workers)
    if given.json:
        rows = [{"site": str(site), "noticed": by} for site, by in zip(sites, noticed, strict=True)]
        given.json.write_text(json.dumps(rows, indent=1) + "\n")
    count = sum(map(bool, noticed))
    print(f"{count} of {len(sites)} changes noticed ({count / len(sites):.1%}), "
          f"{time.monotonic() - begun:.0f} s")  # fmt: skip
    return 0 if count >= 0.92 * len(sites) else 1


if __name__ == "__main__":
    sys.exit(main())
