"""Whatever no output depends on -> nothing."""

from sardonyx.format.pages import let_go_tensor
from sardonyx.graph import Graph, Model, Node, Tensor, Value
from sardonyx.ops.signature import Arity
from sardonyx.passes.unit import Unit


def remove_dead(unit: Unit) -> bool:
    """Take out nodes and constants that nothing uses, and optional outputs that nothing reads."""
    changed = False
    for part in reversed(list(unit.graph.walk())):
        for node in reversed(part.nodes):
            if not any(value.uses for value in node.outputs):
                part.nodes.remove(node)
                changed = True
            else:
                changed |= _drop_outputs(unit, node)
    for part in unit.graph.walk():
        changed |= drop_constants(part)
    return changed


def _drop_outputs(unit: Unit, node: Node) -> bool:
    """Let go of outputs that nothing reads, where the operator says they may be absent."""
    operator = unit.operator(node)
    version = None if operator is None else operator.at(unit.opset)
    if version is None or node.domain not in ("", "ai.onnx") or operator is None:
        return False
    counts = operator.output_counts.get(version.since)
    kept = list(node.outputs)
    changed = False
    for index, value in enumerate(kept):
        formal = version.formal_output(index)
        if formal is None or formal.arity is not Arity.OPTIONAL or value.uses:
            continue
        if value.name:
            unit.names.release(value.name)
            value.name = ""
            changed = True
    while len(kept) > 1 and not kept[-1].name and not kept[-1].uses:
        formal = version.formal_output(len(kept) - 1)
        if formal is None or formal.arity is not Arity.OPTIONAL:
            break
        if counts is not None and len(kept) - 1 not in counts:
            break
        kept.pop()
    if len(kept) < len(node.outputs):
        node.set_outputs(kept)
        changed = True
    return changed


def drop_constants(graph: Graph) -> bool:
    """Let go of constants that nothing reads, and of their memory."""
    annotated = {value for item in graph.quantization for value in item.parameters.values()}
    inputs = set(graph.inputs)

    def unused(value: Value) -> bool:
        return not value.uses and value not in inputs and value not in annotated

    dead = [value for value in graph.initializers if unused(value)]
    if dead:
        graph.initializers = [value for value in graph.initializers if not unused(value)]
    for value in dead:
        if isinstance(value.tensor, Tensor):
            let_go_tensor(value.tensor)
        value.tensor = None
    return bool(dead)


def forget_values(model: Model) -> None:
    """Drop declarations and annotations of values that are gone."""
    for graph in model.graphs():
        present = set(graph.values())
        outputs = set(graph.outputs)
        graph.declared = {value: None for value in graph.declared if value in present}
        graph.quantization = [item for item in graph.quantization if item.value in present]
        graph.output_declarations = {
            value: said for value, said in graph.output_declarations.items() if value in outputs
        }


def name_apart(model: Model) -> None:
    """Give nodes of one name different ones, as some runtimes want it."""
    for root in [graph for graph in model.graphs() if graph.owner is None]:
        taken: set[str] = set()
        for node in root.all_nodes():
            name, count = node.name, 0
            while node.name and node.name in taken:
                count += 1
                node.name = f"{name}_{count}"
            taken.add(node.name)


def drop_functions(model: Model) -> bool:
    """Drop functions that nothing calls any more."""
    by_key = {function.key: function for function in model.functions}
    called: set[tuple[str, str, str]] = set()
    bodies = {function.graph for function in model.functions}
    waiting = [graph for graph in model.graphs() if graph.owner is None and graph not in bodies]
    while waiting:
        for node in waiting.pop().all_nodes():
            key = (node.domain, node.op_type, node.overload)
            if key in by_key and key not in called:
                called.add(key)
                waiting.append(by_key[key].graph)
    kept = [function for function in model.functions if function.key in called]
    changed = len(kept) < len(model.functions)
    model.functions = kept
    return changed
