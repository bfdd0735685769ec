"""What is known of a model's values, found again after a change without forgetting anything."""

from sardonyx.dims import HIDDEN
from sardonyx.graph import Graph, Model, Node, Opsets, Type, Value
from sardonyx.graph.clone import Values, clone_model, clone_node
from sardonyx.graph.collect import disband
from sardonyx.ops.catalog import Catalog
from sardonyx.ops.convert import needs_upgrade, upgrade_model
from sardonyx.ops.fact import Fact, from_type, to_type
from sardonyx.ops.infer import Inference

PIECE = 1 << 10
"""How many nodes are brought to the newest version at a time."""


class Knowledge:
    """Facts of values; those of values that live on stay true whatever passes do."""

    def __init__(self, catalog: Catalog) -> None:
        self.facts: dict[Value, Fact] = {}
        self.refused: set[Value] = set()
        """Results of nodes that break their operator's rules."""
        self._catalog = catalog
        self._made_up = 0

    def update(self, model: Model) -> dict[Value, Fact]:
        """Infer what is not known yet."""
        graph = model.graph
        if graph is None:
            return self.facts
        new = [node for node in graph.all_nodes() if any(item not in self.facts
               for item in node.outputs)]  # fmt: skip
        simple = all(node.graph is graph and not any(node.subgraphs) for node in new)
        whole = not self.facts and not needs_upgrade(model, self._catalog)
        if whole or not simple or model.functions:
            self._infer_all(model)
        else:
            self._infer_pieces(model, graph, new)
        return self.facts

    def _infer_all(self, model: Model) -> None:
        if not needs_upgrade(model, self._catalog):
            inference = _Continued(model, self._catalog, self.facts, self._made_up)
            inference.run()
            self._made_up, self.facts = inference.made_up, inference.facts
            self.refused |= inference.refused_values
            return
        values: Values = {}
        twin = clone_model(model, values)
        known = {values[value]: fact for value, fact in self.facts.items() if value in values}
        inference = self._inference(twin, known)
        inference.run()
        self._made_up = inference.made_up
        self.facts = {old: inference.facts[new] for old, new in values.items()
                      if new in inference.facts}  # fmt: skip
        wrong = inference.refused_values
        self.refused |= {old for old, new in values.items() if new in wrong}
        disband(twin)

    def _infer_pieces(self, model: Model, graph: Graph, nodes: list[Node]) -> None:
        """Infer nodes, not all at a time: they are copied to be brought to the newest version."""
        if not self.facts:
            inference = _Continued(model, self._catalog, {}, self._made_up)
            inference.formals(graph)
            inference.constants(graph)
            self._made_up, self.facts = inference.made_up, inference.facts
        for start in range(0, len(nodes), PIECE):
            self._infer_some(model, nodes[start : start + PIECE])

    def _infer_some(self, model: Model, nodes: list[Node]) -> None:
        """Infer nodes by themselves, from what is known of what they read."""
        graph = Graph("piece")
        values: Values = {}
        made = dict.fromkeys(value for node in nodes for value in node.outputs)
        formals = set() if model.graph is None else set(model.graph.inputs)
        read = [value for value in dict.fromkeys(item for node in nodes for item in node.inputs)
                if value is not None and value not in made]  # fmt: skip
        sources = dict.fromkeys(value.producer for value in read
                                if value.producer and not value.producer.inputs)  # fmt: skip
        for value in read:
            if value.producer in sources:
                continue
            copy = values[value] = Value(value.name, self._declared(value), value.tensor)
            constant = value.tensor is not None and not (value in formals or value in self.facts)
            (graph.initializers if constant else graph.inputs).append(copy)
        for node in (*sources, *nodes):
            graph.nodes.append(clone_node(node, values))
        constants = set(graph.initializers)
        twin = Model(graph, Opsets(model.opsets), model.ir_version)
        inference = self._inference(twin, {})
        for old, copy in values.items():
            if old in self.facts and copy not in constants:
                inference.facts[copy] = self.facts[old]
        inference.graph(graph)
        self._made_up = inference.made_up
        wrong = inference.refused_values
        for value in made:
            fact = inference.facts.get(values[value])
            if fact is not None:
                self.facts[value] = fact
            if values[value] in wrong:
                self.refused.add(value)
        disband(twin)

    def _declared(self, value: Value) -> Type | None:
        fact = self.facts.get(value)
        if fact is None or value.tensor is not None:
            return value.declared
        return to_type(fact, HIDDEN) or value.declared

    def _inference(self, model: Model, known: dict[Value, Fact]) -> "_Continued":
        inference = _Continued(model, self._catalog, known, self._made_up)
        upgrade_model(model, None, self._catalog, failed=inference.give_up)
        return inference


class _Continued(Inference):
    """Inference that takes earlier facts over and keeps symbolic sizes short."""

    longest = 24
    trusting = False

    def __init__(
        self, model: Model, operators: Catalog, known: dict[Value, Fact], made_up: int
    ) -> None:
        super().__init__(model, operators)
        self._known = known
        self._made_up = made_up

    @property
    def made_up(self) -> int:
        """How many sizes have been given names."""
        return self._made_up

    @property
    def refused_values(self) -> set[Value]:
        """What nodes would make that inference refuses; of those with graphs only a run tells."""
        return {value for node in self.refused if not any(node.subgraphs) for value in node.outputs}

    def _needs(self, node: Node) -> bool:
        return any(value not in self._known for value in node.outputs) or any(node.subgraphs)

    def _node(self, node: Node) -> None:
        if self._needs(node):
            super()._node(node)
        for graph in node.subgraphs:
            if any(value not in self.facts for part in graph.nodes for value in part.outputs):
                self.graph(graph, [self.named(from_type(item.declared)) for item in graph.inputs])
        for value in node.outputs:
            found = self._known.get(value)
            if found is not None:
                self.facts[value] = found
