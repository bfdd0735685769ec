"""Processes of `multiprocessing`, forked from one that has run the model."""

import multiprocessing

from tests.compiler.sharing import run

expected = run(2)
with multiprocessing.get_context("fork").Pool(3) as processes:
    found = processes.map(run, [2, 1, 2, 3, 2, 2])
assert set(found) == {expected}
