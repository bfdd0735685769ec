"""The verbs `cache list` and `cache clear`."""

from datetime import datetime
from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]

verbs = typer.Typer(help="Compiled programs kept on disk.", no_args_is_help=True)


@verbs.command("list")
def list_programs(json: AsJson = False) -> None:
    """List compiled programs, the latest used first."""
    from sardonyx.cli.output import bytes_text, print_json, print_line, print_table
    from sardonyx.runtime.caching import open_cache

    cache = open_cache()
    entries = [] if cache is None else cache.entries()
    folder = None if cache is None else str(cache.folder)
    if json:
        told = [
            {"key": item.key, "model": item.model, "bytes": item.size, "used": item.used}
            for item in entries
        ]
        print_json({"folder": folder, "programs": told})
        return
    total = bytes_text(sum(item.size for item in entries))
    said = "the cache is turned off" if folder is None else f"{folder}: {total}"
    print_line(said)
    if entries:
        times = [f"{datetime.fromtimestamp(item.used):%Y-%m-%d %H:%M}" for item in entries]
        rows = [
            [item.model, bytes_text(item.size), time, item.key[:12]]
            for item, time in zip(entries, times, strict=True)
        ]
        print_table("", ["model", "size", "last used", "key"], rows, numbers="size")


@verbs.command("clear")
def clear_programs(json: AsJson = False) -> None:
    """Remove all compiled programs."""
    from sardonyx.cli.output import bytes_text, print_json, print_line
    from sardonyx.runtime.caching import open_cache

    cache = open_cache()
    freed = 0 if cache is None else cache.clear()
    if json:
        print_json({"folder": None if cache is None else str(cache.folder), "freed": freed})
    elif cache is None:
        print_line("the cache is turned off")
    else:
        print_line(f"freed {bytes_text(freed)} in {cache.folder}")


def add_to(app: typer.Typer) -> None:
    """Make the verbs of this module known."""
    app.add_typer(verbs, name="cache")
