"""Put other nodes in the place of one."""

from sardonyx.errors import ConversionError
from sardonyx.graph import Node, Value


def replace_node(node: Node, values: list[Value]) -> None:
    """Put what made `values` in the place of a node. The node's own output values live on."""
    graph = node.graph
    outputs = node.outputs
    if graph is None or len(values) < len([item for item in outputs if item.uses or item.name]):
        raise ConversionError(f"{node.where()} was replaced by {len(values)} values")
    for output in outputs:
        output.producer = None
    node.outputs = ()
    taken: dict[Value, Value] = {}
    for old, new in zip(outputs, values, strict=False):
        if not old.name and not old.uses:
            continue
        new = taken.get(new, new)  # noqa: PLW2901 - one value may stand for several outputs
        maker, result = new.producer, new
        if maker is None or maker.graph is not graph or new.is_output or new in outputs:
            maker = Node("Identity", [new], [Value("")])
            graph.nodes.insert_before(node, maker)
            result = maker.output
        made = list(maker.outputs)
        made[made.index(result)] = old
        result.replace_all_uses(old)
        result.producer = None
        taken[result] = old
        old.producer = maker
        maker.outputs = tuple(made)
    graph.nodes.remove(node)
