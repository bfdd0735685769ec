"""Random models of 3 to 30 operators, for the compiler to be compared on."""

import numpy as np

from tests.compiler.random_elements import (
    binary,
    bits,
    cast,
    chosen,
    compared,
    integers,
    logic,
    quantized,
    rounded,
    unary,
)
from tests.compiler.random_maker import Case, Maker, Step
from tests.compiler.random_movement import (
    axes_of_one,
    gathered,
    joined,
    padded,
    repeated,
    reshape,
    scattered,
    sliced,
    split,
    transpose,
    triangle,
)
from tests.compiler.random_sums import (
    convolution,
    extremes,
    general_product,
    pooled,
    product,
    product_of_two,
    recurrent,
    reduced,
    resized,
    row_wise,
    sums_of_products,
)

LARGEST = 4096
"""Elements of a value; larger results are cut."""
STEPS: tuple[Step, ...] = (
    unary, unary, unary, rounded, binary, binary, binary, compared, logic, chosen, cast, integers,
    bits, transpose, reshape, axes_of_one, sliced, padded, joined, split, gathered, scattered,
    reduced, reduced, extremes, row_wise, row_wise, product, product_of_two, general_product,
    convolution, pooled, resized, repeated, triangle, quantized, sums_of_products, recurrent,
)  # fmt: skip


def random_case(seed: int) -> Case:
    """A random model, the same for the same seed."""
    make = Maker(seed)
    make.floats()
    grow(make, make.integer(3, 30), STEPS)
    return make.finish()


def grow(make: Maker, wanted: int, steps: tuple[Step, ...]) -> None:
    """Take random steps until there are as many nodes as wanted."""
    for _ in range(4 * wanted):
        if len(list(make.graph.nodes)) >= wanted:
            break
        steps[int(make.random.integers(len(steps)))](make)
        if make.items and int(np.prod(make.items[-1].shape)) > LARGEST:
            item = make.items.pop()
            flat = make.op.Reshape(item.value, np.array([-1]))
            short = make.op.Slice(flat, np.array([0]), np.array([64]))
            make.keep(short, (64,), item.dtype, item.exact)
