"""Classes of standard operators, made when they are asked for: `_op_list.Celu`, `Cast_19`."""

from functools import cache
from typing import Any

from sardonyx.compat.onnx import defs
from sardonyx.compat.onnx.reference.op_run import OpRun


def load_op(
    domain: str, op_type: str, version: int | None = None, custom: Any = None,
    node: Any = None, input_types: Any = None, expand: bool = False, evaluator_cls: Any = None,
) -> Any:  # fmt: skip
    """The class of an operator, in the version in force at an opset.

    >>> import numpy as np
    >>> load_op("", "LeakyRelu").eval(np.array([-1.0], np.float32), alpha=0.5).tolist()
    [-0.5]
    """
    if not defs.has(op_type, domain):
        raise NotImplementedError(f"domain {domain!r} has no operator {op_type!r}")
    schema = defs.get_schema(
        op_type, defs.onnx_opset_version() if version is None else version, domain
    )
    return _class(domain, op_type, schema.since_version)


@cache
def _class(domain: str, op_type: str, since: int) -> type[OpRun]:
    def _run(self: OpRun, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        from sardonyx.compat.onnx.reference.reference_evaluator import ReferenceEvaluator

        evaluator = ReferenceEvaluator(self.onnx_node, opsets={domain: since})
        names = list(self.onnx_node.input)
        feeds = {name: item for name, item in zip(names, args, strict=True) if name}
        results = evaluator.run(None, feeds)
        assert isinstance(results, list)
        return tuple(results)

    schema = defs.get_schema(op_type, since, domain)
    members = {"op_domain": domain, "op_schema": schema, "_run": _run, "__doc__": schema.doc}
    return type(op_type, (OpRun,), members)


def __getattr__(name: str) -> Any:
    op_type, _, version = name.rpartition("_")
    if op_type and version.isdigit() and defs.has(op_type, int(version)):
        return load_op("", op_type, int(version))
    if defs.has(name):
        return load_op("", name)
    raise AttributeError(f"there is no operator {name!r}")
