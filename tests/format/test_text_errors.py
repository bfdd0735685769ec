"""What wrong text gets: an error that points at the place, always, and quickly."""

import pickle
import random
import re
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest

from sardonyx.errors import TextError
from sardonyx.format.protos import proto_class
from sardonyx.format.text_lexer import Reason, refusal
from sardonyx.format.text_parse import (
    parse_attribute,
    parse_function,
    parse_graph,
    parse_model,
    parse_node,
    parse_standard,
)
from sardonyx.format.text_print import to_text

Parse = Callable[[str], Any]


def refused(parse: Parse, text: str) -> TextError:
    """The error that parsing `text` raises."""
    with pytest.raises(TextError) as caught:
        parse(text)
    return caught.value


def test_an_error_says_what_where_and_what_to_do() -> None:
    error = refused(parse_graph, "g (x) => (y) {\n  y = Relu x)\n}")
    assert str(error) == (
        "expected '(', found 'x' (at line 2, column 12); "
        "inputs stand in parentheses after the operator and its attributes\n"
        "      y = Relu x)\n"
        "               ^"
    )
    assert vars(error)["line"] == 2
    assert vars(error)["column"] == 12
    assert vars(error)["expected"] == "'('"
    assert vars(error)["found"] == "'x'"


CASES: list[tuple[Parse, str, int, str, str]] = [
    (parse_node, "", 1, "'='", "the end of the text"),
    (parse_node, "y = Relu (x) z", 14, "the end of the text", "'z'"),
    (parse_node, "y = Relu (x", 12, "')'", "the end of the text"),
    (parse_node, "y Relu (x)", 3, "'='", "'Relu'"),
    (parse_node, 'y = A <a = "abc> ()', 12, "a closing double quote", '\'"abc> ()\''),
    (parse_node, "y = A <a = > ()", 12, "a value", "'>'"),
    (parse_node, "y = A <a: intt = 1> ()", 11, "an attribute type", "'intt'"),
    (parse_node, "y = A <a: int = 1.5> ()", 17, "a value of type int", "'1.5'"),
    (parse_node, "y = A <a = [1, 2.5]> ()", 16, "a value of type int", "'2.5'"),
    (parse_node, "y = A <a = []> ()", 13, "a type for this empty list", "']'"),
    (parse_node, "y = A <a: int = []> ()", 18, "a single value", "']'"),
    (parse_node, "y = A <a = [@b]> ()", 13, "a value", "'@'"),
    (parse_node, "y = A <a = - 1> ()", 12, "digits right after the sign", "'-'"),
    (parse_node, "y = A <a = 1e> ()", 12, "a complete number", "'1e'"),
    (parse_node, "y = A <a = 1e39> ()", 12, "a complete number", "'1e39'"),
    (parse_node, "y = A <1 = 2> ()", 8, "the name of an attribute", "'1'"),
    (parse_graph, "g (flot[2] x) => (y) {}", 8, "')'", "'['"),
    (parse_graph, "g (float[2 x) => (y) {}", 12, "']'", "'x'"),
    (parse_graph, "g (float[2.5] x) => (y) {}", 10, "a dimension", "'2.5'"),
    (parse_graph, "g (seq float x) => (y) {}", 8, "'('", "'float'"),
    (parse_graph, "g (map(x, float) m) => () {}", 8, "the type of the keys", "'x'"),
    (parse_graph, "g (x) = > (y) {}", 8, "'>'", "' '"),
    (parse_graph, "g (x) (y) {}", 7, "'='", "'('"),
    (parse_graph, "g () => () <float[N] w = {1}> {}", 26, "known dim", "'{'"),
    (parse_graph, "g () => () <float[] w = {1}> {}", 25, "known rank", "'{'"),
    (parse_graph, "g () => () <seq(float) w = {1}> {}", 28, "fits the type", "'{'"),
    (parse_graph, "g () => () <int8[1] w = {4294967296}> {}", 26, "32 bits", "'4294967296'"),
    (parse_graph, f"g () => () <int64[2] w = {{0, {2**63}}}> {{}}", 30, "that fits", f"'{2**63}'"),
    (parse_graph, "g () => () <int64[1] w = {9223372036854775809}> {}", 27, "that fits",
     "'9223372036854775809'"),
    (parse_graph, f"g () => () <int64[2] w = {{0, {-2**63 - 1}}}> {{}}", 30, "fits", "'-'"),
    (parse_graph, f"g () => () <uint64[1] w = {{{2**64}}}> {{}}", 28, "that fits", f"'{2**64}'"),
    (parse_graph, f"g () => () <int32[1] w = {{{2**31}}}> {{}}", 27, "32 bits", f"'{2**31}'"),
    (parse_graph, f"g () => () <int32[1] w = {{{-2**31 - 1}}}> {{}}", 27, "32 bits", "'-'"),
    (parse_node, f"y = A <a = [0, {2**63}]> ()", 16, "that fits", f"'{2**63}'"),
    (parse_node, f"y = A <a = [0, {-2**63 - 1}]> ()", 16, "that fits", "'-'"),
    (parse_graph, "g () => () <int64[1] w = {a}> {}", 27, "a number", "'a'"),
    (parse_graph, "g () => () <uint64[1] w = {-1}> {}", 28, "that fits", "'-'"),
    (parse_graph, "g () => () <string[1] w = {1}> {}", 28, "a string element", "'1'"),
    (parse_graph, "g () => () <float w = [1]> {}", 24, "the key of external data", "'1'"),
    (parse_graph, "g () => () { y = A (x) ", 24, "'='", "the end of the text"),
    (parse_function, "<version: 3> f () => () {}", 2, "a keyword", "'version'"),
    (parse_function, "f <a: int = x> () => () {}", 14, "'='", "'>'"),
    (parse_function, "f (x) {}", 7, "'='", "'{'"),
    (parse_model, "<ir_version: 1.0> g () => () {}", 14, "ir_version", "'1.0'"),
    (parse_model, "<opset_import: 3> g () => () {}", 16, "'['", "'3'"),
    (parse_model, "<opset_import: [a : 1]> g () => () {}", 17, "a number", "'a'"),
    (parse_model, "<producer_name: x> g () => () {}", 17, "a number", "'x'"),
    (parse_attribute, "a @{b: 1}", 5, "a field of AttributeProto", "'b'"),
    (parse_attribute, "a @{i: 1.5}", 8, "an integer", "'1.5'"),
    (parse_attribute, "a @{type: NICE}", 11, "a value of this enumeration", "'NICE'"),
    (parse_attribute, "a @{type: 77}", 11, "a value of this enumeration", "'77'"),
    (parse_attribute, 'a @{s: "\\q"}', 8, "an escape", '\'"\\\\q"\''),
    (parse_attribute, "a @{s: 'b}", 8, "a closing quote", '"\'"'),
    (parse_attribute, 'a @{name: "\\xff"}', 11, "text in UTF-8", '\'"\\\\xff"\''),
    (parse_attribute, 'a @{wire: "\\xff"}', 11, "encoded fields", '\'"\\\\xff"\''),
    (parse_attribute, "a @{i: 9223372036854775808}", 8, "that fits", "'9223372036854775808'"),
    (parse_attribute, "a @{t {dims: [1, }}", 18, "an integer", "'}'"),
    (parse_attribute, "a @{raw_data}", 5, "a field of AttributeProto", "'raw_data'"),
    (parse_attribute, "a @{i: 3", 9, "a field name", "the end of the text"),
    (parse_attribute, "a: tensor = string {} @{raw_data}", 20, "numbers", "'{'"),
    (parse_attribute, "a: tensor = int4[1] {8} @{raw_data}", 21, "elements that fit", "'{'"),
    (parse_graph, 'g (float x @{wire: "\\x0a\\x01\\xff"} = {1}) => () {}', 37, "a name in", "' '"),
    (parse_attribute, "a: tensor = ? {1}", 16, "no values", "'1'"),
    (parse_attribute, "a: tensor = float @{denotation: \"\"} {1}", 36, "no annotation", "' '"),
]  # fmt: skip


@pytest.mark.parametrize(("parse", "text", "column", "expected", "found"), CASES)
def test_errors(parse: Parse, text: str, column: int, expected: str, found: str) -> None:
    error = refused(parse, text)
    assert error.where == f"line 1, column {column}"
    assert expected in vars(error)["expected"]
    assert vars(error)["found"] == found
    assert f"found {found} (at {error.where}); " in str(error)
    assert re.search(r"\n    .*\n    *\^$", str(error)), "an excerpt with a caret"


@pytest.mark.parametrize("kind", ["int32", "int64", "uint32", "uint64"])
def test_the_largest_and_smallest_integers(kind: str) -> None:
    limits = np.iinfo(kind)
    text = f"g () => () <{kind}[3] w = {{{limits.min}, 1, {limits.max}}}> {{}}"
    (tensor,) = parse_graph(text).initializer
    assert onnx.numpy_helper.to_array(tensor).tolist() == [limits.min, 1, limits.max]


def test_long_lines_are_cut_around_the_place() -> None:
    error = refused(parse_node, "y = A (" + "x, " * 1000 + "!" + ", x" * 1000 + ")")
    excerpt, caret = str(error).splitlines()[-2:]
    assert len(excerpt) < 150
    assert excerpt[caret.index("^")] == "!"


def test_errors_can_be_pickled() -> None:
    error = refused(parse_node, "y")
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)
    assert vars(again)["column"] == 2


@pytest.mark.parametrize("text", ["y = A (\ud800)", b"y = A (x)", None])
def test_what_is_no_text(text: Any) -> None:
    assert refusal(refused(parse_node, text)) == Reason.ENCODING


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "seq(" * 60 + "float" + ")" * 60,
        "a = " + "seq(" * 100000,
        "a = " + "map(int64," * 100000,
        "a: graph = g () => () {" + "= A <a: graph = g () => () {" * 40,
        "a: graph = g () => () {" + "= A <a = g () => () {" * 50000,
        "a @{g {" + "node { attribute { g {" * 50000,
        "a @{tp {" + "sequence_type { elem_type {" * 60 + "}" * 122,
    ],
)
def test_deep_nesting_is_refused(text: str) -> None:
    assert refusal(refused(parse_attribute, text)) == Reason.DEPTH
    if "@{" not in text:
        node = f"y = A <{text}"
        assert (
            refusal(refused(lambda text: parse_standard("NodeProto", text), node)) == Reason.DEPTH
        )


@pytest.mark.parametrize("exact", [True, False])
def test_deep_messages_are_not_printed(exact: bool) -> None:
    types = proto_class("AttributeProto")(name="a", type=13)
    kind = types.tp
    for _ in range(400):
        kind = kind.sequence_type.elem_type
    kind.tensor_type.elem_type = 1
    graphs = proto_class("NodeProto")()
    node = graphs
    for _ in range(400):
        node = node.attribute.add(name="g", type=5).g.node.add()
    for message in (types, graphs):
        with pytest.raises(TextError, match="100 levels") as caught:
            to_text(message, exact=exact)
        assert refusal(caught.value) == Reason.DEPTH


def test_deep_fields_are_not_printed() -> None:
    attribute = proto_class("AttributeProto")(name="a")
    kind = attribute.tp
    for _ in range(400):
        kind = kind.sequence_type.elem_type
    kind.denotation = "deep"
    with pytest.raises(TextError, match="100 levels"):
        to_text(attribute, exact=True)


def test_a_full_stack_is_no_crash() -> None:
    def call_deeply(levels: int) -> Any:
        if levels:
            return call_deeply(levels - 1)
        return parse_attribute("a = " + "seq(" * 48 + "float" + ")" * 48)

    outcomes = set()
    for levels in range(700, 1000, 10):
        try:
            outcomes.add(type(call_deeply(levels)).__name__)
        except (TextError, RecursionError) as error:
            outcomes.add(type(error).__name__)
    assert {"AttributeProto", "TextError"} <= outcomes


def _growing(size: int) -> dict[str, str]:
    return {
        "nodes": "g () => () {" + "y = A (x)\n" * size + "}",
        "names": "g () => () { y = A (" + "x, " * size + "x) }",
        "numbers": f"g () => () <float[{size}] w = {{{'1.5, ' * size}2}}> {{}}",
        "odd numbers": f"g () => () <float[{size}] w = {{{'NaN, ' * size}2}}> {{}}",
        "escapes": 'g () => () { y = A <s = "' + '\\"\\\\x' * size + '"> () }',
        "comments": "g () => () {" + "# text\n" * size + "}",
        "fields": "g () => () {} @{metadata_props: [" + '{key: "a"},' * size + "]}",
        "bytes": 'g () => () {} @{doc_string: "' + "\\x41" * size + '"}',
        "digits": "g () => () <float w = {" + "1." + "0123456789" * size + "}> {}",
        "open lists": "g () => () {" + "= A <a = float[1] {1, 2 " * (size // 500),
        "a long name": "g () => () {" + "x" * size + " = A () }",
        "quotes": "g () => () {" + '= A <a = "' * size,
    }


@pytest.mark.parametrize("name", _growing(0))
def test_time_grows_with_the_size(name: str) -> None:
    def seconds(size: int) -> float:
        text = _growing(size)[name]
        start = time.perf_counter()
        try:
            parse_graph(text)
        except TextError:
            assert name in ("open lists", "quotes")
        return time.perf_counter() - start

    small = min(seconds(4000) for _ in range(3))
    large = min(seconds(40000) for _ in range(2))
    assert large < 40 * small + 0.2


def test_ten_thousand_nodes_in_seconds() -> None:
    graph = proto_class("GraphProto")(name="g")
    for index in range(10000):
        node = graph.node.add(op_type="Conv", name=f"conv_{index}", output=[f"y.{index}"])
        node.input.extend([f"x.{index}", f"w{index}"])
        node.attribute.add(name="pads", type=7, ints=[1, 1, 1, 1])
        graph.initializer.add(name=f"w{index}", data_type=1, dims=[2], raw_data=bytes(8))
    start = time.perf_counter()
    assert parse_graph(to_text(graph, exact=True)) == graph
    assert time.perf_counter() - start < 15


SEEDS: dict[str, str] = {
    "ModelProto": """<ir_version: 7, opset_import: ["" : 10, "d": 1 @{-domain}], doc_string: "d",
metadata_props: ["k": "v"]> @{configuration {name: "c" num_devices: 2}}
g (float[N, 3] X, seq(float[2]) S) => (float[N] C) <float[2] i = {1, -2.5e3}, int64 t>
{ T = MatMul(X, W) C = Softmax <axis = 1> (T) @{doc_string: "x\\n\\x00"} }
<domain: "local", opset_import: ["" : 10], overload: "ov">
f <a, b: float = 1.5> (x, float[N] y) => (z) <int32[2] q> { z = local.g:ov<alpha: float = @a>(x) }
""",
    "GraphProto": """g (float[1] y = {1.0}) => (w) <float[2] w1 = {1.0, nan} @{raw_data}, string s =
{"a"}, uint8 e = ["location": "f"], ? u @{doc_string: ""}> { # comment
  [n1] a, "b", = com.x.If<then_branch = g1 () => (q) { q = a() }, e: graph = "g2" () => () {}>(c)
  = Const<t = float16[2] {1,2}, tp: type_proto = map(int64, optional(float[?,"x y",3])),
    ts: tensors = [int4[2] {1,-2} @{raw_data}, float = {1}], s @{sparse_tensor {dims: [2, 3]}}> ()
  z = k(x) <a=-5, b=1e5, d=[1.0,2], f: ints = [], h=-inf, i: strings=["a","b"], j: int = @p>
} @{sparse_initializer {values {float_data: [1, nan]} dims: 3} wire: "\\xf8\\x3e\\x05"}""",
    "FunctionProto": """<opset_import: ["" : 10], domain: "local", doc_string: "text">
f <x: int = 1, y, w = float[2] {1,2}, "z"> (y, "z") => (w) { x = "a b"."c"(y, z) }
@{metadata_props {key: "k"}}""",
    "NodeProto": '[nm] y, z = a.b.Op:o <a = 5, b = [1,2,3], c @{i: 3 type: INT}> (x, "w", , q)',
}
PARSERS = {
    "ModelProto": parse_model,
    "GraphProto": parse_graph,
    "FunctionProto": parse_function,
    "NodeProto": parse_node,
}
WORDS = '< > ( ) { } [ ] , : = => @ @{ . ? - 1 -1 0.5 1e 1e5 99999999999999999999 inf -nan " "a" '
WORDS += "\\ # \n float int64[ seq( map(int64, opaque( x graph ints tensors é \0 - wire raw_data "
WORDS += "dims: data_type: -name ' \\x \ud800 type: {1} {} [] float[2]{1,2} g()=>(){} ir_version: ;"


def _mutate(text: str, source: random.Random) -> str:
    pieces = re.findall(r'[A-Za-z_0-9.]+|\s+|"[^"]*"|=>|.', text, re.DOTALL)
    for _ in range(source.choice([1, 1, 2, 3])):
        place = source.randrange(len(pieces))
        match source.randrange(4):
            case 0:
                pieces.insert(place, source.choice(WORDS.split(" ")))
            case 1:
                del pieces[place : place + source.choice([1, 1, 2, 5])]
            case 2:
                pieces[place] = source.choice(WORDS.split(" "))
            case _:
                other = source.randrange(len(pieces))
                pieces[place:place] = pieces[other : other + 9]
        pieces = pieces or [" "]
    return "".join(pieces)


@pytest.mark.parametrize("kind", SEEDS)
def test_seeds_are_valid(kind: str) -> None:
    message = PARSERS[kind](SEEDS[kind])
    assert PARSERS[kind](to_text(message, exact=True)) == message


@pytest.mark.parametrize("kind", SEEDS)
def test_mutated_texts_parse_or_give_a_text_error(kind: str) -> None:
    source = random.Random(20)
    accepted = 0
    for _ in range(3000):
        text = _mutate(SEEDS[kind], source)
        for parse in (PARSERS[kind], lambda text: parse_standard(kind, text)):
            try:
                message = parse(text)
            except TextError as error:
                assert error.hint
                continue
            again = PARSERS[kind](to_text(message, exact=True))
            assert again.SerializeToString() == message.SerializeToString(), text
            accepted += 1
    assert accepted > 50
