"""Models of every operator version that has a successor, and the peers that run them.

Most come from the official suite, brought to an opset of the version; the rest are written
here. What is compared is the old model on a peer with the old model here, so it does not matter
how the old model came about, as long as it holds a node of that version.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

from sardonyx.errors import SardonyxError
from sardonyx.format.load import load_text
from sardonyx.format.read import read_model
from sardonyx.format.write import write_model
from sardonyx.graph import Model, TensorType
from sardonyx.ops.catalog import canonical_domain, standard
from sardonyx.ops.convert import convert_opset
from tests.conformance import suite

READABLE_IR, READABLE_OPSET = 10, 26
"""What onnxruntime reads."""
MOST_TRIED = 40
"""How many cases of the suite are looked at for one version."""


@dataclass(frozen=True)
class Version:
    """A version of an operator, and the opset to look at it in."""

    domain: str
    name: str
    since: int
    opset: int

    @property
    def label(self) -> str:
        """A short name, such as `Softmax-11`."""
        place = f"{self.domain}." if self.domain else ""
        return f"{place}{self.name}-{self.since}"


@dataclass(frozen=True)
class OldModel:
    """A model that holds a node of an old version, with inputs in the graph's order."""

    label: str
    content: bytes
    inputs: list[Any]
    expected: list[Any] | None = None
    """What the suite, or the same thing said at opset 17, gives."""
    exact: bool = True
    """False where outputs are random."""
    rtol: float = 1e-3
    atol: float = 1e-5


@cache
def versions() -> tuple[Version, ...]:
    """Every version that has a successor, which may be a deprecation."""
    return tuple(
        Version(domain, name, version.since, _opset(version.since, later.since - 1))
        for (domain, name), operator in sorted(standard().items())
        for version, later in zip(operator.versions(), operator.versions()[1:], strict=False)
    )


def _opset(first: int, last: int) -> int:
    """The last opset of a version that peers read, or the first one."""
    return max(first, min(last, READABLE_OPSET))


def old_models(version: Version) -> Iterator[OldModel]:
    """Models for one version: those written here, then those of the suite."""
    text = WRITTEN.get(version.label)
    if text is not None:
        yield _written(version, text)
    for case in _cases()[version.domain, version.name][:MOST_TRIED]:
        for fixed in (False, True):
            content = _brought_back(case, version, fixed=fixed)
            if content is not None:
                inputs = case.data_sets[0][0][: len(input_names(content))]
                half = any(getattr(item, "dtype", None) == np.float16 for item in inputs)
                rtol = 1e-2 if half else max(case.rtol, 1e-3)
                expected, exact = case.data_sets[0][1], case.name not in suite.RANDOM
                atol = max(case.atol, 1e-5)
                yield OldModel(case.name, content, inputs, expected, exact, rtol, atol)
                break


@cache
def _cases() -> dict[tuple[str, str], list[suite.Case]]:
    """Cases of the suite by operator: the fewest nodes first, those with few elements last."""
    found: dict[tuple[str, str], list[suite.Case]] = defaultdict(list)
    for kind in suite.KINDS:
        for case in suite.cases(kind):
            if case.data_sets:
                for key in {(node.domain, node.op_type) for node in case.model.graph.node}:
                    found[key].append(case)
    for cases in found.values():
        cases.sort(key=lambda case: (len(case.model.graph.node), _is_tiny(case)))
    return found


def _is_tiny(case: suite.Case) -> bool:
    arrays = [item for item in case.data_sets[0][0] if isinstance(item, np.ndarray)]
    return sum(item.size for item in arrays) < 2


def _brought_back(case: suite.Case, version: Version, *, fixed: bool) -> bytes | None:
    """A case at a version's opset; None where that cannot be, or has no such node.

    `fixed` makes constants of all inputs but the first: parameters used to be attributes.
    """
    source = _with_constants(case) if fixed else case.model
    model = read_model(memoryview(source.SerializeToString()), case.name, None)
    model.ir_version = min(model.ir_version, READABLE_IR)
    try:
        older = convert_opset(model, version.opset, version.domain)
    except SardonyxError:
        return None
    return write_model(older).joined() if _holds(older, version) else None


def _holds(model: Model, version: Version) -> bool:
    assert model.graph is not None
    return any(
        (canonical_domain(node.domain), node.op_type) == (version.domain, version.name)
        for node in model.graph.nodes
    )


def _with_constants(case: suite.Case) -> onnx.ModelProto:
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    pairs = list(zip(case.model.graph.input, case.data_sets[0][0], strict=False))
    for info, value in pairs[1:]:
        if isinstance(value, np.ndarray):
            model.graph.initializer.append(numpy_helper.from_array(value, info.name))
            model.graph.input.remove(info)
    return model


def _written(version: Version, text: str) -> OldModel:
    """A model from its text; floats are drawn, other inputs are whole numbers from 0 up."""
    domain = f', "{version.domain}": {version.opset}' if version.domain else ""
    model = _parsed(text, 17 if version.domain else version.opset, domain)
    assert _holds(model, version)
    assert model.graph is not None
    random = np.random.default_rng(version.since)
    inputs = []
    for value in model.graph.inputs:
        assert isinstance(value.type, TensorType) and value.type.shape is not None
        shape, dtype = [int(str(size)) for size in value.type.shape], value.type.element.numpy
        drawn = random.uniform(0.1, 2, shape)
        counted = np.arange(np.prod(shape, dtype=int)).reshape(shape)
        if dtype.kind == "O":
            drawn = counted = np.array([f"w{item % 4}" for item in counted.flat], object)
        inputs.append((drawn if dtype.kind == "f" else counted).reshape(shape).astype(dtype))
    old = OldModel("written", write_model(model).joined(), inputs)
    if version.label not in NEWER_FORM:
        return old
    newer = write_model(_parsed(NEWER_FORM[version.label], 17)).joined()
    return replace(old, expected=run_onnxruntime(replace(old, content=newer)))


def _parsed(text: str, opset: int, domain: str = "") -> Model:
    return load_text(f'<ir_version: 8, opset_import: ["": {opset}{domain}]>\n' + text)


def input_names(content: bytes) -> list[str]:
    """The names of a graph's inputs that have no initializer."""
    graph = onnx.load_from_string(content).graph
    held = {item.name for item in graph.initializer}
    return [item.name for item in graph.input if item.name not in held]


def run_onnxruntime(model: OldModel) -> list[Any]:
    """What onnxruntime makes of it, with nothing rewritten."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    providers = ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(model.content, options, providers=providers)
    names = [item.name for item in session.get_inputs()]
    return session.run(None, dict(zip(names, model.inputs, strict=True)))


def run_onnx(model: OldModel) -> list[Any]:
    """What onnx's reference makes of it."""
    evaluator = ReferenceEvaluator(onnx.load_from_string(model.content))
    names = input_names(model.content)
    results = evaluator.run(None, dict(zip(names, model.inputs, strict=True)))
    return [np.asarray(item) if isinstance(item, np.generic) else item for item in results]


PEERS = {"onnxruntime": run_onnxruntime, "onnx": run_onnx}

TREE = (
    "nodes_treeids=[0,0,0], nodes_nodeids=[0,1,2], nodes_featureids=[1,0,0],"
    ' nodes_values=[1.0,0.0,0.0], nodes_modes=["BRANCH_LEQ","LEAF","LEAF"],'
    " nodes_truenodeids=[1,0,0], nodes_falsenodeids=[2,0,0]"
)
CLASSIFIER = f"""g (float[8,3] x) => (int64[8] y, float[8,3] z) {{
  y, z = ai.onnx.ml.TreeEnsembleClassifier<{TREE}, class_treeids=[0,0,0], class_nodeids=[1,2,2],
    class_ids=[0,1,2], class_weights=[1.0,0.7,0.3], classlabels_int64s=[5,6,7],
    post_transform="SOFTMAX">(x) }}"""
REGRESSOR = f"""g (float[8,3] x) => (float[8,2] y) {{
  y = ai.onnx.ml.TreeEnsembleRegressor<{TREE}, target_treeids=[0,0,0,0],
    target_nodeids=[1,1,2,2], target_ids=[0,1,0,1], target_weights=[1.5,-2.5,0.25,4.0],
    base_values=[0.5,0.25], n_targets=2>(x) }}"""
RESIZED = "g (float[1,2,3,4] x) => (float[1,2,6,12] y) <float[4] s = {1.0, 1.0, 2.0, 3.0}>"

WRITTEN = {
    "GlobalLpPool-1": "g (float[2,3,4,5] x) => (float[2,3,1,1] y) { y = GlobalLpPool<p = 3.0>(x) }",
    "GlobalLpPool-2": "g (float[2,3,4,5] x) => (float[2,3,1,1] y) { y = GlobalLpPool<p = 3>(x) }",
    "GroupNormalization-18": "g (float[2,4,3] x, float[2] s, float[2] b) => (float[2,4,3] y)"
    " { y = GroupNormalization<num_groups = 2>(x, s, b) }",
    "MaxRoiPool-1": "g (float[1,2,8,8] x) => (float[2,2,2,2] y)"
    " <float[2,5] r = {0.0, 0.0, 0.0, 7.0, 7.0, 0.0, 2.0, 1.0, 5.0, 6.0}>"
    " { y = MaxRoiPool<pooled_shape = [2, 2]>(x, r) }",
    "Multinomial-7": "g (float[3,4] x) => (int32[3,5] y) { y = Multinomial<sample_size = 5>(x) }",
    "Optional-15": "g (float[2,3] x) => (float[2,3] y)"
    " { o = Optional(x)  y = OptionalGetElement(o) }",
    "RandomNormal-1": "g () => (float[2,3] y) { y = RandomNormal<shape = [2, 3]>() }",
    "RandomNormalLike-1": "g (float[2,3] x) => (float[2,3] y) { y = RandomNormalLike(x) }",
    "RandomUniform-1": "g () => (float[2,3] y) { y = RandomUniform<shape = [2, 3]>() }",
    "Resize-10": RESIZED + ' { y = Resize<mode = "nearest">(x, s) }',
    "Tile-1": "g (float[2,3] x) => (float[2,6] y) <float t = {2.0}, float a = {1.0}>"
    " { y = Tile(x, t, a) }",
    "ai.onnx.ml.LabelEncoder-1": "g (string[6] x) => (int64[6] y)"
    ' { y = ai.onnx.ml.LabelEncoder<classes_strings = ["w2", "w0", "w1"]>(x) }',
    "ai.onnx.ml.TreeEnsembleClassifier-1": CLASSIFIER,
    "ai.onnx.ml.TreeEnsembleClassifier-3": CLASSIFIER,
    "ai.onnx.ml.TreeEnsembleRegressor-1": REGRESSOR,
    "ai.onnx.ml.TreeEnsembleRegressor-3": REGRESSOR,
}
"""Graphs for versions of which the suite has no usable case."""

NEWER_FORM = {
    "GlobalLpPool-1": WRITTEN["GlobalLpPool-2"],
    "Tile-1": "g (float[2,3] x) => (float[2,6] y) <int64[2] t = {1, 2}> { y = Tile(x, t) }",
}
"""The same as above in opset 17, where no peer runs the old version."""
