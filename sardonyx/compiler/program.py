"""A model as a native program: compiled once for all sizes, run by one call a segment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sardonyx.compiler.bodies import BodyEvaluator
from sardonyx.compiler.build import Step, build_steps, read_values
from sardonyx.compiler.emit_engine import host_target
from sardonyx.compiler.emit_program import emit_program
from sardonyx.compiler.expand import lower_model
from sardonyx.compiler.forms import Form, Source
from sardonyx.compiler.lower import Cut, Lowered
from sardonyx.compiler.processors import available_processors
from sardonyx.compiler.reference import run_reference
from sardonyx.compiler.segment import Kernels, Segment
from sardonyx.compiler.specialize import Contents, Specialized, with_contents
from sardonyx.compiler.threads import Team
from sardonyx.dims import Expression
from sardonyx.errors import EvaluationError, InputError
from sardonyx.graph import Model, Node, Value
from sardonyx.loops.nodes import symbols
from sardonyx.ops.catalog import Catalog, standard
from sardonyx.ops.evaluate import Evaluator, check_input


@dataclass(frozen=True, slots=True)
class Explanation:
    """What became of one node."""

    node: str
    operator: str
    kernel: str
    """The kernel that computes it, `reference` where NumPy does, `constant`, or `view`."""
    together: tuple[str, ...]
    """The other nodes that the same kernel computes."""
    reason: str = ""
    """Why it has no native form, where it has none."""


class Program:
    """A compiled model. Runs may go on at the same time in several threads."""

    def __init__(
        self, evaluator: Evaluator, steps: Sequence["Segment | Node | Cut"],
        stored: dict[Value, Form], lowered: Lowered, explanations: list[Explanation], team: Team,
    ) -> None:  # fmt: skip
        self._evaluator = evaluator
        self._graph = evaluator.graph
        self._steps = steps
        self._stored = stored
        self._constants = lowered.constants
        self._agreements = dict.fromkeys(lowered.agreements)
        self._explanations = explanations
        self._team = team
        self._sources = {
            value: form
            for value, form in lowered.forms.items()
            if isinstance(form, Source) and form.value is value and form.constant is None
        }
        overridable = set(self._graph.initializers)
        self._required = [value for value in self._graph.inputs if value not in overridable]
        self._known = {value.name: value for value in [*self._graph.inputs]}
        self._reads = {step: read_values(step) for step in steps if isinstance(step, Node)}
        self._single = self._simple()

    @property
    def input_names(self) -> list[str]:
        """What must be fed."""
        return [value.name for value in self._required]

    @property
    def output_names(self) -> list[str]:
        """What comes back."""
        return [value.name for value in self._graph.outputs]

    @property
    def segments(self) -> int:
        """How many native calls one run is."""
        return sum(isinstance(step, Segment) for step in self._steps)

    @property
    def kernels(self) -> int:
        """How many kernels one run calls."""
        return sum(len(step.calls) for step in self._steps if isinstance(step, Segment))

    def explain(self) -> list[Explanation]:
        """For each node, which kernel computes it and with which others, or why none does."""
        return list(self._explanations)

    def run(self, feeds: Mapping[str, Any]) -> list[Any]:
        """The model's outputs for a value of each input."""
        if self._single is not None and len(feeds) == len(self._required):
            segment, names, places = self._single
            arrays = [feeds.get(name) for name in names]
            results = segment.run_again(arrays, self._team)
            if results is not None:
                return [results[place] for place in places]
        return self._run_steps(feeds)

    def _simple(self) -> tuple[Segment, list[str], list[int]] | None:
        """The only segment, its inputs' names and its outputs' places, where a run is only that."""
        if len(self._steps) != 1 or not isinstance(self._steps[0], Segment):
            return None
        segment = self._steps[0]
        fed = [form.value for form in segment.inputs if isinstance(form, Source)]
        outputs = [self._stored.get(value) for value in self._graph.outputs]
        plain = len(fed) == len(segment.inputs) and set(fed) == set(self._required)
        if not plain or set(outputs) != set(segment.outputs):
            return None
        return (
            segment,
            [value.name for value in fed],
            [segment.outputs.index(form) for form in outputs],
        )

    def _run_steps(self, feeds: Mapping[str, Any]) -> list[Any]:
        values = self._bind(feeds)
        sizes: dict[str, int] = {}
        for value, array in values.items():
            self._learn(sizes, value, array)
        self._agree(sizes)
        arrays: dict[Form, Any] = {}
        for step in self._steps:
            if isinstance(step, Segment):
                given = [
                    values[form.value] if isinstance(form, Source) else arrays[form]
                    for form in step.inputs
                ]
                for form, array in zip(
                    step.outputs, step.run(given, sizes, self._team), strict=True
                ):
                    arrays[form] = array
            elif isinstance(step, Cut):
                self._run_cut(step, values, arrays, sizes)
            else:
                self._run_reference(step, values, arrays, sizes)
        results = [self._result(value, values, arrays) for value in self._graph.outputs]
        constants = [value in self._constants for value in self._graph.outputs]
        return [
            np.array(result) if constant and isinstance(result, np.ndarray) else result
            for result, constant in zip(results, constants, strict=True)
        ]

    def _run_reference(
        self, node: Node, values: dict[Value, Any], arrays: dict[Form, Any], sizes: dict[str, int]
    ) -> None:
        for value in self._reads[node]:
            if value not in values and (value in self._stored or value in self._constants):
                values[value] = self._result(value, values, arrays)
        made = run_reference(self._evaluator, node, values)
        for output, array in zip(node.outputs, made, strict=False):
            values[output] = array
            self._learn(sizes, output, array)
        self._agree(sizes)

    def _run_cut(
        self, cut: Cut, values: dict[Value, Any], arrays: dict[Form, Any], sizes: dict[str, int]
    ) -> None:
        whole, count = (self._result(item, values, arrays) for item in (cut.whole, cut.count))
        part = whole[(slice(None),) * cut.axis + (slice(int(count[0])),)]
        values[cut.output] = part.copy() if part.size < whole.size else whole
        self._learn(sizes, cut.output, values[cut.output])
        self._agree(sizes)

    def _result(self, value: Value, values: dict[Value, Any], arrays: dict[Form, Any]) -> Any:
        if value in values:
            return values[value]
        if value in self._constants:
            return self._constants[value]
        form = self._stored[value]
        if not isinstance(form, Source):
            return arrays[form]
        return form.constant if form.constant is not None else values[form.value]

    def _bind(self, feeds: Mapping[str, Any]) -> dict[Value, Any]:
        unknown = [name for name in feeds if name not in self._known]
        if unknown:
            raise InputError(
                f"the model has no input '{unknown[0]}'",
                hint=f"its inputs are: {', '.join(self._known)}",
            )
        values: dict[Value, Any] = {}
        for value in self._graph.inputs:
            if value.name in feeds and value in self._constants:
                raise InputError(
                    f"input '{value.name}' is a constant of this model", hint="do not feed it"
                )
            if value.name in feeds:
                values[value] = check_input(value, feeds[value.name])
            elif value.tensor is not None:
                values[value] = value.tensor.numpy()
            else:
                raise InputError(f"input '{value.name}' is missing", hint=f"feed a {value.type}")
        return values

    def _agree(self, sizes: dict[str, int]) -> None:
        """An error where sizes that must be equal are not."""
        for pair in self._agreements:
            left, right = (
                size.substitute(sizes) if isinstance(size, Expression) else size
                for size in (pair.left, pair.right)
            )
            known = isinstance(left, int) and isinstance(right, int)
            if known and left != right and not (pair.repeats and left == 1):
                raise InputError(
                    f"{pair.left} is {left} and {pair.right} is {right}, "
                    "but the model needs them equal",
                    hint="feed shapes that fit each other",
                )

    def _learn(self, sizes: dict[str, int], value: Value, array: Any) -> None:
        """Names of sizes from an array; an error where it contradicts what is known."""
        form = self._sources.get(value)
        if form is None:
            return
        if array.ndim != len(form.shape) or array.dtype != form.dtype.numpy:
            raise EvaluationError(
                f"'{value.name}' is {array.dtype}{list(array.shape)}, not {form.shape}"
            )
        for wanted, found in zip(form.shape, array.shape, strict=True):
            if symbols(wanted) == {str(wanted)}:
                sizes.setdefault(str(wanted), found)
        for wanted, found in zip(form.shape, array.shape, strict=True):
            size = wanted.substitute(sizes) if isinstance(wanted, Expression) else wanted
            if size != found and isinstance(size, int):
                shapes = f"{list(array.shape)}, which does not fit {list(form.shape)}"
                raise InputError(
                    f"'{value.name}' has the shape {shapes}", hint=f"here {wanted} is {size}"
                )


def compile_model(
    model: Model, *, target: str | None = None, threads: int | None = None,
    catalog: Catalog | None = None, specialize: bool = True,
) -> Program | Specialized:  # fmt: skip
    """Compile a model for this machine, or for a lower target that it runs too.

    >>> import sardonyx as sx
    >>> model = sx.load_text('<ir_version: 10, opset_import: ["": 21]>'
    ...                      'g (float[n] x) => (float[n] y) { a = Add(x, x) y = Relu(a) }')
    >>> program = compile_model(model, threads=1)
    >>> program.run({"x": np.array([1, -2], np.float32)})[0].tolist(), program.kernels
    ([2.0, 0.0], 1)
    """
    operators = standard() if catalog is None else catalog
    evaluator = BodyEvaluator(model, catalog=operators)
    lowered, facts = lower_model(evaluator, operators)

    def again(contents: Contents | None) -> Program | Specialized:
        bound = model if contents is None else with_contents(model, contents)
        known = contents is not None
        return compile_model(
            bound, target=target, threads=threads, catalog=catalog, specialize=known
        )

    if specialize and lowered.wanted:
        fed = [value.name for value in evaluator.graph.inputs if value.tensor is None]
        made = [value.name for value in evaluator.graph.outputs]
        return Specialized(tuple(value.name for value in lowered.wanted), again, fed, made)
    evaluator.prepare(
        facts,
        lowered.constants,
        lambda body: compile_model(body, target=target, threads=threads, catalog=catalog),
    )
    chosen = host_target(target)
    built = build_steps(evaluator.graph, lowered, chosen)
    kernels = Kernels()
    steps = [Segment.of(step, kernels) if isinstance(step, Step) else step for step in built.steps]
    segments = [step for step in steps if isinstance(step, Segment)]
    engine = emit_program(kernels.unique, [segment.emitted for segment in segments], chosen)
    for number, segment in enumerate(segments):
        segment.link(engine, f"segment{number}")
    team = Team(threads or available_processors())
    explanations = [Explanation(*row) for row in built.explain(evaluator.graph, lowered)]
    return Program(evaluator, steps, built.stored, lowered, explanations, team)
