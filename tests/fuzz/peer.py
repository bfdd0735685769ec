"""onnxruntime as a third opinion, in a child of its own: its crashes and hangs are not ours.

Known disagreements are put into classes, each with its reason; any other is a finding.
"""

import os
import pickle
import select
import signal
import struct
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from tests.fuzz.difference import difference, is_float
from tests.fuzz.judge import moved_reference
from tests.fuzz.trial import Feeds, Trial

SECONDS = 5
COARSE = 2.0**-19
"""How finely results are compared: onnxruntime's own functions are off by some steps of float32,
which differences of intermediate results make larger."""


class Peer:
    """A child that runs models in onnxruntime; made anew after each end."""

    def __init__(self) -> None:
        self.child = 0
        self.to = self.back = -1

    def _start(self) -> None:
        to, back = os.pipe(), os.pipe()
        self.child = os.fork()
        if not self.child:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)
            os.close(to[1])
            os.close(back[0])
            _serve(to[0], back[1])
        os.close(to[0])
        os.close(back[1])
        self.to, self.back = to[1], back[0]

    def run(self, model: bytes, feeds: Feeds) -> list[Any] | None:
        """The results; None where it refuses, crashes or takes too long."""
        if not self.child:
            self._start()
        try:
            _send(self.to, (model, feeds))
        except OSError:
            self.close()
            return None
        if not select.select([self.back], [], [], SECONDS)[0]:
            self.close()
            return None
        answer = _receive(self.back)
        if answer is None:
            self.close()
            return None
        return answer[0]

    def close(self) -> None:
        """End the child."""
        if self.child:
            os.kill(self.child, signal.SIGKILL)
            os.waitpid(self.child, 0)
            os.close(self.to)
            os.close(self.back)
            self.child = 0

    def disagrees(self, trial: Trial, feeds: Feeds, found: Any) -> str:
        """How it differs from `found`; empty where it does not or where a class explains it."""
        if not isinstance(found, list):
            return ""
        wanted = self.run(trial.model, feeds)
        if wanted is None:
            return ""
        said = difference(trial.model, feeds, found, wanted, self.run, COARSE, moved_reference)
        if not said:
            return ""
        model = onnx.ModelProto.FromString(trial.model)
        case = Disagreement(model, feeds, found, wanted, said)
        return "" if any(known.holds(case) for known in CLASSES) else said


def _serve(source: int, sink: int) -> None:
    """Answer until the pipe closes."""
    import onnxruntime

    warnings.simplefilter("ignore")
    while (request := _receive(source)) is not None:
        model, feeds = request
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        try:
            session = onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])
            _send(sink, (session.run(None, feeds),))
        except Exception:  # noqa: BLE001 - a refusal, whatever its type
            _send(sink, (None,))
    os._exit(0)


def _send(pipe: int, message: Any) -> None:
    data = pickle.dumps(message)
    data = struct.pack("<q", len(data)) + data
    while data:
        data = data[os.write(pipe, data) :]


def _receive(pipe: int) -> Any:
    head = _read(pipe, 8)
    data = _read(pipe, struct.unpack("<q", head)[0]) if head else b""
    return pickle.loads(data) if data else None


def _read(pipe: int, size: int) -> bytes:
    parts = []
    while size:
        part = os.read(pipe, min(size, 1 << 20))
        if not part:
            return b""
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


@dataclass(frozen=True)
class Disagreement:
    """What differs between us and onnxruntime."""

    model: onnx.ModelProto
    feeds: Feeds
    found: list[Any]
    wanted: list[Any]
    said: str

    @property
    def operators(self) -> set[str]:
        """The operators of the main graph."""
        return {node.op_type for node in self.model.graph.node}

    def arrays(self) -> list[Any]:
        """What is fed, and the constants."""
        fed = [item for item in self.feeds.values() if isinstance(item, np.ndarray)]
        return fed + [onnx.numpy_helper.to_array(item) for item in self.model.graph.initializer]

    def odd_floats(self) -> bool:
        """Whether a feed or constant has NaN, infinities or numbers near the ends."""
        for array in self.arrays():
            if is_float(array.dtype) and array.size:
                with np.errstate(all="ignore"):
                    wide = np.abs(array.astype(np.float64))
                if not np.isfinite(wide).all() or wide.max() > 1e8:
                    return True
        return False


@dataclass(frozen=True)
class Class:
    """Disagreements that are known: where, and why we keep to our result."""

    name: str
    reason: str
    holds: Callable[[Disagreement], bool]


def _odd(*operators: str) -> Callable[[Disagreement], bool]:
    return lambda case: bool(case.operators & set(operators)) and case.odd_floats()


def _flags(case: Disagreement) -> bool:
    return any(
        item.type == onnx.AttributeProto.INT and item.name in FLAGS and item.i not in (0, 1)
        for node in case.model.graph.node
        for item in node.attribute
    )


def _empty_sum(case: Disagreement) -> bool:
    sums = ("MatMul", "Gemm", "QLinear", "Einsum", "Conv", "Reduce", "Arg", "Pool", "Softmax")
    found = any(word in name for name in case.operators for word in sums)
    return found and (any(item.size == 0 for item in case.arrays()) or _makes_nothing(case))


def _makes_nothing(case: Disagreement) -> bool:
    """Whether the result of some operator has no elements."""
    sizes: set[int] = set()

    def look(_: str, array: Any) -> Any:
        sizes.add(array.size)
        return array

    moved_reference(case.model.SerializeToString(), case.feeds, look)
    return 0 in sizes


def _wrapped_part(case: Disagreement) -> bool:
    wraps = any(
        node.op_type == "Pad" and item.name == "mode" and item.s == b"wrap"
        for node in case.model.graph.node
        for item in node.attribute
    )
    return wraps and any(item.dtype == np.int64 and (item < 0).any() for item in case.arrays())


def _long_sums(case: Disagreement) -> bool:
    held = [*case.arrays(), *(item for item in case.found if isinstance(item, np.ndarray))]
    large = any(item.dtype == np.int64 and (np.abs(item / 2.0**53) > 1).any() for item in held)
    return large and "ReduceSum" in case.operators


def _backward_to_the_end(case: Disagreement) -> bool:
    whole = [item for item in case.arrays() if item.dtype.kind == "i"]
    last = any((item == np.iinfo(item.dtype).max).any() for item in whole)
    return "Slice" in case.operators and last and any((item < 0).any() for item in whole)


def _whole_logarithms(case: Disagreement) -> bool:
    names = {"ReduceLogSum", "ReduceLogSumExp", "ReduceL2"}
    whole = any(item.dtype.kind in "iu" and item.dtype.itemsize > 1 for item in case.found)
    return bool(case.operators & names) and whole


FLAGS = frozenset(
    {"keepdims", "exclusive", "reverse", "select_last_index", "largest", "sorted", "fmod",
     "noop_with_empty_axes", "allowzero", "upper", "inverse", "onesided", "periodic", "transA",
     "transB", "align_corners", "center_point_box", "count_include_pad", "ceil_mode",
     "interleaved", "saturate", "nan_mode", "is_causal", "antialias", "training_mode"}
)  # fmt: skip

CLASSES: tuple[Class, ...] = (
    Class("flags", "An attribute that is a flag has another number than 0 and 1, which the "
          "specification leaves open: we take it as set, onnxruntime compares with 1.", _flags),
    Class("bytes for floats", "onnxruntime gives floats of eight bits, and numbers of four, as "
          "arrays of bytes.", lambda case: case.said.endswith("for uint8")),
    Class("no terms", "onnxruntime leaves memory unwritten, or an empty dimension, where what is "
          "summed or compared is empty; an empty sum is 0, an empty product 1.", _empty_sum),
    Class("functions of whole numbers", "onnxruntime takes exponentials, logarithms and roots of "
          "integers in their own type, where they overflow; here they are rounded at the end.",
          _whole_logarithms),
    Class("sums of long integers", "onnxruntime's ReduceSum of int64 goes through float64, which "
          "rounds beyond 2**53; here sums are exact, modulo 2**64.", _long_sums),
    Class("backward to the largest end", "A Slice with a negative step and an end of the type's "
          "largest number takes nothing, as the specification clamps that end to the last index; "
          "onnxruntime takes it for what lies before the first.", _backward_to_the_end),
    Class("wrapped and cropped", "Pad wraps around as if the data were a torus: all of the data; "
          "onnxruntime takes what a negative pad leaves of it.", _wrapped_part),
    Class("floats to integers", "What NaN, infinities and numbers beyond the type become as "
          "integers is left open.",
          _odd("DynamicQuantizeLinear", "QuantizeLinear", "Cast", "CastLike", "OneHot")),
    Class("clamped activations", "onnxruntime's recurrent layers clamp what their activations get, "
          "NaN included.", _odd("RNN", "GRU", "LSTM")),
    Class("masks that are infinite", "A mask of +infinity where causal order excludes adds up to "
          "NaN, as in the function that defines Attention; onnxruntime sets instead of adding.",
          _odd("Attention")),
    Class("running sums", "onnxruntime's LRN adds and subtracts at the ends of its window, so that "
          "an overflow stays for the rest of the row.", _odd("LRN")),
    Class("order of NaN", "Comparisons with NaN are false in onnxruntime, so that what NaN gives "
          "depends on its place; here NaN is the largest, as in NumPy.",
          _odd("Hardmax", "ArgMax", "ArgMin", "TopK", "ReduceMax", "ReduceMin", "MaxPool", "Clip",
               "GlobalMaxPool", "Relu", "Max", "Min", "Unique", "NonMaxSuppression")),
    Class("coordinates", "onnxruntime rounds coordinates to float32 before it weighs, so that a "
          "neighbour with a weight of 0 counts where it is very large.",
          _odd("Resize", "Upsample", "GridSample", "RoiAlign", "AffineGrid")),
)  # fmt: skip
"""Every known disagreement. Each was looked at; where a rule of the specification decides, our
result follows it."""
