"""Schemas that users register, as operators of the catalog; and what their inference is given."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sardonyx.compat.onnx._errors import InferenceError
from sardonyx.compat.onnx._facts import read_fact, sparse_proto, type_proto, value_proto
from sardonyx.compat.onnx.defs._registry import registry
from sardonyx.compat.onnx.defs._schema import FormalParameterOption, OpSchema
from sardonyx.compat.onnx.onnx_ml_pb2 import AttributeProto, TensorShapeProto
from sardonyx.dims import Expression
from sardonyx.format.write import write_attribute
from sardonyx.graph import Attribute, AttributeType
from sardonyx.ops.catalog import Catalog, standard
from sardonyx.ops.fact import Fact
from sardonyx.ops.infer import InferContext
from sardonyx.ops.operator import Operator
from sardonyx.ops.signature import REQUIRED, Arity, AttributeFormal, Formal, Signature

_ARITIES = {
    FormalParameterOption.Single: Arity.ONE,
    FormalParameterOption.Optional: Arity.OPTIONAL,
    FormalParameterOption.Variadic: Arity.SOME,
}


def catalog(opset_imports: Mapping[str, int]) -> Catalog:
    """The standard operators, and the registered ones in force at these versions of domains."""
    found: dict[tuple[str, str], type[Operator]] = {}
    for domain, name in registry.custom:
        version = opset_imports.get(domain)
        schemas = registry.versions((domain, name))
        fitting = [since for since in schemas if version is not None and since <= version]
        if fitting:
            found[domain, name] = operator_of(schemas[max(fitting)])
    return standard() | found


def operator_of(schema: OpSchema) -> type[Operator]:
    """An operator with a schema's signature and inference."""
    signature = _signature(schema)

    def infer(*facts: Fact | None, context: InferContext, **_: Any) -> tuple[Fact | None, ...]:
        given = InferenceContext(facts, context)
        schema.get_type_and_shape_inference_function()(given)
        return tuple(given.results)

    members: dict[str, Any] = {
        "domain": schema.domain, "name": schema.name, "__doc__": schema.doc
    }  # fmt: skip
    members["versions"] = classmethod(lambda _: (signature,))
    members["newest"] = classmethod(lambda _: signature)
    members["at"] = classmethod(lambda _, opset: signature)
    if schema._infer is not None:
        members["infer"] = infer
    return type(schema.name, (Operator,), members)


def _signature(schema: OpSchema) -> Signature:
    def formal(item: Any) -> Formal:
        arity = _ARITIES[item.option]
        if arity is Arity.SOME and item.min_arity == 0:
            arity = Arity.ANY
        return Formal(item.name, item.type_str, arity, not item.is_homogeneous)

    attributes = {
        name: AttributeFormal(name, AttributeType(item.type), REQUIRED if item.required else None)
        for name, item in schema.attributes.items()
    }
    constraints = {
        parameter.type_str: tuple(sorted(parameter.types))
        for parameter in (*schema.inputs, *schema.outputs)
    }
    return Signature(
        schema.since_version,
        tuple(map(formal, schema.inputs)),
        tuple(map(formal, schema.outputs)),
        attributes,
        constraints,
        schema.deprecated,
        open=True,
    )


class InferenceContext:
    """What an inference function knows of a node, and where it says what it infers."""

    def __init__(self, facts: Sequence[Fact | None], context: InferContext) -> None:
        self._facts = facts
        self._context = context
        self.results: list[Fact | None] = [None] * context.outputs

    def get_attribute(self, name: str) -> Any:
        """The node's attribute as an AttributeProto, or None."""
        found = self._context.node.attributes.get(name)
        return None if found is None else AttributeProto.FromString(write_attribute(found).joined())

    def attributes(self) -> list[Attribute]:
        """The node's attributes."""
        return list(self._context.node.attributes.values())

    def get_num_inputs(self) -> int:
        """How many inputs the node names."""
        return len(self._facts)

    def has_input(self, idx: int) -> bool:
        """True where an input is present."""
        return _position(idx) < len(self._facts) and self._facts[idx] is not None

    def _input(self, idx: int) -> Fact | None:
        if _position(idx) >= len(self._facts):
            raise RuntimeError(f"there is no input {idx}, there are {len(self._facts)}")
        return self._facts[idx]

    def get_input_type(self, idx: int) -> Any:
        """The TypeProto of an input, or None where it is absent."""
        fact = self._input(idx)
        return None if fact is None else type_proto(fact)

    def get_input_data(self, idx: int) -> Any:
        """The TensorProto of an input that is a known constant, or None."""
        fact = self._input(idx)
        return None if fact is None else value_proto(fact)

    def get_input_sparse_data(self, idx: int) -> Any:
        """The SparseTensorProto of an input that is a sparse constant, or None."""
        value = None if self._input(idx) is None else self._context.node.inputs[idx]
        return None if value is None else sparse_proto(value)

    def get_symbolic_input(self, idx: int) -> Any:
        """The known elements of an integer vector as a TensorShapeProto, or None."""
        fact = self._input(idx)
        if fact is None or fact.value is None or fact.value.ndim > 1:
            return None
        shape = TensorShapeProto()
        for size in fact.sizes() or ():
            dimension = shape.dim.add()
            if isinstance(size, Expression):
                dimension.dim_param = str(size)
            elif size is not None:
                dimension.dim_value = size
        return shape

    def get_num_outputs(self) -> int:
        """How many outputs the node has."""
        return len(self.results)

    def has_output(self, idx: int) -> bool:
        """True where an output is present."""
        outputs = self._context.node.outputs
        return _position(idx) < len(outputs) and bool(outputs[idx].name)

    def get_output_type(self, idx: int) -> Any:
        """The TypeProto an output was given, empty before."""
        if _position(idx) >= len(self.results):
            raise RuntimeError(f"there is no output {idx}, there are {len(self.results)}")
        return type_proto(self.results[idx] or Fact())

    def set_output_type(self, idx: int, type_proto: Any) -> bool:
        """Say what type an output has; False where there is no such output."""
        if _position(idx) >= len(self.results):
            return False
        self.results[idx] = read_fact(type_proto)
        return True

    def get_graph_attribute_inferencer(self, attr_name: str) -> "GraphInferencer":
        """What infers the graph in an attribute."""
        found = self._context.node.attributes.get(attr_name)
        if found is None or not found.graphs:
            raise InferenceError(f"the attribute '{attr_name}' holds no graph")
        return GraphInferencer(found.graphs[0], self._context)

    def get_display_name(self) -> str:
        """How messages name the node."""
        return self._context.node.where()


def _position(index: int) -> int:
    if not isinstance(index, int) or index < 0:
        raise TypeError(f"{index!r} is not a position")
    return index


class GraphInferencer:
    """Infers a graph inside a node."""

    def __init__(self, graph: Any, context: InferContext) -> None:
        self._graph = graph
        self._context = context

    def do_inferencing(self, input_types: Sequence[Any], input_data: Sequence[Any]) -> list[Any]:
        """The TypeProtos of the graph's outputs, for types and known contents of its inputs."""
        from sardonyx.compat.onnx.numpy_helper import to_array

        facts = []
        for position, item in enumerate(input_types):
            fact = read_fact(item)
            known = input_data[position] if position < len(input_data) else None
            facts.append(fact if known is None else fact.with_value(np.asarray(to_array(known))))
        return [type_proto(fact) for fact in self._context.infer(self._graph, facts)]
