"""The checker: every rule of ONNX that a model breaks, all at once, with its place and a remedy."""

from typing import Any

from sardonyx.boundary import public
from sardonyx.checker.findings import Finding, check_error, errors_of
from sardonyx.checker.structure import find_model_problems
from sardonyx.format.load import load
from sardonyx.graph import Model
from sardonyx.ops.catalog import Catalog

__all__ = ["Finding", "check", "find_problems"]


@public("checking the model")
def check(
    model: Any, *, full: bool = False, catalog: Catalog | None = None, custom_domains: bool = True
) -> None:
    """Raise `CheckError` where a model is wrong; its `findings` are all problems, warnings too.

    `model` is a Model, or what `load` takes: a path, bytes, an open file, a protobuf message.
    `full` infers types and shapes as well. `catalog` holds the operators, by default the standard
    ones; with `custom_domains=False` those it does not hold are refused in every domain.

    >>> import sardonyx as sx
    >>> model = sx.load_text('<ir_version: 10, opset_import: ["": 21]>'
    ...                      'g (float[N] x) => (float[N] y) { y = Relu(x, z) }')
    >>> try:
    ...     check(model)
    ... except sx.CheckError as error:
    ...     for finding in error.findings:
    ...         print(finding.rule, "at", finding.where)
    undefined-value at graph 'g' > node of 'y' (Relu) > input 1
    too-many-inputs at graph 'g' > node of 'y' (Relu)
    """
    opened = _opened(model)
    findings = find_problems(opened, full, catalog=catalog, custom_domains=custom_domains)
    if errors_of(findings):
        raise check_error(findings, opened.source)


@public("checking the model")
def find_problems(
    model: Any, full: bool = False, *, catalog: Catalog | None = None, custom_domains: bool = True
) -> list[Finding]:
    """What `check` would raise for, and warnings, as a list.

    >>> import sardonyx as sx
    >>> model = sx.load_text('<ir_version: 10, opset_import: ["": 21]>'
    ...                      'g (float[N] x) => (float[N] y) { y = Relu(x) }')
    >>> find_problems(model)
    []
    """
    return find_model_problems(_opened(model), full, catalog=catalog, custom_domains=custom_domains)


def _opened(model: Any) -> Model:
    return model if isinstance(model, Model) else load(model, external_data=False)
