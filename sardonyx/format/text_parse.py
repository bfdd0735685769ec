"""ONNX's textual syntax to messages.

Beyond the standard syntax, a message may be followed by `@{...}` with the fields the syntax has no
place for, any name may be quoted, lists may hold tensors, graphs and types, and `?` is a type that
is not given. A field that is not written is not set.
"""

from typing import Any

from sardonyx.format.protos import proto_class
from sardonyx.format.text_lexer import Failure, Reason, explain
from sardonyx.format.text_parse_graph import GraphParser

_MODEL_KEYWORDS = {
    "ir_version": "integer",
    "opset_import": "opsets",
    "producer_name": "string",
    "producer_version": "string",
    "domain": "string",
    "model_version": "integer",
    "doc_string": "string",
    "metadata_props": "pairs",
}
_FUNCTION_KEYWORDS = {
    "opset_import": "opsets",
    "doc_string": "string",
    "domain": "string",
    "overload": "string",
}


class ModelParser(GraphParser):
    """The whole grammar."""

    def header(self, target: Any, keywords: dict[str, str]) -> None:
        """`<keyword: value, ...>` into the fields of a model or function, if it comes next."""
        if not self.take("<"):
            return
        while True:
            self.peek()
            start = self.position
            keyword = self.expect_identifier("a keyword")
            self.expect(":", "a header entry is written keyword: value")
            match keywords.get(keyword):
                case "integer":
                    setattr(target, keyword, self.integer(f"{keyword} as an integer"))
                case "string":
                    setattr(target, keyword, self.string(keyword))
                case "opsets":
                    self._opsets(target.opset_import)
                case "pairs":
                    self._metadata(target.metadata_props)
                case _:
                    self.fail("a keyword", f"keywords here are {', '.join(keywords)}", start)
            if not self.take(","):
                break
        self.expect(">", "header entries are separated by commas and closed by >")

    def _opsets(self, target: Any) -> None:
        hint = 'operator sets are written ["" : 21, "domain" : 1]'
        self.expect("[", hint)
        if self.take("]"):
            return
        while True:
            opset = target.add()
            opset.domain = self.string("the domain of an operator set")
            self.expect(":", hint)
            opset.version = self.integer("the version of an operator set")
            self.annotate(opset, 1)
            if not self.take(","):
                break
        self.expect("]", hint)

    def _metadata(self, target: Any) -> None:
        hint = 'metadata is written ["key": "value", ...]'
        self.expect("[", hint)
        if not self.take("]"):
            self.pairs(target, "metadata")
            self.expect("]", hint)

    def function(self, target: Any, depth: int) -> None:
        """`<header> name <attributes> (inputs) => (outputs) <types> { nodes }`."""
        self.header(target, _FUNCTION_KEYWORDS)
        target.name = self.name("the name of a function")
        self._formal_attributes(target, depth + 1)
        self._formals(target.input, target.value_info, depth + 1)
        self.expect_arrow()
        self._formals(target.output, target.value_info, depth + 1)
        if self.peek() == "<":
            self.value_infos(target.value_info, depth + 1, "<", ">")
        self.nodes(target.node, depth + 1)
        self.annotate(target, depth)

    def _formal_attributes(self, function: Any, depth: int) -> None:
        """Names, and attributes with defaults; standard syntax skips over what is wrong there."""
        if not self.take("<"):
            return
        while True:
            name = self.name("the name of an attribute")
            if self.peek() not in self._default_starts():
                function.attribute.append(name)
            else:
                self._default(function.attribute_proto.add(), name, depth)
            if not self.take(","):
                break
        self.expect(">", "attributes of a function are separated by commas and closed by >")

    def _default_starts(self) -> tuple[str, ...]:
        return (":", "=") if self.standard else (":", "=", "@")

    def _default(self, target: Any, name: str, depth: int) -> None:
        try:
            self.attribute(target, depth, name)
        except Failure as failure:
            if not self.standard or failure.reason != Reason.SYNTAX:
                raise

    def _formals(self, names: Any, types: Any, depth: int) -> None:
        """Names in parentheses, each perhaps after its type."""
        hint = "a function's inputs and outputs are names, or types and names, in parentheses"
        self.expect("(", hint)
        if self.take(")"):
            return
        while True:
            typed = self.next_is_type()
            if typed:
                value = types.add()
                self.type(value.type, depth + 1)
            name = self.name("the name of a value")
            names.append(name)
            if typed:
                value.name = name
            if not self.take(","):
                break
        self.expect(")", hint)

    def model(self, target: Any, depth: int) -> None:
        """`<header> graph function ...` into a ModelProto."""
        self.header(target, _MODEL_KEYWORDS)
        annotation = self._inner_annotation(target, depth)
        self.graph(target.graph, depth + 1)
        while self.peek():
            self.function(target.functions.add(), depth + 1)
        if annotation is not None:
            annotation.remove_from(target)


def _parse(kind: str, text: str, standard: bool = False) -> Any:
    target = proto_class(kind)()
    parser = ModelParser(_checked(text), standard=standard)
    try:
        match kind:
            case "ModelProto":
                parser.model(target, 0)
            case "GraphProto":
                parser.graph(target, 0)
            case "FunctionProto":
                parser.function(target, 0)
            case "NodeProto":
                parser.node(target, 0)
            case _:
                parser.attribute(target, 0)
        if not standard:
            parser.expect_end()
    except Failure as failure:
        raise explain(failure, parser.text) from None
    except RecursionError:
        hint = "call the parser with a shallower stack, or flatten the text"
        too_deep = Failure("less nesting", parser.position, hint, Reason.DEPTH)
        raise explain(too_deep, parser.text) from None
    return target


def _checked(text: str) -> str:
    """The text if it can be encoded; a str may hold halves of characters that cannot."""
    try:
        text.encode()
    except (AttributeError, UnicodeEncodeError) as error:
        at = getattr(error, "start", 0)
        failure = Failure("text", at, "give a str without lone surrogates", Reason.ENCODING)
        raise explain(failure, text if isinstance(text, str) else "") from None
    return text


def parse_model(text: str) -> Any:
    """The ModelProto a text describes; a TextError points at what is wrong.

    >>> model = parse_model('<ir_version: 10, opset_import: ["" : 21]> g (float[N] x) => (y) {}')
    >>> model.opset_import[0].version, model.graph.input[0].name
    (21, 'x')
    """
    return _parse("ModelProto", text)


def parse_graph(text: str) -> Any:
    """The GraphProto a text describes.

    >>> [node.op_type for node in parse_graph("g (x) => (y) { t = Neg (x) y = Abs (t) }").node]
    ['Neg', 'Abs']
    """
    return _parse("GraphProto", text)


def parse_function(text: str) -> Any:
    """The FunctionProto a text describes.

    >>> parse_function('<domain: "d", opset_import: ["" : 21]> f <a> (x) => (y) {}').attribute[0]
    'a'
    """
    return _parse("FunctionProto", text)


def parse_node(text: str) -> Any:
    """The NodeProto a text describes.

    >>> parse_node("y = Softmax <axis = -1> (x)").attribute[0].i
    -1
    """
    return _parse("NodeProto", text)


def parse_attribute(text: str) -> Any:
    """The AttributeProto a text describes.

    >>> list(parse_attribute("perm: ints = [1, 0]").ints)
    [1, 0]
    """
    return _parse("AttributeProto", text)


def parse_standard(kind: str, text: str) -> Any:
    """The message of class `kind` as ONNX's own parser reads it: no more accepted, and no less.

    >>> parse_standard("NodeProto", "y = Neg (x) and more").HasField("domain")
    True
    """
    return _parse(kind, text, standard=True)
