"""Families of operators: what a colour in the drawing stands for."""

from dataclasses import dataclass
from functools import cache

from sardonyx.graph import Node
from sardonyx.ops.catalog import canonical_domain, standard
from sardonyx.ops.operator import Operator


@dataclass(frozen=True, slots=True)
class Family:
    """A group of operators: the name of its colour, its title, and the modules it is made of."""

    key: str
    title: str
    modules: str = ""


FAMILIES: tuple[Family, ...] = (
    Family("product", "Matrix product", "product einsum quantized_product ms_product "
           "ms_matmul_bits"),
    Family("window", "Convolution, pooling", "convolution folding pooling ms_image grid resize "
           "regions image"),
    Family("attention", "Attention, recurrence", "attention linear_attention ms_attention "
           "ms_group_attention ms_multihead_attention rotary recurrent ms_recurrent ms_generation"),
    Family("activation", "Activation", "activations softmax ms_activation"),
    Family("normalization", "Normalization", "batch_normalization normalization ms_normalization"),
    Family("elementwise", "Elementwise", "arithmetic unary comparison bitwise cast random_numbers"),
    Family("reduction", "Reduction", "reduction cumulative loss"),
    Family("shape", "Shape, movement", "shape movement padding ms_movement joining slicing"),
    Family("indexing", "Indexing", "indexing scatter selection"),
    Family("quantization", "Quantization", "quantization ms_quantized"),
    Family("control", "Control flow, containers", "control_flow sequence optional"),
    Family("classical", "Classical, text, signal", "ml_features ml_labels ml_linear ml_maps ml_svm "
           "ml_trees strings ms_text signal training"),
    Family("constant", "Constant", "constant"),
    Family("function", "Function of the model"),
    Family("other", "Other"),
)  # fmt: skip
"""All families, in the order of the legend."""

FUNCTION = next(index for index, family in enumerate(FAMILIES) if family.key == "function")
OTHER = len(FAMILIES) - 1
CONSTANT = next(index for index, family in enumerate(FAMILIES) if family.key == "constant")


@cache
def _by_module() -> dict[str, int]:
    return {
        module: index for index, family in enumerate(FAMILIES) for module in family.modules.split()
    }


def operator_of(node: Node) -> type[Operator] | None:
    """The operator a node names, where it is known."""
    return standard().get((canonical_domain(node.domain), node.op_type))


def family_of(node: Node) -> int:
    """The number of the family of a node's operator.

    >>> FAMILIES[family_of(Node("Relu"))].title
    'Activation'
    """
    operator = operator_of(node)
    if operator is None:
        return OTHER
    return _by_module().get(operator.__module__.rpartition(".")[2], OTHER)
