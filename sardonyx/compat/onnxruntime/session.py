"""Sessions as onnxruntime has them: all its methods, and errors of its classes."""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from logging import getLogger
from typing import Any

from sardonyx import runtime
from sardonyx.compat.onnxruntime.devices import (
    OrtEpAssignedNode,
    OrtEpAssignedSubgraph,
    OrtEpDevice,
    OrtMemoryInfo,
    get_ep_devices,
)
from sardonyx.compat.onnxruntime.errors import ModelLoadCanceled, translated
from sardonyx.errors import CancelledError, InputError, SardonyxError
from sardonyx.runtime import IOBinding, OrtValue, RunOptions, RunProfile, SessionOptions

_log = getLogger("sardonyx")


class OrtValueVector(list[OrtValue]):
    """Values in a row."""


def in_their_classes(call: Callable[..., Any]) -> Callable[..., Any]:
    """The same call with errors of onnxruntime's classes."""

    @wraps(call)
    def wrapped(*arguments: Any, **options: Any) -> Any:
        try:
            return call(*arguments, **options)
        except SardonyxError as error:
            raise translated(error) from error

    return wrapped


class InferenceSession(runtime.InferenceSession):
    """A session whose errors are of onnxruntime's classes."""

    def __init__(
        self,
        path_or_bytes: Any,
        sess_options: SessionOptions | None = None,
        providers: Sequence[Any] | None = None,
        provider_options: Sequence[Mapping[Any, Any]] | None = None,
        **kwargs: Any,
    ) -> None:
        try:
            super().__init__(path_or_bytes, sess_options, providers, provider_options, **kwargs)
        except CancelledError as error:
            raise ModelLoadCanceled(error.what, hint=error.hint) from error
        except SardonyxError as error:
            raise translated(error) from error

    @in_their_classes
    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
        **options: Any,
    ) -> Any:
        """Run the model; see `sardonyx.InferenceSession.run`."""
        return super().run(output_names, input_feed, run_options, **options)

    @in_their_classes
    def run_with_iobinding(
        self, iobinding: IOBinding, run_options: RunOptions | None = None
    ) -> None:
        """Run on what is bound, and put results where they are bound."""
        super().run_with_iobinding(iobinding, run_options)

    @in_their_classes
    def run_with_ortvaluevector(
        self,
        run_options: RunOptions | None,
        feed_names: Sequence[str],
        feeds: Sequence[OrtValue],
        fetch_names: Sequence[str],
        fetches: list[OrtValue],
        fetch_devices: Sequence[Any] = (),
    ) -> None:
        """Run on values in the order of `feed_names`; `fetches` then holds the results."""
        if len(feed_names) != len(feeds):
            raise InputError(f"there are {len(feed_names)} names and {len(feeds)} values")
        given = dict(zip(feed_names, feeds, strict=True))
        fetches[:] = self.run_with_ort_values(list(fetch_names), given, run_options)

    @in_their_classes
    def set_providers(
        self,
        providers: Sequence[Any] | None = None,
        provider_options: Sequence[Mapping[Any, Any]] | None = None,
    ) -> None:
        """Make the session again with other providers."""
        super().set_providers(providers, provider_options)

    @in_their_classes
    def end_profiling(self) -> str:
        """Write what was recorded as a Chrome trace, and return the file's name."""
        return super().end_profiling()

    @in_their_classes
    def profile(self, feeds: Mapping[str, Any], *, runs: int = 5, warmups: int = 1) -> RunProfile:
        """Run the model some times and say how long each kernel and each node took."""
        return super().profile(feeds, runs=runs, warmups=warmups)

    def create_ortvalue_from_shape_and_type(
        self, shape: Sequence[int], element_type: Any, device_type: str = "cpu",
        device_id: int = 0, vendor_id: int = -1,
    ) -> OrtValue:  # fmt: skip
        """Memory for a tensor."""
        return OrtValue.ortvalue_from_shape_and_type(shape, element_type, device_type, device_id)

    def get_provider_graph_assignment_info(self) -> list[OrtEpAssignedSubgraph]:
        """Which provider runs which nodes: the first one all of them."""
        assert self._model.graph is not None
        nodes = tuple(
            OrtEpAssignedNode(node.name, node.domain, node.op_type)
            for node in self._model.graph.nodes
        )
        return [OrtEpAssignedSubgraph(self.get_providers()[0], nodes)]

    def get_input_memory_infos(self) -> list[OrtMemoryInfo]:
        """Where inputs lie."""
        return [OrtMemoryInfo() for _ in self.get_inputs()]

    def get_output_memory_infos(self) -> list[OrtMemoryInfo]:
        """Where outputs lie."""
        return [OrtMemoryInfo() for _ in self.get_outputs()]

    def get_input_epdevices(self) -> list[OrtEpDevice]:
        """The device of each input."""
        return [device for _ in self.get_inputs() for device in get_ep_devices()]

    def get_tuning_results(self) -> list[dict[str, Any]]:
        """Nothing is tuned at run time."""
        return []

    def set_tuning_results(
        self, results: Sequence[Mapping[str, Any]], *, error_on_invalid: bool = False
    ) -> None:
        """Accepted: nothing is tuned at run time."""
        _log.info("tuning results have no effect: %d were given", len(results))

    def set_ep_dynamic_options(self, options: Mapping[str, str]) -> None:
        """Accepted: no option of a provider can change later."""
        _log.info("options of a provider have no effect later: %s", ", ".join(options))

    def release_captured_graph(self, graph_annotation_id: int = 0) -> None:
        """Accepted: no graphs are captured."""
