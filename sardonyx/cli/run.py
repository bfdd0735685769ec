"""The verb `run`."""

import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import sardonyx as sx
from sardonyx.errors import InputError
from sardonyx.ops.evaluate import Evaluator


def run_model(
    path: Path, given: list[str], dims: list[str], output: Path | None, seed: int
) -> None:
    """Load, check and run a model, and show it all."""
    console = Console()
    start = time.perf_counter()
    model = sx.load(path)
    loaded = time.perf_counter()
    sx.check(model)
    checked = time.perf_counter()
    evaluator = Evaluator(model)
    feeds = make_feeds(
        model, dict(map(_pair, given)), {key: int(size) for key, size in map(_pair, dims)}, seed
    )
    ready = time.perf_counter()
    results = evaluator.run(None, feeds)
    done = time.perf_counter()
    console.print(f"[bold]{path}[/bold]  opset {model.opset}, {len(evaluator.graph.nodes)} nodes")
    console.print(
        f"loaded in {_ms(loaded - start)}, checked in {_ms(checked - loaded)}, "
        f"ran in {_ms(done - ready)} on the reference implementation"
    )
    names = [value.name for value in evaluator.graph.outputs]
    console.print(values_table("inputs", feeds))
    console.print(values_table("outputs", dict(zip(names, results, strict=True))))
    if output is not None:
        arrays: dict[str, Any] = dict(zip(names, map(np.asarray, results), strict=True))
        np.savez(output, **arrays)
        console.print(f"wrote {output}")


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms"


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise InputError(f"'{text}' is not of the form NAME=VALUE")
    return name, value


def make_feeds(
    model: sx.Model, given: dict[str, str], dims: dict[str, int], seed: int
) -> dict[str, Any]:
    """A value for each input: from a file, or made up."""
    assert model.graph is not None
    constants = set(model.graph.initializers)
    formals = {value.name: value for value in model.graph.inputs if value not in constants}
    unknown = [name for name in given if name not in formals]
    if unknown:
        raise InputError(
            f"the model has no input '{unknown[0]}'", hint=f"its inputs: {', '.join(formals)}"
        )
    chance = np.random.default_rng(seed)
    feeds = {}
    for name, value in formals.items():
        how = given.get(name, "random")
        feeds[name] = (
            make_up(value, how, dims, chance) if how in _MADE_UP else read_array(Path(how))
        )
    return feeds


_MADE_UP = ("random", "zeros", "ones")


def make_up(
    value: sx.Value, how: str, dims: dict[str, int], chance: np.random.Generator
) -> NDArray[Any]:
    """An array that fits an input; dynamic dimensions are as `dims` says, else 1."""
    kind = value.type
    if not isinstance(kind, sx.TensorType) or not isinstance(kind.element, sx.DataType):
        raise InputError(
            f"input '{value.name}' is {kind}, which cannot be made up", hint="give a file"
        )
    shape = [dims.get(size, 1) if isinstance(size, str) else size or 1 for size in kind.shape or ()]
    if kind.element == sx.DataType.STRING:
        return np.full(shape, "text", object)
    if how != "random":
        return np.full(shape, how == "ones").astype(kind.element.numpy)
    if kind.element.is_float:
        return chance.standard_normal(shape).astype(np.float32).astype(kind.element.numpy)
    return chance.integers(0, 2, shape).astype(kind.element.numpy)


def read_array(path: Path) -> Any:
    """An array from a .npy, .npz (its first one) or .pb file."""
    if path.suffix == ".pb":
        return sx.load_tensor(path).numpy()
    try:
        content = np.load(path, allow_pickle=False)
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise InputError(f"cannot read an array from '{path}': {error}") from None
    return content[content.files[0]] if isinstance(content, np.lib.npyio.NpzFile) else content


def values_table(title: str, values: dict[str, Any]) -> Table:
    """Values as a table: name, type and shape, and what is in them."""
    table = Table(title=title, title_justify="left")
    for column in ("name", "type", "values"):
        table.add_column(column, overflow="fold")
    for name, value in values.items():
        if isinstance(value, np.ndarray | np.generic):
            array = np.asarray(value)
            inside = np.array2string(
                array.astype(np.float32) if array.dtype.kind == "V" else array,
                precision=4, threshold=12, edgeitems=3, suppress_small=True,
            )  # fmt: skip
            table.add_row(name, f"{array.dtype}{list(array.shape)}", inside)
        else:
            table.add_row(name, type(value).__name__, str(value)[:200])
    return table
