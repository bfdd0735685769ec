"""Matrix products and determinants."""

import numpy as np

from sardonyx.dims import Size
from sardonyx.errors import InferenceError
from sardonyx.graph import Node
from sardonyx.ops.bfloat16 import through_float
from sardonyx.ops.build import Builder
from sardonyx.ops.element_type import constant_like
from sardonyx.ops.fact import Fact, Sizes, broadcast, same_size, sizes_text, tensor
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array, narrow, widen


def product_shape(a: Sizes | None, b: Sizes | None) -> Sizes | None:
    """The shape of a matrix product: vectors count as one row or column, leading axes broadcast.

    >>> product_shape((5, 2, 3), (3,))
    (5, 2)
    """
    for shape in (a, b):
        if shape is not None and not shape:
            raise InferenceError("a matrix product takes no scalars")
    if a is None or b is None:
        return None
    inner = b[-2] if len(b) > 1 else b[0]
    same_size(a[-1], inner, f"{sizes_text(a)} x {sizes_text(b)}: inner sizes differ")
    rows = a[-2:-1] if len(a) > 1 else ()
    columns = b[-1:] if len(b) > 1 else ()
    batch = broadcast(a[:-2], b[:-2])
    return None if batch is None else (*batch, *rows, *columns)


class MatMul(Operator):
    """The matrix product, as NumPy's matmul."""

    signatures = (
        "1(A: T, B: T) -> Y: T; T: floats3",
        "9(A: T, B: T) -> Y: T; T: floats3 wide",
        "13(A: T, B: T) -> Y: T; T: floats wide",
    )

    def infer(a: Fact, b: Fact) -> Fact:
        return tensor(a.dtype or b.dtype, product_shape(a.shape, b.shape))

    def reference(a: Array, b: Array) -> Array:
        return narrow(np.matmul(widen(a), widen(b)), a.dtype)


class Gemm(Operator):
    """alpha * A * B + beta * C, with A and B transposed on demand."""

    signatures = (
        "1(A: T, B: T, C: T, alpha: float = 1.0, beta: float = 1.0, broadcast: int = 0,"
        " transA: int = 0, transB: int = 0) -> Y: T; T: floats3",
        "6(A: T, B: T, C: T, alpha: float = 1.0, beta: float = 1.0, broadcast: int = 0,"
        " transA: int = 0, transB: int = 0) -> Y: T; T: floats3",
        "7(A: T, B: T, C: T, alpha: float = 1.0, beta: float = 1.0,"
        " transA: int = 0, transB: int = 0) -> Y: T; T: floats3",
        "9(A: T, B: T, C: T, alpha: float = 1.0, beta: float = 1.0,"
        " transA: int = 0, transB: int = 0) -> Y: T; T: floats3 wide",
        "11(A: T, B: T, C?: T, alpha: float = 1.0, beta: float = 1.0,"
        " transA: int = 0, transB: int = 0) -> Y: T; T: floats3 wide",
        "13(A: T, B: T, C?: T, alpha: float = 1.0, beta: float = 1.0,"
        " transA: int = 0, transB: int = 0) -> Y: T; T: floats wide",
    )

    def infer(
        a: Fact, b: Fact, c: Fact | None = None, *,
        alpha: float, beta: float, transA: int, transB: int,
    ) -> Fact:  # fmt: skip
        rows, inner = _matrix(a, transA, "A")
        matching, columns = _matrix(b, transB, "B")
        same_size(inner, matching, f"{a} x {b}: inner sizes differ")
        _check_addend((rows, columns), c)
        return tensor(a.dtype or b.dtype, (rows, columns))

    def reference(
        a: Array, b: Array, c: Array | None = None, *,
        alpha: float, beta: float, transA: int, transB: int,
    ) -> Array:  # fmt: skip
        left = widen(a.T if transA else a)
        right = widen(b.T if transB else b)
        if left.ndim != 2 or right.ndim != 2:
            raise ValueError("A and B must be matrices")
        result = _scaled(left @ right, alpha)
        if c is not None and beta != 0:
            result = result + np.broadcast_to(_scaled(widen(c), beta), result.shape)
        return narrow(result, a.dtype)

    def upgrade_6(node: Node, build: Builder) -> None:
        node.attributes.pop("broadcast", None)

    def downgrade_7(node: Node, build: Builder) -> None:
        node.set_attribute("broadcast", 1)

    def downgrade_11(node: Node, build: Builder) -> None:
        a, b, *rest = node.inputs
        if a is not None and not any(rest):
            node.set_inputs([a, b, constant_like(build, 0, a)])


def _matrix(fact: Fact, transposed: int, what: str) -> tuple[Size | None, Size | None]:
    if fact.shape is None:
        return None, None
    if len(fact.shape) != 2:
        raise InferenceError(f"{what} must be a matrix, not {fact}")
    rows, columns = fact.shape
    return (columns, rows) if transposed else (rows, columns)


def _check_addend(shape: Sizes, c: Fact | None) -> None:
    if c is None or c.shape is None:
        return
    together = broadcast(shape, c.shape)
    if together is None or len(together) > 2:
        raise InferenceError(f"C must broadcast to {sizes_text(shape)}, not {c}")
    for wanted, found in zip(shape, together, strict=True):
        same_size(wanted, found, f"C must broadcast to {sizes_text(shape)}, not {c}")


def _scaled(array: Array, factor: float) -> Array:
    if factor == 1:
        return array
    if array.dtype.kind == "f":
        return np.multiply(array, factor, dtype=array.dtype)
    if factor == int(factor):
        whole: Array = np.asarray(int(factor)).astype(array.dtype)
        return array * whole
    scaled: Array = np.trunc(np.multiply(array, factor))
    return scaled.astype(np.int64).astype(array.dtype)


class Det(Operator):
    """The determinant of each square matrix."""

    signatures = (
        "11(X: T) -> Y: T; T: floats3",
        "22(X: T) -> Y: T; T: floats",
    )
    downgrade_22 = through_float

    def infer(x: Fact) -> Fact:
        if x.shape is None:
            return tensor(x.dtype, None)
        if len(x.shape) < 2:
            raise InferenceError(f"a determinant needs matrices, not {x}")
        same_size(x.shape[-2], x.shape[-1], f"a determinant needs square matrices, not {x}")
        return tensor(x.dtype, x.shape[:-2])

    def reference(x: Array) -> Array:
        return narrow(np.linalg.det(widen(x)), x.dtype)
