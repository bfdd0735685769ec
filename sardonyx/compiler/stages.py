"""What the compiler makes of a model, as text, stage by stage."""

from collections.abc import Iterator

from sardonyx.compiler.build import Built, Step, build_steps
from sardonyx.compiler.emit_text import assembly_text, llvm_text
from sardonyx.compiler.expand import lower_model
from sardonyx.compiler.host import host_target
from sardonyx.compiler.lower import Lowered
from sardonyx.errors import InputError
from sardonyx.graph import Graph, Model
from sardonyx.loops import kernel_text
from sardonyx.ops.catalog import standard
from sardonyx.ops.evaluate import Evaluator

COMPILED_STAGES = ("fuse", "loops", "llvm", "assembly")
"""The stages behind those of `passes.stages`, in order."""


def compiled_text(model: Model, stage: str, *, target: str | None = None) -> str:
    """The kernels and what each computes, their loops, their LLVM code, or the machine's.

    >>> import sardonyx as sx
    >>> print(compiled_text(sx.load("examples/digits.onnx"), "fuse").splitlines()[0])
    contraction 0: Gemm, Relu
    """
    if stage not in COMPILED_STAGES:
        known = ", ".join(COMPILED_STAGES)
        raise InputError(f"there is no stage '{stage}'", hint=f"the stages are: {known}")
    evaluator = Evaluator(model, catalog=standard())
    lowered, _ = lower_model(evaluator, standard())
    chosen = host_target(target)
    built = build_steps(evaluator.graph, lowered, chosen)
    if stage == "fuse":
        return "\n".join(_fused(built, evaluator.graph, lowered))
    calls = [call for step in built.steps if isinstance(step, Step) for call in step.calls]
    kernels = {kernel_text(call.kernel): call.kernel for call in calls}
    if stage == "loops":
        return "\n\n".join(kernels)
    show = llvm_text if stage == "llvm" else assembly_text
    return show(list(kernels.values()), chosen)


def _fused(built: Built, graph: Graph, lowered: Lowered) -> Iterator[str]:
    """A line for each kernel with the operators it computes, then what needs none."""
    kernels: dict[str, list[str]] = {}
    reasons: dict[str, str] = {}
    for _, operator, kernel, _, reason in built.explain(graph, lowered):
        kernels.setdefault(kernel, []).append(operator)
        if reason:
            reasons.setdefault(operator, reason)
    plain = ("view", "constant", "reference", "not needed")
    for kernel in sorted(kernels, key=lambda name: (name in plain, _number(name))):
        yield f"{kernel}: {', '.join(kernels[kernel])}"
    for operator, reason in reasons.items():
        yield f"  {operator}: {reason}"


def _number(kernel: str) -> int:
    word = kernel.rpartition(" ")[2]
    return int(word) if word.isdigit() else 0
