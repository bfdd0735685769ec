"""Batch normalization and the forms it had in earlier opsets."""

from typing import Any, ClassVar

import numpy as np

from sardonyx.dtypes import DataType
from sardonyx.graph import Node, Value
from sardonyx.ops.build import Builder
from sardonyx.ops.convolution import along_channels
from sardonyx.ops.element_type import element_type
from sardonyx.ops.fact import Fact, tensor
from sardonyx.ops.normalization import check_channels
from sardonyx.ops.operator import Operator
from sardonyx.ops.precision import Array, compute_type, narrow


class BatchNormalization(Operator):
    """Each channel less its mean, over its deviation, scaled and moved; statistics are inputs.

    In training mode they are those of the batch, and the inputs move towards them.
    """

    signatures = (
        "1(X: T, scale: T, B: T, mean: T, var: T, consumed_inputs: ints, epsilon: float = 1e-05,"
        " is_test: int = 0, momentum: float = 0.9, spatial: int = 1)"
        " -> (Y: T, mean?: T, var?: T, saved_mean?: T, saved_var?: T); T: floats3",
        "6(X: T, scale: T, B: T, mean: T, var: T, epsilon: float = 1e-05,"
        " is_test: int = 0, momentum: float = 0.9, spatial: int = 1)"
        " -> (Y: T, mean?: T, var?: T, saved_mean?: T, saved_var?: T); T: floats3",
        "7(X: T, scale: T, B: T, mean: T, var: T, epsilon: float = 1e-05,"
        " momentum: float = 0.9, spatial: int = 1)"
        " -> (Y: T, mean?: T, var?: T, saved_mean?: T, saved_var?: T); T: floats3",
        "9(X: T, scale: T, B: T, mean: T, var: T, epsilon: float = 1e-05, momentum: float = 0.9)"
        " -> (Y: T, mean?: T, var?: T, saved_mean?: T, saved_var?: T); T: floats3",
        "14(X: T, scale: T, B: T, input_mean: U, input_var: U, epsilon: float = 1e-05,"
        " momentum: float = 0.9, training_mode: int = 0)"
        " -> (Y: T, running_mean?: U, running_var?: U); T: floats; U: floats",
        "15(X: T, scale: T1, B: T1, input_mean: T2, input_var: T2, epsilon: float = 1e-05,"
        " momentum: float = 0.9, training_mode: int = 0)"
        " -> (Y: T, running_mean?: T2, running_var?: T2); T: floats; T1: floats; T2: floats",
    )
    output_counts: ClassVar[dict[int, tuple[int, ...]]] = {
        1: (1, 5), 6: (1, 5), 7: (1, 5), 9: (1, 5), 14: (1, 3), 15: (1, 3)
    }  # fmt: skip

    def infer(
        x: Fact, scale: Fact, bias: Fact, mean: Fact, variance: Fact, **attributes: Any
    ) -> tuple[Fact, Fact, Fact]:
        channels = check_channels(x, scale, bias, mean, variance)
        shape = x.shape
        if shape is not None and len(shape) > 1:
            shape = (shape[0], *channels, *shape[2:])
        running = tensor(mean.dtype, channels)
        return tensor(x.dtype, shape), running, running

    def reference(
        x: Array, scale: Array, bias: Array, mean: Array, variance: Array, *,
        epsilon: float, momentum: float, training_mode: int,
    ) -> tuple[Array, ...]:  # fmt: skip
        inputs = (x, scale, bias, mean, variance)
        dtype = np.result_type(*(compute_type(item.dtype) for item in inputs))
        wide, factor, offset, old_mean, old_variance = (item.astype(dtype) for item in inputs)
        if x.ndim == 1:
            wide = wide[:, None]
        new_mean, new_variance = old_mean, old_variance
        if training_mode:
            axes = tuple(axis for axis in range(wide.ndim) if axis != 1)
            new_mean, new_variance = wide.mean(axis=axes), wide.var(axis=axes)

        def spread(vector: Array) -> Array:
            return along_channels(vector, wide.ndim)

        slope = factor / np.sqrt(new_variance + dtype.type(epsilon))
        result = (wide - spread(new_mean)) * spread(slope) + spread(offset)
        running_mean = old_mean * momentum + new_mean * (1 - momentum)
        running_variance = old_variance * momentum + new_variance * (1 - momentum)
        return (
            narrow(result.reshape(x.shape), x.dtype),
            narrow(running_mean if training_mode else mean, mean.dtype),
            narrow(running_variance if training_mode else variance, variance.dtype),
        )

    def upgrade_1(node: Node, build: Builder) -> None:
        node.attributes.pop("consumed_inputs", None)

    def upgrade_6(node: Node, build: Builder) -> Any:
        testing = node.attribute("is_test", 0)
        node.attributes.pop("is_test", None)
        if bool(testing) != _trains(node):
            return None
        outputs = 1 if testing else 5
        made = build.node("BatchNormalization", node.inputs, outputs, "", node.attributes)
        mean, variance = node.inputs[3:5]
        return (made, mean, variance, mean, variance) if testing else made

    def upgrade_7(node: Node, build: Builder) -> Any:
        spatial = node.attribute("spatial", 1)
        node.attributes.pop("spatial", None)
        if spatial:
            return None
        x, *parameters = node.inputs
        flat = [build.Flatten(x, axis=1), *(build.Reshape(item, [-1]) for item in parameters)]
        outputs = len(node.outputs) if _trains(node) else 1
        made = build.node("BatchNormalization", tuple(flat), outputs, "", node.attributes)
        first, *statistics = made if outputs > 1 else (made,)
        shape = build.Shape(parameters[0])
        return (
            build.Reshape(first, build.Shape(x)),
            *(build.Reshape(item, shape) for item in statistics),
        )

    def upgrade_9(node: Node, build: Builder) -> Any:
        if not _trains(node):
            node.set_outputs(node.outputs[:1])
            return None
        node.set_attribute("training_mode", 1)
        if not any(item.name for item in node.outputs[3:]):
            node.set_outputs(node.outputs[:3])
            return None
        made = build.node("BatchNormalization", node.inputs, 3, "", node.attributes)
        flat = build.Reshape(node.inputs[0], [0, 0, -1])
        mean = build.ReduceMean(flat, axes=[0, 2])
        centred = build.Sub(flat, mean)
        variance = build.ReduceMean(build.Mul(centred, centred), axes=[0, 2], keepdims=0)
        return *made, build.Reshape(mean, [-1]), variance

    def downgrade_15(node: Node, build: Builder) -> Any:
        kinds = {element_type(value) for value in node.inputs[:3]}
        return _in_one_type(node, build) if len(kinds - {None}) > 1 else None

    def downgrade_14(node: Node, build: Builder) -> Any:
        kinds = {element_type(value) for value in node.inputs} - {None}
        training = node.attribute("training_mode", 0)
        node.attributes.pop("training_mode", None)
        if len(kinds) > 1 or DataType.BFLOAT16 in kinds:
            return _in_one_type(node, build, 5 if training else 1)
        if training:
            return build.node("BatchNormalization", node.inputs, 5, "", node.attributes)[:3]
        node.set_outputs(node.outputs[:1])
        return None

    def downgrade_7(node: Node, build: Builder) -> None:
        node.set_attribute("is_test", int(not _trains(node)))

    def downgrade_6(node: Node, build: Builder) -> None:
        node.set_attribute("consumed_inputs", [0, 0, 0, 1, 1])


def _trains(node: Node) -> bool:
    """Before opset 14, outputs beyond the first said that statistics come from the batch."""
    return any(item.name for item in node.outputs[1:])


def _in_one_type(node: Node, build: Builder, outputs: int | None = None) -> Any:
    """The same with all inputs cast to float or double, and the outputs cast back."""
    kinds = [element_type(value) for value in node.inputs]
    wide = DataType.DOUBLE if DataType.DOUBLE in kinds else DataType.FLOAT
    inputs = tuple(build.Cast(value, to=int(wide)) for value in node.inputs)
    count = len(node.outputs) if outputs is None else outputs
    made = build.node("BatchNormalization", inputs, count, "", node.attributes)
    results: tuple[Value, ...] = made if count > 1 else (made,)
    back = [kinds[0], kinds[3], kinds[4]]
    return tuple(
        build.Cast(value, to=int(wide if kind is None else kind))
        for value, kind in zip(results, back, strict=False)
    )
