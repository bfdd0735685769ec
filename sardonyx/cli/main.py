"""`sardonyx`, also `sdx`: one command with a verb for each thing to do with a model.

Nothing but the standard library and typer is imported before a verb runs: help is instant.
"""

import logging
import sys
import traceback
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from sardonyx.errors import CheckError, SardonyxError


class Verbs(TyperGroup):
    """The verbs. A user's mistake is one line on stderr; `-v` shows where it came from."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Accept `-v` behind the verb too."""
        if "-v" in args:
            args = ["-v", *(item for item in args if item != "-v")]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the verb."""
        verbose = bool(ctx.params.get("verbose"))
        try:
            return super().invoke(ctx)
        except (SardonyxError, OSError, MemoryError) as error:
            if isinstance(error, BrokenPipeError):
                raise
            if verbose:
                traceback.print_exc()
            print(f"error: {one_line(error)}", file=sys.stderr)
            raise typer.Exit(1) from None
        except KeyboardInterrupt:
            print("error: interrupted", file=sys.stderr)
            raise typer.Exit(130) from None


def one_line(error: BaseException) -> str:
    """An error's message in one line.

    >>> one_line(CheckError("'a.onnx' has 2 problems:\\n  first\\n  second"))
    "'a.onnx' has 2 problems: first; `sardonyx check` lists them all"
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if isinstance(error, CheckError):
        return f"{' '.join(lines[:2])}; `sardonyx check` lists them all"
    if isinstance(error, MemoryError):
        return "there is not enough memory"
    return " ".join(lines) or type(error).__name__


app = typer.Typer(
    cls=Verbs,
    help="Read, check, change and run ONNX models.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def options(
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Say more, and show where errors come from.")
    ] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Read, check, change and run ONNX models."""
    if version:
        from sardonyx.version import VERSION

        print(f"sardonyx {VERSION}")
        raise typer.Exit
    log = logging.getLogger("sardonyx")
    log.setLevel(logging.INFO if verbose else logging.WARNING)
    if not any(isinstance(handler, _ToStderr) for handler in log.handlers):
        log.addHandler(_ToStderr())


class _ToStderr(logging.Handler):
    """Writes what the library logs to whatever stderr is at that moment."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        print(f"{record.levelname.lower()}: {record.getMessage()}", file=sys.stderr)


def main() -> None:
    """Run the command line."""
    app()


def _add_verbs() -> None:
    from sardonyx.cli import cache, change, look, measure

    for module in (look, measure, change, cache):
        module.add_to(app)


_add_verbs()

if __name__ == "__main__":
    main()
