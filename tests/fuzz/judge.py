"""Run trials and judge what came of them: results, refusals, foreign errors, differences."""

import re
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np
import onnx

import sardonyx as sx
import sardonyx.errors
from sardonyx.errors import InputError, SardonyxError
from sardonyx.ops.evaluate import Evaluator
from tests.fuzz.difference import Moved, bits_differ, difference
from tests.fuzz.trial import Feeds, Trial, call_run
from tests.fuzz.values import element_type
from tests.logged import warnings_of

INTERNAL: tuple[type[Exception], ...] = tuple(
    found
    for name in ("InternalError", "AccessError")
    if (found := getattr(sardonyx.errors, name, None)) is not None
)
"""Errors of ours that are findings: what nobody foresaw, and what a checked kernel touched."""

LIMITS = re.compile(r"memory|limit|bytes|too (large|many|big|long)|work|budget|elements", re.I)
"""What errors about limits say: one provider may have less to hold than the other."""


COMPILED = "CPUExecutionProvider"
REFERENCE = "ReferenceExecutionProvider"


@dataclass(frozen=True)
class Finding:
    """Something wrong: its kind, what was said, and what tells it from other findings."""

    kind: str
    what: str
    text: str
    place: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """The same for findings that look alike."""
        text = self.text.partition(": ")[2] if self.kind == "foreign" else self.text
        shape = re.sub(r"'[^']*'|\"[^\"]*\"", "'x'", text)
        shape = re.sub(r"-?\d+(\.\d+)?(e[+-]?\d+)?|\b(nan|inf)\b", "#", shape)
        shape = re.sub(r"\(?#(, ?#)*,?\)?", "#", shape)
        node = re.search(r"\(at node [^(]*\((\w+)\)", self.text)
        subject = self.place or (node[1] if node else self.what.split(" ")[0])
        return self.kind, subject, shape[:90]


@dataclass
class Bench:
    """A trial with its sessions, which its runs share."""

    trial: Trial
    findings: list[Finding] = field(default_factory=list)
    sessions: dict[str, Any] = field(default_factory=dict)
    first: tuple[int, list[Any]] | None = None

    def guarded(self, doing: str, work: Callable[[], Any]) -> Any:
        """What `work` gives, our error, or None after a foreign exception, which is noted."""
        try:
            with warnings_of("sardonyx.passes", "sardonyx.compiler") as rules:
                found = work()
            for rule in rules[:1]:
                self.note("rule", rule[:300])
            return found
        except INTERNAL as error:
            self.note("foreign", f"{doing}: {_told(error)}", _place(error))
        except SardonyxError as error:
            return error
        except Exception as error:  # noqa: BLE001 - what this looks for
            self.note("foreign", f"{doing}: {_told(error)}", _place(error))
        except RecursionError as error:
            self.note("foreign", f"{doing}: {_told(error)}", _place(error))
        return None

    def note(self, kind: str, text: str, place: str = "") -> None:
        """Keep a finding."""
        self.findings.append(Finding(kind, self.trial.what, " ".join(text.split()), place))

    def session(self, provider: str) -> Any:
        """A session, or our error, or None."""
        if provider not in self.sessions:
            self.sessions[provider] = self.guarded(
                f"open {provider}",
                lambda: sx.InferenceSession(
                    self.trial.model, _options(self.trial.threads), [provider]
                ),
            )
        return self.sessions[provider]

    def run(self, provider: str, feeds: Feeds, call: Any = call_run) -> Any:
        """Results, our error, or None."""
        session = self.session(provider)
        if session is None or isinstance(session, SardonyxError):
            return session
        return self.guarded(f"run {provider}", lambda: call(session, feeds))


def _told(error: BaseException) -> str:
    if isinstance(error, INTERNAL) and error.__cause__ is not None:
        error = error.__cause__
    return f"{type(error).__name__}: {str(error)[:240]}"


def _place(error: BaseException) -> str:
    """The innermost line of ours, without its number."""
    cause = error.__cause__ or error
    frames = traceback.extract_tb(cause.__traceback__) or traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "sardonyx/" in frame.filename]
    if not ours:
        return ""
    return f"{ours[-1].filename.rsplit('sardonyx/', 1)[1]}:{ours[-1].name}"


def _options(threads: int) -> Any:
    options = sx.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    options.add_session_config_entry("sardonyx.cache", "off")
    options.add_session_config_entry("sardonyx.work_limit", str(1 << 32))
    return options


def judge(bench: Bench, run: int) -> str:
    """Do one run; findings are noted in `bench`. What came of it, in a word."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if bench.trial.opens:
            return _judge_opening(bench, run)
        if bench.trial.plain is not None:
            return _judge_arrays(bench, run)
        return _judge_run(bench, run)


def _judge_opening(bench: Bench, run: int) -> str:
    """What takes a model and does not run it: one thing in each run."""
    content = bench.trial.model
    doing, work = OPENINGS[run % len(OPENINGS)]
    found = bench.guarded(doing, lambda: work(content))
    return "refused" if isinstance(found, SardonyxError) else "opened"


def _rewrite(content: bytes) -> None:
    """Read every weight, and write the model again."""
    model = sx.load(content)
    for tensor in model.tensors():
        try:
            tensor.numpy()
        except INTERNAL:
            raise
        except SardonyxError:
            continue
    sx.to_bytes(model)


def _open(provider: str) -> Callable[[bytes], Any]:
    return lambda content: sx.InferenceSession(content, _options(1), [provider])


OPENINGS: tuple[tuple[str, Callable[[bytes], Any]], ...] = (
    ("simplify", lambda content: sx.simplify(sx.load(content))),
    ("write", _rewrite),
    ("check", lambda content: sx.find_problems(content, full=True)),
    ("infer", lambda content: sx.infer_shapes(sx.load(content))),
    ("open reference", _open(REFERENCE)),
    ("open compiled", _open(COMPILED)),
)


def _judge_arrays(bench: Bench, run: int) -> str:
    """Odd arrays give the bits of ordinary ones, or are refused."""
    trial = bench.trial
    assert trial.plain is not None
    outcome = "refused"
    for provider in (COMPILED, REFERENCE):
        found = bench.run(provider, trial.feeds(run), trial.call)
        if found is None or isinstance(found, SardonyxError):
            continue
        outcome = "ran"
        wanted = bench.run(provider, trial.plain(run))
        if isinstance(wanted, list) and bits_differ(found, wanted):
            bench.note("difference", f"{provider}: other bits for {trial.what}")
        elif isinstance(wanted, SardonyxError):
            bench.note("difference", f"{provider}: only odd arrays run: {wanted}")
    return outcome


def _judge_run(bench: Bench, run: int) -> str:
    trial = bench.trial
    feeds = trial.feeds(run)
    found = bench.run(COMPILED, feeds)
    wanted = bench.run(REFERENCE, feeds)
    if found is None or wanted is None:
        return "foreign"
    if isinstance(found, SardonyxError) or isinstance(wanted, SardonyxError):
        _judge_refusal(bench, feeds, found, wanted)
        return "refused"
    if trial.random:
        return "ran"
    _judge_history(bench, run, found)
    said = difference(
        trial.model, feeds, found, wanted, _reference_of(bench), reference=moved_reference
    )
    if said:
        bench.note("difference", said)
    return "ran"


def _judge_history(bench: Bench, run: int, found: list[Any]) -> None:
    """The same feeds give the same bits, whatever ran before."""
    if bench.first is None:
        bench.first = run, found
        return
    if run % 8 == 7:
        first, before = bench.first
        again = bench.run(COMPILED, bench.trial.feeds(first))
        if isinstance(again, list) and bits_differ(again, before):
            bench.note("history", "the first feeds give other bits after later ones")


def _reference_of(bench: Bench) -> Callable[[bytes, Feeds], list[Any] | None]:
    def run(content: bytes, feeds: Feeds) -> list[Any] | None:
        other = Bench(Trial(content, bench.trial.what))
        found = other.run(REFERENCE, feeds)
        return found if isinstance(found, list) else None

    return run


def moved_reference(content: bytes, feeds: Feeds, change: Moved) -> list[Any] | None:
    """What the reference gives where the result of every operator is changed."""
    plain = Evaluator.run_node

    def run_node(self: Evaluator, node: Any, values: Any, observe: Any = None) -> tuple[Any, ...]:
        return tuple(
            change(node.op_type, item) if isinstance(item, np.ndarray) else item
            for item in plain(self, node, values, observe)
        )

    with patch.object(Evaluator, "run_node", run_node):
        found = Bench(Trial(content, "")).run(REFERENCE, feeds)
    return found if isinstance(found, list) else None


def _judge_refusal(bench: Bench, feeds: Feeds, found: Any, wanted: Any) -> None:
    """Both refuse, or one is at a limit, or the model or the feeds break the rules."""
    if isinstance(found, SardonyxError) and isinstance(wanted, SardonyxError):
        return
    error = found if isinstance(found, SardonyxError) else wanted
    if LIMITS.search(str(error)) or breaks_rules(bench):
        return
    if isinstance(error, InputError) and not fits(bench.trial.model, feeds):
        return
    who = "only the reference runs" if error is found else "only the compiled runs"
    bench.note("refusal", f"{who}: {type(error).__name__}: {str(error)[:240]}")


def breaks_rules(bench: Bench) -> bool:
    """Whether the checker finds something; a shape that is not declared is no matter here."""
    if "rules" not in bench.sessions:
        found = bench.guarded("check", lambda: sx.find_problems(bench.trial.model, full=True))
        bench.sessions["rules"] = not isinstance(found, tuple | list) or any(
            item.rule != "shape-missing" for item in found
        )
    return bool(bench.sessions["rules"])


def fits(content: bytes, feeds: Feeds) -> bool:
    """Whether feeds are as the model declares them: all of them, their types and sizes."""
    graph = onnx.ModelProto.FromString(content).graph
    held = {item.name for item in graph.initializer}
    sizes: dict[str, int] = {}
    for value in graph.input:
        given, kind = feeds.get(value.name), value.type.tensor_type
        if given is None and value.name in held:
            continue
        if not isinstance(given, np.ndarray) or element_type(given.dtype) != kind.elem_type:
            return False
        if not kind.HasField("shape"):
            continue
        if len(kind.shape.dim) != given.ndim:
            return False
        for size, wanted in zip(given.shape, kind.shape.dim, strict=True):
            if wanted.HasField("dim_value") and wanted.dim_value != size:
                return False
            if wanted.dim_param and sizes.setdefault(wanted.dim_param, size) != size:
                return False
    return True
