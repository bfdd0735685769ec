"""Public calls that join several layers."""

import os
from typing import Any, BinaryIO

from sardonyx.format import save as format_save
from sardonyx.graph import Model
from sardonyx.passes.fit_version import fit_version


def save(
    model: Model,
    target: str | os.PathLike[str] | BinaryIO,
    *,
    compat: str | None = None,
    **options: Any,
) -> None:
    """Write a model; an existing file is replaced only when the new one is complete.

    `compat="onnxruntime>=1.20"` writes the lowest IR version and opset that say the same, and
    raises where that release cannot read the model. The other options are those of
    `sardonyx.format.save.save`: `format`, `external_data`, `size_threshold`, `external_attributes`,
    `checksums`.

    >>> import tempfile
    >>> import sardonyx as sx
    >>> model = sx.load("examples/digits.onnx")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sx.save(model, f"{folder}/copy.onnx", external_data="copy.bin")
    ...     sorted(os.listdir(folder))
    ['copy.bin', 'copy.onnx']
    """
    fitted = model if compat is None else fit_version(model, compat)
    format_save.save(fitted, target, **options)
