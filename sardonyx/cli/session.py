"""From a command line's words to a model, its inputs, and sessions."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sardonyx as sx
from sardonyx.cli.output import waiting
from sardonyx.errors import InputError, SardonyxError
from sardonyx.passes.summarize import dynamic_dimensions
from sardonyx.runtime.inputs import FILLS, parse_value, read_arrays, read_input
from sardonyx.runtime.inputs import required_inputs as inputs_of
from sardonyx.runtime.targeting import PRECISION


@dataclass(frozen=True, slots=True)
class Request:
    """What to run, as it was asked for."""

    path: Path
    inputs: tuple[str, ...] = ()
    dims: tuple[str, ...] = ()
    provider: str | None = None
    seed: int = 0
    threads: int | None = None
    batch: int | None = None
    precision: str | None = None

    def feeds(self, model: sx.Model) -> dict[str, Any]:
        """A value for each input of the model."""
        given = read_given(model, self.inputs)
        sizes = known_sizes(model, self.dims)
        if self.batch is not None:
            sizes |= batch_sizes(model, self.batch)
        return sx.make_inputs(model, given, dims=sizes, seed=self.seed)

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
        """A session for the model, with the provider, threads and precision asked for."""
        providers = None if self.provider is None else [self.provider]
        chosen = options or sx.SessionOptions()
        if self.threads is not None:
            chosen.intra_op_num_threads = self.threads
        if self.precision is not None:
            chosen.add_session_config_entry(PRECISION, self.precision)
        with waiting(f"preparing {self.path.name}"):
            return sx.InferenceSession(model, chosen, providers)


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


def known_sizes(model: sx.Model, words: Iterable[str]) -> dict[str, int]:
    """Sizes of dynamic dimensions; an error for one that no input has."""
    sizes = read_sizes(words)
    known = list(dynamic_dimensions(inputs_of(model).values()))
    for name in sizes:
        if name not in known:
            raise InputError(
                f"no input has a dynamic dimension '{name}'",
                hint=f"the dynamic dimensions are: {', '.join(known) or 'none'}",
            )
    return sizes


def batch_sizes(model: sx.Model, size: int) -> dict[str, int]:
    """A size for the first dimension of every input that leaves it open."""
    inputs = inputs_of(model).values()
    firsts: dict[str, int] = {}
    for value in inputs:
        shape = value.type.shape if isinstance(value.type, sx.TensorType) else None
        if shape and not (isinstance(shape[0], int) and shape[0] >= 0):
            firsts[shape[0] if isinstance(shape[0], str) else f"{value.name}[0]"] = size
    if not firsts:
        raise InputError(
            "no input leaves its first dimension open, so there is no batch to set",
            hint="`sardonyx inspect` shows the shapes of the inputs",
        )
    return firsts


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
    """What a word without a name stands for: a way to fill all, arrays by name, the only input."""
    if word in FILLS:
        return dict.fromkeys(formals, word)
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
