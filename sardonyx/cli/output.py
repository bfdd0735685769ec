"""What verbs print: rich tables in a terminal, plain columns elsewhere, or JSON."""

import json
import math
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

PATIENCE = 1.0
"""Seconds after which a terminal shows that something is going on."""
_COLOURS = {"error": 31, "warning": 33}
"""The terminal's numbers of colours by what is said."""
_STYLES = {"error": "bold red", "warning": "yellow", "problem": "yellow", "NO": "bold red"}
"""How words that ask for attention look."""
_WIDEST = 60
"""A plain column is padded to at most this width, so that one long cell does not move all."""


def in_terminal() -> bool:
    """True where a person reads along."""
    return sys.stdout.isatty()


def print_json(value: Any) -> None:
    """Print figures as JSON; numbers that JSON does not have become text."""
    print(json.dumps(to_json(value), indent=2, ensure_ascii=False))


def to_json(value: Any) -> Any:
    """What JSON can say of a value.

    >>> to_json({"a": (1, float("nan"))})
    {'a': [1, 'nan']}
    """
    match value:
        case dict():
            return {str(key): to_json(item) for key, item in value.items()}
        case list() | tuple():
            return [to_json(item) for item in value]
        case float() if not math.isfinite(value):
            return str(value)
        case None | bool() | int() | float() | str():
            return value
    listed = getattr(value, "tolist", None)
    return to_json(listed()) if listed is not None else str(value)


def print_line(text: str = "", label: str = "") -> None:
    """Print a line of prose, behind a label that says what it is."""
    if in_terminal():
        from rich.console import Console
        from rich.text import Text

        head = Text.assemble((f"{label}: ", _STYLES.get(label, ""))) if label else Text()
        Console(highlight=False).print(head + Text(text))
    else:
        print(f"{label}: {text}" if label else text)


def complain(label: str, text: str) -> None:
    """Say something on the side, where it does not mix with results: an error, a warning."""
    colour = _COLOURS.get(label)
    if colour and sys.stderr.isatty() and not os.environ.get("NO_COLOR"):
        label = f"\x1b[1;{colour}m{label}\x1b[0m"
    print(f"{label}: {text}", file=sys.stderr)


def print_facts(rows: Sequence[tuple[str, str]]) -> None:
    """Print labelled facts below each other; a terminal shows a label that repeats once."""
    width = max((len(label) for label, _ in rows), default=0)
    before = ""
    if in_terminal():
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        grid = Table.grid(padding=(0, 2))
        grid.add_column(no_wrap=True, style="bold")
        grid.add_column(overflow="fold")
        for label, text in rows:
            grid.add_row("" if label == before else Text(label, _STYLES.get(label, "")), Text(text))
            before = label
        Console(highlight=False).print(grid)
        return
    for label, text in rows:
        print(f"{label:<{width}}  {text}".rstrip())


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], numbers: str = ""
) -> None:
    """Print a table; `numbers` lists the columns, apart by spaces, that are aligned right."""
    right = set(numbers.split())
    if in_terminal():
        _print_rich(title, columns, rows, right)
        return
    if title:
        print(title)
    table = [list(columns), *[[cell.replace("\n", " ") for cell in row] for row in rows]]
    widths = [min(max(len(row[i]) for row in table), _WIDEST) for i in range(len(columns))]
    for row in table:
        cells = [
            cell.rjust(width) if column in right else cell.ljust(width)
            for cell, width, column in zip(row, widths, columns, strict=True)
        ]
        print(("  " + "  ".join(cells)).rstrip())


def _print_rich(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], right: set[str]
) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(
            column, justify="right" if column in right else "left", overflow="fold",
            no_wrap=column in right,
        )  # fmt: skip
    for row in rows:
        table.add_row(*(Text(cell, _STYLES.get(cell, "")) for cell in row))
    console = Console(highlight=False)
    if title:
        console.print(Text(title, style="bold"))
    console.print(table)


def print_bars(rows: Sequence[tuple[str, float, float]], text: Callable[[float], str]) -> None:
    """Plot two figures for each name: solid up to the first, pale from there to the second."""
    solid, pale = ("█", "░") if in_terminal() else ("#", ".")
    names = max(len(name) for name, _, _ in rows)
    labels = max(len(text(end)) for _, _, end in rows)
    longest = max(end for _, _, end in rows) or 1.0
    room = max(8, min(shutil.get_terminal_size().columns if in_terminal() else 80, 120) - names
               - labels - 6)  # fmt: skip
    for name, middle, end in rows:
        first, last = (max(1, round(figure / longest * room)) for figure in (middle, end))
        bar = solid * first + pale * (last - first)
        print(f"  {name:<{names}}  {bar} {text(end)}")


def report_written(target: Path, said: dict[str, Any], *, as_json: bool) -> None:
    """Say that a file was written; programs also learn its size and what else there is to say."""
    if as_json:
        print_json({"target": str(target), "file_bytes": target.stat().st_size} | said)
    else:
        print_line(f"wrote {target}")


def bytes_text(count: float) -> str:
    """A number of bytes for people.

    >>> bytes_text(17), bytes_text(4096)
    ('17 bytes', '4.0 KiB')
    """
    if count < 1024:
        return f"{count:,.0f} bytes"
    for unit in ("KiB", "MiB"):
        count /= 1024
        if count < 1024:
            return f"{count:,.1f} {unit}"
    return f"{count / 1024:,.1f} GiB"


def count_text(count: float, unit: str) -> str:
    """A large number for people.

    >>> count_text(4_820_000_000, "FLOPs")
    '4.82 GFLOPs'
    """
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("K", 1e3)):
        if count >= size:
            return f"{count / size:.2f} {prefix}{unit}"
    return f"{count:,.0f} {unit}"


def milliseconds(seconds: float) -> str:
    """A time for people.

    >>> milliseconds(0.0125)
    '12.50 ms'
    """
    return f"{seconds * 1e3:.2f} ms"


@contextmanager
def waiting(label: str) -> Iterator[None]:
    """Show a spinner in a terminal while something takes more than a second."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.status import Status

    status = Status(label, console=Console(stderr=True))
    timer = threading.Timer(PATIENCE, status.start)
    timer.daemon = True
    with suppress(RuntimeError):  # no thread is to be had: then nothing is shown
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if timer.ident is not None:
            timer.join()
        status.stop()


@contextmanager
def counting(label: str, total: int) -> Iterator[Callable[[], None]]:
    """Show a bar in a terminal while steps, told to what this gives, take more than a second."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    import time

    from rich.console import Console
    from rich.progress import Progress

    start = time.monotonic()
    progress = Progress(console=Console(stderr=True), transient=True)
    task = progress.add_task(label, total=total)
    shown = False

    def advance() -> None:
        nonlocal shown
        progress.advance(task)
        if not shown and time.monotonic() - start > PATIENCE:
            shown = True
            progress.start()

    try:
        yield advance
    finally:
        if shown:
            progress.stop()
