"""Reading attributes, nodes and graphs."""

from typing import Any

from sardonyx.format.protos import proto_class
from sardonyx.format.text_attributes import ATTRIBUTE_TYPES, FIELDS, item_type, list_type
from sardonyx.format.text_fields_parse import Annotation
from sardonyx.format.text_lexer import Kind, Literal
from sardonyx.format.text_parse_values import ValueParser
from sardonyx.graph.attribute import LISTS, AttributeType

_MESSAGE_KINDS = frozenset([AttributeType.TENSOR, AttributeType.GRAPH, AttributeType.TYPE_PROTO])


class GraphParser(ValueParser):
    """The part of the grammar from attributes up to graphs, which hold one another."""

    def attributes(self, target: Any, depth: int) -> None:
        """`<name: type = value, ...>` into a repeated field, if it comes next."""
        if not self.take("<"):
            return
        while True:
            self.attribute(target.add(), depth)
            if not self.take(","):
                break
        self.expect(">", "attributes are separated by commas and closed by >")

    def attribute(self, target: Any, depth: int, name: str | None = None) -> None:
        """`name: type = value` into an AttributeProto; the name may have been read before."""
        self.check_depth(depth)
        target.name = self.word("the name of an attribute") if name is None else name
        declared = AttributeType.UNDEFINED
        if self.take(":"):
            declared = self._attribute_kind()
            target.type = declared
        annotation = self._inner_annotation(target, depth)
        if annotation is None or self.peek() == "=":
            self.expect("=", "an attribute is written name = value, or name: type = value")
            if self.take("["):
                self._list(target, declared, depth)
            else:
                self._single(target, declared, depth)
        if annotation is not None:
            annotation.remove_from(target)

    def _inner_annotation(self, target: Any, depth: int) -> Annotation | None:
        annotation = self.annotation(target, depth)
        if annotation is not None and annotation.raw:
            self.fail("a value for raw_data", "raw_data alone belongs after values", annotation.at)
        return annotation

    def _attribute_kind(self) -> AttributeType:
        self.peek()
        start = self.position
        name = self.expect_identifier("an attribute type")
        if name not in ATTRIBUTE_TYPES:
            known = ", ".join(ATTRIBUTE_TYPES)
            self.fail("an attribute type", f"attribute types are {known}", start)
        return ATTRIBUTE_TYPES[name]

    def _single(self, target: Any, declared: AttributeType, depth: int) -> None:
        """One value; its kind must be the declared one, if one is declared."""
        letter = self.peek()
        start = self.position
        if letter == "@":
            self.position += 1
            target.ref_attr_name = self.name("the name of the function's attribute")
        elif declared in _MESSAGE_KINDS and not self.standard:
            held = getattr(target, FIELDS[declared])
            target.type = declared
            held.SetInParent()
            self._message_value(held, declared, depth + 1)
        elif letter == "_" or (letter.isascii() and letter.isalpha()):
            self._worded_value(target, depth)
        else:
            self._literal_value(target, declared)
        if declared and declared != target.type:
            hint = "change the value or the declared type; all values of a list have one type"
            self.fail(f"a value of type {declared.name.lower()}", hint, start)

    def _message_value(self, held: Any, kind: AttributeType, depth: int) -> None:
        match kind:
            case AttributeType.TENSOR:
                self.tensor(held, depth)
            case AttributeType.GRAPH:
                self.graph(held, depth)
            case _:
                self.type(held, depth)

    def _worded_value(self, target: Any, depth: int) -> None:
        """A tensor, a type, a graph, or inf and nan: told apart by how they start."""
        if self.next_is_type():
            kind = proto_class("TypeProto")()
            before = self.annotations
            self.type(kind, depth + 1)
            quoted = not self.standard and self.peek() == '"'
            if self.peek() in ("{", "=") or quoted or self.peek_identifier():
                self.refuse_annotations(before)
                target.type = AttributeType.TENSOR
                self._named_tensor(target.t, kind, depth + 1)
            else:
                target.type = AttributeType.TYPE_PROTO
                target.tp.CopyFrom(kind)
        elif self.next_is_word_float():
            target.type = AttributeType.FLOAT
            target.f = self.to_float(self.literal())
        else:
            target.type = AttributeType.GRAPH
            self.graph(target.g, depth + 1)

    def _named_tensor(self, target: Any, kind: Any, depth: int) -> None:
        target.SetInParent()
        if self.peek() == '"' or self.peek_identifier():
            target.name = self.name("the name of a tensor")
        elif self.standard:
            target.name = ""
        self.take("=")
        self.tensor_of(target, kind, depth)

    def _literal_value(self, target: Any, declared: AttributeType) -> None:
        literal = self.literal()
        match literal.kind:
            case Kind.INTEGER if declared != AttributeType.FLOAT:
                target.type = AttributeType.INT
                target.i = self.to_integer(literal)
            case Kind.INTEGER | Kind.FLOAT:
                target.type = AttributeType.FLOAT
                target.f = self.to_float(literal)
            case Kind.STRING:
                target.type = AttributeType.STRING
                target.s = literal.text.encode()
            case _:
                self._refuse_value(literal)

    def _refuse_value(self, literal: Literal) -> None:
        hint = 'values are 1, -2.5, "text", float[2] {1, 2}, a graph, a type, @name or [a list]'
        self.fail("a value", hint, literal.at)

    def _list(self, target: Any, declared: AttributeType, depth: int) -> None:
        if self.peek() == "]":
            if not declared:
                self.fail("a type for this empty list", "write name: ints = [] or the like")
            if declared not in LISTS:
                self.fail("a single value", f"{declared.name.lower()} is not the type of a list")
            self.position += 1
            return
        if not self._plain_list(target, declared):
            while True:
                self._item(target, depth)
                if not self.take(","):
                    break
        self.expect("]", "values are separated by commas and closed by ]")

    def _plain_list(self, target: Any, declared: AttributeType) -> bool:
        """All values at once when they are plain numbers of a clear kind."""
        match item_type(declared):
            case AttributeType.INT | AttributeType.UNDEFINED:
                integers = self.plain_integers("]")
                if integers is None:
                    return False
                target.ints.extend(integers)
                target.type = AttributeType.INTS
            case AttributeType.FLOAT:
                floats = self.plain_floats("]", single=True)
                if floats is None:
                    return False
                target.floats.extend(floats.tolist())
                target.type = AttributeType.FLOATS
            case _:
                return False
        return True

    def _item(self, target: Any, depth: int) -> None:
        """One more value of a list. Standard syntax drops tensors, graphs, types and references."""
        self.peek()
        start = self.position
        item: Any = proto_class("AttributeProto")()
        self._single(item, item_type(AttributeType(target.type)), depth)
        kind = AttributeType(item.type)
        if not kind or (self.standard and kind in _MESSAGE_KINDS):
            if not self.standard:
                self.fail("a value", "a list cannot hold references", start)
            return
        target.type = list_type(kind)
        getattr(target, FIELDS[list_type(kind)]).append(getattr(item, FIELDS[kind]))

    def node(self, target: Any, depth: int) -> None:
        """`[name] outputs = domain.Operator:overload <attributes> (inputs)` into a NodeProto."""
        if self.take("["):
            target.name = self.name("a node's name") if self.peek() == '"' else self.identifier()
            self.expect("]", "a node's name stands in square brackets")
        self.names(target.output)
        self.expect("=", "a node is written outputs = Operator <attributes> (inputs)")
        self._operator(target)
        self.attributes(target.attribute, depth + 1)
        self.expect("(", "inputs stand in parentheses after the operator and its attributes")
        self.names(target.input)
        self.expect(")", "inputs are names separated by commas and closed by )")
        if not target.attribute:
            self.attributes(target.attribute, depth + 1)
        self.annotate(target, depth)

    def _operator(self, target: Any) -> None:
        """`domain.Operator:overload`; without a dot no domain is set, except in standard syntax."""
        quoted = not self.standard and self.peek() == '"'
        operator = self.name("an operator") if quoted else self.identifier()
        domain = ""
        dotted = self.standard
        while self.take("."):
            dotted = True
            domain = f"{domain}.{operator}" if domain else operator
            operator = self.word("the operator after its domain")
        if dotted:
            target.domain = domain
        target.op_type = operator
        if self.take(":"):
            target.overload = self.word("the overload of the operator")

    def nodes(self, target: Any, depth: int) -> None:
        """`{ node ... }` into a repeated field."""
        self.expect("{", "the nodes stand in braces")
        while not self.take("}"):
            self.node(target.add(), depth)

    def graph(self, target: Any, depth: int) -> None:
        """`name (inputs) => (outputs) <initializers and types> { nodes }` into a GraphProto."""
        self.check_depth(depth)
        target.name = self.name("the name of a graph")
        self._inputs(target, depth + 1)
        self.expect_arrow()
        self.value_infos(target.output, depth + 1, "(", ")")
        self._initializers(target, depth + 1)
        self.nodes(target.node, depth + 1)
        self.annotate(target, depth)

    def value_infos(self, target: Any, depth: int, opening: str, closing: str) -> None:
        """Value declarations between brackets into a repeated field."""
        hint = f"values are declared as in {opening}float[N] x, int64 y{closing}"
        self.expect(opening, hint)
        if self.take(closing):
            return
        while True:
            self.value_info(target.add(), depth)
            if not self.take(","):
                break
        self.expect(closing, hint)

    def _inputs(self, graph: Any, depth: int) -> None:
        """Declared inputs, each perhaps with `= values` as its initializer."""
        if not self.take("(") or self.take(")"):
            return
        while True:
            value = proto_class("ValueInfoProto")()
            self.value_info(value, depth)
            graph.input.append(value)
            if self.take("="):
                self._initializer(graph, value, depth)
            if not self.take(","):
                break
        self.expect(")", "inputs are separated by commas and closed by )")

    def _initializers(self, graph: Any, depth: int) -> None:
        """`<...>`: what has values is an initializer, what has none declares a value's type."""
        if not self.take("<") or self.take(">"):
            return
        while True:
            value = proto_class("ValueInfoProto")()
            before = self.annotations
            self.value_info(value, depth)
            if self.take("="):
                self.refuse_annotations(before)
                self._initializer(graph, value, depth)
            else:
                graph.value_info.append(value)
            if not self.take(","):
                break
        self.expect(">", "initializers and types are separated by commas and closed by >")

    def _initializer(self, graph: Any, value: Any, depth: int) -> None:
        if not isinstance(value.name, str):
            self.fail("a name in UTF-8", "the initializer of an input takes the input's name")
        tensor = graph.initializer.add()
        tensor.name = value.name
        self.tensor_of(tensor, value.type, depth)
