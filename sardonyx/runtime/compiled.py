"""A model as a Python function: compiled for one machine, called with arrays."""

from typing import Any

from sardonyx.boundary import public_methods, raise_outward
from sardonyx.compiler.program import Program
from sardonyx.compiler.specialize import Specialized
from sardonyx.errors import InputError, SardonyxError
from sardonyx.graph import Model
from sardonyx.runtime.feeds import constants_of, identities, make_ready, own


@public_methods("running the model", plain=("__call__",))
class CompiledModel:
    """Native code of a model, called with its inputs by position or by name.

    The only output comes by itself, several as a tuple.
    """

    def __init__(self, model: Model, program: Program | Specialized) -> None:
        assert model.graph is not None
        self._program = program
        self._types = {value.name: value.type for value in model.graph.inputs}
        self._constants = constants_of(model)
        self.input_names = program.input_names
        """What to pass, in order."""
        self.output_names = program.output_names
        """What comes back, in order."""

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        if len(arrays) > len(self.input_names):
            raise InputError(
                f"{len(arrays)} inputs were passed, the model has {len(self.input_names)}",
                hint=f"they are: {', '.join(self.input_names)}",
            )
        given = dict(zip(self.input_names, arrays, strict=False))
        twice = sorted(given.keys() & named.keys())
        if twice:
            raise InputError(f"input '{twice[0]}' is passed by position and by name")
        feeds = {
            name: make_ready(name, self._types.get(name), item)
            for name, item in (given | named).items()
        }
        taken = identities(feeds.values())
        try:
            made = self._program.run(feeds)
        except SardonyxError:
            raise
        except Exception as error:  # noqa: BLE001 - as `public` does, without a call
            raise_outward(error, "running the model")
        results = tuple(own(item, taken, self._constants) for item in made)
        return results[0] if len(results) == 1 else results

    def __repr__(self) -> str:
        inputs, outputs = ", ".join(self.input_names), ", ".join(self.output_names)
        return f"CompiledModel({inputs} -> {outputs}: {self._program.kernels} kernels)"
