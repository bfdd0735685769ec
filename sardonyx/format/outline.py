"""A model as text to read: without the elements of large tensors."""

from sardonyx.format.save import to_text
from sardonyx.format.storage import NoData
from sardonyx.graph import Model
from sardonyx.graph.clone import clone_model

LARGEST_SHOWN = 16
"""Tensors with more elements than this are only named."""


def outline(model: Model) -> str:
    """ONNX's textual syntax with `{...}` in the place of large tensors' elements.

    >>> import sardonyx as sx
    >>> [line.strip() for line in outline(sx.load("examples/digits.onnx")).splitlines()][7]
    '<float[64,32] constant = {...},'
    """
    twin = clone_model(model)
    for tensor in twin.tensors():
        if any(dim < 0 for dim in tensor.shape) or tensor.size > LARGEST_SHOWN:
            tensor.data = NoData()
    return to_text(twin).replace(" = {}", " = {...}").replace(" {}>", " {...}>")
