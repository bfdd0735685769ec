"""The verb `bench`."""

from collections.abc import Callable, Sequence

import sardonyx as sx
from sardonyx.cli.output import (
    counting,
    milliseconds,
    print_bars,
    print_json,
    print_line,
    print_table,
    waiting,
)
from sardonyx.cli.peers import open_peer
from sardonyx.cli.session import Request
from sardonyx.runtime.timing import Timing, time_calls


def bench_model(
    request: Request, runs: int, warmups: int, against: Sequence[str], *, as_json: bool
) -> None:
    """Time a model, and other runtimes in turns with it."""
    openers = {name: open_peer(name, request.threads) for name in against}
    model = sx.load(request.path)
    feeds = request.feeds(model)
    session = request.session(model)
    calls: dict[str, Callable[[], object]] = {"sardonyx": lambda: session.run(None, feeds)}
    content = sx.to_bytes(model) if openers else b""
    for name, opener in openers.items():
        with waiting(f"preparing {name}"):
            calls[name] = _call(opener(content), feeds)
    with counting("running", runs + warmups) as advance, request.blaming_sizes(model):
        timings = time_calls(calls, runs, warmups, advance)
    provider = session.get_providers()[0]
    if as_json:
        figures = {
            name: {"best": item.best, "median": item.median, "seconds": item.seconds}
            for name, item in timings.items()
        }
        said = {"file": str(request.path), "providers": session.get_providers(), "runs": runs}
        print_json(said | {"threads": request.threads, "timings": figures})
    else:
        _print_timings(f"{request.path}: {runs} runs, in turns, by {provider}", timings)


def _call(session: object, feeds: dict[str, object]) -> Callable[[], object]:
    return lambda: session.run(None, feeds)  # type: ignore[attr-defined]


def _print_timings(title: str, timings: dict[str, Timing]) -> None:
    ours = timings["sardonyx"].best
    rows = [
        (
            name,
            milliseconds(item.best),
            milliseconds(item.median),
            f"{1 / item.median:,.1f}",
            f"{item.best / ours:.2f}",
        )
        for name, item in timings.items()
    ]
    columns = ("runtime", "best", "median", "runs/s", "best/ours")
    print_table(title, columns, rows, "best median runs/s best/ours")
    print_line()
    print_line("time of a run: solid the best, pale up to the median")
    print_bars([(name, item.best, item.median) for name, item in timings.items()], milliseconds)
