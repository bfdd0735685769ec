"""y = MatMul(x, w) -> y = Cast(MatMul(Cast(x), w')): float32 inside becomes a 16-bit type."""

from logging import getLogger

import ml_dtypes
import numpy as np

from sardonyx.boundary import public
from sardonyx.dtypes import DataType
from sardonyx.errors import ConversionError
from sardonyx.graph import Graph, Model, Node, Tensor, TensorType, Value
from sardonyx.graph.names import Names
from sardonyx.graph.sort import sort_graph
from sardonyx.ops.catalog import Catalog, canonical_domain, standard
from sardonyx.ops.fact import Fact
from sardonyx.ops.infer import infer_facts
from sardonyx.ops.signature import Signature
from sardonyx.passes.lift_constants import lift_constants
from sardonyx.passes.pipeline import run_pipeline

_log = getLogger("sardonyx")
_NARROW = {"float16": DataType.FLOAT16, "bfloat16": DataType.BFLOAT16}


@public("converting floats")
def convert_floats(model: Model, to: str) -> Model:
    """A copy that computes in "float16" or "bfloat16" where it computed in float32.

    Inputs and outputs keep their types. A node stays as it is if its operator does not take the
    narrow type at the model's opset, or if a constant it reads is too small for that type; numbers
    that are too large become the largest there is.

    >>> import sardonyx as sx
    >>> half = convert_floats(sx.load("examples/digits.onnx"), "float16")
    >>> str(half.graph.outputs[0].type), half.graph.initializers[0].tensor.dtype.name
    ('float[batch,10]', 'FLOAT16')
    """
    if to not in _NARROW:
        raise ConversionError(f"floats cannot become '{to}'", hint=f"choose {' or '.join(_NARROW)}")
    twin = run_pipeline(model, (lift_constants,))
    if twin.graph is None:
        return twin
    sort_graph(twin.graph)
    narrowing = _Narrowing(twin, _NARROW[to], standard())
    narrowing.run()
    if not narrowing.changed:
        raise ConversionError(
            f"no node that computes in float32 takes {to} at opset {model.opset}",
            hint="convert to a newer opset first",
        )
    if narrowing.saturated:
        _log.warning("%d constants held numbers too large for %s", narrowing.saturated, to)
    return twin


class _Narrowing:
    """The walk over a model's graphs, and the narrow and wide forms of values made on the way."""

    def __init__(self, model: Model, to: DataType, catalog: Catalog) -> None:
        assert model.graph is not None
        self._model, self._graph, self._to = model, model.graph, to
        self._catalog = catalog
        self._facts: dict[Value, Fact] = infer_facts(model)
        self._names = Names(model.graph)
        self._narrow: set[Value] = set()
        self._made: dict[tuple[Graph, Value, DataType], Value] = {}
        self._homes = {value: graph for graph in model.graph.walk() for value in graph.initializers}
        fed = {value for graph in model.graph.walk() for value in graph.inputs}
        self._constants = {
            value for value in self._homes if value not in fed and isinstance(value.tensor, Tensor)
        }
        self.changed = self.saturated = 0

    def run(self) -> None:
        """Change the model."""
        self._walk(self._graph)
        for value, graph in self._homes.items():
            narrow = self._made.get((graph, value, self._to))
            if narrow is not None and not value.uses:
                graph.initializers.remove(value)
                narrow.name = value.name
                assert isinstance(narrow.tensor, Tensor)
                narrow.tensor.name = value.name

    def _walk(self, graph: Graph) -> None:
        for node in list(graph.nodes):
            version = self._version(node)
            narrowed = set() if version is None else self._variables(node, version)
            for position, value in enumerate(node.inputs):
                if value is None:
                    continue
                formal = None if version is None else version.formal_input(position)
                wanted = self._to if formal and formal.type in narrowed else DataType.FLOAT
                if self._dtype(value) == DataType.FLOAT:
                    node.replace_input(position, self._as(graph, value, wanted, node))
            for inner in node.subgraphs:
                self._walk(inner)
            for position, value in enumerate(node.outputs):
                formal = None if version is None else version.formal_output(position)
                if formal is not None and formal.type in narrowed:
                    self._mark(value)
            self.changed += bool(narrowed)
        for position, value in enumerate(graph.outputs):
            if value in self._narrow:
                graph.outputs[position] = self._widened_output(graph, value)

    def _version(self, node: Node) -> Signature | None:
        domain = canonical_domain(node.domain)
        operator = self._catalog.get((domain, node.op_type))
        if operator is None or any(node.subgraphs):
            return None
        return operator.at(self._model.opsets.get(domain, self._model.opset if not domain else 1))

    def _variables(self, node: Node, version: Signature) -> set[str]:
        """The type variables of a node that become narrow."""
        found: set[str] = set()
        for position, value in enumerate(node.inputs):
            formal = version.formal_input(position)
            if value is None or formal is None:
                continue
            fact = self._facts.get(value)
            if formal.each or (fact is not None and not fact.is_tensor):
                return set()
            takes = f"tensor({self._to.text})" in version.types(formal)
            dtype = self._dtype(value)
            if dtype in (DataType.FLOAT, None) and formal.type in version.constraints:
                if dtype is None or not takes or self._is_too_small(value):
                    return set()
                found.add(formal.type)
        return found

    def _dtype(self, value: Value) -> DataType | None:
        fact = self._facts.get(value)
        if fact is not None and fact.dtype is not None:
            return fact.dtype
        return value.tensor.dtype if isinstance(value.tensor, Tensor) else None

    def _is_too_small(self, value: Value) -> bool:
        """True for constants, such as the epsilon of a norm, of which nothing would be left."""
        if value not in self._constants or not isinstance(value.tensor, Tensor):
            return False
        array = value.tensor.numpy()
        finite = np.abs(array[np.isfinite(array)])
        largest = float(finite.max()) if finite.size else 0.0
        return 0 < largest < _limits(self._to)[0]

    def _as(self, graph: Graph, value: Value, wanted: DataType, before: Node | None) -> Value:
        """A value in the type that is wanted, by a cast in this graph where it has the other."""
        if (wanted == self._to) == (value in self._narrow):
            return value
        home = self._homes[value] if value in self._constants else graph
        made = self._made.get((home, value, wanted))
        if made is None:
            if value in self._constants:
                made = self._narrow_constant(home, value)
            else:
                made = self._cast(graph, value, wanted, before)
            self._made[home, value, wanted] = made
        return made

    def _cast(self, graph: Graph, value: Value, wanted: DataType, before: Node | None) -> Value:
        output = Value(self._names.fresh(f"{value.name}/{wanted.text}"))
        node = Node("Cast", [value], [output], {"to": int(wanted)})
        if before is None:
            graph.nodes.append(node)
        else:
            graph.nodes.insert_before(before, node)
        return output

    def _narrow_constant(self, home: Graph, value: Value) -> Value:
        assert isinstance(value.tensor, Tensor)
        array = value.tensor.numpy()
        limit = _limits(self._to)[1]
        self.saturated += bool((np.isfinite(array) & (np.abs(array) > limit)).any())
        fitted = np.where(np.isfinite(array), np.clip(array, -limit, limit), array)
        name = self._names.fresh(f"{value.name}/{self._to.text}")
        return home.add_initializer(Tensor(fitted.astype(self._to.numpy), name))

    def _mark(self, value: Value) -> None:
        self._narrow.add(value)
        if isinstance(value.type, TensorType):
            value.type = TensorType(self._to, value.type.shape)

    def _widened_output(self, graph: Graph, value: Value) -> Value:
        """The value a graph returned, wide again and under its name; the narrow one is renamed."""
        wide = self._as(graph, value, DataType.FLOAT, None)
        if value.producer in graph.nodes and wide.type is None:
            wide.name, value.name = value.name, self._names.fresh(f"{value.name}/{self._to.text}")
        shape = value.type.shape if isinstance(value.type, TensorType) else None
        wide.type = TensorType(DataType.FLOAT, shape)
        return wide


def _limits(to: DataType) -> tuple[float, float]:
    """The smallest normal number and the largest of a type."""
    info = ml_dtypes.finfo(to.numpy)  # type: ignore[no-untyped-call]
    return float(info.smallest_normal), float(info.max)
