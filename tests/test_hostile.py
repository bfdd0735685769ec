"""What strangers feed, by class: whatever is done with it ends well or with an error of ours.

Each model goes through everything that takes one, on both providers. What stands in for an error
of another kind counts as a failure, here as in all tests.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, NodeProto, TensorProto, helper

import sardonyx as sx
from sardonyx.errors import InternalError, ResourceError, SardonyxError
from sardonyx.runtime.inputs import make_inputs

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
PROVIDERS = ("CPUExecutionProvider", "ReferenceExecutionProvider")


def _model(
    *nodes: NodeProto, inputs: Any = (("x", FLOAT, [2, 3]),), tensors: Any = (),
    opset: int = 21, output: str = "y",
) -> onnx.ModelProto:  # fmt: skip
    graph = helper.make_graph(
        list(nodes), "g",
        [helper.make_tensor_value_info(*item) for item in inputs],
        [helper.make_tensor_value_info(output, FLOAT, None)], list(tensors),
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def _tensor(name: str, kind: int, dims: list[int], raw: bytes = b"") -> TensorProto:
    return TensorProto(name=name, data_type=kind, dims=dims, raw_data=raw)


def _of_kind(name: str, kind: int) -> AttributeProto:
    """An attribute that says a kind and holds nothing of it."""
    return AttributeProto(name=name, type=kind)


def _with(node: NodeProto, *attributes: AttributeProto) -> NodeProto:
    node.attribute.extend(attributes)
    return node


def _external(location: str) -> TensorProto:
    made = _tensor("w", FLOAT, [2, 3])
    made.data_location = TensorProto.EXTERNAL
    made.external_data.add(key="location", value=location)
    return made


def _sparse(size: int) -> onnx.ModelProto:
    model = _model(helper.make_node("Add", ["x", "w"], ["y"]), inputs=[("x", FLOAT, [1])])
    made = helper.make_sparse_tensor(
        helper.make_tensor("w", FLOAT, [1], [1.0]), helper.make_tensor("", INT64, [1], [0]), [size]
    )
    model.graph.sparse_initializer.append(made)
    return model


def _nodes(count: int) -> onnx.ModelProto:
    """Graphs inside graphs."""
    inner = _model(helper.make_node("Identity", ["x"], ["y"])).graph
    for _ in range(count):
        branch = onnx.GraphProto()
        branch.CopyFrom(inner)
        del branch.input[:]
        node = helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)
        inner = _model(node).graph
    return _model(*inner.node, inputs=[("x", FLOAT, [2, 3]), ("c", TensorProto.BOOL, [])])


def _trees() -> onnx.ModelProto:
    lists = {"nodes_treeids": [0, 0], "nodes_nodeids": [0], "nodes_featureids": [0],
             "nodes_modes": ["LEAF"], "nodes_values": [0.0], "nodes_truenodeids": [0, 1, 2],
             "nodes_falsenodeids": [0], "target_ids": [0], "target_nodeids": [0, 1],
             "target_treeids": [0], "target_weights": [1.0]}  # fmt: skip
    node = helper.make_node(
        "TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=1, **lists
    )
    model = _model(node)
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))
    return model


def _flexible() -> onnx.ModelProto:
    """A graph that gives two results where one is taken."""
    score = ("s", FLOAT, [1, 2, 3, 3])
    body = helper.make_graph(
        [helper.make_node("Neg", ["s"], ["a"]), helper.make_node("Abs", ["s"], ["b"])], "two",
        [helper.make_tensor_value_info(*score)],
        [helper.make_tensor_value_info(name, FLOAT, None) for name in "ab"],
    )  # fmt: skip
    domain = "ai.onnx.preview"
    node = helper.make_node("FlexAttention", ["q", "q", "q"], ["y"], domain=domain, score_mod=body)
    model = _model(node, inputs=[("q", FLOAT, [1, 2, 3, 4])])
    model.opset_import.append(helper.make_opsetid(domain, 1))
    return model


def _normalized() -> onnx.ModelProto:
    """A mean over so many elements that no scale for them can be made."""
    nodes = [
        helper.make_node("Mul", ["x", "x"], ["s"]),
        helper.make_node("ReduceMean", ["s", "a"], ["m"]),
        helper.make_node("Add", ["m", "e"], ["v"]),
        helper.make_node("Sqrt", ["v"], ["r"]),
        helper.make_node("Div", ["x", "r"], ["y"]),
    ]
    tensors = [helper.make_tensor("a", INT64, [1], [-1]), helper.make_tensor("e", FLOAT, [], [0.5])]
    return _model(*nodes, inputs=[("x", FLOAT, [1, 2**61])], tensors=tensors, opset=23)


make = helper.make_node
ROW = ("x", FLOAT, [2, 3])
MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "an undefined name": lambda: _model(make("Add", ["x", "nowhere"], ["y"])),
    "a name that is made later": lambda: _model(
        make("Neg", ["b"], ["a"]), make("Neg", ["a"], ["b"]), make("Add", ["a", "x"], ["y"])
    ),
    "an undefined output": lambda: _model(make("Neg", ["x"], ["z"])),
    "duplicate inputs": lambda: _model(make("Neg", ["x"], ["y"]), inputs=[ROW, ROW]),
    "a name made twice": lambda: _model(make("Neg", ["x"], ["y"]), make("Abs", ["x"], ["y"])),
    "location .": lambda: _model(make("Add", ["x", "w"], ["y"]), tensors=[_external(".")]),
    "location ..": lambda: _model(make("Add", ["x", "w"], ["y"]), tensors=[_external("..")]),
    "no location": lambda: _model(make("Add", ["x", "w"], ["y"]), tensors=[_external("")]),
    "dims [0, 2**62]": lambda: _model(
        make("Add", ["x", "w"], ["y"]), tensors=[_tensor("w", FLOAT, [0, 2**62])]
    ),
    "dims [2**62]": lambda: _model(
        make("Add", ["x", "w"], ["y"]), tensors=[_tensor("w", FLOAT, [2**62], b"\0" * 4)]
    ),
    "dims [-1]": lambda: _model(
        make("Add", ["x", "w"], ["y"]), tensors=[_tensor("w", FLOAT, [-1], b"\0" * 4)]
    ),
    "an input of 2**62": lambda: _model(make("Neg", ["x"], ["y"]), inputs=[("x", FLOAT, [2**62])]),
    "sparse 2**40": lambda: _sparse(2**40),
    "sparse 2**62": lambda: _sparse(2**62),
    "rank 65": lambda: _model(
        make("Add", ["x", "w"], ["y"]), tensors=[_tensor("w", FLOAT, [1] * 65, b"\0" * 4)]
    ),
    "an input of rank 65": lambda: _model(
        make("Neg", ["x"], ["y"]), inputs=[("x", FLOAT, [1] * 65)]
    ),
    "rank 65 made": lambda: _model(
        make("Unsqueeze", ["x", "w"], ["y"]),
        tensors=[helper.make_tensor("w", INT64, [63], range(63))],
    ),
    "IsInf of integers": lambda: _model(
        make("IsInf", ["i"], ["b"]), make("Cast", ["b"], ["y"], to=FLOAT),
        inputs=[("i", INT64, [3])],
    ),
    "a float axis": lambda: _model(make("Softmax", ["x"], ["y"], axis=1.5)),
    "float axes": lambda: _model(
        make("ReduceSum", ["x", "w"], ["y"]), tensors=[helper.make_tensor("w", FLOAT, [1], [1.0])]
    ),
    "an axis far off": lambda: _model(make("Softmax", ["x"], ["y"], axis=2**62)),
    "too few inputs": lambda: _model(make("Add", ["x"], ["y"])),
    "too many inputs": lambda: _model(make("Neg", ["x", "x"], ["y"])),
    "no inputs": lambda: _model(make("Concat", [], ["y"], axis=0)),
    "a needed input left out": lambda: _model(make("Where", ["", "x", "x"], ["y"])),
    "no outputs": lambda: _model(make("Neg", ["x"], []), make("Abs", ["x"], ["y"])),
    "too many outputs": lambda: _model(make("Neg", ["x"], ["y", "z"])),
    "ragged slices": lambda: _model(
        make("Slice", ["x", "s", "e", "a"], ["y"]),
        tensors=[helper.make_tensor("s", INT64, [2], [0, 0]),
                 helper.make_tensor("e", INT64, [1], [1]),
                 helper.make_tensor("a", INT64, [1, 2], [0, 1])],
    ),
    "a scalar where a list is": lambda: _model(
        make("Slice", ["x", "s", "e", "a"], ["y"]),
        tensors=[helper.make_tensor(name, INT64, [], [1]) for name in "sea"],
    ),
    "a kind without a value": lambda: _model(
        _with(make("Transpose", ["x"], ["y"]), _of_kind("perm", AttributeProto.TENSOR))
    ),
    "no kind": lambda: _model(_with(make("Softmax", ["x"], ["y"]), _of_kind("axis", 0))),
    "a reference outside of functions": lambda: _model(
        _with(
            make("Softmax", ["x"], ["y"]),
            AttributeProto(name="axis", type=AttributeProto.INT, ref_attr_name="n"),
        )
    ),
    "a graph that nobody takes": lambda: _model(
        make("Neg", ["x"], ["y"], body=_model(make("Reshape", ["x"], ["y"])).graph)
    ),
    "a scalar that is an array": lambda: _model(
        make("Constant", [], ["s"], value=helper.make_tensor("", INT64, [1], [2])),
        make("ConstantOfShape", ["s"], ["y"], value=helper.make_tensor("", FLOAT, [2], [1, 2])),
    ),
    "trees of ragged lists": _trees,
    "a graph of other outputs": _flexible,
    "a normalization beyond memory": _normalized,
    "a past of another rank": lambda: _model(
        make("Attention", ["q", "q", "q", "", "p", "p"], ["y", "k", "v"]), opset=23,
        inputs=[("q", FLOAT, [1, 2, 3, 4]), ("p", FLOAT, [2])],
    ),
    "an image resized to nothing": lambda: _model(
        make("Resize", ["x", "", "s"], ["y"], mode="linear"),
        tensors=[helper.make_tensor("s", FLOAT, [2], [0.25, 1.0])],
    ),
    "a text that is one": lambda: _model(
        make("Constant", [], ["n"], value=helper.make_tensor("", FLOAT, [], [2.5])),
        make("Cast", ["n"], ["t"], to=TensorProto.STRING), make("Cast", ["t"], ["u"], to=FLOAT),
        make("Add", ["x", "u"], ["y"]),
    ),
    "graphs inside graphs": lambda: _nodes(4),
    "no import": lambda: _model(make("BitwiseOr", ["x", "x", "x"], ["y"]), opset=1),
    "opset 2**31": lambda: _model(make("Neg", ["x"], ["y"]), opset=2**31 - 1),
    "opset 0": lambda: _model(make("Neg", ["x"], ["y"]), opset=0),
    "nothing": onnx.ModelProto,
}  # fmt: skip


def _run(provider: str, content: bytes) -> None:
    options = sx.SessionOptions()
    options.add_session_config_entry("sardonyx.cache", "off")
    options.log_severity_level = 4
    session = sx.InferenceSession(content, options, [provider])
    session.run(None, make_inputs(sx.load(content)))


def _rewrite(content: bytes) -> None:
    model = sx.load(content)
    sx.to_bytes(model)
    for tensor in model.tensors():
        tensor.numpy()


WAYS: dict[str, Callable[[bytes], Any]] = {
    "rewrite": _rewrite,
    "check": partial(sx.find_problems, full=True),
    "infer": lambda content: sx.infer_shapes(sx.load(content)),
    "infer strictly": lambda content: sx.infer_shapes(sx.load(content), strict=True),
    "simplify": lambda content: sx.simplify(sx.load(content)),
    "optimize": lambda content: sx.optimize(sx.load(content), 3),
    "convert up": lambda content: sx.convert_opset(sx.load(content), 23),
    "convert down": lambda content: sx.convert_opset(sx.load(content), 9),
    "inline": lambda content: sx.inline_functions(sx.load(content)),
    "evaluate": lambda content: sx.evaluate(sx.load(content), make_inputs(sx.load(content))),
    "compiled": partial(_run, PROVIDERS[0]),
    "reference": partial(_run, PROVIDERS[1]),
}


@pytest.mark.parametrize("name", MODELS)
def test_only_errors_of_ours(name: str) -> None:
    content = MODELS[name]().SerializeToString()
    for way, work in WAYS.items():
        try:
            work(content)
        except InternalError as error:
            pytest.fail(f"{way}: {error}")
        except SardonyxError as error:
            assert str(error), way


REFUSED = (
    "an undefined name", "an undefined output", "location .", "dims [2**62]", "rank 65",
    "a float axis", "an axis far off", "too few inputs", "too many inputs",
    "a needed input left out", "ragged slices", "a kind without a value", "trees of ragged lists",
    "a reference outside of functions", "a graph that nobody takes", "a graph of other outputs",
    "a past of another rank", "opset 0", "nothing",
)  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("provider", PROVIDERS)
def test_what_means_nothing_does_not_run(name: str, provider: str) -> None:
    with pytest.raises(SardonyxError):
        _run(provider, MODELS[name]().SerializeToString())


RAGGED = [[1.0], [1.0, 2.0]]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_lists_that_are_no_arrays(provider: str) -> None:
    content = _model(make("Neg", ["x"], ["y"]), inputs=[("x", FLOAT, [None])]).SerializeToString()
    session = sx.InferenceSession(content, providers=[provider])
    works: Iterator[Callable[[], Any]] = iter([
        lambda: session.run(None, {"x": RAGGED}),
        lambda: sx.OrtValue.ortvalue_from_numpy(RAGGED),  # type: ignore[arg-type]
        lambda: session.io_binding().bind_cpu_input("x", RAGGED),  # type: ignore[arg-type]
        lambda: sx.evaluate(sx.load(content), {"x": RAGGED}),
    ])  # fmt: skip
    for work in works:
        with pytest.raises(sx.InputError, match="cannot be made an array"):
            work()


LIMITED = """
import resource, sys
import sardonyx as sx
options = sx.SessionOptions()
options.add_session_config_entry("sardonyx.cache", "off")
sx.InferenceSession(sys.argv[2], options)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
limit = used + (16 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
if resource.getrlimit(resource.RLIMIT_AS)[0] != limit:
    raise SystemExit(77)
works = [lambda: sx.load(sys.argv[1]), lambda: sx.find_problems(sys.argv[1])]
works += [lambda name=name: sx.InferenceSession(sys.argv[1], options, [name])
          for name in ("CPUExecutionProvider", "ReferenceExecutionProvider")]
for work in works:
    try:
        work()
    except sx.OutOfMemoryError as error:
        print("refused", error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits are Linux's")
def test_a_file_that_memory_does_not_hold(tmp_path: Path) -> None:
    small = _model(make("Neg", ["x"], ["y"]))
    (tmp_path / "small.onnx").write_bytes(small.SerializeToString())
    content = np.zeros(64 << 20, np.uint8).tobytes()
    large = _model(make("Add", ["x", "w"], ["y"]),
                   tensors=[_tensor("w", FLOAT, [16 << 20], content)])  # fmt: skip
    (tmp_path / "large.onnx").write_bytes(large.SerializeToString())
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, "large.onnx", "small.onnx"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode == 77:
        pytest.skip("this system, or an emulator, does not limit a process's memory")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("refused") == 4


def test_without_a_home_programs_are_not_kept(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    monkeypatch.delenv("SARDONYX_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    content = _model(make("Neg", ["x"], ["y"])).SerializeToString()
    for provider in PROVIDERS:
        session = sx.InferenceSession(content, providers=[provider])
        (found,) = session.run(None, {"x": np.ones((2, 3), np.float32)})
        assert (found == -1).all()
    assert "there is no home folder" in caplog.text


def test_without_threads_sessions_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("threading.Thread.start", refuse)
    monkeypatch.setattr("sardonyx.compiler.interrupts.start_new_thread", refuse)
    model = _model(make("MatMul", ["x", "w"], ["y"]),
                   inputs=[("x", FLOAT, ["n", 64]), ("w", FLOAT, [64, "m"])])  # fmt: skip
    feeds = {"x": np.ones((512, 64), np.float32), "w": np.ones((64, 512), np.float32)}
    options = sx.SessionOptions()
    options.intra_op_num_threads = 4
    for provider in PROVIDERS:
        session = sx.InferenceSession(model.SerializeToString(), options, [provider])
        assert (session.run(None, feeds)[0] == 64).all()
        with pytest.raises(ResourceError, match="no thread is to be had"):
            session.run_async(None, feeds, lambda *_: None, None)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("shape", [[2**62], [-1], [1] * 65, [0, 2**62]])
def test_shapes_that_no_array_has(shape: list[int], provider: str) -> None:
    session = sx.InferenceSession(
        _model(helper.make_node("Neg", ["x"], ["y"])).SerializeToString(), providers=[provider]
    )
    places, binding = np.zeros(1, np.int64), session.io_binding()
    works: list[Callable[[], Any]] = [
        lambda: sx.OrtValue.ortvalue_from_shape_and_type(shape, np.float32),
        lambda: sx.SparseValue.sparse_coo_from_numpy(shape, np.ones(1, np.float32), places),
        lambda: binding.bind_input("x", "cpu", 0, np.float32, shape, 64),
    ]
    for work in works[: 2 if shape[0] > 1 else 3]:
        with pytest.raises((sx.InputError, sx.OutOfMemoryError)):
            work()


@pytest.mark.parametrize("name", ["strides", "pads", "dilations"])
def test_an_empty_list_means_what_its_absence_means(name: str) -> None:
    image, filters = ("x", FLOAT, [1, 2, 5, 5]), ("w", FLOAT, [2, 2, 3, 3])
    feeds = {"x": np.arange(50, dtype=np.float32).reshape(1, 2, 5, 5),
             "w": np.arange(36, dtype=np.float32).reshape(2, 2, 3, 3)}  # fmt: skip
    for node in (
        make("Conv", ["x", "w"], ["y"]),
        make("Conv", ["x", "w"], ["y"], auto_pad="SAME_UPPER"),
        make("ConvTranspose", ["x", "w"], ["y"]),
        make("AveragePool", ["x"], ["y"], kernel_shape=[2, 2]),
        make("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], auto_pad="SAME_LOWER"),
    ):
        inputs = [image, filters][: len(node.input)]
        given = {key: feeds[key] for key in node.input}
        plain = _model(node, inputs=inputs).SerializeToString()
        empty = _with(node, _of_kind(name, AttributeProto.INTS))
        changed = _model(empty, inputs=inputs).SerializeToString()
        results = [
            sx.InferenceSession(content, providers=[provider]).run(None, given)[0]
            for content in (plain, changed)
            for provider in PROVIDERS
        ]
        for result in results[1:]:
            np.testing.assert_allclose(result, results[0], rtol=1e-5)
