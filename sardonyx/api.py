"""Public calls that join several layers."""

import os
from typing import TYPE_CHECKING, Any, BinaryIO

from sardonyx.boundary import public
from sardonyx.errors import InputError
from sardonyx.format import save as format_save
from sardonyx.format.outline import outline
from sardonyx.graph import Model
from sardonyx.passes.fit_version import fit_version
from sardonyx.passes.stages import STAGES, model_after

if TYPE_CHECKING:
    from sardonyx.runtime.compiled import CompiledModel


@public("compiling the model")
def compile(
    model: Any,
    *,
    precision: str = "highest",
    target: str | None = None,
    threads: int | None = None,
) -> "CompiledModel":
    """A model (a path, bytes or a `Model`) as a function of its inputs, in native code.

    `precision` is what products of float32 may lose: nothing (`highest`, and so far `high`), or the
    lower half of their factors (`medium`: bfloat16, added up in float32). `target` is a processor
    this machine can stand in for, by default the machine itself. `threads` are by default as many
    as it has.

    >>> import numpy as np
    >>> import sardonyx as sx
    >>> classify = sx.compile("examples/digits.onnx", threads=1)
    >>> classify(np.zeros((2, 64), np.float32)).shape
    (2, 10)
    """
    if threads is not None and threads < 1:
        raise InputError(f"a program cannot run on {threads} threads", hint="use 1 or more")
    from sardonyx.compiler.program import compile_model
    from sardonyx.runtime.compiled import CompiledModel
    from sardonyx.runtime.options import SessionOptions
    from sardonyx.runtime.prepare import read_model

    opened = read_model(model, SessionOptions())
    program = compile_model(opened, target=target, threads=threads, precision=precision)
    return CompiledModel(opened, program)


@public("writing the model")
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


@public("listing the stages")
def stage_names() -> list[str]:
    """The stages a model goes through from its file to machine code, in order.

    >>> stage_names()
    ['load', 'upgrade', 'inline', 'infer', 'fuse', 'loops', 'llvm', 'assembly']
    """
    from sardonyx.compiler.stages import COMPILED_STAGES

    return [*(name for name, _ in STAGES), *COMPILED_STAGES]


@public("showing the model")
def text_after(model: Model, stage: str) -> str:
    """A model as text after one of `stage_names()`: ONNX's syntax first, then the compiler's own.

    >>> import sardonyx as sx
    >>> model = sx.load("examples/digits.onnx")
    >>> "Gemm" in sx.text_after(model, "upgrade"), "define" in sx.text_after(model, "llvm")
    (True, True)
    """
    if stage not in stage_names():
        raise InputError(
            f"there is no stage '{stage}'", hint=f"the stages are: {', '.join(stage_names())}"
        )
    if stage in dict(STAGES):
        return outline(model_after(model, stage))
    from sardonyx.compiler.stages import compiled_text

    return compiled_text(model, stage)
