"""Write down which official node cases do not run natively from end to end."""

from importlib.metadata import version
from pathlib import Path

import sardonyx as sx
from sardonyx.compiler.coverage import fallbacks
from tests.conformance.suite import Case, cases

PATH = Path(sx.__file__).parent / "compiler" / "official_cases.txt"


def case_fallbacks(case: Case) -> tuple[str, ...]:
    """The operators that run their reference in a case."""
    names = [value.name for value in case.model.graph.input]
    found: set[str] = set()
    for inputs, _ in case.data_sets:
        model = sx.load(case.model.SerializeToString())
        found.update(fallbacks(model, dict(zip(names, inputs, strict=False))))
    return tuple(sorted(found))


def main() -> None:
    """Write the record: `python -m tests.conformance.record`."""
    found = {case.name: case_fallbacks(case) for case in cases("node")}
    lines = [" ".join((name, *operators)) for name, operators in found.items() if operators]
    PATH.write_text("\n".join([f"{version('onnx')} {len(found)}", *lines]) + "\n")
    print(f"{len(found) - len(lines)} of {len(found)} cases run natively from end to end")


if __name__ == "__main__":
    main()
