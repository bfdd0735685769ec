"""Models to join, as text, and how to join them."""

from typing import Any

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'

FIRST = (
    HEAD
    + """
first (float[N, 4] A0, float[N, 4] A1) => (float[N, 4] B0, float[N, 4] B1, float[N, 4] B2)
{
    B0 = Add (A0, A1)
    B1 = Sub (A0, A1)
    B2 = Mul (A0, A1)
}
"""
)
SECOND = (
    HEAD
    + """
second (float[N, 4] C0, float[N, 4] C1, float[N, 4] C2) => (float[N, 4] D0, float[N, 4] D1)
{
    t = Add (C0, C1)
    D0 = Relu (t)
    D1 = Sub (C2, C1)
}
"""
)
CHAIN = (
    HEAD
    + """
chain (float[N] x) => (float[N] y) <float[N] t, float[N] u>
{
    [n1] t = Relu (x)
    [n2] u = Abs (t)
    [n3] y = Neg (u)
}
"""
)
WEIGHTS = (
    HEAD
    + """
weights (float[2] x) => (float[2] y) <float[2] w = {1, 2}, float[2] v = {3, 4}, float[2] t>
{
    t = Add (x, w)
    y = Mul (t, v)
}
"""
)
SAME_OUTPUT_TWICE_USED = (
    HEAD
    + """
reuse (float[N] x) => (float[N] y, float[N] z)
{
    y = Relu (x)
    z = Abs (y)
}
"""
)
BRANCHES = (
    HEAD
    + """
branches (bool c, float[N] x) => (float[N] y)
{
    t = Relu (x)
    [choice] y = If (c) <
        then_branch = yes () => (float[N] r) { [inner] k = Add (t, x)
            r = Neg (k) },
        else_branch = no () => (float[N] r) { r = Mul (x, t) }
    >
}
"""
)
NESTED = (
    HEAD
    + """
nested (bool c, float[N] x) => (float[N] y) <float[1] w = {2}>
{
    y = If (c) <
        then_branch = yes () => (float[N] r) {
            r = If (c) <
                then_branch = deep () => (float[N] s) <float[1] v = {3}> {
                    q = Add (x, w)
                    s = Mul (q, v)
                },
                else_branch = flat () => (float[N] s) { s = Identity (x) }
            >
        },
        else_branch = no () => (float[N] r) { r = Neg (x) }
    >
}
"""
)
LOOP = (
    HEAD
    + """
loop (int64 n, bool c, float[N] x) => (float[N] y)
{
    y = Loop (n, c, x) <body = step (int64 i, bool go, float[N] s) => (bool on, float[N] z)
        { on = Identity (go)
          z = Add (s, x) }>
}
"""
)
FUNCTIONS = """<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
calls (float[N] x) => (float[N] y) { y = local.outer (x) }
<domain: "local", opset_import: ["" : 17, "local" : 1]>
outer (a) => (b) { t = local.inner (a)
    b = Relu (t) }
<domain: "local", opset_import: ["" : 17]>
inner (a) => (b) { b = Abs (a) }
"""
CALL_IN_BRANCH = """<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
g (bool c, float[N] x) => (float[N] y)
{
    y = If (c) <
        then_branch = yes () => (float[N] r) { r = local.f (x) },
        else_branch = no () => (float[N] r) { r = Neg (x) }
    >
}
<domain: "local", opset_import: ["" : 17]>
f (a) => (b) { b = Abs (a) }
"""
OTHER_FUNCTION = FUNCTIONS.replace("outer", "other").replace("inner", "helper")
METADATA = CHAIN.replace('["" : 17]', '["" : 17], metadata_props: ["k": "v", "shared": "1"]')
METADATA_TWO = CHAIN.replace('["" : 17]', '["" : 17], metadata_props: ["l": "w", "shared": "1"]')
METADATA_CLASH = CHAIN.replace('["" : 17]', '["" : 17], metadata_props: ["k": "other"]')
OLD_IR = CHAIN.replace("ir_version: 8", "ir_version: 7")
OLD_OPSET = CHAIN.replace('"" : 17', '"" : 16')
MORE_OPSETS = CHAIN.replace('"" : 17', '"" : 17, "ai.onnx.ml" : 3')
DOCUMENTED = CHAIN.replace("<ir_version", '<doc_string: "what it does", ir_version')

ALL = {name: text for name, text in globals().items() if name.isupper() and isinstance(text, str)}
ALL.pop("HEAD")

PAIR = [("B0", "C0"), ("B1", "C1"), ("B2", "C2")]
XY = [("y", "x")]
AB: dict[str, Any] = {"prefix1": "a/", "prefix2": "b/"}

MERGES: dict[str, tuple[str, str, Any, dict[str, Any]]] = {
    "full map": (FIRST, SECOND, PAIR, {}),
    "crossed map": (FIRST, SECOND, [("B0", "C1"), ("B1", "C0"), ("B2", "C2")], {}),
    "one output feeds all": (FIRST, SECOND, [("B0", "C0"), ("B0", "C1"), ("B0", "C2")], {}),
    "partial map": (FIRST, SECOND, [("B0", "C0")], {}),
    "empty map": (FIRST, SECOND, [], {}),
    "two sources for one input": (FIRST, SECOND, [("B0", "C0"), ("B1", "C0")], {}),
    "pairs as lists": (FIRST, SECOND, [list(pair) for pair in PAIR], {}),
    "pairs as a tuple": (FIRST, SECOND, tuple(PAIR), {}),
    "pairs as strings": (CHAIN, CHAIN, ["yx"], AB),
    "outputs chosen": (FIRST, SECOND, PAIR, {"outputs": ["D0"]}),
    "output of first chosen": (FIRST, SECOND, PAIR, {"outputs": ["B0", "D1"]}),
    "outputs in other order": (FIRST, SECOND, PAIR, {"outputs": ["D1", "D0", "B1"]}),
    "inputs chosen": (FIRST, SECOND, [("B0", "C0")], {"inputs": ["A0", "A1", "C1", "C2"]}),
    "too few inputs": (FIRST, SECOND, [("B0", "C0")], {"inputs": ["A0"]}),
    "first cut down": (FIRST, SECOND, PAIR[:1], {"outputs": ["D0"]}),
    "first cut down, prefixed": (FIRST, SECOND, PAIR[:1], {**AB, "outputs": ["b/D0", "b/D1"]}),
    "weights cut away": (WEIGHTS, SECOND, [("y", "C0")], {"outputs": ["D1"]}),
    "functions cut down": (FUNCTIONS, FIRST, [("y", "A0")], {"outputs": ["B1"]}),
    "unknown output": (FIRST, SECOND, PAIR, {"outputs": ["nothing"]}),
    "unknown input": (FIRST, SECOND, PAIR, {"inputs": ["nothing"]}),
    "empty choices": (FIRST, SECOND, PAIR, {"inputs": [], "outputs": []}),
    "inputs and outputs": (FIRST, SECOND, PAIR, {"inputs": ["A0", "A1"], "outputs": ["D1"]}),
    "choices need prefixed names": (
        FIRST,
        SECOND,
        PAIR,
        {**AB, "inputs": ["a/A0", "a/A1"], "outputs": ["b/D0"]},
    ),
    "choices without prefix": (FIRST, SECOND, PAIR, {**AB, "outputs": ["D0"]}),
    "unknown source": (FIRST, SECOND, [("zzz", "C0")], {}),
    "unknown target": (FIRST, SECOND, [("B0", "zzz")], {}),
    "inner value as source": (CHAIN, CHAIN, [("u", "x")], AB),
    "pair too short": (FIRST, SECOND, [("B0",)], {}),
    "pair too long": (FIRST, SECOND, [("B0", "C0", "D0")], {}),
    "map is None": (FIRST, SECOND, None, {}),
    "map is a number": (FIRST, SECOND, 7, {}),
    "map of numbers": (FIRST, SECOND, [(1, 2)], {}),
    "map of numbers, prefixed": (FIRST, SECOND, [(1, 2)], AB),
    "both prefixes": (FIRST, SECOND, PAIR, AB),
    "first prefix": (FIRST, SECOND, PAIR, {"prefix1": "p_"}),
    "second prefix": (FIRST, SECOND, PAIR, {"prefix2": "p_"}),
    "prefix in the map": (FIRST, SECOND, [("a/B0", "C0")], {"prefix1": "a/"}),
    "empty prefixes": (FIRST, SECOND, PAIR, {"prefix1": "", "prefix2": ""}),
    "prefix of wrong type": (FIRST, SECOND, PAIR, {"prefix1": 5}),
    "same model twice": (CHAIN, CHAIN, XY, {}),
    "same model twice, prefixed": (CHAIN, CHAIN, XY, AB),
    "same prefix for both": (CHAIN, CHAIN, XY, {"prefix1": "a/", "prefix2": "a/"}),
    "second only prefixed": (CHAIN, CHAIN, XY, {"prefix2": "a/"}),
    "value_info of joined value": (CHAIN, WEIGHTS, XY, AB),
    "weights": (WEIGHTS, WEIGHTS, XY, AB),
    "weights clash": (WEIGHTS, WEIGHTS, XY, {"prefix1": ""}),
    "second reuses its input": (CHAIN, SAME_OUTPUT_TWICE_USED, XY, AB),
    "output of first also used": (SAME_OUTPUT_TWICE_USED, CHAIN, XY, AB),
    "branch second": (CHAIN, BRANCHES, XY, AB),
    "branch second without prefix1": (CHAIN, BRANCHES, XY, {"prefix2": "b/"}),
    "branch first": (BRANCHES, CHAIN, XY, AB),
    "branches twice": (BRANCHES, BRANCHES, XY, AB),
    "nested second": (CHAIN, NESTED, XY, {"prefix1": "a/"}),
    "nested prefixed": (CHAIN, NESTED, XY, {"prefix2": "b/"}),
    "loop second": (CHAIN, LOOP, XY, AB),
    "loop first": (LOOP, CHAIN, XY, AB),
    "functions first": (FUNCTIONS, CHAIN, XY, {"prefix2": "b/"}),
    "functions second": (CHAIN, FUNCTIONS, XY, {"prefix1": "a/"}),
    "functions clash": (FUNCTIONS, FUNCTIONS, XY, {}),
    "functions clash, values do not": (
        FUNCTIONS,
        FUNCTIONS.replace("(float[N] x)", "(float[N] p)")
        .replace("(x)", "(p)")
        .replace("=> (float[N] y)", "=> (float[N] q)")
        .replace("{ y =", "{ q ="),
        [("y", "p")],
        {},
    ),
    "functions prefixed": (FUNCTIONS, FUNCTIONS, XY, AB),
    "functions of other names": (FUNCTIONS, OTHER_FUNCTION, XY, AB),
    "call in a branch": (CALL_IN_BRANCH, CHAIN, XY, {"prefix2": "b/"}),
    "call in a branch, prefixed": (CALL_IN_BRANCH, CHAIN, XY, AB),
    "metadata": (METADATA, METADATA_TWO, XY, AB),
    "metadata of one": (METADATA, CHAIN, XY, AB),
    "metadata clash": (METADATA, METADATA_CLASH, XY, AB),
    "other IR version": (CHAIN, OLD_IR, XY, AB),
    "other operator set": (CHAIN, OLD_OPSET, XY, AB),
    "more operator sets": (MORE_OPSETS, CHAIN, XY, AB),
    "more operator sets second": (CHAIN, MORE_OPSETS, XY, AB),
    "documented": (DOCUMENTED, DOCUMENTED, XY, AB),
    "named": (FIRST, SECOND, PAIR, {"name": "joined", "doc_string": "both"}),
    "empty name and text": (FIRST, SECOND, PAIR, {"name": "", "doc_string": ""}),
    "name of wrong type": (FIRST, SECOND, PAIR, {"name": 3}),
}
