"""Matrix products."""

from sardonyx.compiler.forms import (
    Contraction,
    Form,
    NotLowered,
    broadcast_shapes,
)
from sardonyx.compiler.lowerings.request import Request
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
