"""Broken rules that other runtimes forgive: understood the same way, with a notice."""

from logging import getLogger

from sardonyx.graph import Graph, Node

_log = getLogger("sardonyx")
_NAMED = 3
"""Names that a notice tells; the checker tells all."""


def unite_constants(graph: Graph) -> None:
    """Constant nodes of one name: the last one is meant wherever the name is used.

    Exporters that edit a graph by hand leave both; the checker still reports the double name.
    """
    doubled: dict[str, None] = {}
    for part in graph.walk():
        makers: dict[str, list[Node]] = {}
        for node in part.nodes:
            if node.op_type == "Constant" and node.outputs and node.outputs[0].name:
                makers.setdefault(node.outputs[0].name, []).append(node)
        for name, (*earlier, last) in makers.items():
            for node in earlier:
                doubled[name] = None
                node.output.replace_all_uses(last.output)
                part.nodes.remove(node)
    if doubled:
        names = ", ".join(f"'{name}'" for name in list(doubled)[:_NAMED])
        more = f" and {len(doubled) - _NAMED} more" if len(doubled) > _NAMED else ""
        _log.warning("made by more than one Constant, the last one is used: %s%s", names, more)
