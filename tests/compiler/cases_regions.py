"""Cases of regions, neighbouring channels, determinants, states and optimizers."""

from typing import Any

import numpy as np

from tests.compiler.case import Case, ints, normal, positive

_PLACES = np.array([[[[0, 3], [12, 15]]]])
_REGIONS = np.array([[0, 0, 9, 9], [-3, 2, 4, 30], [5, 5, 5, 5], [7.5, 1, 2, 3]], np.float32)
_PICTURE = normal(2, 3, 10, 12)
TRAINING = "ai.onnx.preview.training"


def _aligned(label: str, **options: Any) -> Case:
    inputs = (_PICTURE, _REGIONS, np.array([0, 1, -1, 0]))
    return Case("RoiAlign", inputs, {"output_height": 3, "output_width": 2, **options}, label=label)


def _attention(rule: str, heads: int, label: str, past: bool = False, width: int = 1) -> Case:
    batch, steps, depth, size = 2, 5, 4, 17
    inputs = [
        normal(batch, steps, 4 * depth), normal(batch, steps, heads * depth),
        normal(batch, steps, heads * size), normal(batch, heads, depth, size) if past else None,
        -positive(batch, steps, heads * width) if "gated" in rule else None,
        positive(batch, steps, heads if past else 1) / 4 if "delta" in rule else None,
    ]  # fmt: skip
    options = {"q_num_heads": 4, "kv_num_heads": heads, "update_rule": rule}
    return Case("LinearAttention", tuple(inputs), options, outputs=2, label=label, symbolic=False,
                rtol=1e-3, atol=1e-3)  # fmt: skip


def _step(name: str, parts: int, count: int, label: str = "", **options: Any) -> Case:
    shapes = ((3, 5), (1, 20))
    inputs = [positive(*shape) for _ in range(parts) for shape in shapes]
    outputs = (parts - 1) * len(shapes)
    given = (np.array(0.1, np.float32), np.array(count), *inputs)
    return Case(name, given, options, outputs=outputs, domain=TRAINING, label=f"{count}{label}")


CASES: list[Case] = [
    *(
        _aligned(f"{how}-{mode}-{ratio}", coordinate_transformation_mode=how, mode=mode,
                 sampling_ratio=ratio, spatial_scale=0.7)
        for how in ("half_pixel", "output_half_pixel")
        for mode in ("avg", "max")
        for ratio in (0, 2)
    ),
    Case("LRN", (_PICTURE,), {"size": 3}),
    Case("LRN", (normal(2, 17, 5),), {"size": 4, "alpha": 0.5, "bias": 2.0}, label="4"),
    Case("LRN", (normal(2, 3, 5),), {"size": 7}, label="wide"),
    Case("MaxUnpool", (normal(1, 1, 2, 2), _PLACES), {"kernel_shape": [2, 2], "strides": [2, 2]}),
    Case("MaxUnpool", (normal(1, 1, 2, 2), _PLACES, ints(1, 1, 5, 3)),
         {"kernel_shape": [2, 2], "strides": [2, 2]}, fixed=(2,), label="shape"),
    Case("MaxUnpool", (normal(1, 1, 2, 2).astype(np.float16), _PLACES),
         {"kernel_shape": [2, 2], "strides": [2, 2]}, label="half"),
    *(Case("Det", (normal(*shape),), label="x".join(map(str, shape)), atol=1e-3)
      for shape in ((1, 1), (3, 3), (2, 3, 17, 17), (0, 4, 4))),
    Case("Det", (np.array([[0, 1], [1, 0]], np.float64),), label="swap"),
    Case("Det", (np.array([[1, 2], [2, 4]], np.float32),), label="singular"),
    Case("Det", (np.zeros((3, 3), np.float32),), label="zeros"),
    *(
        _attention(rule, heads, f"{rule}-{heads}-{past}", past, 4 if past else 1)
        for rule in ("linear", "gated", "delta", "gated_delta")
        for heads, past in ((4, False), (2, True))
    ),
    _attention("gated_delta", 1, "one head"),
    *(_step("Adagrad", 3, count, decay_factor=0.1, norm_coefficient=0.01) for count in (0, 3)),
    *(_step("Adam", 4, count, norm_coefficient_post=0.1) for count in (0, 3)),
    *(
        _step("Momentum", 3, count, mode, alpha=0.9, beta=0.5, mode=mode, norm_coefficient=0.1)
        for count in (0, 2)
        for mode in ("standard", "nesterov")
    ),
]  # fmt: skip
