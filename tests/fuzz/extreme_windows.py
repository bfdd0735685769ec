"""Operators over windows, signals and images, and products, as numbers tell them to."""

from collections.abc import Callable

import numpy as np

from tests.fuzz.maker import Maker
from tests.fuzz.values import FLOATS

Output = tuple[str, str]
COUNTS = (0, 1, 2, 3, 5)


def _window(maker: Maker, rank: int, wild: float = 0.06) -> dict[str, object]:
    """Attributes of windows, mostly small."""

    def few(among: tuple[int, ...], count: int) -> list[int]:
        return [maker.one(1.0) if maker.rng.random() < wild else maker.rng.choice(among)
                for _ in range(count)]  # fmt: skip

    given: dict[str, object] = {
        "strides": maker.maybe(lambda: few((1, 1, 2, 3), rank)),
        "dilations": maker.maybe(lambda: few((1, 1, 2), rank), 0.3),
    }
    if maker.rng.random() < 0.3:
        given["auto_pad"] = maker.rng.choice(("SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"))
    else:
        given["pads"] = maker.maybe(lambda: few((0, 0, 1, 2), 2 * rank))
    return given


def _kernel(maker: Maker, rank: int) -> list[int]:
    wild = 0.06
    return [maker.one(1.0) if maker.rng.random() < wild else maker.rng.choice((1, 2, 3))
            for _ in range(rank)]  # fmt: skip


def conv(maker: Maker) -> list[Output]:
    rank = maker.rng.choice((1, 2, 2, 2))
    kind = maker.rng.choice(("float32", "float32", "float32", "float16", "float64"))
    groups = maker.rng.choice((1, 1, 1, 2))
    image = maker.data(("b", 2, *("h", "w")[:rank]), kind, 0.1)
    op = maker.rng.choice(("Conv", "Conv", "ConvTranspose"))
    sizes = [maker.rng.choice((1, 2, 3)) for _ in range(rank)]
    first, second = (4, 2 // groups) if op == "Conv" else (2, 2)
    weights = maker.data((first, second, *sizes), kind, maker.rng.choice((0.0, 0.1)))
    given = _window(maker, rank)
    if maker.rng.random() < 0.2:
        given["group"] = maker.one()
    elif groups > 1:
        given["group"] = groups
    if op == "ConvTranspose" and maker.rng.random() < 0.3:
        given["output_padding"] = maker.some(rank, 0.1)
    return [(maker.node(op, image, weights, **given), kind)]


def pool(maker: Maker) -> list[Output]:
    rank = maker.rng.choice((1, 2, 2, 3))
    kind = maker.rng.choice(("float32", "float32", "float16", "float64"))
    image = maker.data((1, 2, *("h", "w", "d")[:rank]), kind, 0.1)
    op = maker.rng.choice(("MaxPool", "AveragePool", "LpPool"))
    given = _window(maker, rank)
    given["ceil_mode"] = maker.maybe(lambda: maker.rng.choice((0, 1)))
    if op == "AveragePool":
        given["count_include_pad"] = maker.maybe(lambda: maker.rng.choice((0, 1)))
    if op == "LpPool":
        given["p"] = maker.rng.choice((1, 2, 3, maker.one(0.2)))
    outputs = 2 if op == "MaxPool" and maker.rng.random() < 0.3 else 1
    found = maker.node(op, image, kernel_shape=_kernel(maker, rank), outputs=outputs, **given)
    return [(found[0], kind), (found[1], "int64")] if outputs == 2 else [(found, kind)]


def global_pool(maker: Maker) -> list[Output]:
    image = maker.data((1, 2, "h", "w"), "float32", 0.2)
    op = maker.rng.choice(("GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"))
    given = {"p": maker.one()} if op == "GlobalLpPool" else {}
    return [(maker.node(op, image, **given), "float32")]


def unpool(maker: Maker) -> list[Output]:
    image = maker.data((1, 1, "h", "w"), "float32")
    places = maker.data((1, 1, "h", "w"), "int64", 0.2)
    inputs = [image, places]
    if maker.rng.random() < 0.4:
        inputs.append(maker.whole(4, wild=0.2, among=(1, 1, 4, 6, 8)))
    given = {"kernel_shape": [2, 2], "strides": maker.maybe(lambda: maker.some(2, 0.2))}
    return [(maker.node("MaxUnpool", *inputs, **given), "float32")]


def resize(maker: Maker) -> list[Output]:
    rank = maker.rng.choice((1, 2, 4))
    kind = maker.rng.choice(("float32", "float32", "uint8", "int64", "float16"))
    image = maker.data(("h", "w") if rank == 2 else ("h",) if rank == 1 else (1, 1, "h", "w"), kind)
    mode = maker.rng.choice(("nearest", "linear", "cubic"))
    if kind in ("uint8", "int64"):
        mode = "nearest"
    place = maker.rng.choice((None, "asymmetric", "align_corners", "pytorch_half_pixel",
                              "half_pixel_symmetric"))  # fmt: skip
    given = {"mode": mode, "coordinate_transformation_mode": place,
             "keep_aspect_ratio_policy": None}  # fmt: skip
    if maker.rng.random() < 0.5:
        sizes = maker.whole(rank, wild=0.25, among=(1, 1, 2, 3, 5))
        if maker.rng.random() < 0.3:
            given["keep_aspect_ratio_policy"] = maker.rng.choice(("not_larger", "not_smaller"))
        return [(maker.node("Resize", image, "", "", sizes, **given), kind)]
    scales = [maker.rng.choice((0.5, 1.0, 2.0, 1.5, 1e30, 1e-30, 0.0, -1.0, float("nan")))
              if maker.rng.random() < 0.4 else 1.0 for _ in range(rank)]  # fmt: skip
    return [(maker.node("Resize", image, "", maker.constant(np.array(scales, np.float32)),
                        **given), kind)]  # fmt: skip


def grid_sample(maker: Maker) -> list[Output]:
    image = maker.data((1, 2, "h", "w"), "float32", 0.1)
    grid = maker.data((1, 3, 2, 2), "float32", 0.3)
    given = {"mode": maker.rng.choice(("linear", "nearest", "cubic")),
             "padding_mode": maker.rng.choice(("zeros", "border", "reflection")),
             "align_corners": maker.rng.choice((0, 1))}  # fmt: skip
    return [(maker.node("GridSample", image, grid, **given), "float32")]


def roi_align(maker: Maker) -> list[Output]:
    image = maker.data((2, 1, "h", "w"), "float32", 0.1)
    boxes = maker.data(("r", 4), "float32", 0.2)
    where = maker.data(("r",), "int64", 0.1)
    given = {"output_height": maker.rng.choice((1, 2, maker.one(0.2))), "output_width": 2,
             "sampling_ratio": maker.rng.choice((0, 1, 2, maker.one(0.2))),
             "mode": maker.rng.choice(("avg", "max"))}  # fmt: skip
    return [(maker.node("RoiAlign", image, boxes, where, **given), "float32")]


def max_roi_pool(maker: Maker) -> list[Output]:
    image = maker.data((2, 1, "h", "w"), "float32", 0.1)
    boxes = maker.data(("r", 5), "float32", 0.2)
    given = {"pooled_shape": [maker.rng.choice((1, 2)), 2],
             "spatial_scale": maker.rng.choice((1.0, 0.5, 3e38, float("nan")))}  # fmt: skip
    return [(maker.node("MaxRoiPool", image, boxes, **given), "float32")]


def window_function(maker: Maker) -> list[Output]:
    op = maker.rng.choice(("HannWindow", "HammingWindow", "BlackmanWindow"))
    size = maker.whole(1, maker.rng.choice(("int64", "int32")), 0.5, among=COUNTS, scalar=True)
    return [(maker.node(op, size, periodic=maker.rng.choice((0, 1))), "float32")]


def mel(maker: Maker) -> list[Output]:
    whole = [maker.whole(1, wild=0.2, among=(1, 4, 8, 16), scalar=True) for _ in range(3)]
    edges = [maker.constant(np.array(item, np.float32)) for item in (0.0, 8.0)]
    return [(maker.node("MelWeightMatrix", *whole, *edges), "float32")]


def dft(maker: Maker) -> list[Output]:
    name = maker.data(("b", "n", maker.rng.choice((1, 2))), "float32", 0.05)
    inputs = [name, maker.maybe(lambda: maker.whole(1, wild=0.3, among=COUNTS, scalar=True)) or ""]
    axis = maker.maybe(lambda: maker.whole(1, wild=0.2, among=(1, -2), scalar=True))
    if axis:
        inputs.append(axis)
    given = {key: maker.rng.choice((0, 1)) for key in ("inverse", "onesided")}
    return [(maker.node("DFT", *inputs, **given), "float32")]


def stft(maker: Maker) -> list[Output]:
    name = maker.data((1, "n", 1), "float32", 0.05)
    step = maker.whole(1, wild=0.3, among=(1, 2, 4), scalar=True)
    length = maker.whole(1, wild=0.2, among=(2, 3, 4), scalar=True)
    return [(maker.node("STFT", name, step, "", length), "float32")]


def col2im(maker: Maker) -> list[Output]:
    name = maker.data((1, maker.rng.choice((4, 5)), "n"), "float32", 0.1)
    sizes = maker.whole(2, wild=0.15, among=(1, 2, 3, 4, 5))
    block = maker.whole(2, wild=0.1, among=(1, 2))
    return [(maker.node("Col2Im", name, sizes, block, **_window_lists(maker)), "float32")]


def _window_lists(maker: Maker) -> dict[str, object]:
    given = _window(maker, 2)
    given.pop("auto_pad", None)
    return given


def suppress(maker: Maker) -> list[Output]:
    boxes = maker.data((1, "n", 4), "float32", 0.1)
    scores = maker.data((1, 1, "n"), "float32", 0.1)
    most = maker.whole(1, wild=0.4, among=COUNTS)
    limits = [maker.data((1,), "float32", 0.3) for _ in range(maker.rng.randint(0, 2))]
    given = {"center_point_box": maker.rng.choice((0, 1))}
    return [(maker.node("NonMaxSuppression", boxes, scores, most, *limits, **given), "int64")]


def affine_grid(maker: Maker) -> list[Output]:
    theta = maker.data((1, 2, 3), "float32", 0.2)
    size = maker.whole(4, wild=0.2, among=(1, 1, 2, 3))
    return [(maker.node("AffineGrid", theta, size), "float32")]


def matmul(maker: Maker) -> list[Output]:
    kind = maker.rng.choice(FLOATS)
    left, right = maker.data(("m", "k"), kind, 0.1), maker.data(("k", "n"), kind, 0.1)
    if maker.rng.random() < 0.5:
        return [(maker.node("MatMul", left, right), kind)]
    alpha = maker.rng.choice((1.0, 0.0, 3e38, float("nan"), -1.0))
    bias = maker.data(maker.rng.choice(((), ("n",), ("m", "n"))), kind, 0.1)
    return [(maker.node("Gemm", left, right, bias, alpha=alpha, beta=1.0), kind)]


def normalize(maker: Maker) -> list[Output]:
    kind = maker.rng.choice(("float32", "float32", "float16"))
    name = maker.data(("h", 4), kind, 0.15)
    op = maker.rng.choice(("Softmax", "LogSoftmax", "Hardmax", "LpNormalization",
                           "LayerNormalization", "RMSNormalization", "MVN"))  # fmt: skip
    axis = maker.rng.choice((-1, 1, 0, maker.one(0.2)))
    if op == "LpNormalization":
        return [(maker.node(op, name, axis=axis, p=maker.rng.choice((1, 2))), kind)]
    if op == "MVN":
        return [(maker.node("MeanVarianceNormalization", name, axes=[axis]), kind)]
    if op in ("LayerNormalization", "RMSNormalization"):
        scale = maker.data((4,), kind, 0.1)
        return [(maker.node(op, name, scale, axis=maker.rng.choice((-1, 1))), kind)]
    return [(maker.node(op, name, axis=axis), kind)]


def pointwise(maker: Maker) -> list[Output]:
    kind = maker.rng.choice(("float32", "float32", *FLOATS))
    name = maker.data(("h", 3), kind, 0.5)
    op = maker.rng.choice((
        "Abs", "Neg", "Exp", "Log", "Sqrt", "Reciprocal", "Sigmoid", "Tanh", "Relu", "Erf", "Sin",
        "Cos", "Tan", "Atan", "Asin", "Acos", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Floor",
        "Ceil", "Round", "Sign", "Softplus", "Softsign", "Elu", "Selu", "Celu", "Gelu", "Mish",
        "HardSigmoid", "HardSwish", "LeakyRelu", "ThresholdedRelu", "Shrink", "Swish",
    ))  # fmt: skip
    return [(maker.node(op, name), kind)]


def binary(maker: Maker) -> list[Output]:
    kind = maker.rng.choice(("float32", "float32", *FLOATS))
    left = maker.data(("h", 3), kind, 0.5)
    right = maker.data(maker.rng.choice(((), (3,), ("h", 3))), kind, 0.5)
    op = maker.rng.choice(("Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "PRelu", "Mean", "Sum"))
    return [(maker.node(op, left, right), kind)]


def choose(maker: Maker) -> list[Output]:
    kind = maker.rng.choice(("float32", "float64", "int64", "float16"))
    left, right = maker.data(("h", 3), kind, 0.4), maker.data((3,), kind, 0.4)
    op = maker.rng.choice(("Less", "Greater", "Equal", "LessOrEqual", "GreaterOrEqual"))
    test = maker.node(op, left, right)
    if maker.rng.random() < 0.5:
        return [(test, "bool")]
    return [(maker.node("Where", test, left, right), kind)]


def quantize(maker: Maker) -> list[Output]:
    name = maker.data(("h", 4), "float32", 0.3)
    kind = maker.rng.choice(("uint8", "int8"))
    scale = maker.data((), "float32", 0.3)
    zero = maker.data((), kind, 0.3)
    found = maker.node("QuantizeLinear", name, scale, zero)
    if maker.rng.random() < 0.5:
        return [(found, kind)]
    return [(maker.node("DequantizeLinear", found, scale, zero), "float32")]


def integer_product(maker: Maker) -> list[Output]:
    kinds = [maker.rng.choice(("uint8", "int8")) for _ in range(2)]
    left, right = maker.data(("m", "k"), kinds[0], 0.5), maker.data(("k", "n"), kinds[1], 0.5)
    zeros = [maker.data((), kind, 0.5) for kind in kinds]
    return [(maker.node("MatMulInteger", left, right, *zeros), "int32")]


TEMPLATES: dict[str, Callable[[Maker], list[Output]]] = {
    "Conv": conv, "Pool": pool, "GlobalPool": global_pool, "MaxUnpool": unpool, "Resize": resize,
    "GridSample": grid_sample, "RoiAlign": roi_align, "MaxRoiPool": max_roi_pool,
    "Window": window_function, "MelWeightMatrix": mel, "DFT": dft, "STFT": stft, "Col2Im": col2im,
    "NonMaxSuppression": suppress, "AffineGrid": affine_grid, "MatMul": matmul,
    "Normalize": normalize, "Pointwise": pointwise, "Binary": binary, "Choose": choose,
    "Quantize": quantize, "MatMulInteger": integer_product,
}  # fmt: skip
