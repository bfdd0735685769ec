"""What a model goes through before it runs, stage by stage, each to be looked at."""

from collections.abc import Callable

from sardonyx.boundary import public
from sardonyx.errors import InputError
from sardonyx.graph import Model
from sardonyx.graph.clone import clone_model
from sardonyx.graph.inline import inline_functions
from sardonyx.graph.sort import sort_graph
from sardonyx.ops.convert import upgrade_model
from sardonyx.ops.infer import infer_shapes


def _upgrade(model: Model) -> Model:
    upgrade_model(model)
    return model


def _inline(model: Model) -> Model:
    inline_functions(model)
    if model.graph is not None:
        sort_graph(model.graph)
    return model


STAGES: tuple[tuple[str, Callable[[Model], Model]], ...] = (
    ("load", clone_model),
    ("upgrade", _upgrade),
    ("inline", _inline),
    ("infer", infer_shapes),
)
"""The stages in order, each with what it does to the result of the one before."""


@public("showing the model")
def model_after(model: Model, stage: str) -> Model:
    """A copy of a model as it is after a stage and all before it.

    >>> import sardonyx as sx
    >>> model = sx.load_text('<ir_version: 8, opset_import: ["": 11]>'
    ...                      'g (float[2,3] x) => (float[2,3] y) { y = Neg(x) }')
    >>> model_after(model, "load").opset, model_after(model, "upgrade").opset
    (11, 28)
    """
    names = [name for name, _ in STAGES]
    if stage not in names:
        raise InputError(f"there is no stage '{stage}'", hint=f"the stages are: {', '.join(names)}")
    for name, change in STAGES:
        model = change(model)
        if name == stage:
            break
    return model
