"""Matrix products."""

from sardonyx.compiler.forms import (
    Contraction,
    Form,
    NotLowered,
    broadcast_shapes,
    squeeze,
    transpose,
    unsqueeze,
)
from sardonyx.compiler.lowerings.request import Lowerings, Request
from sardonyx.dtypes import DataType


def matrix_product(request: Request, left: Form, right: Form) -> Form:
    """[..., M, K] by [..., K, N]; bytes are added up in int32."""
    types = (left.dtype, right.dtype)
    narrow = set(types) <= {DataType.INT8, DataType.UINT8}
    if not narrow and types[0] is not types[1]:
        raise NotLowered(f"products of {types[0].text} and {types[1].text} have no native form")
    depth = request.agree(left.shape[-1], right.shape[-2])
    batch = (
        broadcast_shapes(left.shape[:-2], right.shape[:-2])
        if left.shape[:-2] + right.shape[:-2]
        else ()
    )
    dtype = DataType.INT32 if narrow else left.dtype
    return Contraction((*batch, left.shape[-2], right.shape[-1]), dtype, left, right, depth)


def matmul(request: Request, left: Form, right: Form) -> Form:
    """NumPy's matmul: a vector is a matrix for the time of the product."""
    rows, columns = len(left.shape) == 1, len(right.shape) == 1
    result = matrix_product(
        request, unsqueeze(left, [0]) if rows else left, unsqueeze(right, [1]) if columns else right
    )
    gone = [-2] * rows + [-1] * columns
    return squeeze(result, gone) if gone else result


def gemm(
    request: Request, a: Form, b: Form, c: Form | None = None, *,
    alpha: float, beta: float, transA: int, transB: int,
) -> Form:  # fmt: skip
    """alpha * A * B + beta * C."""
    result = matrix_product(
        request, transpose(a, (1, 0)) if transA else a, transpose(b, (1, 0)) if transB else b
    )
    if alpha != 1.0:
        result = result * alpha
    if c is None or beta == 0.0:
        return result
    return result + (c if beta == 1.0 else c * beta)


LOWERINGS: Lowerings = {
    ("", "MatMul"): matmul,
    ("", "Gemm"): gemm,
}
