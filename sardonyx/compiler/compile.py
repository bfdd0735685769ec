"""A model to an image: inference, forms, kernels, machine code, and the tables of the program."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from sardonyx.compiler.build import Built, Step, build_steps
from sardonyx.compiler.emit_program import Assembly
from sardonyx.compiler.expand import lower_model
from sardonyx.compiler.forms import Form, Source
from sardonyx.compiler.frame import segment_image
from sardonyx.compiler.image import (
    Checks,
    CutImage,
    Fed,
    Image,
    ReferenceImage,
    SegmentImage,
    Tables,
    Told,
    Wanted,
)
from sardonyx.compiler.lower import Cut, Lowered
from sardonyx.compiler.lowerings import Agreement
from sardonyx.compiler.numbering import Numbering, made_early, stored_constant
from sardonyx.compiler.reference import read_values
from sardonyx.compiler.sizes import Code
from sardonyx.compiler.targets import Target
from sardonyx.dims import HIDDEN, Expression
from sardonyx.format.save import to_bytes
from sardonyx.graph import Graph, Model, Node, SparseTensorType, TensorType, Type, Value
from sardonyx.graph.clone import clone_node
from sardonyx.graph.sort import require_made
from sardonyx.loops.nodes import symbols
from sardonyx.ops.catalog import Catalog
from sardonyx.ops.evaluate import Evaluator
from sardonyx.ops.fact import Fact, to_type


@dataclass(eq=False)
class Parts:
    """A model on its way: made ready for references, inferred, as forms, as steps."""

    evaluator: Evaluator
    facts: dict[Value, Fact]
    lowered: Lowered
    built: Built


def lower(
    model: Model, operators: Catalog, *, believe: bool = True
) -> tuple[Evaluator, Lowered, dict[Value, Fact]]:
    """A model as forms."""
    evaluator = Evaluator(model, catalog=operators)
    require_made(evaluator.graph)
    return evaluator, *lower_model(evaluator, operators, believe=believe)


def build_parts(model: Model, target: Target, operators: Catalog) -> Parts:
    """Everything up to the kernels in the kernel language."""
    evaluator, lowered, facts = lower(model, operators)
    return Parts(evaluator, facts, lowered, build_steps(evaluator.graph, lowered, target))


def compile_image(
    model: Model, target: Target, operators: Catalog, *, specialize: bool, believe: bool = True
) -> Image | Wanted:
    """Compile a model for a target; or say which contents it waits for, if it may `specialize`."""
    evaluator, lowered, facts = lower(model, operators, believe=believe)
    name = model.source or evaluator.graph.name
    if specialize and lowered.wanted:
        return Wanted(
            model=name,
            names=tuple(value.name for value in lowered.wanted),
            inputs=tuple(value.name for value in evaluator.graph.inputs if value.tensor is None),
            outputs=tuple(value.name for value in evaluator.graph.outputs),
            sparse=_sparse(evaluator.graph),
        )
    with Assembly(target) as assembly:
        numbering = Numbering(assembly.add)
        built = build_steps(evaluator.graph, lowered, target, numbering.kernel)
        writer = _Writer(Parts(evaluator, facts, lowered, built), numbering, target.checked)
        tables = writer.tables(target)
        graph = to_bytes(writer.remainder())
        constants = tuple(made_early(map(stored_constant, numbering.constants)))
        objects, sharing = assembly.finish(), assembly.sharing()
    return Image(
        model=name,
        tables=tables,
        code=tuple(objects),
        pool=sharing,
        graph=graph,
        rows=tuple(built.explain(evaluator.graph, lowered)),
        constants=constants,
        accesses=tuple(assembly.accesses) if target.checked else (),
    )


class _Writer:
    def __init__(self, parts: Parts, numbering: Numbering, checked: str) -> None:
        self.model, self.graph = parts.evaluator.model, parts.evaluator.graph
        self.facts = parts.facts
        self.lowered, self.built = parts.lowered, parts.built
        self.definitions = parts.lowered.definitions
        self.numbering = numbering
        self.references = [step for step in parts.built.steps if isinstance(step, Node)]
        self.held: dict[int, int] = {}
        self.agreements = dict.fromkeys(parts.lowered.agreements)
        self.checked = checked
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
            names=tuple(value.name for value in self.graph.outputs),
            sparse=_sparse(self.graph),
            held=tuple(self.held.items()),
            promised=tuple(self.promised()),
            believes=bool(self.lowered.believed),
        )

    def promised(self) -> Iterator[tuple[int, tuple[int | None, ...]]]:
        """Shapes that are declared for outputs and that inference does not prove."""
        for place, value in enumerate(self.graph.outputs):
            type_, fact = value.declared, self.facts.get(value)
            if isinstance(type_, TensorType) and type_.shape is not None and fact is not None:
                sizes = tuple(size if isinstance(size, int) else None for size in type_.shape)
                found = fact.shape if fact.rank == len(sizes) else None
                if found is None or any(
                    size not in (None, known) for size, known in zip(sizes, found, strict=True)
                ):
                    yield place, sizes

    def remainder(self) -> Model:
        """The model's inputs, outputs and nodes without kernels; what those read are inputs too.

        Types say what inference found, from which the programs of subgraphs are made.
        """
        twin = Graph(self.graph.name)
        values: dict[Value, Value] = {}
        for value in self.graph.inputs:
            values[value] = twin.add_input(value.name, value.type)
        for node in self.references:
            for value in read_values(node):
                if value not in values:
                    values[value] = twin.add_input(value.name, self.type(value))
            copy = twin.nodes.append(clone_node(node, values))
            for inner, other in zip(node.subgraphs, copy.subgraphs, strict=True):
                for value, formal in zip(inner.inputs, other.inputs, strict=True):
                    formal.declared = self.type(value)
            for output in copy.outputs:
                output.tensor = None
        for value in self.graph.outputs:
            twin.outputs.append(values.get(value) or Value(value.name, value.declared))
        return Model(twin, self.model.opsets, self.model.ir_version)

    def type(self, value: Value) -> Type | None:
        """The type that inference found, or the declared one."""
        fact = self.facts.get(value)
        if fact is not None and fact.shape is not None:
            shape = [None if size is None else self.definitions.full(size) for size in fact.shape]
            fact = replace(fact, shape=tuple(shape))
        return value.type if fact is None else to_type(fact, HIDDEN) or value.type

    def fed(self, value: Value) -> Fed:
        default = None
        if value.tensor is not None:
            default = self.numbering.constant(value.tensor.numpy())
        fixed = value in self.lowered.constants
        return Fed(value.name, self.numbering.array(value), default, fixed)

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

    def step(self, step: Step | Node | Cut) -> SegmentImage | ReferenceImage | CutImage:
        if isinstance(step, Step):
            return segment_image(step, self.numbering, self.definitions, self.checked)
        if isinstance(step, Cut):
            whole, count = self.array(step.whole), self.array(step.count)
            output, told = self.numbering.array(step.output), self.told([step.output])
            return CutImage(whole, count, step.axis, output, told, self.checks())
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
        shape = tuple(map(self.definitions.full, form.shape))
        plain = [
            (axis, str(size)) for axis, size in enumerate(shape) if symbols(size) == {str(size)}
        ]
        self.known |= {name for _, name in plain}
        computed = []
        for axis, size in enumerate(shape):
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
            shape=tuple(size if isinstance(size, int) else str(size) for size in shape),
            symbols=tuple((axis, self.numbering.symbol(name)) for axis, name in plain),
            computed=tuple(item for item in computed if item[0] not in dict(plain)),
        )

    def checks(self) -> Checks | None:
        """Agreements all of whose sizes have been told by now, and not before."""
        ready = [pair for pair in self.agreements if self.names(pair) <= self.known]
        if not ready:
            return None
        names = sorted(set().union(*map(self.names, ready)))
        code = Code(names, derived=self.definitions.sizes)
        for number, pair in enumerate(ready):
            left, right = code.value(pair.left), code.value(pair.right)
            unless = f" and {left} != 1" if pair.repeats else ""
            code.line(f"if {left} != {right}{unless}: return {number}, {left}, {right}")
            del self.agreements[pair]
        code.line("return None")
        full = self.definitions.full
        texts = tuple((str(full(pair.left)), str(full(pair.right))) for pair in ready)
        return Checks(tuple(map(self.numbering.symbol, names)), code.source(), texts)

    def names(self, pair: Agreement) -> set[str]:
        """The names that tell whether sizes agree."""
        return self.definitions.told(symbols(pair.left) | symbols(pair.right))


def _sparse(graph: Graph) -> frozenset[str]:
    """The outputs that are declared as sparse tensors."""
    return frozenset(
        value.name for value in graph.outputs if isinstance(value.type, SparseTensorType)
    )
