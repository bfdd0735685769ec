"""Models with functions, as text, for the tests of the inliner."""

HEAD = '<ir_version: 8, opset_import: ["" : 17, "local" : 1]>\n'
LOCAL = '\n<domain: "local", opset_import: ["" : 17, "local" : 1]>\n'
CALL = HEAD + "g (float[N] X) => (float[N] Y) { Y = local.f (X) }" + LOCAL


def with_functions(body: str, *others: str) -> str:
    """A model with this graph and these local functions."""
    return HEAD + body + "".join(LOCAL + other for other in others)


def chain_of_calls(length: int) -> str:
    """A model with this many functions, each of which calls the next."""
    calls = [f"f{i} (x) => (y) {{ y = local.f{i + 1} (x) }}" for i in range(length - 1)]
    last = f"f{length - 1} (x) => (y) {{ y = Relu (x) }}"
    return with_functions("g (float[N] X) => (float[N] Y) { Y = local.f0 (X) }", *calls, last)


BASIC = "f (x) => (y) { t = Relu (x) y = Abs (t) }"
TEXTS = {
    "one call": CALL + BASIC,
    "no function": HEAD + "g (float[N] X) => (float[N] Y) { Y = Relu (X) }",
    "unused function": with_functions("g (float[N] X) => (float[N] Y) { Y = Relu (X) }", BASIC),
    "unknown function": CALL + "h (x) => (y) { y = Relu (x) }",
    "called twice": with_functions(
        "g (float[N] X) => (float[N] Y) { T = local.f (X) Y = local.f (T) }", BASIC
    ),
    "calls between": with_functions(
        "g (float[N] X) => (float[N] Y) "
        "{ A = Neg (X) B = local.f (A) C = Neg (B) Y = local.f (C) }",
        BASIC,
    ),
    "nested": CALL
    + "f (x) => (y) { t = local.h (x) y = local.h (t) }"
    + LOCAL
    + "h (x) => (y) { t = Relu (x) y = Abs (t) }",
    "three levels": CALL
    + "f (x) => (y) { t = local.h (x) y = Add (t, x) }"
    + LOCAL
    + "h (x) => (y) { t = local.k (x) y = Mul (t, t) }"
    + LOCAL
    + "k (x) => (y) { t = Neg (x) y = local.m (t) }"
    + LOCAL
    + "m (x) => (y) { y = Abs (x) }",
    "defined before use": HEAD
    + "g (float[N] X) => (float[N] Y) { Y = local.h (X) }"
    + LOCAL
    + BASIC
    + LOCAL
    + "h (x) => (y) { y = local.f (x) }",
    "name clash": with_functions(
        "g (float[N] X) => (float[N] Y) { t__1 = Neg (X) T = local.f (t__1) t__2 = Abs (T) "
        "Y = local.f (t__2) }",
        BASIC,
    ),
    "repeated name clash": with_functions(
        "g (float[N] X) => (float[N] Y) { t__1 = Neg (X) t__1_0 = Neg (t__1) t__1_1 = Neg (t__1_0) "
        "T = local.f (t__1_1) U = local.f (T) Y = local.f (U) }",
        "f (x) => (y) { t = Relu (x) u = Abs (t) y = Neg (u) }",
    ),
    "node names": with_functions(
        "g (float[N] X) => (float[N] Y) { [call] T = local.f (X) [t__2] Y = local.f (T) }",
        "f (x) => (y) { [first] t = Relu (x) [t] y = Abs (t) }",
    ),
    "node name is a value name": with_functions(
        "g (float[N] X) => (float[N] Y) { [a__1] T = Neg (X) Y = local.f (T) }",
        "f (x) => (y) { [a] a = Relu (x) [a] y = Abs (a) }",
    ),
    "initializer of the graph": HEAD
    + "g (float[2] X) => (float[2] Y) <float[2] t__1 = {1, 2}> { Y = local.f (X, t__1) }"
    + LOCAL
    + "f (x, w) => (y) { t = Add (x, w) y = Mul (t, w) }",
    "missing last input": with_functions(
        "g (float[N] X) => (float[N] Y) { Y = local.f (X) }",
        "f (x, w) => (y) { y = Clip (x, w) }",
    ),
    "empty input": with_functions(
        "g (float[N] X) => (float[N] Y) { Y = local.f (X, , X) }",
        "f (x, a, b) => (y) { y = Clip (x, a, b) }",
    ),
    "too many inputs": with_functions(
        "g (float[N] X) => (float[N] Y) { Y = local.f (X, X) }", BASIC
    ),
    "too many outputs": with_functions(
        "g (float[N] X) => (float[N] Y) { Y, Z = local.f (X) }", BASIC
    ),
    "missing last output": with_functions(
        "g (float[N] X) => (float[N] Y) { Y = local.f (X) }",
        "f (x) => (y, z) { y = Relu (x) z = Abs (y) }",
    ),
    "missing first output": with_functions(
        "g (float[N] X) => (float[N] Y) { , Y = local.f (X) }",
        "f (x) => (y, z) { y = Relu (x) z = Abs (y) }",
    ),
    "no arguments": with_functions(
        "g (float[N] X) => (float[1] Y) { Y = local.f () }",
        "f () => (y) { y = Constant <value = float[1] {1}> () }",
    ),
    "input is output": with_functions(
        "g (float[N] X) => (float[N] Y) { T = local.f (X) Y = Relu (T) }", "f (x) => (x) { }"
    ),
    "same argument twice": with_functions(
        "g (float[N] X) => (float[N] Y) { Y = local.f (X, X) }",
        "f (a, b) => (y) { y = Add (a, b) }",
    ),
    "body reads an outer name": CALL + "f (x) => (y) { y = Add (x, X) }",
    "body reads an unknown name": CALL + "f (x) => (y) { y = Add (x, outside) }",
    "body makes an argument's name": CALL + "f (x) => (y) { X = Relu (x) y = Add (x, X) }",
    "empty body": CALL + "f (x) => (y) { }",
    "body makes a value twice": CALL + "f (x) => (y) { t = Relu (x) t = Abs (t) y = Neg (t) }",
    "attribute given": with_functions(
        "g (float[N] X) => (float[N] Y) { Y = local.f <a = 0.5> (X) }",
        "f <a> (x) => (y) { y = LeakyRelu <alpha: float = @a> (x) }",
    ),
    "attribute missing": with_functions(
        "g (float[N] X) => (float[N] Y) { Y = local.f (X) }",
        "f <a> (x) => (y) { y = LeakyRelu <alpha: float = @a> (x) }",
    ),
    "attribute with a default": with_functions(
        "g (float[N] X) => (float[N] Y) { T = local.f (X) Y = local.f <a = 0.25> (T) }",
        "f <a: float = 0.5> (x) => (y) { y = LeakyRelu <alpha: float = @a> (x) }",
    ),
    "attribute passed on": with_functions(
        "g (float[N] X) => (float[N] Y) { Y = local.f <a = 0.5> (X) }",
        "f <a> (x) => (y) { t = local.h <b: float = @a> (x) y = local.h (t) }",
        "h <b> (x) => (y) { y = LeakyRelu <alpha: float = @b> (x) }",
    ),
    "several attributes": with_functions(
        "g (float[N] X) => (float[N] Y) { Y = local.f <b = 2, a = 1, c = 3> (X) }",
        "f <a, b> (x) => (y) { y = Some <q: int = @b, r: int = @zz, s = 4, p: int = @a> (x) }",
    ),
    "attribute not declared": with_functions(
        "g (float[N] X) => (float[N] Y) { Y = local.f <alpha = 0.5> (X) }",
        "f (x) => (y) { y = LeakyRelu <alpha: float = @alpha> (x) }",
    ),
    "attribute in a branch of the body": with_functions(
        "g (bool C, float[N] X) => (float[N] Y) { Y = local.f <a = 0.5> (C, X) }",
        "f <a> (c, x) => (y) { y = If (c) <"
        "then_branch = p () => (q) { q = LeakyRelu <alpha: float = @a> (x) },"
        "else_branch = p () => (q) { q = Elu <alpha: float = @b> (x) }> }",
    ),
    "call in a branch": with_functions(
        "g (bool C, float[N] X) => (float[N] Y) { Y = If (C) <"
        "then_branch = p () => (float[N] q) { T = Neg (X) q = local.f (T) },"
        "else_branch = p () => (float[N] q) { q = local.f (X) }> }",
        BASIC,
    ),
    "call in a nested branch": with_functions(
        "g (bool C, float[N] X) => (float[N] Y) { Z = local.f (X) Y = If (C) <"
        "then_branch = p () => (float[N] q) { q = If (C) <"
        "then_branch = r () => (float[N] s) { s = local.f (Z) },"
        "else_branch = r () => (float[N] s) { t__3 = Abs (X) s = local.f (t__3) }> },"
        "else_branch = p () => (float[N] q) { q = local.f (X) }> W = local.f (Y) }",
        BASIC,
    ),
    "body with a branch": with_functions(
        "g (bool C, float[N] X) => (float[N] Y) { T = local.f (C, X) Y = local.f (C, T) }",
        "f (c, x) => (y) { t = Neg (x) y = If (c) <"
        "then_branch = p () => (q) { s = Add (x, t) q = Relu (s) },"
        "else_branch = p () => (q) { s = Mul (x, t) q = local.h (s) }> }",
        "h (x) => (y) { t = Sqrt (x) y = Exp (t) }",
    ),
    "branch hides a name of the body": with_functions(
        "g (bool C, float[N] X) => (float[N] Y) { Y = local.f (C, X) }",
        "f (c, x) => (y) { t = Neg (x) u = If (c) <"
        "then_branch = p () => (t) { t = Add (x, x) },"
        "else_branch = p () => (y) { y = Mul (t, t) }> y = Add (t, u) }",
    ),
    "branch with initializers": with_functions(
        "g (bool C, float[N] X) => (float[N] Y) { Y = local.f (C, X) }",
        "f (c, x) => (y) { y = If (c) <"
        "then_branch = p () => (float[N] q) <float[1] w = {2}> { q = Add (x, w) },"
        "else_branch = p () => (float[N] q) <float[1] w = {3}, float[N] s> "
        "{ s = Mul (x, w) q = Neg (s) }> }",
    ),
    "branch gives back what it gets": with_functions(
        "g (bool C, float[N] X) => (float[N] Y) { Y = local.f (C, X) }",
        "f (c, x) => (y) { y = If (c) <"
        "then_branch = p () => (x) { }, else_branch = p () => (q) { q = Neg (x) }> }",
    ),
    "body with a loop": with_functions(
        "g (int64 n, bool C, float[N] X) => (float[N] Y) { Y = local.f (n, C, X) }",
        "f (n, c, x) => (y) { y = Loop (n, c, x) <body = step (int64 i, bool go, float[N] s)"
        " => (bool go, float[N] z) { z = local.h (s, x) }> }",
        "h (a, b) => (r) { r = Add (a, b) }",
    ),
    "graph as an attribute": with_functions(
        "g (bool C, float[N] X) => (float[N] Y) { Y = local.f <yes = p () => (float[N] q)"
        " { q = local.h (X) }> (C, X) }",
        "f <yes> (c, x) => (y) { t = Neg (x) y = If (c) <then_branch: graph = @yes,"
        " else_branch = p () => (q) { q = Relu (t) }> }",
        "h (x) => (y) { y = Abs (x) }",
    ),
    "graph attribute reads a name of the body": with_functions(
        "g (bool C, float[N] X) => (float[N] Y) { Y = local.f <yes = p () => (float[N] t)"
        " { x = Neg (X) t = Relu (x) }> (C, X) }",
        "f <yes> (c, x) => (y) { t = Neg (x) u = If (c) <then_branch: graph = @yes,"
        " else_branch = p () => (q) { q = Relu (t) }> y = Add (t, u) }",
    ),
    "function calls itself through a graph attribute": with_functions(
        "g (bool C, float[N] X) => (float[N] Y) { Y = local.f <b = p () => (float[N] q) {"
        " q = local.f <b = r () => (float[N] s) { s = Abs (X) }> (C, X) }> (C, X) }",
        "f <b> (c, x) => (y) { y = If (c) <then_branch: graph = @b, else_branch: graph = @b> }",
    ),
    "domain in two spellings": HEAD
    + "g (float[N] X) => (float[N] Y) { T = ai.onnx.f (X) Y = f (T) }"
    + '\n<domain: "", opset_import: ["" : 17]>\nf (x) => (y) { y = Relu (x) }',
    "function replaces an operator": HEAD
    + "g (float[N] X) => (float[N] Y) { Y = Softplus (X) }"
    + '\n<domain: "", opset_import: ["" : 17]>\nSoftplus (x) => (y) { y = Exp (x) }',
    "two domains": '<ir_version: 8, opset_import: ["" : 17, "p" : 1, "q" : 2]>\n'
    + "g (float[N] X) => (float[N] Y) { T = p.f (X) Y = q.f (T) }"
    + '\n<domain: "p", opset_import: ["" : 17]>\nf (x) => (y) { y = Relu (x) }'
    + '\n<domain: "q", opset_import: ["" : 17]>\nf (x) => (y) { y = Abs (x) }',
    "calls itself": CALL + "f (x) => (y) { y = local.f (x) }",
    "two call each other": CALL
    + "f (x) => (y) { y = local.h (x) }"
    + LOCAL
    + "h (x) => (y) { y = local.f (x) }",
    "unused cycle": with_functions(
        "g (float[N] X) => (float[N] Y) { Y = Relu (X) }", "f (x) => (y) { y = local.f (x) }"
    ),
    "cycle through a branch": with_functions(
        "g (bool C, float[N] X) => (float[N] Y) { Y = local.f (C, X) }",
        "f (c, x) => (y) { y = If (c) <then_branch = p () => (q) { q = local.f (c, x) },"
        " else_branch = p () => (q) { q = Neg (x) }> }",
    ),
    "defined twice": CALL + BASIC + LOCAL + BASIC,
    "calls in a square": CALL
    + "f (x) => (y) { a = local.p (x) b = local.q (x) y = Add (a, b) }"
    + LOCAL
    + "p (x) => (y) { y = local.r (x) }"
    + LOCAL
    + "q (x) => (y) { y = local.r (x) }"
    + LOCAL
    + "r (x) => (y) { t = Neg (x) y = Abs (t) }",
}
MISMATCHES = {
    "older body": (17, 16, "t = Relu (x) y = Abs (t)"),
    "newer body": (16, 17, "t = Relu (x) y = Abs (t)"),
    "axes become an input": (13, 12, "y = Squeeze <axes = [0]> (x)"),
    "axes become an attribute": (12, 13, "a = Constant <value_ints = [0]> () y = Squeeze (x, a)"),
    "softmax changes": (13, 12, "t = Neg (x) y = Softmax <axis = 1> (t)"),
    "sum of three": (8, 7, "t = Sum (x, x, x) y = Relu (t)"),
    "operator is unknown": (17, 16, "y = NoSuchOperator (x)"),
    "too old": (17, 1, "y = Relu (x)"),
    "same version": (17, 17, "y = Relu (x)"),
    "nested call": (17, 16, "t = Relu (x) y = local.h (t)"),
    "constant": (17, 16, "c = Constant <value_float = 2.0> () y = Mul (x, c)"),
}


IMPORTS = {
    "custom domain differs": ('["" : 17, "local" : 1, "d" : 1]', '["" : 17, "d" : 2]'),
    "both differ": ('["" : 17, "local" : 1, "d" : 1]', '["" : 16, "d" : 2]'),
    "two spellings agree": ('["ai.onnx" : 17, "local" : 1]', '["" : 17]'),
    "two spellings differ": ('["ai.onnx" : 17, "local" : 1]', '["" : 16]'),
    "function imports more": ('["" : 17, "local" : 1]', '["" : 17, "d" : 4]'),
    "function imports nothing": ('["" : 17, "local" : 1]', "[]"),
    "model imports nothing": ("[]", '["" : 17]'),
    "model contradicts itself": ('["" : 17, "" : 18, "d" : 1]', '["" : 17, "d" : 2]'),
    "function contradicts itself": ('["" : 17, "local" : 1]', '["" : 17, "" : 16]'),
}


SCHEMA_BODIES = {
    "Softsign": "Y = Softsign (X)",
    "default attribute": "Y = LeakyRelu (X)",
    "given attribute": "Y = LeakyRelu <alpha = 0.25> (X)",
    "twice": "T = Softplus (X) Y = Softplus (T)",
    "context": "Y = CastLike (X, X)",
    "context after others": "T = Softplus (X) U = Elu <alpha = 0.5> (T) Y = CastLike (U, X)",
    "mean variance": "Y = MeanVarianceNormalization <axes = [0]> (X)",
    "layer norm": "S = Constant <value = float[4] {1, 1, 1, 1}> () Y = LayerNormalization (X, S)",
    "clip": "L = Constant <value_float = 0.0> () Y = Clip (X, L)",
    "clip without minimum": "L = Constant <value_float = 1.0> () Y = Clip (X, , L)",
    "reduce": "Y = ReduceSumSquare <keepdims = 1> (X)",
    "softmax": "Y = Softmax <axis = 0> (X)",
    "log softmax": "Y = LogSoftmax <axis = -1> (X)",
    "cross entropy": "L = Constant <value_ints = [1]> () E = Unsqueeze (X, Z)"
    ' Y = SoftmaxCrossEntropyLoss <reduction = "mean"> (E, L)',
    "greater or equal": "B = GreaterOrEqual (X, X) Y = Cast <to = 1> (B)",
    "not a function": "Y = Relu (X)",
    "unknown operator": "Y = NoSuch (X)",
    "unknown domain": "Y = other.Softsign (X)",
    "long domain name": "Y = ai.onnx.Softsign (X)",
    "in a branch": "F = Constant <value_float = 1.0> () B = Greater (F, F)"
    " Y = If (B) <then_branch = p () => (float[4] q)"
    " { q = Softsign (X) }, else_branch = p () => (float[4] q) { q = Neg (X) }>",
    "context in a branch": "F = Constant <value_float = 1.0> () B = Greater (F, F)"
    " Y = If (B) <then_branch = p () => (float[4] q)"
    " { k = Neg (X) q = CastLike (k, X) }, else_branch = p () => (float[4] q) { q = Neg (X) }>",
    "in a function": "Y = local.f (X)",
    "thresholded": "T = ThresholdedRelu <alpha = 2.0> (X) Y = HardSigmoid <alpha = 0.1> (T)",
    "prelu": "S = Constant <value_floats = [0.5]> () Y = PRelu (X, S)",
    "hard swish": "Y = HardSwish (X)",
    "mish": "Y = Mish (X)",
    "sequence map": "Q = SequenceConstruct (X, X) Y = SequenceMap <body = p (float[4] i)"
    " => (float[4] j) { j = Neg (i) }> (Q)",
    "range": "A = Constant <value_float = 0.0> () B = Constant <value_float = 4.0> ()"
    " C = Constant <value_float = 1.0> () Y = Range (A, B, C)",
}
