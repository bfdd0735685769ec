"""`sardonyx`, also `sdx`: one command with a verb for each thing to do with a model.

Nothing but the standard library and typer is imported before a verb runs: help is instant.
"""

import logging
import traceback
from collections import Counter
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from sardonyx.boundary import internal_error
from sardonyx.errors import CheckError, SardonyxError


class Verbs(TyperGroup):
    """The verbs. A user's mistake is one line on stderr; `-v` shows where it came from."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Accept `-v` behind the verb too."""
        if "-v" in args:
            args = ["-v", *(item for item in args if item != "-v")]
        return super().parse_args(ctx, args)

    def _fail(self, error: BaseException, verbose: bool) -> NoReturn:
        _complain("error", one_line(error))
        if verbose:
            traceback.print_exc()
        raise typer.Exit(1) from None

    def invoke(self, ctx: Any) -> Any:
        """Run the verb."""
        verbose = bool(ctx.params.get("verbose"))
        try:
            return super().invoke(ctx)
        except (SardonyxError, OSError, MemoryError) as error:
            if isinstance(error, BrokenPipeError):
                raise
            self._fail(error, verbose)
        except KeyboardInterrupt:
            # Python remembers an interrupt inside an `exec` of text, such as those that make
            # dataclasses, until the next one, and would end by the signal in place of the code.
            exec("")
            _complain("error", "interrupted")
            raise typer.Exit(130) from None
        except Exception as error:
            if type(error).__module__.partition(".")[0] in ("typer", "click"):
                raise
            self._fail(internal_error(error, "the command"), verbose)
        finally:
            for handler in logging.getLogger("sardonyx").handlers:
                handler.flush()


def _complain(label: str, text: str) -> None:
    from sardonyx.cli.output import complain

    complain(label, text)


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
    epilog="Exit codes: 0 all is well, 1 a mistake or a finding, 2 wrong usage, 130 interrupted.",
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
    for handler in [item for item in log.handlers if isinstance(item, _ToStderr)]:
        log.removeHandler(handler)
    log.addHandler(_ToStderr(verbose))


class _ToStderr(logging.Handler):
    """Writes what the library logs to whatever stderr is at that moment.

    Of lines that differ only in their details the first is shown, and at the end their number.
    """

    def __init__(self, verbose: bool) -> None:
        super().__init__()
        self._verbose = verbose
        self._seen: Counter[str] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        self._seen[str(record.msg)] += 1
        if self._verbose or self._seen[str(record.msg)] == 1:
            _complain(record.levelname.lower(), record.getMessage())

    def flush(self) -> None:
        """Say how many lines were left out."""
        left = sum(count - 1 for count in self._seen.values())
        self._seen.clear()
        if left and not self._verbose:
            _complain("warning", f"{left} more like it, which -v shows")


def main() -> None:
    """Run the command line."""
    app()


def _add_verbs() -> None:
    from sardonyx.cli import cache, change, look, measure, show

    for module in (look, show, measure, change, cache):
        module.add_to(app)


_add_verbs()

if __name__ == "__main__":
    main()
