"""onnxruntime's ModelCompiler: writes a model as a session with these options would see it."""

from collections.abc import Callable
from logging import getLogger
from pathlib import Path
from typing import Any

from sardonyx.compat.onnxruntime.devices import OrtCompileApiFlags
from sardonyx.compat.onnxruntime.errors import Fail, InvalidArgument
from sardonyx.compat.onnxruntime.session import in_their_classes
from sardonyx.format.save import save, to_bytes
from sardonyx.ops.catalog import standard
from sardonyx.runtime import GraphOptimizationLevel, SessionOptions
from sardonyx.runtime.prepare import optimize_model, read_model

_log = getLogger("sardonyx")


class ModelCompiler:
    """Prepares a model once: optimized as asked for, in the ONNX format.

    Machine code is not part of that format; it is made when a session is.
    """

    @in_their_classes
    def __init__(
        self,
        sess_options: SessionOptions,
        input_model_path_or_bytes: Any,
        embed_compiled_data_into_model: bool = False,
        external_initializers_file_path: str | None = None,
        external_initializers_size_threshold: int = 1024,
        flags: int = OrtCompileApiFlags.NONE,
        graph_optimization_level: GraphOptimizationLevel = GraphOptimizationLevel.ORT_DISABLE_ALL,
        get_initializer_location_func: Callable[..., Any] | None = None,
    ) -> None:
        if get_initializer_location_func is not None:
            raise InvalidArgument(
                "initializers cannot be placed one by one",
                hint="pass external_initializers_file_path, which takes all of them",
            )
        model = read_model(input_model_path_or_bytes, sess_options)
        options = SessionOptions()
        options.graph_optimization_level = graph_optimization_level
        self._model = optimize_model(model, options, standard())
        self._source = input_model_path_or_bytes
        self._external = external_initializers_file_path
        self._threshold = external_initializers_size_threshold
        self._flags = int(flags)

    @in_their_classes
    def compile_to_file(self, output_model_path: str | None = None) -> None:
        """Write the model, by default beside the one it was made from."""
        if output_model_path is None:
            if not isinstance(self._source, str | Path):
                raise InvalidArgument("a model made from bytes needs a path to be written to")
            output_model_path = str(Path(self._source).with_suffix("")) + "_ctx.onnx"
        path = Path(output_model_path)
        self._require_allowed()
        if self._flags & OrtCompileApiFlags.ERROR_IF_OUTPUT_FILE_EXISTS and path.exists():
            raise Fail(f"'{path}' exists already", hint="remove it, or choose another name")
        save(self._model, path, external_data=self._external, size_threshold=self._threshold)

    @in_their_classes
    def compile_to_bytes(self) -> bytes:
        """The model as bytes."""
        self._require_allowed()
        return to_bytes(self._model)

    @in_their_classes
    def compile_to_stream(self, write_function: Callable[[bytes], Any]) -> None:
        """Pass the model's bytes to a function."""
        write_function(self.compile_to_bytes())

    def set_ep_context_data_write_func(self, function: Callable[..., Any]) -> None:
        """Accepted: no provider here keeps data of its own in a model."""
        _log.info("set_ep_context_data_write_func has no effect")

    def clear_ep_context_data_write_func(self) -> None:
        """Accepted: no provider here keeps data of its own in a model."""

    def _require_allowed(self) -> None:
        if self._flags & OrtCompileApiFlags.ERROR_IF_NO_NODES_COMPILED:
            raise Fail(
                "no nodes are compiled into the model",
                hint="native code is made when a session is; leave the flag out",
            )
