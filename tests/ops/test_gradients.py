"""Gradients by rule against finite differences, and the ways a Gradient node can be used."""

import re

import numpy as np
import pytest
from onnx import parser

from sardonyx.errors import SardonyxError, UnsupportedError
from sardonyx.ops.build import Builder
from sardonyx.ops.evaluate import Evaluator
from sardonyx.ops.gradients import RULES
from sardonyx.ops.replace import replace_node
from sardonyx.ops.training import Gradient
from tests.ops.one_node import inferred, load, same

DRAW = np.random.default_rng(0)


def text_model(body, opset=24):
    """A model from text, whose graph may use Gradient."""
    header = f'<ir_version: 10, opset_import: ["": {opset}, "ai.onnx.preview.training": 1]>'
    return load(parser.parse_model(f"{header}\n{body}").SerializeToString())


def run(model, **inputs):
    return Evaluator(model).run(None, inputs)


def check(body, inputs, *, differentiate=None, opset=24, tolerance=1e-6):
    """Compare the gradient of a body's `y` with finite differences, for each float input.

    `body` is text between the braces; inputs are given in double precision.
    """
    names = differentiate or [name for name, item in inputs.items() if item.dtype == np.float64]
    others = [name for name in inputs if name not in names]
    kinds = {np.float64: "double", np.int64: "int64", np.bool_: "bool"}
    formals = ", ".join(
        f"{kinds[item.dtype.type]}[{','.join(map(str, item.shape))}] {name}"
        for name, item in inputs.items()
    )
    listed = ", ".join(f'"{name}"' for name in names)
    zs = ", zs = [" + ", ".join(f'"{name}"' for name in others) + "]" if others else ""
    results = ", ".join(f"d_{name}" for name in names)
    typed = ", ".join(f"double d_{name}" for name in names)
    gradient = (
        f'{results} = ai.onnx.preview.training.Gradient <xs = [{listed}], y = "y"{zs}> '
        f"({', '.join([*names, *others])})"
    )
    model = text_model(f"g ({formals}) => (double y, {typed}) {{ {body} {gradient} }}", opset)
    evaluator = Evaluator(model)
    _, *gradients = evaluator.run(None, inputs)
    for name, found in zip(names, gradients, strict=True):
        assert found.shape == inputs[name].shape
        np.testing.assert_allclose(
            found, differences(evaluator, inputs, name), rtol=tolerance, atol=tolerance
        )


def differences(evaluator, inputs, name, step=1e-5):
    """The gradient of the sum of y by central differences."""
    x = inputs[name]
    result = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        sums = []
        for sign in (1, -1):
            moved = x.copy()
            moved[index] += sign * step
            (y,) = evaluator.run(["y"], inputs | {name: moved})
            sums.append(y.sum())
        result[index] = (sums[0] - sums[1]) / (2 * step)
    return result


def draw(*shape, low=-1.0, high=1.0):
    """Numbers that keep away from each other and from 0."""
    size = int(np.prod(shape))
    grid = np.linspace(low, high, size + 2)[1:-1] + 0.003
    return np.array(DRAW.permutation(grid).reshape(shape))


WEIGHT = "w = Constant <value = double[2,3] {0.5, -1.5, 2.0, 0.25, 1.0, -0.75}> () y = Mul(w, h)"
UNARY = [
    "Abs", "Acos", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Celu", "Cos", "Cosh", "Elu", "Erf",
    "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish", "Identity", "LeakyRelu", "LogSoftmax",
    "Mish", "Neg", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Sin", "Sinh",
    "Softmax", "Softplus", "Softsign", "Swish", "Tan", "Tanh",
]  # fmt: skip


@pytest.mark.parametrize("op_type", UNARY)
def test_unary(op_type):
    check(f"h = {op_type}(x) {WEIGHT}", {"x": draw(2, 3)})


@pytest.mark.parametrize("op_type", ["Log", "Sqrt", "Acosh"])
def test_unary_of_positive_numbers(op_type):
    check(f"h = {op_type}(x) {WEIGHT}", {"x": draw(2, 3, low=1.1, high=3.0)})


@pytest.mark.parametrize(
    "op_type", ["Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "Mean", "PRelu"]
)
@pytest.mark.parametrize("shape", [(2, 3), (3,), (1, 3), (2, 1), ()])
def test_binary_with_broadcasting(op_type, shape):
    check(f"h = {op_type}(a, b) {WEIGHT}", {"a": draw(2, 3), "b": draw(*shape, low=1.0, high=1.7)})
    if op_type != "PRelu":
        check(f"h = {op_type}(b, a) {WEIGHT}", {"a": draw(2, 3), "b": draw(*shape, low=-0.9)})


def test_many_inputs():
    inputs = {name: draw(2, 3) * scale for name, scale in (("a", 1.0), ("b", 1.1), ("c", 0.9))}
    for op_type in ("Max", "Min", "Sum", "Mean"):
        check(f"h = {op_type}(a, b, c) {WEIGHT}", inputs)


def test_power():
    base, exponent = draw(2, 3, low=0.2, high=2.0), draw(3, low=-1.0, high=3.0)
    check(f"h = Pow(a, b) {WEIGHT}", {"a": base, "b": exponent})
    check(f"two = Constant<value = int64 {{2}}>() h = Pow(a, two) {WEIGHT}", {"a": draw(2, 3)})
    check(f"zero = Constant<value = double {{0.0}}>() h = Pow(a, zero) {WEIGHT}", {"a": draw(2, 3)})


def test_choices():
    condition = np.array([[True, False, True], [False, False, True]])
    check(f"h = Where(c, a, b) {WEIGHT}", {"c": condition, "a": draw(2, 3), "b": draw(3)})
    check("low = Constant<value = double {-0.5}>() high = Constant<value = double {0.4}>()"
          f"h = Clip(a, low, high) {WEIGHT}", {"a": draw(2, 3)})  # fmt: skip
    check(
        f"high = Constant<value = double {{0.4}}>() h = Clip(a, , high) {WEIGHT}", {"a": draw(2, 3)}
    )


@pytest.mark.parametrize("keep", [0, 1])
@pytest.mark.parametrize("axes", [None, [1], [0, -1]])
@pytest.mark.parametrize(
    "op_type",
    ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceSumSquare", "ReduceL2",
     "ReduceLogSumExp", "ReduceL1", "ReduceLogSum"],
)  # fmt: skip
def test_reductions(op_type, axes, keep):
    shape = (2, 3, 2)
    kept = [i for i in range(3) if axes is not None and i not in [axis % 3 for axis in axes]]
    size = [shape[i] if i in kept else 1 for i in range(3)] if keep else [shape[i] for i in kept]
    weight = np.linspace(0.5, 1.5, int(np.prod(size)) if size else 1)
    given = "" if axes is None else f"axes = Constant<value_ints = {axes}>() "
    argument = "" if axes is None else ", axes"
    values = ", ".join(map(str, weight))
    dims = f"[{','.join(map(str, size))}]" if size else ""
    check(f"{given} h = {op_type}<keepdims = {keep}>(x{argument}) "
          f"w = Constant<value = double{dims} {{{values}}}>() y = Mul(w, h)",
          {"x": draw(*shape, low=0.1, high=2.0)})  # fmt: skip


@pytest.mark.parametrize(
    "body",
    [
        "s = Constant<value_ints = [3, 2]>() h = Reshape(x, s) y = Mul(h, h)",
        "h = Flatten(x) y = Mul(h, h)",
        "h = Transpose(x) y = MatMul(h, x)",
        "h = Transpose<perm = [1, 0]>(x) y = MatMul(h, x)",
        "a = Constant<value_ints = [1]>() h = Unsqueeze(x, a) y = Mul(h, x)",
        "a = Constant<value_ints = [1]>() u = Unsqueeze(x, a) h = Squeeze(u, a) y = Mul(h, x)",
        "s = Constant<value_ints = [4, 2, 3]>() h = Expand(x, s) y = Mul(h, h)",
        "h = Concat<axis = 1>(x, x, x) y = Mul(h, h)",
        "h = Concat<axis = -1>(x) y = Mul(h, h)",
        "a, b, c = Split<axis = 1, num_outputs = 3>(x) y = Mul(a, c)",
        "i = Constant<value = int64[2,2] {0, 2, 2, -1}>() h = Gather<axis = 1>(x, i) y = Mul(h, h)",
        "i = Constant<value = int64[2,2] {0, 2, 2, 1}>() h = GatherElements<axis = 1>(x, i) "
        "y = Mul(h, h)",
        "i = Constant<value = int64[2,2] {0, 2, 1, 1}>() h = GatherND(x, i) y = Mul(h, h)",
        "s = Constant<value_ints = [2]>() e = Constant<value_ints = [-10]>() "
        "a = Constant<value_ints = [1]>() t = Constant<value_ints = [-2]>() "
        "h = Slice(x, s, e, a, t) y = Mul(h, h)",
        "p = Constant<value_ints = [1, 2, 0, 1]>() v = Constant<value = double {3.0}>() "
        "h = Pad(x, p, v) y = Mul(h, h)",
        "p = Constant<value_ints = [1, 1, 0, 2]>() h = Pad<mode = \"reflect\">(x, p) y = Mul(h, h)",
        "r = Constant<value_ints = [2, 3]>() h = Tile(x, r) y = Mul(h, h)",
        "h = Trilu(x) y = Mul(h, h)",
        "c = Constant<value = bool[2] {0, 1}>() h = Compress<axis = 0>(x, c) y = Mul(h, h)",
        "a = Constant<value = int64 {1}>() h = CumSum(x, a) y = Mul(h, h)",
        "a = Constant<value = int64 {0}>() h = CumSum<reverse = 1, exclusive = 1>(x, a) "
        "y = Mul(h, x)",
        "i = Constant<value = int64[1,2] {0, 2}>() u = Constant<value = double[1,2] {5.0, 6.0}>() "
        "h = ScatterElements<axis = 1>(x, i, u) y = Mul(h, h)",
        "i = Constant<value = int64[2,1] {0, 0}>() h = ScatterND<reduction = \"add\">(x, i, x) "
        "y = Mul(h, h)",
        "i = Constant<value = int64[1,1] {1}>() s = Constant<value_ints = [0]>() "
        "u = ReduceMax<keepdims = 0>(x, s) v = Unsqueeze(u, s) h = ScatterND(x, i, v) "
        "y = Mul(h, h)",
        "l = Constant<value = int64[2] {3, 2}>() "
        "h = ReverseSequence<time_axis = 1, batch_axis = 0>(x, l) y = Mul(h, x)",
        "f = Constant<value = double {1.0}>() h = CastLike(x, f) y = Mul(h, x)",
        "h = Dropout(x) y = Mul(h, x)",
        "f = Cast<to = 1>(x) h = Cast<to = 11>(f) y = Mul(h, x)",
        "n = Cast<to = 7>(x) f = Cast<to = 11>(n) y = Add(f, x)",
    ],
)  # fmt: skip
def test_movement(body):
    tolerance = 1e-2 if "Cast<to = 1>" in body else 1e-6
    check(body, {"x": draw(2, 3)}, tolerance=tolerance)


def test_depth_and_space():
    check("h = DepthToSpace<blocksize = 2>(x) y = Mul(h, h)", {"x": draw(1, 4, 1, 2)})
    check("h = SpaceToDepth<blocksize = 2>(x) y = Mul(h, h)", {"x": draw(1, 1, 2, 4)})


@pytest.mark.parametrize(
    "shapes",
    [((2, 3), (3, 2)), ((3,), (3,)), ((3,), (3, 2)), ((2, 3), (3,)), ((2, 2, 3), (3, 2)),
     ((2, 1, 2, 3), (3, 3, 1)), ((2, 2, 3), (3,)), ((3,), (2, 3, 2))],
)  # fmt: skip
def test_matmul(shapes):
    check("h = MatMul(a, b) y = Mul(h, h)", {"a": draw(*shapes[0]), "b": draw(*shapes[1])})


@pytest.mark.parametrize("flip_a", [0, 1])
@pytest.mark.parametrize("flip_b", [0, 1])
def test_gemm(flip_a, flip_b):
    inputs = {
        "a": draw(*((3, 2) if flip_a else (2, 3))),
        "b": draw(*((4, 3) if flip_b else (3, 4))),
        "c": draw(4),
    }
    flips = f"transA = {flip_a}, transB = {flip_b}, alpha = 0.5, beta = 2.0"
    check(f"h = Gemm<{flips}>(a, b, c) y = Mul(h, h)", inputs)
    del inputs["c"]
    check(f"h = Gemm<{flips}>(a, b) y = Mul(h, h)", inputs)


@pytest.mark.parametrize(
    ("attributes", "image", "filters"),
    [
        ("group = 1", (2, 2, 4, 3), (2, 2, 3, 2)),
        ("pads = [1, 0, 2, 1], strides = [2, 3]", (1, 2, 5, 6), (2, 2, 3, 2)),
        ("dilations = [2, 1], pads = [1, 1, 1, 1]", (1, 2, 6, 4), (2, 2, 2, 3)),
        ("group = 2, strides = [2, 2]", (2, 4, 2, 3), (4, 2, 2, 2)),
        ('auto_pad = "SAME_UPPER", strides = [2, 2]', (1, 1, 5, 4), (2, 1, 3, 2)),
        ('auto_pad = "SAME_LOWER"', (1, 1, 3, 4), (1, 1, 2, 2)),
        ('auto_pad = "VALID"', (1, 2, 4), (2, 2, 3)),
    ],
)
def test_conv(attributes, image, filters):
    inputs = {"x": draw(*image), "w": draw(*filters), "b": draw(filters[0])}
    check(f"h = Conv<{attributes}>(x, w, b) y = Mul(h, h)", inputs)


@pytest.mark.parametrize(
    ("attributes", "image", "filters"),
    [
        ("group = 1", (2, 2, 3, 2), (2, 3, 3, 2)),
        (
            "pads = [1, 0, 0, 1], strides = [2, 3], output_padding = [1, 2]",
            (1, 2, 3, 2),
            (2, 1, 3, 3),
        ),
        ("group = 2, dilations = [2, 1]", (1, 4, 2, 3), (4, 2, 2, 2)),
    ],
)
def test_conv_transpose(attributes, image, filters):
    inputs = {"x": draw(*image), "w": draw(*filters)}
    check(f"h = ConvTranspose<{attributes}>(x, w) y = Mul(h, h)", inputs)


@pytest.mark.parametrize(
    "attributes",
    [
        "kernel_shape = [2, 2]",
        "kernel_shape = [3, 2], strides = [2, 1], pads = [1, 0, 1, 1]",
        'kernel_shape = [2, 2], strides = [2, 2], auto_pad = "SAME_UPPER"',
    ],
)
def test_pooling(attributes):
    inputs = {"x": draw(1, 2, 5, 4)}
    check(f"h = MaxPool<{attributes}>(x) y = Mul(h, h)", inputs)
    check(f"h = AveragePool<{attributes}>(x) y = Mul(h, h)", inputs)
    check(f"h = AveragePool<{attributes}, count_include_pad = 1>(x) y = Mul(h, h)", inputs)


def test_global_pooling():
    for op_type in ("GlobalAveragePool", "GlobalMaxPool"):
        check(f"h = {op_type}(x) y = Mul(h, h)", {"x": draw(2, 2, 2, 3)})


def test_normalization():
    x, scale, bias = draw(3, 2, 2), draw(2), draw(2)
    statistics = {"mean": draw(2), "variance": draw(2, low=0.5, high=2.0)}
    inputs = {"x": x, "scale": scale, "bias": bias, **statistics}
    check("h = BatchNormalization(x, scale, bias, mean, variance) y = Mul(h, h)", inputs)
    check("h, m, v = BatchNormalization<training_mode = 1>(x, scale, bias, mean, variance) "
          "y = Mul(h, x)", inputs, differentiate=["x", "scale", "bias"])  # fmt: skip
    check("h = LayerNormalization(x, scale, bias) y = Mul(h, x)",
          {"x": x, "scale": scale, "bias": bias}, tolerance=5e-3)  # fmt: skip


def test_losses_through_their_functions():
    scores, labels = draw(3, 4), np.array([0, 3, 1])
    check("y = SoftmaxCrossEntropyLoss(x, labels)", {"x": scores, "labels": labels})
    check('l = LogSoftmax<axis = 1>(x) y = NegativeLogLikelihoodLoss<reduction = "sum">(l, labels)',
          {"x": scores, "labels": labels})  # fmt: skip


def test_attention_through_its_function():
    inputs = {name: draw(1, 2, 3, 2) for name in ("q", "k", "v")}
    check("h = Attention<is_causal = 1>(q, k, v) y = Mul(h, h)", inputs, tolerance=1e-5)


def test_a_small_network():
    inputs = {"x": draw(2, 1, 4, 4), "w": draw(2, 1, 3, 3), "v": draw(8, 3)}
    check("""a = Conv<pads = [1, 1, 1, 1]>(x, w) b = Relu(a)
          c = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(b) d = Flatten(c) e = Gemm(d, v)
          y = SoftmaxCrossEntropyLoss(e, labels)""",
          inputs | {"labels": np.array([2, 0])},
          differentiate=["w", "v"], tolerance=1e-5)  # fmt: skip


def test_every_rule_is_tried_here():
    with open(__file__, encoding="utf-8") as file:
        words = set(re.findall(r"\w+", file.read()))
    assert set(RULES) <= words


def test_unconnected_inputs_have_no_gradient():
    model = text_model(
        "g (float[2] a, float[2] b) => (float[2] y, float[2] d_a, float[2] d_b) "
        "{ y = Neg(a) "
        'd_a, d_b = ai.onnx.preview.training.Gradient<xs = ["a", "b"], y = "y">(a, b) }'
    )
    _, d_a, d_b = run(model, a=np.float32([1, 2]), b=np.float32([np.nan, 1]))
    assert (d_a.tolist(), d_b.tolist()) == ([-1, -1], [0, 0])


def test_other_values_can_be_fed():
    model = text_model(
        "g (float[2] x, float[2] other) => (float[2] d) { h = Mul(x, x) y = Mul(h, x) "
        'd = ai.onnx.preview.training.Gradient<xs = ["x"], y = "y">(other) }'
    )
    (d,) = run(model, x=np.float32([1, 1]), other=np.float32([2, 3]))
    assert d.tolist() == [12, 27]


def test_gradients_of_intermediate_values_and_constants():
    model = text_model(
        "g (float[2] x) => (float[2] d_h, float[2] d_c) <float[2] c = {5.0, 7.0}> "
        "{ h = Exp(x) y = Mul(h, c) "
        'd_h, d_c = ai.onnx.preview.training.Gradient<xs = ["h", "c"], y = "y">(h, c) }'
    )
    d_h, d_c = run(model, x=np.float32([0, 1]))
    assert d_h.tolist() == [5, 7]
    np.testing.assert_allclose(d_c, np.exp([0, 1]), rtol=1e-6)


def test_constants_are_captured():
    for place in ("<float[2] c = {5.0, 7.0}> {", "{ c = Constant<value = float[2] {5.0, 7.0}>()"):
        model = text_model(
            f"g (float[2] x) => (float[2] d) {place} h = Mul(x, c) y = Mul(h, x) "
            'd = ai.onnx.preview.training.Gradient<xs = ["x"], y = "y">(x) }'
        )
        (expected,) = run(model, x=np.float32([1, 2]))
        assert expected.tolist() == [10, 28]
        node = next(node for node in model.graph.nodes if node.op_type == "Gradient")
        build = Builder(model.graph, 24, node)
        replace_node(node, list(Gradient.function(build, *node.inputs, xs=("x",), y="y", zs=None)))
        same(run(model, x=np.float32([1, 2])), [expected])


def test_gradients_inside_a_subgraph():
    model = text_model(
        "g (float[2] x, bool c) => (float[2] d) { h = Mul(x, x) "
        "d = If(c) <then_branch = t () => (float[2] e) { y = Mul(h, x) "
        'e = ai.onnx.preview.training.Gradient<xs = ["x"], y = "y">(x) }, '
        "else_branch = f () => (float[2] i) { i = Identity(x) }> }"
    )
    assert run(model, x=np.float32([1, 2]), c=np.array(True))[0].tolist() == [3, 12]


def test_gradients_of_gradients():
    model = text_model(
        "g (double[3] x) => (double[3] d, double[3] e, double[3] f) { h = Mul(x, x) y = Mul(h, h) "
        'd = ai.onnx.preview.training.Gradient<xs = ["x"], y = "y">(x) '
        'e = ai.onnx.preview.training.Gradient<xs = ["x"], y = "d">(x) '
        'f = ai.onnx.preview.training.Gradient<xs = ["x"], y = "e">(x) }'
    )
    x = np.array([1.0, 2.0, -1.5])
    d, e, f = run(model, x=x)
    np.testing.assert_allclose(d, 4 * x**3)
    np.testing.assert_allclose(e, 12 * x**2)
    np.testing.assert_allclose(f, 24 * x)


def test_second_order_through_a_network():
    check("a = MatMul(x, w) b = Tanh(a) c = Softmax(b) z = Mul(c, b) "
          'y = ai.onnx.preview.training.Gradient<xs = ["w"], y = "z", zs = ["x"]>(w, x)',
          {"w": draw(3, 2), "x": draw(2, 3)}, tolerance=1e-5)  # fmt: skip
    check("a = Conv(x, w) z = Mul(a, a) "
          'y = ai.onnx.preview.training.Gradient<xs = ["w"], y = "z", zs = ["x"]>(w, x)',
          {"w": draw(1, 1, 2, 2), "x": draw(1, 1, 3, 3)}, tolerance=1e-5)  # fmt: skip


def test_old_opsets_are_upgraded_first():
    check(
        "h = Softmax<axis = 1>(x) y = ReduceSum<axes = [1]>(h) z = Neg(y)",
        {"x": draw(2, 3)},
        opset=11,
    )


def test_single_and_half_precision_keep_their_type():
    for text, dtype in (("float", np.float32), ("float16", np.float16)):
        model = text_model(
            f"g ({text}[2] x) => ({text}[2] d) {{ h = Sigmoid(x) y = Mul(h, x) "
            'd = ai.onnx.preview.training.Gradient<xs = ["x"], y = "y">(x) }'
        )
        (d,) = run(model, x=np.array([0.5, -1], dtype))
        assert d.dtype == dtype


def test_dynamic_shapes_are_summed_at_run_time():
    """As a graph for unknown shapes: the function that Gradient stands for."""
    model = text_model(
        "g (double[n,k] a, double[m,k] b) => (double[n,k] d_a, double[m,k] d_b) { y = Mul(a, b) "
        'd_a, d_b = ai.onnx.preview.training.Gradient<xs = ["a", "b"], y = "y">(a, b) }'
    )
    expected = run(model, a=draw(2, 3), b=np.ones((1, 3)))
    node = next(node for node in model.graph.nodes if node.op_type == "Gradient")
    build = Builder(model.graph, 24, node)
    made = Gradient.function(build, *node.inputs, xs=("a", "b"), y="y", zs=None)
    replace_node(node, list(made))
    assert "Gradient" not in {node.op_type for node in model.graph.nodes}
    a = draw(2, 3)
    d_a, d_b = run(model, a=a, b=np.full((1, 3), 2.0))
    assert expected[0].shape == d_a.shape
    np.testing.assert_allclose(d_a, np.full((2, 3), 2.0))
    np.testing.assert_allclose(d_b, a.sum(0, keepdims=True))


def test_what_has_no_gradient_is_named():
    model = text_model(
        "g (float[2,2] x) => (float[2,2] d) { h = Det(x) y = Mul(h, x) "
        'd = ai.onnx.preview.training.Gradient<xs = ["x"], y = "y">(x) }'
    )
    with pytest.raises(UnsupportedError, match="Det has no gradient yet"):
        run(model, x=np.eye(2, dtype=np.float32))
    model = text_model(
        "g (float[2] x) => (float[2] d) { y = Neg(x) "
        'd = ai.onnx.preview.training.Gradient<xs = ["nowhere"], y = "y">(x) }'
    )
    with pytest.raises(SardonyxError, match="'nowhere'"):
        run(model, x=np.float32([1, 2]))


def test_dropout_in_training():
    model = text_model(
        "g (float[100] x) => (float[100] d) <float r = {0.5}, bool t = {1}> { y = Dropout(x, r, t) "
        'd = ai.onnx.preview.training.Gradient<xs = ["x"], y = "y">(x) }'
    )
    (d,) = run(model, x=np.ones(100, np.float32))
    assert set(d.tolist()) == {0, 2}


def test_inference_of_gradients():
    header = '<ir_version: 10, opset_import: ["": 24, "ai.onnx.preview.training": 1]>'
    body = """g (float[n,3] x, float[3] b) => (d_x, d_b) { y = Add(x, b)
        d_x, d_b = ai.onnx.preview.training.Gradient<xs = ["x", "b"], y = "y">(x, b) }"""
    content = parser.parse_model(f"{header} {body}").SerializeToString()
    assert inferred(content) == ["float[n,3]", "float[3]"]
