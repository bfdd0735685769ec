"""Cut a part out of a model."""

import os
import tarfile
from collections import deque
from collections.abc import Iterable
from typing import Any

from sardonyx.compat.onnx import helper
from sardonyx.compat.onnx._nesting import check_nesting

__all__ = ["Extractor", "extract_model"]


class Extractor:
    """Cuts parts, given by the names of their inputs and outputs, out of one model.

    `initializers` and `value_infos` find tensors and types by name (inputs and outputs are among
    the types), `outmap` the position of the node that makes a value.

    >>> from sardonyx.compat.onnx import helper, utils
    >>> x, t, y = (helper.make_tensor_value_info(name, 1, [2]) for name in "xty")
    >>> nodes = [helper.make_node("Relu", ["x"], ["t"]), helper.make_node("Abs", ["t"], ["y"])]
    >>> model = helper.make_model(helper.make_graph(nodes, "g", [x], [y], value_info=[t]))
    >>> part = utils.Extractor(model).extract_model(["t"], ["y"])
    >>> [node.op_type for node in part.graph.node]
    ['Abs']
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self.graph = model.graph
        self.initializers: dict[str, Any] = self._build_name2obj_dict(self.graph.initializer)
        self.value_infos: dict[str, Any] = {
            **self._build_name2obj_dict(self.graph.value_info),
            **self._build_name2obj_dict(self.graph.input),
            **self._build_name2obj_dict(self.graph.output),
        }
        self.outmap: dict[str, int] = self._build_output_dict(self.graph)

    @staticmethod
    def _build_name2obj_dict(objs: Iterable[Any]) -> dict[str, Any]:
        return {item.name: item for item in objs}

    @staticmethod
    def _build_output_dict(graph: Any) -> dict[str, int]:
        """The position of the node that makes each value; two makers are an AssertionError."""
        positions: dict[str, int] = {}
        for position, node in enumerate(graph.node):
            for name in filter(None, node.output):
                if name in positions:
                    raise AssertionError(
                        f"value {name!r} is made twice, by nodes {positions[name]} and {position}"
                        f" ({node.op_type}); give each output a name of its own"
                    )
                positions[name] = position
        return positions

    def _collect_new_io(self, io_names_to_extract: list[str]) -> list[Any]:
        """The described values of these names, which must all be known."""
        unknown = [name for name in io_names_to_extract if name not in self.value_infos]
        if unknown:
            raise ValueError(
                f"no type is known for {', '.join(unknown)} (neither input, output nor"
                " value_info); run shape inference first or correct the names"
            )
        return [self.value_infos[name] for name in io_names_to_extract]

    def _dfs_search_reachable_nodes(
        self, node_output_name: str, graph_input_names: set[str], reachable: set[int]
    ) -> None:
        """Add to `reachable` the nodes that one value needs, going back no further than inputs."""
        nodes = self.graph.node
        pending = [node_output_name]
        while pending:
            name = pending.pop()
            position = self.outmap.get(name)
            if name in graph_input_names or position is None or position in reachable:
                continue
            reachable.add(position)
            pending.extend(filter(None, nodes[position].input))

    def _collect_reachable_nodes(
        self, input_names: list[str], output_names: list[str]
    ) -> list[Any]:
        """The nodes between these inputs and outputs, in their original order."""
        boundary = set(input_names)
        reachable: set[int] = set()
        for name in output_names:
            self._dfs_search_reachable_nodes(name, boundary, reachable)
        return [self.graph.node[position] for position in sorted(reachable)]

    def _collect_referred_local_functions(self, nodes: list[Any]) -> list[Any]:
        """The local functions that `nodes` call, directly or through others; first called first."""
        unused = {(function.name, function.domain): function for function in self.model.functions}
        called = []
        pending = deque(nodes)
        while pending:
            node = pending.popleft()
            function = unused.pop((node.op_type, node.domain), None)
            if function is not None:
                called.append(function)
                pending.extend(function.node)
        return called

    def _collect_reachable_tensors(self, nodes: list[Any]) -> tuple[list[Any], list[Any]]:
        """The initializers and value types that `nodes` mention."""
        mentioned: set[str] = set()
        for node in nodes:
            mentioned.update(node.input, node.output)
        for field in ("sparse_initializer", "quantization_annotation"):
            count = len(getattr(self.graph, field))
            if count:
                raise ValueError(
                    f"the graph has {count} {field} entries, which cannot be extracted;"
                    " remove them first"
                )
        return (
            [tensor for name, tensor in self.initializers.items() if name in mentioned],
            [value for name, value in self.value_infos.items() if name in mentioned],
        )

    def _make_model(
        self,
        nodes: list[Any],
        inputs: list[Any],
        outputs: list[Any],
        initializer: list[Any],
        value_info: list[Any],
        local_functions: list[Any],
    ) -> Any:
        """These parts as a model with the versions of the original one."""
        check_nesting(nodes, f"graph {self.graph.name!r}")
        for function in local_functions:
            check_nesting(function.node, f"function {function.name!r}")
        graph = helper.make_graph(
            nodes,
            f"Extracted from {{{self.graph.name}}}",
            inputs,
            outputs,
            initializer=initializer,
            value_info=value_info,
        )
        return helper.make_model(
            graph,
            ir_version=self.model.ir_version,
            opset_imports=self.model.opset_import,
            producer_name="onnx.utils.extract_model",
            functions=local_functions,
        )

    def extract_model(self, input_names: list[str], output_names: list[str]) -> Any:
        """The part of the model that computes `output_names` from `input_names`.

        >>> from sardonyx.compat.onnx import helper, utils
        >>> x, y, z = (helper.make_tensor_value_info(name, 1, [2]) for name in "xyz")
        >>> nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Abs", ["x"], ["z"])]
        >>> model = helper.make_model(helper.make_graph(nodes, "g", [x], [y, z]))
        >>> part = utils.Extractor(model).extract_model(["x"], ["z"])
        >>> [node.op_type for node in part.graph.node]
        ['Abs']
        """
        inputs = self._collect_new_io(input_names)
        outputs = self._collect_new_io(output_names)
        nodes = self._collect_reachable_nodes(input_names, output_names)
        initializer, value_info = self._collect_reachable_tensors(nodes)
        functions = self._collect_referred_local_functions(nodes)
        return self._make_model(nodes, inputs, outputs, initializer, value_info, functions)


def extract_model(
    input_path: str | os.PathLike[str],
    output_path: str | os.PathLike[str],
    input_names: list[str],
    output_names: list[str],
    check_model: bool = True,
    infer_shapes: bool = True,
) -> None:
    """Write the part of a model file between the named values to another model file.

    The boundary may not run through a graph inside a node (If, Loop). `check_model` checks both
    files, `infer_shapes` first finds the types of inner values, so that they can be the boundary.
    A part beyond 2 GB gets its weights in a file `<output_path>.data` beside it.

    >>> import os, tempfile
    >>> from sardonyx.compat import onnx
    >>> x, y = (onnx.helper.make_tensor_value_info(name, 1, [2]) for name in "xy")
    >>> nodes = [onnx.helper.make_node(*part) for part in
    ...          (("Relu", ["x"], ["t"]), ("Abs", ["t"], ["y"]))]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     whole, part = os.path.join(folder, "whole.onnx"), os.path.join(folder, "part.onnx")
    ...     onnx.save(onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", [x], [y])), whole)
    ...     onnx.utils.extract_model(whole, part, ["x"], ["t"])
    ...     [node.op_type for node in onnx.load(part).graph.node]
    ['Relu']
    """
    from sardonyx.compat import onnx
    from sardonyx.compat.onnx import checker

    _check_request(input_path, output_path, input_names, output_names)
    if check_model:
        checker.check_model(input_path)
    model = _load_with_types(input_path, output_path) if infer_shapes else onnx.load(input_path)
    extracted = Extractor(model).extract_model(input_names, output_names)
    if extracted.ByteSize() > checker.MAXIMUM_PROTOBUF:
        location = os.path.basename(output_path) + ".data"
        onnx.save(extracted, output_path, save_as_external_data=True, location=location)
    else:
        onnx.save(extracted, output_path)
    if check_model:
        checker.check_model(output_path)


def _check_request(
    input_path: str | os.PathLike[str],
    output_path: str | os.PathLike[str],
    input_names: list[str],
    output_names: list[str],
) -> None:
    if not os.path.exists(input_path):
        raise ValueError(f"there is no model file {input_path}")
    if not output_path:
        raise ValueError("output_path is empty; say where to write the part")
    for role, names in (("input", input_names), ("output", output_names)):
        if not names:
            raise ValueError(f"{role}_names is empty; name at least one value")
    for role, names in (("input", input_names), ("output", output_names)):
        if len(names) != len(set(names)):
            raise ValueError(f"{role}_names has a name twice: {', '.join(map(str, names))}")


def _load_with_types(
    input_path: str | os.PathLike[str], output_path: str | os.PathLike[str]
) -> Any:
    """The model with inferred types; one too large for a message goes through `output_path`."""
    from sardonyx.compat import onnx
    from sardonyx.compat.onnx import checker, shape_inference

    if os.path.getsize(input_path) > checker.MAXIMUM_PROTOBUF:
        shape_inference.infer_shapes_path(input_path, output_path)
        return onnx.load(output_path)
    model = shape_inference.infer_shapes(onnx.load(input_path, load_external_data=False))
    onnx.load_external_data_for_model(model, os.path.dirname(input_path))
    return model


def _tar_members_filter(
    tar: tarfile.TarFile, base: str | os.PathLike[str]
) -> list[tarfile.TarInfo]:
    """All members of `tar`, if each is a plain file or folder that stays inside `base`."""
    root = os.path.abspath(base)
    members = []
    for member in tar:
        path = os.path.join(base, member.name)
        if not _is_inside(root, os.path.abspath(path)):
            raise RuntimeError(
                f"archive member {path} leaves {root} (directory traversal);"
                " the archive is not safe to unpack"
            )
        if member.issym() or member.islnk():
            raise RuntimeError(
                f"archive member {path} is a link (symbolic links can lead outside {root});"
                " the archive is not safe to unpack"
            )
        members.append(member)
    return members


def _is_inside(root: str, path: str) -> bool:
    try:
        return os.path.commonpath([root, path]) == root
    except ValueError:
        return False


def _extract_model_safe(
    model_tar_path: str | os.PathLike[str],
    local_model_with_data_dir_path: str | os.PathLike[str],
) -> None:
    """Unpack an archive into a folder; members that would land outside it are refused."""
    folder = local_model_with_data_dir_path
    with tarfile.open(model_tar_path) as archive:
        if hasattr(tarfile, "data_filter"):
            archive.extractall(path=folder, filter="data")
        else:
            archive.extractall(path=folder, members=_tar_members_filter(archive, folder))
