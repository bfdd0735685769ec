"""Which accesses of kernels are not proven to stay inside of their arrays.

    python -m tests.conformance.unproven [--every 12] [--models] [--show 20] [Conv ...]

Lists accesses of the official suite's kernels, or of the shared models', of which the verifier can
tell neither that they are right nor that they are wrong, with how many it can tell.
"""

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

import sardonyx as sx
from sardonyx.compiler.build import build_steps
from sardonyx.compiler.compile import lower
from sardonyx.compiler.host import host_target
from sardonyx.compiler.numbering import Numbering
from sardonyx.errors import SardonyxError
from sardonyx.graph import Model
from sardonyx.loops import Kernel, kernel_text
from sardonyx.loops.bounds import Judged, Verdict, judge
from sardonyx.ops.catalog import standard
from tests.conformance.suite import select
from tests.shared_models import model_paths


def kernels_of(model: Model) -> list[Kernel]:
    """The kernels of a model; none of one that cannot be lowered as it stands."""
    found: list[Kernel] = []
    try:
        evaluator, lowered, _ = lower(model, standard())
        build_steps(evaluator.graph, lowered, host_target(), Numbering(found.append).kernel)
    except SardonyxError:
        return []
    return found


def official_models(wanted: list[str], every: int = 1) -> Iterator[tuple[str, Model]]:
    """Models of the suite, by name."""
    for case in islice(select(wanted), 0, None, every):
        yield case.name, sx.load(case.model.SerializeToString())


def judged(models: Iterable[tuple[str, Model]]) -> Iterator[tuple[str, Judged]]:
    """Every access of different kernels, with the name of the first model that has it."""
    seen: set[str] = set()
    for name, model in models:
        for kernel in kernels_of(model):
            text = kernel_text(kernel)
            if text not in seen:
                seen.add(text)
                yield from ((name, item) for item in judge(kernel))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wanted", nargs="*")
    parser.add_argument("--every", type=int, default=1, help="take one of so many cases")
    parser.add_argument("--models", action="store_true", help="the shared models instead")
    parser.add_argument("--show", type=int, default=20, help="how many to list")
    given = parser.parse_args()
    models = official_models(given.wanted, given.every)
    if given.models:
        models = ((path.parent.name, sx.load(path)) for path in model_paths())
    counts: Counter[Verdict] = Counter()
    shown = 0
    for name, item in judged(models):
        counts[item.verdict] += 1
        if item.verdict is not Verdict.INSIDE and shown < given.show:
            shown += 1
            print(f"{name}: {item}")
    print(", ".join(f"{count} {verdict.value}" for verdict, count in counts.most_common()))


if __name__ == "__main__":
    main()
