"""Change the dimensions of a model's inputs and outputs."""

from collections.abc import Iterable
from typing import Any

__all__ = ["update_inputs_outputs_dims"]


def update_inputs_outputs_dims(
    model: Any, input_dims: dict[str, list[Any]], output_dims: dict[str, list[Any]]
) -> Any:
    """Set the dimensions of all inputs and outputs of `model`, in place; returns it, checked.

    A dimension is a size, a name, or a negative number: that stands for an unknown size and gets
    a name made from the value's name and the position. A size may not contradict one that is set.

    >>> from sardonyx.compat.onnx import helper
    >>> from sardonyx.compat.onnx.tools import update_model_dims
    >>> x, y = (helper.make_tensor_value_info(name, 1, ["n", 3]) for name in "xy")
    >>> graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    >>> model = update_model_dims.update_inputs_outputs_dims(
    ...     helper.make_model(graph), {"x": [8, 3]}, {"y": [-1, 3]}
    ... )
    >>> model.graph.input[0].type.tensor_type.shape.dim[0].dim_value
    8
    >>> model.graph.output[0].type.tensor_type.shape.dim[0].dim_param
    'y_0'
    """
    from sardonyx.compat.onnx import checker

    graph = model.graph
    taken = set(_dimension_names((*graph.input, *graph.output, *graph.value_info)))
    for values, dims in ((graph.input, input_dims), (graph.output, output_dims)):
        for value in values:
            for position, dim in enumerate(dims[value.name]):
                _set_dimension(value, position, dim, taken)
    checker.check_model(model)
    return model


def _dimension_names(values: Iterable[Any]) -> Iterable[str]:
    for value in values:
        for dim in value.type.tensor_type.shape.dim:
            if dim.HasField("dim_param"):
                yield dim.dim_param


def _set_dimension(value: Any, position: int, dim: Any, taken: set[str]) -> None:
    current = value.type.tensor_type.shape.dim[position]
    where = f"dimension {position} of {value.name!r}"
    match dim:
        case int() if dim >= 0:
            if current.HasField("dim_value") and current.dim_value != dim:
                raise ValueError(f"{where} is already {current.dim_value} and cannot become {dim}")
            current.dim_value = dim
        case int():
            name = f"{value.name}_{position}"
            if name in taken:
                raise ValueError(
                    f"{where} would be named {name!r}, a name in use already; give it another name"
                )
            current.dim_param = name
        case str():
            current.dim_param = dim
        case _:
            raise TypeError(f"{where} must be an int or a str, not {type(dim).__name__}")
