"""Convert models between versions of operator sets, one version at a time, both ways."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from logging import getLogger
from typing import Literal

from sardonyx.boundary import public
from sardonyx.errors import ConversionError, SardonyxError, UnlistedTypeError
from sardonyx.graph import Graph, Model, Node, Opsets, Value
from sardonyx.graph.clone import clone_model
from sardonyx.graph.names import Names
from sardonyx.ops.build import Builder
from sardonyx.ops.catalog import NEWEST_OPSETS, Catalog, canonical_domain, standard
from sardonyx.ops.fact import from_type, to_type
from sardonyx.ops.operator import Hook, Operator, as_outputs, attribute_values
from sardonyx.ops.replace import replace_node
from sardonyx.ops.signature import Signature
from sardonyx.ops.well_formed import require_well_formed
from sardonyx.ops.widen import Types, widen
from sardonyx.record import record

_log = getLogger("sardonyx")
TypeRule = Literal["strict", "keep"]
"""What to do with element types that an older version does not list and no others can stand for."""
Failed = Callable[[Node, SardonyxError], None]
"""Told of a node that cannot be converted, and why."""


@record
class Blocker:
    """One reason why a model cannot be converted, with the lowest opset it does not hold for."""

    node: str
    reason: str
    nearest: int
    of_type: bool


@public("converting the model")
def convert_opset(
    model: Model, version: int, domain: str = "", catalog: Catalog | None = None,
    *, types: TypeRule = "strict",
) -> Model:  # fmt: skip
    """A copy of `model` in which `domain` has `version`; raises with every node in the way.

    With `types="keep"`, element types that an older version does not list stay where nothing else
    can be said: for runtimes that take them. Those nodes are logged, and `sx.check` finds them.

    >>> import sardonyx as sx
    >>> model = sx.load_text('<ir_version: 8, opset_import: ["": 11]>'
    ...                      'g (float[2,3] x) => (float[2,3] y) { y = Softmax(x) }')
    >>> sx.convert_opset(model, 13).opset
    13
    """
    twin = clone_model(model)
    current = twin.opsets.get(domain, twin.opset if domain == "" else 0)
    newest = NEWEST_OPSETS.get(domain)
    if not current:
        raise ConversionError(f"the model does not import the operator set '{domain or 'ai.onnx'}'")
    if types not in ("strict", "keep"):
        raise ConversionError(f"types='{types}' is not known", hint="give 'strict' or 'keep'")
    for wanted in (current, version):
        if wanted < 1 or (newest is not None and wanted > newest):
            raise ConversionError(
                f"'{domain or 'ai.onnx'}' has no version {wanted}", hint=f"known are 1 to {newest}"
            )
    _require_known(twin, domain, standard() if catalog is None else catalog)
    require_well_formed(twin, standard() if catalog is None else catalog)
    if version >= current:
        upgrade_model(twin, {domain: version}, catalog)
    else:
        downgrade_model(twin, version, domain, catalog, types=types)
    return twin


def _require_known(model: Model, domain: str, operators: Catalog) -> None:
    """Refuse operators of which no version is known: nothing says what they were before."""
    functions = {function.key for function in model.functions}
    unknown = [
        node.where()
        for graph in model.graphs()
        for node in graph.nodes
        if canonical_domain(node.domain) == domain
        and (domain, node.op_type) not in operators
        and (node.domain, node.op_type, node.overload) not in functions
    ]
    if unknown:
        raise ConversionError(f"operators are not known: {', '.join(unknown[:20])}")


def upgrade_model(
    model: Model, targets: dict[str, int] | None = None, catalog: Catalog | None = None,
    *, failed: Failed | None = None,
) -> None:  # fmt: skip
    """Bring a model, in place, to the newest version of its operator sets, or to `targets`.

    Nodes that cannot be upgraded raise, or are left as they are and passed to `failed`.
    """
    operators = standard() if catalog is None else catalog
    targets = NEWEST_OPSETS if targets is None else targets
    for opsets, roots, as_nodes in _units(model):
        for spelling in list(opsets):
            domain = canonical_domain(spelling)
            target = targets.get(domain)
            if target is not None and opsets[spelling] < 1:
                what = f"'{domain or 'ai.onnx'}' has no version {opsets[spelling]}"
                raise ConversionError(what, hint="versions begin with 1")
            present = _present(roots, domain, operators)
            while target is not None and opsets[spelling] < target:
                opsets[spelling] += 1
                hooks = _upgrade_hooks(present, opsets[spelling])
                for root in roots if hooks else ():
                    names: Names | None = None
                    for graph in list(root.walk()):
                        for node, hook in _upgrades(graph, domain, hooks):
                            names = names or Names(root)
                            build = Builder(
                                graph, opsets[spelling], node, names, constants_as_nodes=as_nodes
                            )
                            _upgrade(node, hook, build, failed)
                if hooks:
                    present = _present(roots, domain, operators)


def needs_upgrade(model: Model, catalog: Catalog) -> bool:
    """True where a node's meaning or form is another one in the newest version."""
    for opsets, roots, _ in _units(model):
        for spelling, version in opsets.items():
            domain = canonical_domain(spelling)
            target = NEWEST_OPSETS.get(domain, version)
            if version < target:
                present = _present(roots, domain, catalog)
                steps = range(version + 1, target + 1)
                if version < 1 or any(_upgrade_hooks(present, opset) for opset in steps):
                    return True
    return False


def _units(model: Model) -> Iterator[tuple[Opsets, list[Graph], bool]]:
    """Outermost graphs, together where they share operator-set imports.

    The flag says that constants must be nodes: functions have no initializers, and before IR
    version 4 every initializer is an input too.
    """
    bodies = {id(function.graph) for function in model.functions}
    roots = [graph for graph in model.graphs() if graph.owner is None and id(graph) not in bodies]
    yield model.opsets, roots, 0 < model.ir_version < 4
    for function in model.functions:
        yield function.opsets, [function.graph], True


def _present(roots: list[Graph], domain: str, operators: Catalog) -> dict[str, type[Operator]]:
    """The operators of a domain that stand in graphs and the graphs inside them."""
    names = {
        node.op_type
        for root in roots
        for node in root.all_nodes()
        if canonical_domain(node.domain) == domain
    }
    found = {name: operators.get((domain, name)) for name in sorted(names)}
    return {name: operator for name, operator in found.items() if operator is not None}


def _upgrade_hooks(present: dict[str, type[Operator]], opset: int) -> dict[str, Hook]:
    """By operator whose meaning or form is another one from `opset` on: what changes a node."""
    hooks: dict[str, Hook] = {}
    for name, operator in present.items():
        before = operator.at(opset - 1) if _begins(operator, opset) else None
        hook = None if before is None else getattr(operator, f"upgrade_{before.since}", None)
        if hook is not None:
            hooks[name] = hook
    return hooks


def _begins(operator: type[Operator], opset: int) -> bool:
    """True where a version of an operator begins with an opset."""
    return any(item.since == opset for item in operator.versions())


def _upgrades(graph: Graph, domain: str, hooks: dict[str, Hook]) -> Iterator[tuple[Node, Hook]]:
    """Nodes that a version changes, with what changes them."""
    for node in graph.nodes:
        hook = hooks.get(node.op_type)
        if hook is not None and canonical_domain(node.domain) == domain:
            yield node, hook


def _upgrade(
    node: Node, hook: Callable[..., object], build: Builder, failed: Failed | None
) -> None:
    try:
        apply_hook(node, hook, build)
    except SardonyxError as error:
        if failed is None:
            raise
        failed(node, error)
    except (IndexError, KeyError, TypeError, ValueError, AttributeError) as error:
        problem = ConversionError(f"the node is malformed: {error}", where=node.where())
        if failed is None:
            raise problem from error
        failed(node, problem)


def apply_hook(node: Node, hook: Callable[..., object], build: Builder) -> None:
    """Run an upgrade or downgrade; what it returns takes the place of the node's outputs."""
    result = hook(node, build)
    if result is not None:
        replace_node(node, [item for item in as_outputs(result) if isinstance(item, Value)])


def downgrade_model(
    model: Model, version: int, domain: str = "", catalog: Catalog | None = None,
    *, types: TypeRule = "strict",
) -> None:  # fmt: skip
    """Bring a model, in place, down to `version` of one operator set."""
    operators = standard() if catalog is None else catalog
    blockers: dict[Node, Blocker] = {}
    keep = types == "keep"
    outside: list[str] = []
    with _declared_types(model, operators) as type_of:
        for opsets, roots, as_nodes in _units(model):
            for spelling in [item for item in opsets if canonical_domain(item) == domain]:
                while opsets[spelling] > version:
                    present = _present(roots, domain, operators).items()
                    changed = {name: operator for name, operator in present
                               if _begins(operator, opsets[spelling])}  # fmt: skip
                    opsets[spelling] -= 1
                    opset = opsets[spelling]
                    step = _Step(
                        operators, changed, domain, opset, type_of, as_nodes, keep, cache(Names)
                    )
                    for root in roots:
                        for graph in list(root.walk()):
                            step.graph(graph, root, blockers)
        if keep:
            outside = [*_outside(model, version, domain, operators, type_of)]
    if blockers:
        raise _refusal(version, [*blockers.values()])
    if outside:
        _log.warning("outside of opset %d: %s", version, "; ".join(outside[:20]))


def _refusal(version: int, blockers: list[Blocker]) -> ConversionError:
    nearest = max(blocker.nearest for blocker in blockers)
    lines = "; ".join(f"{item.node}: {item.reason}" for item in blockers[:20])
    hint = f"the lowest opset that works is {nearest}"
    if all(blocker.of_type for blocker in blockers):
        hint += "; for a runtime that takes these types at older opsets, types='keep' leaves them"
    return ConversionError(f"the model cannot be said in opset {version}: {lines}", hint=hint)


def _outside(
    model: Model, version: int, domain: str, operators: Catalog, types: Types
) -> Iterator[str]:
    """Nodes with types that their operators do not take at a version, and which."""
    for graph in model.graphs():
        for node in graph.nodes:
            operator = operators.get((canonical_domain(node.domain), node.op_type))
            if operator is None or canonical_domain(node.domain) != domain:
                continue
            signature = operator.at(version)
            reason = "" if signature is None else wrong_type(node, signature, types)
            if reason:
                yield f"{node.where()}: {reason}"


@contextmanager
def _declared_types(model: Model, operators: Catalog) -> Iterator[Types]:
    """Let every value, for a while, declare what inference knows of its type: hooks ask for it."""
    from sardonyx.ops.element_type import element_type
    from sardonyx.ops.infer import infer_facts, type_string

    added: list[Value] = []
    for value, fact in infer_facts(model, catalog=operators).items():
        if value.declared is None and value.tensor is None:
            value.declared = to_type(fact)
            added.append(value)

    def type_of(value: Value) -> str | None:
        declared = value.type
        found = None if declared is None else type_string(from_type(declared))
        if found is None:
            element = element_type(value)
            found = None if element is None else f"tensor({element.text})"
        return found

    try:
        yield type_of
    finally:
        for value in added:
            value.declared = None


@record
class _Step:
    """One version down: to `opset`, in which the operators `changed` are older than before."""

    operators: Catalog
    changed: dict[str, type[Operator]]
    domain: str
    opset: int
    types: Types
    constants_as_nodes: bool
    keep_types: bool
    names_of: Callable[[Graph], Names]
    """The names in an outermost graph, which are looked for once."""

    def _builder(self, graph: Graph, node: Node, names: Names) -> Builder:
        return Builder(
            graph, self.opset, node, names,
            constants_as_nodes=self.constants_as_nodes, keep_types=self.keep_types,
        )  # fmt: skip

    def graph(self, graph: Graph, root: Graph, blockers: dict[Node, Blocker]) -> None:
        """Downgrade the nodes of a graph inside of `root`; note those that cannot be."""
        for node in graph.nodes:
            operator = self.changed.get(node.op_type)
            if operator is None or canonical_domain(node.domain) != self.domain or node in blockers:
                continue
            names = self.names_of(root)
            build = self._builder(graph, node, names)
            where, inputs = node.where(), node.inputs
            try:
                self._node(node, operator, build)
                for made in build.made:
                    self._fit(made, names)
            except ConversionError as error:
                of_type = isinstance(error, UnlistedTypeError)
                blockers[node] = Blocker(where, error.what, self.opset + 1, of_type)
            else:
                _drop_unused(graph, inputs)

    def _node(self, node: Node, operator: type[Operator], build: Builder) -> None:
        current, older = operator.at(self.opset + 1), operator.at(self.opset)
        assert current is not None
        hook = getattr(operator, f"downgrade_{current.since}", None)
        if hook is not None:
            name = node.op_type
            apply_hook(node, hook, build)
            if node.graph is None or node.op_type != name or older is None:
                return
        elif older is None or older.deprecated:
            _expand(node, operator, current, build)
            return
        reason, refusal = misfit(node, current, older), ConversionError
        if not reason:
            reason, refusal = wrong_type(node, older, self.types), UnlistedTypeError
            if not reason or widen(node, operator, older, build, self.types, self.operators):
                return
        if hook is None and operator.function is not None:
            _expand(node, operator, current, build)
        elif refusal is ConversionError or not self.keep_types:
            raise refusal(f"{reason} before opset {current.since}")

    def _fit(self, node: Node, names: Names) -> None:
        """Let a node that a hook made compute in types that its operator takes."""
        operator = self.operators.get((canonical_domain(node.domain), node.op_type))
        version = None if operator is None or node.domain else operator.at(self.opset)
        if operator is None or version is None or node.graph is None:
            return
        reason = wrong_type(node, version, self.types)
        if reason:
            build = self._builder(node.graph, node, names)
            widened = widen(node, operator, version, build, self.types, self.operators)
            if not widened and not self.keep_types:
                raise UnlistedTypeError(f"{node.op_type} would be needed, and {reason}")


def _drop_unused(graph: Graph, values: tuple[Value | None, ...]) -> None:
    """Remove constants that a node has read, where nothing reads them any more."""
    for value in values:
        if value is None or value.uses:
            continue
        maker = value.producer
        if maker is not None and maker.graph is graph and maker.op_type == "Constant":
            graph.nodes.remove(maker)
        elif value in graph.initializers and value not in graph.inputs:
            graph.initializers.remove(value)


def _expand(node: Node, operator: type[Operator], current: Signature, build: Builder) -> None:
    if operator.function is None:
        raise ConversionError(f"the operator begins with opset {current.since}")
    replace_node(node, function_results(node, operator, current, build))


def function_results(
    node: Node, operator: type[Operator], version: Signature, build: Builder
) -> list[Value]:
    """What a node of `version` makes, built of other operators by its operator's function."""
    assert operator.function is not None
    formals = operator.newest().attributes
    given = {name: None if item.required else item.default for name, item in formals.items()}
    given |= attribute_values(node, version)
    given |= {name: item for name, item in node.attributes.items() if item.reference}
    results = as_outputs(operator.function(build, *node.inputs, **given))
    return [item for item in results if isinstance(item, Value)]


def misfit(node: Node, current: Signature, older: Signature) -> str:
    """Why a node of `current` is not one of `older` but for its types, or nothing.

    Attributes at their defaults are dropped, or given where the defaults differ.
    """
    for name in list(node.attributes):
        if name not in older.attributes and not older.open:
            formal = current.attributes.get(name)
            if formal is None or node.attribute(name) != formal.default:
                return f"the attribute '{name}' is not there"
            del node.attributes[name]
    for name, formal in older.attributes.items():
        changed = current.attributes.get(name)
        if name in node.attributes or changed is None or changed.default == formal.default:
            continue
        if changed.default is None or changed.required:
            return f"the attribute '{name}' has another default"
        node.set_attribute(name, changed.default)
    for position, value in enumerate(node.inputs):
        if value is not None and older.formal_input(position) is None:
            return f"its input {position} is not there"
    most = older.output_range[1]
    if most is not None and len(node.outputs) > most:
        return f"its output {most} is not there"
    return ""


def wrong_type(node: Node, version: Signature, types: Types) -> str:
    """Which input or output is of a type that a version does not take, or nothing."""
    sides = ((version.formal_input, node.inputs), (version.formal_output, node.outputs))
    for formal_at, values in sides:
        for position, value in enumerate(values):
            formal = formal_at(position)
            found = None if formal is None or value is None else types(value)
            if formal is not None and found is not None and found not in version.types(formal):
                return f"{found} is not allowed for '{formal.name}'"
    return ""
