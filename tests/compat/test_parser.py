"""`parser`: the same messages, and the same exceptions, as the real `onnx` for the same texts."""

import inspect
from pathlib import Path
from typing import Any

import onnx as real
import pytest

from sardonyx.compat import onnx as ours
from sardonyx.dtypes import DataType
from sardonyx.errors import TextError
from sardonyx.graph.attribute import AttributeType
from tests.compat.differential import assert_same, outcome

ELEMENT_TYPES = [kind.text for kind in DataType if kind]

NODES = [
    "y = Relu(x)",
    "  y   =\tRelu\n( x )  ",
    "y = Relu(x) trailing text",
    "y = Relu(x)\0hidden",
    "# comment\ny = Relu # another\n(x)",
    "= Relu()",
    "y, z = Split(x, )",
    "y = A(, x)",
    "y = A(,)",
    'y = A("")',
    'y = A("a b", "c\\"d\\\\e\\f")',
    'y = A("é☃")',
    "y = A(x,,z)",
    "y = A(x y)",
    "[] y = A(x)",
    "[n] y = A(x)",
    '["a b"] y = A(x)',
    "[1] y = A(x)",
    "[n y = A(x)",
    "y = a.b.C(x)",
    "y = .C(x)",
    "y = .a.C(x)",
    "y = a..C(x)",
    "y = a.(x)",
    "y = (x)",
    'y = "A"(x)',
    "y = A:over(x)",
    "y = A:(x)",
    'y = A:"o"(x)',
    "y = A<>(x)",
    "y = A<a = 1>(x)<b = 2>",
    "y = A(x)<a = 1>",
    "y = A(x)<>",
    "y = A<a = 1,>(x)",
    "y = A<a = 1 b = 2>(x)",
    "y = A<a = 1, a = 2>(x)",
    'y = A<"a" = 1>(x)',
    "y = A(x) @{doc_string: \"no\"}",
    "y = A<a @{i: 1}>(x)",
    "y = A<a = 1(x)",
    "y = A(x",
    "y = A x",
    "y A(x)",
    "y = 1(x)",
    "",
    " ",
    "#",
    "\0",
]  # fmt: skip

VALUES = [
    "5", "-5", "0", "-0", "007", "+5", "- 5", "-\n5", "-# c\n5", "--5", "9223372036854775807",
    "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "1" + "0" * 5000,
    "0" * 5000 + "1", "1.5", "1.", ".5", "1.2.3", "1e5", "1E+5", "1e-5", "1e", "1e+", "1e5.5",
    "1e38", "1e39", "-1e39", "1e-50", "1e999", "0x10", "1_000", "3.4028235e38", "3.4028236e38",
    "16777217.0000000000000001", "1" * 400 + ".0", "0." + "0" * 400 + "1", "nan", "-nan", "NaN",
    "inf", "-inf", "Infinity", "INF", "- inf", "nan1", "nan_", "infx", "infinityy", "-", "-x",
    '"text"', '""', '"a\nb"', '"\\n\\t\\""', '"open', '"open\\', "'a'", "[]", "[1, 2]", "[1, 2,]",
    "[1 2]", "[1.5, 2]", "[1, 2.5]", '["a", "b"]', '["a", 1]', "[nan, 1]", "[-inf]", "[[1]]", "[",
    "[1", "@b", '@"b c"', "@", "@1", "[@b]", "float", "float[2]", "float[]", "float[2] {1, 2}",
    "float[2] n {1, 2}", 'float[2] "n" {1, 2}', "float[2] n = {1, 2}", "float[2] = {1, 2}",
    "float[2] =", "float {1}", "float[N] {1}", "float[] {1}", "seq(float) {1}", "float[2] {1, 2",
    'float[2] n ["location": "f"]', 'float[2] = ["location": "f", "offset": "0"]',
    'float[2] ["location": "f"]', "float = []", "[float {1}]", "[float {1}, float {2}]",
    "[g () => () {}]", "[float]", "[float, 1]", "g () => () {}", "g () => () {", "_g () => () {}",
    '"g" () => () {}', "g", "seq(float)", "seq(seq(int64[2, N]))", "seq()", "seq(x)", "seq float",
    "map(int64, float)", "map(string, seq(float[?]))", "map(x, float)", "map(int64 float)",
    "map(seq(float), float)", "optional(float)", 'optional(seq(float["a b"]))',
    "sparse_tensor(float)", "sparse_tensor(float[2, N])", "sparse_tensor(float[])",
    "sparse_tensor(seq(float))", "opaque()",
    "opaque(a)", "opaque(a.b)", "opaque(a, b)", "opaque(a.b.c, d)", "opaque(a, b.c)", "opaque(a",
    "opaque(.a)", 'opaque("a")', "float[-1]", "float[1.5]", "float[a b]", "float[2", "float[2,]",
    "float[?, ?]", "float[99999999999999999999]", "?", "{1}", "undefined", "undefined {1}",
]  # fmt: skip

TYPED_VALUES = [
    "1", "1.5", '"s"', "nan", "[1]", "[1.5]", '["s"]', "[]", "float {1}", "[float {1}]", "float",
    "g () => () {}", "@b",
]  # fmt: skip

TENSORS = [
    ("int8", "{300, -300}"),
    ("int8", "{2147483648}"),
    ("int8", "{-2147483649}"),
    ("int8", "{99999999999999999999}"),
    ("uint8", "{1.5}"),
    ("bool", "{true}"),
    ("int64", "{9223372036854775808}"),
    ("int64", "{1,}"),
    ("int64", "{,}"),
    ("int64", "{1 2}"),
    ("int64", "{}"),
    ("int64", "{ }"),
    ("int64", ""),
    ("int64", "{"),
    ("int64", '{"a"}'),
    ("int64", "{- 1}"),
    ("uint64", "{18446744073709551615}"),
    ("uint64", "{18446744073709551616}"),
    ("uint64", "{-1}"),
    ("uint32", "{-1, 4294967296}"),
    ("float", "{1, -0, 1.5, nan, -nan, inf, -Infinity, 1e-50}"),
    ("float", "{0.1, 16777217, 16777217.0000000001}"),
    ("float", "{1e39}"),
    ("float", "{1e}"),
    ("float", '{"1"}'),
    ("float", "{1, # comment }\n 2}"),
    ("double", "{1e308, 1e-320, 0.1}"),
    ("double", "{1e309}"),
    ("complex64", "{1, 2, 3, 4}"),
    ("complex128", "{1, 2}"),
    ("string", '{"a", "", "b\\"c", "é"}'),
    ("string", "{1}"),
    ("string", "{a}"),
    ("float16", "{15360, 1.5}"),
    ("float", "[]"),
    ("float", '["location"]'),
    ("float", '["location": "a" "offset": "1"]'),
    ("float", '["location": "a", "offset": "1"]'),
    ("float", "{1} @{raw_data}"),
]

GRAPHS = [
    "g () => () {}",
    "g => () {}",
    "g => {}",
    "g () = > () {}",
    "g () =>() {}",
    "g () -> () {}",
    '"a graph" () => () {}',
    "() => () {}",
    "g (x) => (y) { y = A(x) }",
    "g (float x, float[] y, float[N, 2] z) => (float[M] w) {}",
    "g (float[1] x = {1}, y) => () {}",
    "g (x = {1}) => () {}",
    "g (float[N] x = {1}) => () {}",
    "g (float x, ) => () {}",
    "g (float) => () {}",
    'g ("float") => ("a b") {}',
    "g () => (float[1] x = {1}) {}",
    "g () => () <> {}",
    "g () => () <float[2] w = {1, 2}, float[N] v, u> {}",
    "g () => () <float[2] w = {1, 2} float[N] v> {}",
    "g () => () <w = {1}> {}",
    "g () => () <seq(float) s = {1}> {}",
    "g () => () <float[2] w = {1, 2}>",
    "g () => () { y = A(x) z = B(y) }",
    "g () => () { y = A(x), z = B(y) }",
    "g () => () { y = A(x); }",
    "g () => () { y = If(c) <t = a () => (float x) {x = B()}, e: graph = b () => () {}> z = C() }",
    "g () => () {} rest",
    "g () => () {} @{doc_string: \"x\"}",
    "g (? x) => () {}",
    "g () => () {",
    "g",
]  # fmt: skip

FUNCTIONS = [
    "f () => () {}",
    'f <a> () => () {}',
    'f <> () => () {}',
    'f <a, b: float = 1.5, c = [1, 2], "d e"> (x, y) => (z) { z = A<p: float = @a>(x) }',
    "f <a: int = 1.5, b> () => () {}",
    "f <a: nothing, b> () => () {}",
    "f <a = , b> () => () {}",
    "f <a = [1, x], b> () => () {}",
    "f <a = []> () => () {}",
    "f <a: ints = []> () => () {}",
    "f <a = [1, 2.5> () => () {}",
    "f <a = float[2] {1, x}, b> () => () {}",
    "f <a: graph = g () => (float x) { y = B(x z) }, b> () => () {}",
    "f <a = 1e99> () => () {}",
    "f <a: = 1> () => () {}",
    "f <a 1> () => () {}",
    "f (float[N] x, y, seq(int64) z) => (float w, v) {}",
    "f (x = 1) => () {}",
    "f (x) => (y) <float[2] t, int64 u, v> {}",
    "f (x) => (y) <> {}",
    "f (x) => (y) <float[2] t = {1, 2}> {}",
    "f (float) => () {}",
    'f ("float") => () {}',
    "f x => () {}",
    '"a b" () => () {}',
    '<domain: "d", opset_import: ["": 10], doc_string: "t", overload: "o"> f () => () {}',
    '<opset_import: ["": 10], opset_import: ["a": 1, "b" : -2]> f () => () {}',
    '<opset_import: []> f () => () {}',
    '<opset_import: ["": 10,]> f () => () {}',
    '<opset_import: [10]> f () => () {}',
    '<> f () => () {}',
    '<domain: d> f () => () {}',
    '<ir_version: 3> f () => () {}',
    '<name: "x"> f () => () {}',
    '<domain "d"> f () => () {}',
    '<domain: "d", > f () => () {}',
    "f () => () {} rest",
    "",
]  # fmt: skip

MODELS = [
    "g () => () {}",
    "",
    '<ir_version: 10, opset_import: ["": 21]> g () => () {}',
    '<ir_version: 10, opset_import: ["": 21], producer_name: "p", producer_version: "v", '
    'domain: "d", model_version: -3, doc_string: "t", metadata_props: ["k": "v", "a": "b"]> '
    "g (float[N] x) => (float[N] y) { y = Relu(x) }",
    "<metadata_props: []> g () => () {}",
    '<metadata_props: ["k" "v"]> g () => () {}',
    '<metadata_props: ["k": "v"], metadata_props: ["k": "w"]> g () => () {}',
    "<ir_version: 1.0> g () => () {}",
    "<ir_version: 99999999999999999999> g () => () {}",
    "<ir_version: -> g () => () {}",
    '<ir_version: "1"> g () => () {}',
    "<overload: \"o\"> g () => () {}",
    "<unknown: 1> g () => () {}",
    "<> g () => () {}",
    "<ir_version: 1",
    "g () => () {} f () => () {} <domain: \"d\"> h (x) => (y) { y = f(x) }",
    "g () => () {} rest",
    "g () => () {} f () => () {} !",
    "g () => () {}\0 rest",
]  # fmt: skip

CASES = [("parse_node", text) for text in NODES]
CASES += [("parse_node", f"y = A<a = {value}>(x)") for value in VALUES]
CASES += [
    ("parse_node", f"y = A<a: {kind.name.lower()} = {value}>(x)")
    for kind in AttributeType
    for value in TYPED_VALUES
]
CASES += [("parse_graph", text) for text in GRAPHS]
CASES += [("parse_graph", f"g () => () <{kind}[2] w = {values}> {{}}") for kind, values in TENSORS]
CASES += [
    ("parse_graph", f"g ({kind}[2] x) => () <{kind} w = {{1, 0}}, map({kind}, {kind}[]) m> {{}}")
    for kind in ELEMENT_TYPES
]
CASES += [("parse_function", text) for text in FUNCTIONS]
CASES += [("parse_model", text) for text in MODELS]


@pytest.mark.parametrize(("function", "text"), CASES, ids=range(len(CASES)))
def test_same_message_or_exception(function: str, text: str, tmp_path: Path) -> None:
    assert_same(lambda onnx, _: getattr(onnx.parser, function)(text), tmp_path)


def test_there_are_good_and_bad_cases(tmp_path: Path) -> None:
    outcomes = [
        outcome(lambda onnx, _: getattr(onnx.parser, function)(text), ours, tmp_path / str(index))  # noqa: B023
        for index, (function, text) in enumerate(CASES)
    ]
    raised = [found[1][0] for found in outcomes if found[0] == "raises"]
    assert len(CASES) > 450
    assert len(CASES) - len(raised) > 150
    assert {"ParseError", "ValueError", "IndexError", "RuntimeError"} == set(raised)


@pytest.mark.parametrize("argument", [b"y = A(x)", None, 3, "y = A(\ud800)"])
@pytest.mark.parametrize("function", ["parse_node", "parse_graph", "parse_function", "parse_model"])
def test_what_is_no_text(function: str, argument: Any, tmp_path: Path) -> None:
    assert_same(lambda onnx, _: getattr(onnx.parser, function)(argument), tmp_path)


@pytest.mark.parametrize("levels", [1, 40, 48, 49, 60, 500])
def test_deep_types(levels: int, tmp_path: Path) -> None:
    text = "y = A<a = " + "seq(" * levels + "float" + ")" * levels + ">()"
    assert_same(lambda onnx, _: onnx.parser.parse_node(text), tmp_path)


@pytest.mark.parametrize("levels", [1, 30, 33, 34, 60, 500])
def test_deep_graphs(levels: int, tmp_path: Path) -> None:
    text = "g()=>(){" + "=A<a=g()=>(){" * levels + "}>()" * levels + "}"
    assert_same(lambda onnx, _: onnx.parser.parse_graph(text), tmp_path)


def test_same_interface() -> None:
    for name in ("parse_model", "parse_graph", "parse_function", "parse_node"):
        expected = inspect.signature(getattr(real.parser, name)).parameters
        assert list(inspect.signature(getattr(ours.parser, name)).parameters) == list(expected)
    bases = [kind.__name__ for kind in ours.parser.ParseError.__mro__]
    assert bases == [kind.__name__ for kind in real.parser.ParseError.__mro__]


def test_errors_carry_our_explanation() -> None:
    with pytest.raises(ours.parser.ParseError, match=r"line 1, column 8\); .*\n.*\n *\^") as caught:
        ours.parser.parse_node("y = A (")
    assert isinstance(caught.value.__cause__, TextError)
