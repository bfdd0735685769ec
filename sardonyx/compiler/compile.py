"""A model to an image: inference, forms, kernels, machine code, and the tables of the program."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sardonyx.compiler.build import Built, Step, build_steps
from sardonyx.compiler.emit_program import emit_objects
from sardonyx.compiler.forms import Form, Source
from sardonyx.compiler.frame import segment_image
from sardonyx.compiler.image import Checks, Fed, Image, ReferenceImage, SegmentImage, Tables, Told
from sardonyx.compiler.lower import Lowered, lower_graph
from sardonyx.compiler.lowerings import LOWERINGS
from sardonyx.compiler.numbering import Numbering, stored_array
from sardonyx.compiler.reference import read_values
from sardonyx.compiler.sizes import Code
from sardonyx.compiler.targets import Target
from sardonyx.dims import Expression, Size
from sardonyx.format.save import to_bytes
from sardonyx.graph import Model, Node, Value
from sardonyx.graph.clone import clone_model
from sardonyx.loops.nodes import symbols
from sardonyx.ops.catalog import Catalog
from sardonyx.ops.evaluate import Evaluator
from sardonyx.ops.infer import Inference


@dataclass(eq=False)
class Parts:
    """A model on its way: made ready for references, as forms, as steps."""

    evaluator: Evaluator
    lowered: Lowered
    built: Built


def build_parts(model: Model, target: Target, operators: Catalog) -> Parts:
    """Everything up to the kernels in the kernel language."""
    evaluator = Evaluator(model, catalog=operators)
    inference = Inference(evaluator.model, operators)
    inference.run()
    lowered = lower_graph(evaluator, inference.facts, LOWERINGS, operators)
    return Parts(evaluator, lowered, build_steps(evaluator.graph, lowered, target))


def compile_image(model: Model, target: Target, operators: Catalog) -> Image:
    """Compile a model for a target."""
    parts = build_parts(model, target, operators)
    writer = _Writer(parts)
    tables = writer.tables(target)
    return Image(
        model=model.source or parts.evaluator.graph.name,
        tables=tables,
        code=tuple(emit_objects(writer.numbering.kernels, target)),
        graph=to_bytes(_without_kernels(parts.evaluator.model, set(writer.references))),
        rows=tuple(parts.built.explain(parts.evaluator.graph, parts.lowered)),
        constants=tuple(map(stored_array, writer.numbering.constants)),
    )


def _without_kernels(model: Model, kept: set[Node]) -> Model:
    """The model's inputs, outputs and the nodes in `kept`; weights come as arrays."""
    values: dict[Value, Value] = {}
    twin = clone_model(model, values)
    assert model.graph is not None and twin.graph is not None
    for node, copy in zip(list(model.graph.nodes), list(twin.graph.nodes), strict=True):
        if node not in kept:
            twin.graph.nodes.remove(copy, safe=False)
    twin.graph.initializers.clear()
    for value in values.values():
        value.tensor = None
    return twin


class _Writer:
    def __init__(self, parts: Parts) -> None:
        self.graph = parts.evaluator.graph
        self.lowered, self.built = parts.lowered, parts.built
        self.numbering = Numbering()
        self.references = [step for step in parts.built.steps if isinstance(step, Node)]
        self.held: dict[int, int] = {}
        self.agreements = dict.fromkeys(parts.lowered.agreements)
        self.known: set[str] = set()
        """Names of sizes that arrays have told so far."""

    def tables(self, target: Target) -> Tables:
        """The program's tables; fills the numbering."""
        fed = tuple(map(self.fed, self.graph.inputs))
        told = self.told(self.graph.inputs)
        checks = self.checks()
        steps = tuple(map(self.step, self.built.steps))
        outputs = tuple(map(self.array, self.graph.outputs))
        return Tables(
            target=target.name,
            symbols=tuple(self.numbering.symbols),
            arrays=len(self.numbering.arrays),
            fed=fed,
            told=told,
            checks=checks,
            steps=steps,
            outputs=outputs,
            held=tuple(self.held.items()),
        )

    def fed(self, value: Value) -> Fed:
        default = None
        if value.tensor is not None:
            default = self.numbering.constant(value.tensor.numpy())
        return Fed(self.numbering.array(value), default, value in self.lowered.constants)

    def array(self, value: Value) -> int:
        """The number of the array that holds a value when the program runs."""
        form = self.built.stored.get(value)
        constant: Any = None
        if value in self.lowered.constants:
            constant = self.lowered.constants[value]
        elif isinstance(form, Source) and form.constant is not None:
            constant = form.constant
        elif form is not None:
            return self.numbering.array(form)
        number = self.numbering.array(value)
        if constant is not None:
            self.held[number] = self.numbering.constant(constant)
        return number

    def step(self, step: Step | Node) -> SegmentImage | ReferenceImage:
        if isinstance(step, Step):
            return segment_image(step, self.numbering)
        inputs = tuple(map(self.array, read_values(step)))
        outputs = tuple(map(self.numbering.array, step.outputs))
        told = self.told(step.outputs)
        return ReferenceImage(self.references.index(step), inputs, outputs, told, self.checks())

    def told(self, values: Iterable[Value]) -> tuple[Told, ...]:
        """What the shapes of arrays tell about sizes."""
        found = []
        for value in values:
            form = self.lowered.forms.get(value)
            if isinstance(form, Source) and form.value is value and form.constant is None:
                found.append(self._told(value, form))
        return tuple(found)

    def _told(self, value: Value, form: Form) -> Told:
        plain = [
            (axis, str(size))
            for axis, size in enumerate(form.shape)
            if symbols(size) == {str(size)}
        ]
        self.known |= {name for _, name in plain}
        computed = []
        for axis, size in enumerate(form.shape):
            if isinstance(size, Expression) and symbols(size) <= self.known:
                names = sorted(symbols(size))
                code = Code(names)
                code.line(f"return {code.value(size)}")
                numbers = tuple(map(self.numbering.symbol, names))
                computed.append((axis, numbers, code.source()))
        return Told(
            array=self.numbering.array(value),
            name=value.name,
            dtype=int(form.dtype),
            shape=tuple(size if isinstance(size, int) else str(size) for size in form.shape),
            symbols=tuple((axis, self.numbering.symbol(name)) for axis, name in plain),
            computed=tuple(item for item in computed if item[0] not in dict(plain)),
        )

    def checks(self) -> Checks | None:
        """Agreements all of whose sizes have been told by now, and not before."""
        ready = [pair for pair in self.agreements if _names(pair) <= self.known]
        if not ready:
            return None
        names = sorted(set().union(*map(_names, ready)))
        code = Code(names)
        for number, pair in enumerate(ready):
            left, right = (code.value(size) for size in pair)
            code.line(f"if {left} != {right}: return {number}, {left}, {right}")
            del self.agreements[pair]
        code.line("return None")
        texts = tuple((str(left), str(right)) for left, right in ready)
        return Checks(tuple(map(self.numbering.symbol, names)), code.source(), texts)


def _names(pair: tuple[Size, Size]) -> set[str]:
    return {name for size in pair for name in symbols(size)}
