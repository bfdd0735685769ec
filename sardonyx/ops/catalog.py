"""All operators, found by domain and name."""

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module

from sardonyx.ops.operator import Operator

FAMILIES: tuple[str, ...] = (
    "activations",
    "arithmetic",
    "attention",
    "batch_normalization",
    "bitwise",
    "cast",
    "comparison",
    "constant",
    "control_flow",
    "convolution",
    "cumulative",
    "einsum",
    "folding",
    "grid",
    "image",
    "indexing",
    "joining",
    "linear_attention",
    "loss",
    "ml_features",
    "ml_labels",
    "ml_linear",
    "ml_maps",
    "ml_svm",
    "ml_trees",
    "movement",
    "ms_activation",
    "ms_attention",
    "ms_generation",
    "ms_group_attention",
    "ms_image",
    "ms_matmul_bits",
    "ms_movement",
    "ms_multihead_attention",
    "ms_normalization",
    "ms_product",
    "ms_quantized",
    "ms_recurrent",
    "ms_text",
    "normalization",
    "optional",
    "padding",
    "pooling",
    "product",
    "quantization",
    "quantized_product",
    "random_numbers",
    "recurrent",
    "reduction",
    "regions",
    "resize",
    "rotary",
    "scatter",
    "selection",
    "sequence",
    "shape",
    "signal",
    "slicing",
    "softmax",
    "strings",
    "training",
    "unary",
)
"""The modules of `sardonyx.ops` that hold operators."""

NEWEST_OPSETS = {
    "": 28,
    "ai.onnx.ml": 5,
    "ai.onnx.preview.training": 1,
    "ai.onnx.preview": 1,
    "com.microsoft": 1,
}
"""The newest version of each domain that is known; of `com.microsoft`, what real models use."""

Catalog = Mapping[tuple[str, str], type[Operator]]


def canonical_domain(domain: str) -> str:
    """A domain's usual spelling: the default one is also written `ai.onnx`."""
    return "" if domain == "ai.onnx" else domain


@cache
def standard() -> Catalog:
    """The operators of ONNX and of `com.microsoft`.

    >>> standard()["", "Relu"].name
    'Relu'
    """
    return collect(import_module(f"sardonyx.ops.{family}") for family in FAMILIES)


def collect(modules: Iterable[object]) -> Catalog:
    """The operators that modules define, by domain and name."""
    found: dict[tuple[str, str], type[Operator]] = {}
    for module in modules:
        for item in vars(module).values():
            if isinstance(item, type) and issubclass(item, Operator) and item.signatures:
                key = (item.domain, item.name)
                if found.get(key, item) is not item:
                    raise ValueError(f"operator {key} is defined twice")
                found[key] = item
    return found
