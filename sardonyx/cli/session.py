"""From a command line's words to a model, its inputs, and sessions."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import sardonyx as sx
from sardonyx.errors import InputError, SardonyxError
from sardonyx.passes.summarize import dynamic_dimensions
from sardonyx.runtime.inputs import FILLS, make_inputs, parse_value, read_arrays, read_input
from sardonyx.runtime.inputs import required_inputs as inputs_of


@dataclass(frozen=True, slots=True)
class Request:
    """What to run, as it was asked for."""

    path: Path
    inputs: tuple[str, ...] = ()
    dims: tuple[str, ...] = ()
    provider: str | None = None
    seed: int = 0

    def feeds(self, model: sx.Model) -> dict[str, Any]:
        """A value for each input of the model."""
        given = read_given(model, self.inputs)
        return make_inputs(model, given, dims=read_sizes(self.dims), seed=self.seed)

    @contextmanager
    def blaming_sizes(self, model: sx.Model) -> Iterator[None]:
        """Let an error inside say which dimensions had no size given, and so had 1."""
        try:
            yield
        except SardonyxError as error:
            given = {word.partition("=")[0] for word in (*self.dims, *self.inputs)}
            free = [
                name
                for value in inputs_of(model).values()
                if value.name not in given
                for name in dynamic_dimensions([value])
                if name not in given
            ]
            if not free or isinstance(error, InputError) or any("=" not in w for w in self.inputs):
                raise
            note = f"the made-up inputs have size 1 in {', '.join(dict.fromkeys(free))}: try --dim"
            hint = f"{error.hint}; {note}" if error.hint else note
            raise type(error)(error.what, where=error.where, hint=hint) from error

    def session(self, model: sx.Model, options: sx.SessionOptions | None = None) -> Any:
        """A session for the model, with the provider asked for."""
        providers = None if self.provider is None else [self.provider]
        return sx.InferenceSession(model, options, providers)


def read_sizes(words: Iterable[str]) -> dict[str, int]:
    """Sizes of dynamic dimensions.

    >>> read_sizes(["batch=4"])
    {'batch': 4}
    """
    sizes = {}
    for word in words:
        name, said = split_pair(word, "SYMBOL=SIZE")
        if not said.isdigit():
            raise InputError(f"the size in --dim {word} is not a whole number")
        sizes[name] = int(said)
    return sizes


def split_pair(word: str, form: str) -> tuple[str, str]:
    """A word of two halves around `=`."""
    name, sign, value = word.partition("=")
    if not sign or not name:
        raise InputError(f"'{word}' is not of the form {form}")
    return name, value


def read_given(model: sx.Model, words: Iterable[str]) -> dict[str, Any]:
    """What --input says for each input it names."""
    formals = inputs_of(model)
    given: dict[str, Any] = {}
    for word in words:
        name, sign, how = word.partition("=")
        if not sign or (name not in formals and Path(word).is_file()):
            given |= _unnamed(formals, word)
        elif name not in formals:
            raise InputError(
                f"the model has no input '{name}'",
                hint=f"its inputs are: {', '.join(formals) or 'none'}",
            )
        else:
            given[name] = _value(formals[name], how)
    return given


def _unnamed(formals: dict[str, sx.Value], word: str) -> dict[str, Any]:
    """What a word without a name stands for: arrays by name, or the only input."""
    if word.endswith(".npz"):
        arrays = read_arrays(Path(word))
        known = {name: array for name, array in arrays.items() if name in formals}
        if known:
            return known
    if len(formals) != 1:
        raise InputError(
            f"--input {word} does not say which input it is for",
            hint=f"write NAME={word}; the inputs are: {', '.join(formals)}",
        )
    ((name, value),) = formals.items()
    return {name: _value(value, word)}


def _value(value: sx.Value, how: str) -> Any:
    if how in FILLS:
        return how
    if how[:1] in ("[", "{", '"') or _is_number(how):
        return parse_value(how, value.type, f"'{how}'")
    return read_input(Path(how), value)


def _is_number(text: str) -> bool:
    try:
        return isinstance(json.loads(text), int | float)
    except ValueError:
        return False


def peer(name: str) -> Any:
    """Another runtime, by the name of its package; an error where it cannot serve."""
    try:
        module = import_module(name)
    except ImportError:
        raise InputError(
            f"the package '{name}' is not installed", hint=f"pip install {name}"
        ) from None
    if not hasattr(module, "InferenceSession"):
        raise InputError(f"the package '{name}' has no InferenceSession")
    if hasattr(module, "set_default_logger_severity"):
        module.set_default_logger_severity(_FATAL)
    return module


def open_peer(name: str) -> Any:
    """What makes a session of another runtime from a model's bytes; its errors become ours."""
    module = peer(name)

    def open_session(content: bytes) -> "PeerSession":
        try:
            return PeerSession(name, module.InferenceSession(content, providers=_CPU))
        except Exception as error:
            raise InputError(f"{name} does not load the model: {error}") from error

    return open_session


_FATAL = 4
_CPU = ["CPUExecutionProvider"]


class PeerSession:
    """A session of another runtime."""

    def __init__(self, name: str, session: Any) -> None:
        self._name = name
        self._session = session

    def run(self, names: Any, feeds: dict[str, Any]) -> Any:
        """Run the model there."""
        try:
            return self._session.run(names, feeds)
        except Exception as error:
            raise InputError(f"{self._name} does not run the model: {error}") from error
