"""Every public name of onnxruntime with ours beside it: `python -m tests.compat.onnxruntime_table`.

Writes docs/onnxruntime_names.md; a name that is missing here needs a reason below.
"""

import inspect
import sys
import types
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "onnxruntime_names.md"

MODULES = (
    "onnxruntime",
    "onnxruntime.backend",
    "onnxruntime.capi.onnxruntime_inference_collection",
    "onnxruntime.capi.onnxruntime_pybind11_state",
    "onnxruntime.capi.onnxruntime_validation",
)

_CONTEXT = "no provider here keeps compiled data of its own in a model"
_INTERNAL = "a detail of onnxruntime's own modules"
_QUANTIZER = "packs weights for onnxruntime's own kernels"
REASONS = {
    "OrtEpContextData": _CONTEXT,
    "OrtEpContextDataBuffer": _CONTEXT,
    "import_capi_exception": "holds the error of an import that failed; ours cannot",
    "ArenaExtendStrategy": "memory is planned, there are no arenas",
    "kNextPowerOfTwo": "memory is planned, there are no arenas",
    "kSameAsRequested": "memory is planned, there are no arenas",
    "OrtCompiledModelCompatibility": _CONTEXT,
    "OrtDeviceEpIncompatibilityReason": "there is one device",
    "get_compatibility_info_from_model": _CONTEXT,
    "get_compatibility_info_from_model_bytes": _CONTEXT,
    "get_model_compatibility_for_ep_devices": _CONTEXT,
    "get_hardware_device_ep_incompatibility_details": "there is one device",
    "SessionObjectInitializer": _INTERNAL,
    "get_session_initializer": _INTERNAL,
    "SparseBlockSparseView": "no tensor is held in blocks",
    "get_all_opkernel_def": "operators have no kernels of fixed types; see `session.explain()`",
    "get_registered_ep_kernel_defs": "operators have no kernels of fixed types",
    "opkernel": "operators have no kernels of fixed types",
    "schemadef": "schemas are `onnx.defs`",
    "GetInitializerLocationFunc": _INTERNAL,
    "GetInitializerLocationWrapperFunc": _INTERNAL,
    "make_get_initializer_location_func_wrapper": _INTERNAL,
    "check_and_normalize_provider_args": _INTERNAL,
    "get_ort_device_type": _INTERNAL,
    "get_vendor_id_for_device_type": _INTERNAL,
    "C": _INTERNAL,
    "backend_rep": _INTERNAL,
    "pack_fp4_weights_for_cuda_moe_gemm": "for CUDA",
    "quantize_matmul_2bits": _QUANTIZER,
    "quantize_matmul_4bits": _QUANTIZER,
    "quantize_matmul_8bits": _QUANTIZER,
    "quantize_matmul_bnb4": _QUANTIZER,
    "quantize_qdq_matmul_2bits": _QUANTIZER,
    "quantize_qdq_matmul_4bits": _QUANTIZER,
}
"""Why a name is not here."""

PACKAGES = {
    "onnxruntime.datasets": "example models of onnxruntime; not part of this package",
    "onnxruntime.quantization": "not part of this module",
    "onnxruntime.tools": "`sx.optimize`, `sx.infer_shapes`, `sx.save` and the command line",
    "onnxruntime.transformers": "`sx.optimize` fuses what its fusions do",
}
"""Packages inside of onnxruntime that have no stand-in."""


def public_names(module: types.ModuleType) -> Iterator[str]:
    """What a user may take from a module: not its imports of other packages."""
    for name in sorted(vars(module)):
        value = getattr(module, name)
        foreign = getattr(value, "__module__", "onnxruntime") or "onnxruntime"
        if name.startswith("_") or inspect.ismodule(value) or name == "annotations":
            continue
        if not foreign.startswith("onnxruntime"):
            continue
        yield name


def members(kind: type) -> list[str]:
    """The public members of a class of onnxruntime's; values of enumerations have two of theirs."""
    hidden = {"name", "value"} if hasattr(kind, "__members__") else set()
    return [name for name in dir(kind) if not name.startswith("_") and name not in hidden]


def rows(module: str) -> Iterator[tuple[str, str, str]]:
    """Name, where it is here, and a remark: classes with their members."""
    theirs = import_module(module)
    own = import_module(f"sardonyx.compat.{module}")
    for name in public_names(theirs):
        value = getattr(theirs, name)
        if not hasattr(own, name):
            yield name, "", REASONS.get(name, "")
            continue
        mine = getattr(own, name)
        yield name, place(own, name, mine), ""
        if isinstance(value, type) and module == "onnxruntime":
            for member in members(value):
                here = "yes" if has_member(mine, member) else ""
                yield f"{name}.{member}", here, REASONS.get(f"{name}.{member}", "")


def has_member(kind: type, member: str) -> bool:
    """Whether a class, or an object of it, has a member."""
    if hasattr(kind, member) or member in getattr(kind, "__slots__", ()):
        return True
    fields = getattr(kind, "__dataclass_fields__", {})
    return member in fields or f"self.{member} = " in inspect.getsource(kind)


def place(own: types.ModuleType, name: str, value: object) -> str:
    """Where a name is: among `sardonyx`'s own names too, if it is the same there."""
    import sardonyx

    if name in sardonyx.__all__ and getattr(sardonyx, name) is value:
        return f"`sx.{name}`"
    return "`sx.InferenceSession`" if name == "InferenceSession" else "compat"


def page() -> str:
    """The whole page."""
    import onnxruntime

    release = ".".join(onnxruntime.__version__.split(".")[:2])
    lines = [
        "# Every name of onnxruntime",
        "",
        f"The public names of onnxruntime {release} and what stands for them. `compat` is the same",
        "name in `sardonyx.compat.onnxruntime`; what is among Sardonyx's own names is there too.",
        "The page is made by `python -m tests.compat.onnxruntime_table`.",
        "",
    ]
    for module in MODULES:
        found = list(rows(module))
        missing = sum(not here for _, here, _ in found)
        lines += [f"## {module}", "", f"{len(found)} names, {missing} of them not here.", ""]
        lines += ["| name | here | remark |", "| --- | --- | --- |"]
        lines += [f"| `{name}` | {here or '-'} | {remark} |" for name, here, remark in found]
        lines.append("")
    lines += ["## Packages without a stand-in", "", "| package | instead |", "| --- | --- |"]
    lines += [f"| `{name}` | {instead} |" for name, instead in PACKAGES.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.stdout.write(f"wrote {PAGE}\n")
