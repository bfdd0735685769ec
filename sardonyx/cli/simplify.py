"""The verbs `simplify` and `optimize`."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import sardonyx as sx
from sardonyx.cli.output import bytes_text, print_line, print_table, report_written, waiting
from sardonyx.cli.session import read_sizes, split_pair
from sardonyx.cli.write import save_as_asked
from sardonyx.errors import InputError
from sardonyx.graph import Dimension
from sardonyx.passes.options import FOLD_LIMIT


def simplify_model(
    path: Path, target: Path, *, shapes: list[str], dims: list[str], dynamic: bool,
    skip: list[str], fold_limit: int | None, extra_opset: int | None, verify: int, as_json: bool,
) -> None:  # fmt: skip
    """Write a smaller model, and say what became of it."""
    wanted, sizes = read_shapes(shapes), read_sizes(dims)
    model = sx.load(path)
    with waiting("simplifying"):
        small = sx.simplify(
            model, overwrite_input_shapes=wanted, free_dimensions=sizes, skip=skip,
            dynamic=dynamic, fold_limit=FOLD_LIMIT if fold_limit is None else fold_limit,
            extra_opset=extra_opset, verify=verify,
        )  # fmt: skip
    _finish(model, small, target, as_json=as_json)


def optimize_model(path: Path, target: Path, level: int, fusions: str, *, as_json: bool) -> None:
    """Write a model made smaller, and say what became of it."""
    model = sx.load(path)
    with waiting("optimizing"):
        small = sx.optimize(model, level, fusions=fusions)
    _finish(model, small, target, as_json=as_json)


def read_shapes(words: Iterable[str]) -> dict[str, tuple[Dimension, ...]]:
    """Shapes of inputs; a size may be a number or a symbol.

    >>> read_shapes(["x=1,3,height"])
    {'x': (1, 3, 'height')}
    """
    shapes: dict[str, tuple[Dimension, ...]] = {}
    for word in words:
        name, said = split_pair(word, "NAME=SIZE,SIZE,...")
        sizes = [part.strip() for part in said.split(",")] if said else []
        if not all(sizes):
            raise InputError(f"'{word}' has an empty size", hint="write NAME=SIZE,SIZE,...")
        if any(size.startswith("-") for size in sizes):
            raise InputError(
                f"'{word}' has a negative size", hint="write a name for a size that stays open"
            )
        shapes[name] = tuple(int(size) if size.isdigit() else size for size in sizes)
    return shapes


def _finish(model: sx.Model, small: sx.Model, target: Path, *, as_json: bool) -> None:
    save_as_asked(small, target)
    before, after = _counts(model), _counts(small)
    sizes = [sum(tensor.nbytes for tensor in item.tensors()) for item in (model, small)]
    if as_json:
        said = {
            "nodes": {"before": before.total(), "after": after.total()},
            "weight_bytes": {"before": sizes[0], "after": sizes[1]},
            "operators": {
                name: {"before": before[name], "after": after[name]} for name in before | after
            },
        }
        report_written(target, said, as_json=True)
        return
    rows = [
        (name, str(before[name]), str(after[name]))
        for name in sorted(before | after)
        if before[name] != after[name]
    ]
    rows.append(("all nodes", str(before.total()), str(after.total())))
    rows.append(("weights", bytes_text(sizes[0]), bytes_text(sizes[1])))
    print_table("", ("operator", "before", "after"), rows, "before after")
    print_line(f"wrote {target}")


def _counts(model: sx.Model) -> Counter[str]:
    return Counter(node.op_type for graph in model.graphs() for node in graph.nodes)
