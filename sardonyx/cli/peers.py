"""Other runtimes, opened by the name of their package."""

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from sardonyx.errors import InputError

_FATAL = 4
"""The level of onnxruntime's log at which it says nothing but that it dies."""

Run = Callable[[dict[str, Any]], Any]


class PeerSession:
    """A session of another runtime, with onnxruntime's `run`; its errors become ours."""

    def __init__(self, name: str, run: Run) -> None:
        self._name = name
        self._run = run

    def run(self, names: Any, feeds: dict[str, Any]) -> Any:
        """Run the model there; all outputs, in the model's order."""
        try:
            return self._run(feeds)
        except Exception as error:
            raise InputError(f"{self._name} does not run the model: {_first(error)}") from error


def open_peer(name: str, threads: int | None = None) -> Callable[[bytes], PeerSession]:
    """What makes a session of another runtime from a model's bytes."""
    if not all(part.isidentifier() for part in name.split(".")):
        raise InputError(f"'{name}' is not the name of a package", hint="such as onnxruntime")
    try:
        module = import_module(name)
    except ImportError:
        raise InputError(
            f"the package '{name}' is not installed", hint=f"pip install {name}"
        ) from None
    if hasattr(module, "InferenceSession"):
        opener = _open_session
    elif hasattr(module, "Core"):
        opener = _open_core
    else:
        raise InputError(
            f"the package '{name}' is no runtime that is known here",
            hint="onnxruntime and openvino are, and whatever has an InferenceSession",
        )

    def open_session(content: bytes) -> PeerSession:
        try:
            return PeerSession(name, opener(module, content, threads))
        except Exception as error:
            raise InputError(f"{name} does not load the model: {_first(error)}") from error

    return open_session


def read_names(words: Iterable[str]) -> list[str]:
    """Names of runtimes, apart by commas.

    >>> read_names(["onnxruntime,openvino"])
    ['onnxruntime', 'openvino']
    """
    return [name.strip() for word in words for name in word.split(",") if name.strip()]


def _open_session(module: Any, content: bytes, threads: int | None) -> Run:
    if hasattr(module, "set_default_logger_severity"):
        module.set_default_logger_severity(_FATAL)
    given: dict[str, Any] = {"providers": ["CPUExecutionProvider"]}
    if threads is not None:
        given["sess_options"] = module.SessionOptions()
        given["sess_options"].intra_op_num_threads = threads
    session = module.InferenceSession(content, **given)
    return lambda feeds: session.run(None, feeds)


def _open_core(module: Any, content: bytes, threads: int | None) -> Run:
    core = module.Core()
    settings: dict[str, Any] = {"INFERENCE_PRECISION_HINT": "f32"}
    if threads is not None:
        settings["INFERENCE_NUM_THREADS"] = threads
    compiled = core.compile_model(core.read_model(model=content, weights=b""), "CPU", settings)

    def run(feeds: dict[str, Any]) -> list[Any]:
        results = compiled(feeds)
        return [results[output] for output in compiled.outputs]

    return run


def _first(error: BaseException) -> str:
    """The line of a peer's message that says most: the first that is not empty."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "")
