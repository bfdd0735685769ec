"""Rules about device configurations: how a model may be spread over devices."""

from typing import Any

from sardonyx.checker.context import Context
from sardonyx.checker.findings import Place, Report
from sardonyx.checker.versions import DEVICES
from sardonyx.graph import Model, Node


def device_counts(report: Report, model: Model, place: Place) -> dict[str, int]:
    """The model's device configurations, each with its number of devices; notes wrong ones."""
    counts: dict[str, int] = {}
    for record in model.device_configurations:
        name, count = record.values.get("name", ""), record.values.get("num_devices", 0)
        devices = record.values.get("device", [])
        if not name:
            what = "a device configuration has no name"
            report.add("device-configuration-unnamed", place, what)
        elif name in counts:
            what = f"two device configurations are called '{name}'"
            report.add("device-configuration-duplicate", place, what)
        if devices and len(devices) != count:
            what = f"the configuration '{name}' has {count} devices and lists {len(devices)}"
            report.add("device-count", place, what)
        counts[name] = count
    return counts


def check_node_devices(context: Context, node: Node, place: Place) -> None:
    """A node's device configurations name one of the model's, and the node's own tensors."""
    context.require_ir(DEVICES, "device configurations", place)
    names = {value.name for value in (*node.inputs, *node.outputs) if value is not None}
    for record in node.device_configurations or ():
        wanted = record.values.get("configuration_id", "")
        if wanted not in context.devices:
            what = f"the model has no device configuration '{wanted}'"
            context.report.add("device-configuration-unknown", place, what)
        specs: list[Any] = record.values.get("sharding_spec", [])
        for spec in specs:
            tensor = spec.values.get("tensor_name", "")
            if tensor not in names:
                what = f"a sharding names '{tensor}', which the node neither reads nor makes"
                context.report.add("sharding-tensor-unknown", place, what)
