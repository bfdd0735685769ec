"""Convert models between versions of operator sets, one version at a time, both ways."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sardonyx.errors import ConversionError
from sardonyx.graph import Graph, Model, Node, Opsets, Value
from sardonyx.graph.clone import clone_model
from sardonyx.graph.names import Names
from sardonyx.ops.build import Builder
from sardonyx.ops.catalog import NEWEST_OPSETS, Catalog, canonical_domain, standard
from sardonyx.ops.operator import Operator, as_outputs, attribute_values
from sardonyx.ops.signature import Signature

Types = Callable[[Value], str | None]
"""A value's type string such as `tensor(float)`, or None where it is not known."""


@dataclass(frozen=True, slots=True)
class Blocker:
    """One reason why a model cannot be converted, with the lowest opset it does not hold for."""

    node: str
    reason: str
    nearest: int


def convert_opset(model: Model, version: int, domain: str = "", catalog: Catalog | None = None) -> Model:
    """A copy of `model` in which `domain` has `version`; raises with every node that stands against it.

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
    if version < 1 or (newest is not None and version > newest):
        raise ConversionError(
            f"'{domain or 'ai.onnx'}' has no version {version}", hint=f"known are 1 to {newest}"
        )
    if version >= current:
        upgrade_model(twin, {domain: version}, catalog)
    else:
        downgrade_model(twin, version, domain, catalog)
    return twin


def upgrade_model(
    model: Model, targets: dict[str, int] | None = None, catalog: Catalog | None = None
) -> None:
    """Bring a model, in place, to the newest version of every operator set it uses, or to `targets`."""
    operators = standard() if catalog is None else catalog
    targets = NEWEST_OPSETS if targets is None else targets
    for opsets, graphs in _units(model):
        for spelling in list(opsets):
            domain = canonical_domain(spelling)
            target = targets.get(domain)
            while target is not None and opsets[spelling] < target:
                changed = _changed(operators, domain, opsets[spelling])
                opsets[spelling] += 1
                for graph in graphs:
                    _upgrade_graph(graph, domain, opsets[spelling], changed)


def _units(model: Model) -> Iterator[tuple[Opsets, list[Graph]]]:
    """Each set of graphs that shares operator-set imports."""
    inside = {id(part) for function in model.functions for part in function.graph.walk()}
    yield model.opsets, [graph for graph in model.graphs() if id(graph) not in inside]
    for function in model.functions:
        yield function.opsets, list(function.graph.walk())


def _changed(operators: Catalog, domain: str, version: int) -> dict[str, type[Operator]]:
    """Operators of which a new version begins behind `version`."""
    return {
        name: operator
        for (place, name), operator in operators.items()
        if place == domain and any(item.since == version + 1 for item in operator.versions())
    }


def _upgrade_graph(graph: Graph, domain: str, opset: int, changed: dict[str, type[Operator]]) -> None:
    names: Names | None = None
    for node in graph.nodes:
        operator = changed.get(node.op_type)
        if operator is None or canonical_domain(node.domain) != domain:
            continue
        before = operator.at(opset - 1)
        hook = None if before is None else getattr(operator, f"upgrade_{before.since}", None)
        if hook is not None:
            names = names or Names(graph)
            apply_hook(node, hook, Builder(graph, opset, node, names))


def apply_hook(node: Node, hook: Callable[..., object], build: Builder) -> None:
    """Run an upgrade or downgrade; what it returns takes the place of the node's outputs."""
    result = hook(node, build)
    if result is not None:
        replace_node(node, [item for item in as_outputs(result) if isinstance(item, Value)])


def replace_node(node: Node, values: list[Value]) -> None:
    """Put what made `values` in the place of a node. The node's own output values live on."""
    graph = node.graph
    outputs = node.outputs
    if graph is None or len(values) < len([item for item in outputs if item.uses or item.name]):
        raise ConversionError(f"{node.where()} was replaced by {len(values)} values")
    for output in outputs:
        output.producer = None
    node.outputs = ()
    for old, new in zip(outputs, values, strict=False):
        maker = new.producer
        if maker is None or maker.graph is not graph or new.is_output or new in outputs:
            maker = Node("Identity", [new], [Value("")])
            graph.nodes.insert_before(node, maker)
            new = maker.output
        made = list(maker.outputs)
        made[made.index(new)] = old
        new.replace_all_uses(old)
        new.producer = None
        old.producer = maker
        maker.outputs = tuple(made)
    graph.nodes.remove(node)


def downgrade_model(
    model: Model, version: int, domain: str = "", catalog: Catalog | None = None
) -> None:
    """Bring a model, in place, down to `version` of one operator set."""
    from sardonyx.ops.infer import value_types

    operators = standard() if catalog is None else catalog
    types = value_types(model, operators)
    blockers: list[Blocker] = []
    for opsets, graphs in _units(model):
        for spelling in [item for item in opsets if canonical_domain(item) == domain]:
            while opsets[spelling] > version:
                changed = _changed(operators, domain, opsets[spelling] - 1)
                opsets[spelling] -= 1
                for graph in graphs:
                    blockers += _downgrade_graph(graph, domain, opsets[spelling], changed, types)
    if blockers:
        nearest = max(blocker.nearest for blocker in blockers)
        lines = "; ".join(f"{item.node}: {item.reason}" for item in blockers[:20])
        raise ConversionError(
            f"the model cannot be said in opset {version}: {lines}",
            hint=f"the lowest opset that works is {nearest}",
        )


def _downgrade_graph(
    graph: Graph, domain: str, opset: int, changed: dict[str, type[Operator]], types: Types
) -> list[Blocker]:
    blockers = []
    names: Names | None = None
    for node in graph.nodes:
        operator = changed.get(node.op_type)
        if operator is None or canonical_domain(node.domain) != domain:
            continue
        names = names or Names(graph)
        try:
            _downgrade_node(node, operator, Builder(graph, opset, node, names), types)
        except ConversionError as error:
            blockers.append(Blocker(node.where(), error.what, opset + 1))
    return blockers


def _downgrade_node(node: Node, operator: type[Operator], build: Builder, types: Types) -> None:
    current, older = operator.at(build.opset + 1), operator.at(build.opset)
    assert current is not None
    hook = getattr(operator, f"downgrade_{current.since}", None)
    if hook is not None:
        name = node.op_type
        apply_hook(node, hook, build)
        reason = misfit(node, current, older, types) if older and node.graph and node.op_type == name else ""
        if reason:
            raise ConversionError(reason)
    elif older is None or older.deprecated:
        _expand(node, operator, current, build)
    else:
        reason = misfit(node, current, older, types)
        if reason and operator.function is not None:
            _expand(node, operator, current, build)
        elif reason:
            raise ConversionError(reason)


def _expand(node: Node, operator: type[Operator], current: Signature, build: Builder) -> None:
    if operator.function is None:
        raise ConversionError(f"the operator begins with opset {current.since}")
    result = operator.function(build, *node.inputs, **attribute_values(node, current))
    replace_node(node, [item for item in as_outputs(result) if isinstance(item, Value)])


def misfit(node: Node, current: Signature, older: Signature, types: Types) -> str:
    """Why a node of `current` is not one of `older`, or nothing; drops attributes at their defaults."""
    for name in list(node.attributes):
        if name not in older.attributes:
            formal = current.attributes.get(name)
            if formal is None or node.attribute(name) != formal.default:
                return f"the attribute '{name}' begins with opset {current.since}"
            del node.attributes[name]
    for name, formal in older.attributes.items():
        changed = current.attributes.get(name)
        if name not in node.attributes and changed is not None and changed.default != formal.default:
            if changed.default is None or changed.required:
                return f"the attribute '{name}' has another default before opset {current.since}"
            node.set_attribute(name, changed.default)
    for position, value in enumerate(node.inputs):
        if value is None:
            continue
        wanted = older.formal_input(position)
        if wanted is None:
            return f"its input {position} begins with opset {current.since}"
        found = types(value)
        if found is not None and found not in older.types(wanted):
            return f"{found} is not allowed for '{wanted.name}' before opset {current.since}"
    most = older.output_range[1]
    if most is not None and len(node.outputs) > most:
        return f"its output {most} begins with opset {current.since}"
    for position, value in enumerate(node.outputs):
        formal_output, found = older.formal_output(position), types(value)
        if formal_output is not None and found is not None and found not in older.types(formal_output):
            return f"{found} is not allowed for '{formal_output.name}' before opset {current.since}"
    return ""
