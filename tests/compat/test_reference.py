"""`reference`: models, graphs, functions and nodes run as by onnx's own evaluator."""

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import onnx as real
import onnx.reference
import onnx.reference.op_run
import onnx.reference.ops
import onnx.reference.shape_annotation_checker
import pytest

import sardonyx.compat.onnx.reference.op_run
import sardonyx.compat.onnx.reference.ops
import sardonyx.compat.onnx.reference.shape_annotation_checker  # noqa: F401 - used as `o.`
from sardonyx.compat import onnx as ours
from tests.compat.differential import assert_same
from tests.compat.text_models import function, graph, model

X = np.array([[-1.5, 0.5, 2.0], [3.0, -0.25, 1.0]], np.float32)
HEAD = '<ir_version: 10, opset_import: ["" : 21, "local" : 1]> '
FUNCTION = (
    '<domain: "local", opset_import: ["" : 21]>'
    "f <a> (x) => (y) { c = Constant <value_float = @a> () y = Mul (x, c) }"
)
MODELS = {
    "nodes": "g (float[2,3] X) => (float[2,3] Y) { T = Neg (X) Y = Abs (T) }",
    "initializer": "g (float[2,3] X) => (float[2,3] Y) <float[3] B = {1, 2, 3}> { Y = Add (X, B) }",
    "default": "g (float[2,3] X, float[3] B = {1, 2, 3}) => (float[2,3] Y) { Y = Add (X, B) }",
    "function": "g (float[2,3] X) => (float[2,3] Y) { Y = local.f <a = 0.5> (X) }" + FUNCTION,
    "branch": "g (float[2,3] X) => (float[2,3] Y) { B = Constant <value = bool {1}> () Y = If (B) <"
    "then_branch = t () => (float[2,3] q) { q = Neg (X) }, "
    "else_branch = e () => (float[2,3] r) { r = Abs (X) }>}",
    "loop": "g (float[2,3] X) => (float[2,3] Y) <int64 N = {3}, bool C = {1}>"
    "{ Y = Loop (N, C, X) <body = b (int64 i, bool c, float[2,3] s) => (bool d, float[2,3] t)"
    "{ d = Identity (c) t = Add (s, X) }> }",
    "sequence": "g (float[2,3] X) => (seq(float[2,3]) Y) { Y = SequenceConstruct (X, X) }",
    "two outputs": "g (float[2,3] X) => (float[2,3] Y, int64[2,3] Z) <int64[1] K = {2}>"
    "{ Y, Z = TopK (X, K) }",
}


@pytest.mark.parametrize("name", MODELS)
def test_models(name: str, tmp_path: Path) -> None:
    def call(o: Any, _: Path) -> Any:
        evaluator = o.reference.ReferenceEvaluator(model(o, HEAD + MODELS[name]))
        return evaluator.run(None, {"X": X})

    assert_same(call, tmp_path)


@pytest.mark.parametrize("name", MODELS)
def test_faces(name: str, tmp_path: Path) -> None:
    def call(o: Any, _: Path) -> Any:
        evaluator = o.reference.ReferenceEvaluator(model(o, HEAD + MODELS[name]))
        return (
            evaluator.input_names, evaluator.output_names, list(evaluator.input_types),
            list(evaluator.output_types), evaluator.opsets, str(evaluator),
        )  # fmt: skip

    assert_same(call, tmp_path)


RUNS: dict[str, Any] = {
    "named outputs": lambda e: e.run(["T"], {"X": X}),
    "intermediate": lambda e: e.run(None, {"X": X}, intermediate=True),
    "unknown output": lambda e: e.run(["Q"], {"X": X}),
    "missing input": lambda e: e.run(None, {}),
    "additional input": lambda e: e.run(None, {"X": X, "W": X}),
    "other shape": lambda e: e.run(None, {"X": X[0]}),
    "other type": lambda e: e.run(None, {"X": X.astype(np.float64)}),
    "output by position": lambda e: e.run([], {"X": X}),
    "types": lambda e: e.get_result_types("X"),
    "no type": lambda e: e.get_result_types("T", exc=False),
    "no type raises": lambda e: e.get_result_types("T"),
}


@pytest.mark.parametrize("name", RUNS)
def test_runs(name: str, tmp_path: Path) -> None:
    assert_same(
        lambda o, _: RUNS[name](o.reference.ReferenceEvaluator(model(o, HEAD + MODELS["nodes"]))),
        tmp_path,
    )


def test_bytes_and_files(tmp_path: Path) -> None:
    def call(o: Any, folder: Path) -> Any:
        source = model(o, HEAD + MODELS["initializer"])
        o.save(source, folder / "m.onnx")
        return [
            o.reference.ReferenceEvaluator(item).run(None, {"X": X})
            for item in (source.SerializeToString(), str(folder / "m.onnx"))
        ]

    assert_same(call, tmp_path)


def test_containers() -> None:
    weight = ours.model_container.make_large_tensor_proto("#w", "W", ours.TensorProto.FLOAT, (3,))
    body = ours.helper.make_graph(
        [ours.helper.make_node("Add", ["X", "W"], ["Y"])], "g",
        [ours.helper.make_tensor_value_info("X", 1, [2, 3])],
        [ours.helper.make_tensor_value_info("Y", 1, [2, 3])], [weight],
    )  # fmt: skip
    large = ours.model_container.make_large_model(body, {"#w": np.float32([1, 2, 3])})
    result = ours.reference.ReferenceEvaluator(large).run(None, {"X": X})
    np.testing.assert_array_equal(result[0], X + np.float32([1, 2, 3]))


def test_messages_of_the_real_package() -> None:
    source = model(real, HEAD + MODELS["nodes"])
    result = ours.reference.ReferenceEvaluator(source).run(None, {"X": X})
    np.testing.assert_array_equal(result[0], abs(X))


PARTS: dict[str, Any] = {
    "graph": lambda o: o.reference.ReferenceEvaluator(
        graph(o, "g (float[2,3] X) => (Y) { Y = Neg (X) }"), opsets={"": 21}
    ).run(None, {"X": X}),
    "graph without opsets": lambda o: o.reference.ReferenceEvaluator(
        graph(o, "g (float[2,3] X) => (Y) { Y = Neg (X) }")
    ),
    "graph around": lambda o: o.reference.ReferenceEvaluator(
        graph(o, "g (float[2,3] X) => (Y) { Y = Add (X, outer) }"), opsets={"": 21}
    ).run(None, {"X": X, "outer": X}),
    "graph with functions": lambda o: o.reference.ReferenceEvaluator(
        graph(o, "g (float[2,3] X) => (Y) { Y = local.f <a = 0.5> (X) }"),
        opsets={"": 21, "local": 1},
        functions=[function(o, FUNCTION)],
    ).run(None, {"X": X}),
    "functions as evaluators": lambda o: o.reference.ReferenceEvaluator(
        graph(o, "g (float[2,3] X) => (Y) { Y = local.f <a = 0.5> (X) }"),
        opsets={"": 21, "local": 1},
        functions=[o.reference.ReferenceEvaluator(function(o, FUNCTION))],
    ).run(None, {"X": X}),
    "function": lambda o: o.reference.ReferenceEvaluator(function(o, FUNCTION)).run(
        None, {"x": X}, attributes={"a": 0.25}
    ),
    "function twice": lambda o: [
        evaluator.run(None, {"x": X}, attributes={"a": alpha})
        for evaluator in [o.reference.ReferenceEvaluator(function(o, FUNCTION))]
        for alpha in (0.25, 0.5)
    ],
    "function without attributes": lambda o: o.reference.ReferenceEvaluator(
        function(o, FUNCTION)
    ).run(None, {"x": X}),
    "old function": lambda o: o.reference.ReferenceEvaluator(
        function(
            o, '<domain: "d", opset_import: ["" : 6]> f (x) => (y) { y = Clip <min = 0.0> (x) }'
        )
    ).run(None, {"x": X}, attributes={}),
    "node": lambda o: o.reference.ReferenceEvaluator(
        o.helper.make_node("Celu", ["x"], ["y"], alpha=0.5)
    ).run(None, {"x": X}),
    "node with absent input": lambda o: o.reference.ReferenceEvaluator(
        o.helper.make_node("Clip", ["x", "", "h"], ["y"])
    ).run(None, {"x": X, "h": np.float32(1)}),
    "model with opsets": lambda o: o.reference.ReferenceEvaluator(
        model(o, HEAD + MODELS["nodes"]), opsets={"": 21}
    ),
    "model with functions": lambda o: o.reference.ReferenceEvaluator(
        model(o, HEAD + MODELS["nodes"]), functions=[]
    ),
    "number": lambda o: o.reference.ReferenceEvaluator(3),
    "function of the wrong kind": lambda o: o.reference.ReferenceEvaluator(
        graph(o, "g (float[2,3] X) => (Y) { Y = Neg (X) }"), opsets={"": 21}, functions=[3]
    ),
    "unknown operator": lambda o: o.reference.ReferenceEvaluator(
        o.helper.make_node("NoSuch", ["x"], ["y"])
    ),
    "domain without version": lambda o: o.reference.ReferenceEvaluator(
        model(o, HEAD + "g (float[2] X) => (Y) { Y = other.Neg (X) }")
    ),
}


@pytest.mark.parametrize("name", PARTS)
def test_parts(name: str, tmp_path: Path) -> None:
    assert_same(lambda o, _: PARTS[name](o), tmp_path)


def _scaled(o: Any, **members: Any) -> Any:
    def run(self: Any, x: Any, alpha: Any = None, beta: Any = None) -> Any:
        return (x * alpha + (0 if beta is None else sum(beta)),)

    return type(
        "Scaled", (o.reference.op_run.OpRun,), {"op_domain": "custom", "_run": run} | members
    )


def _custom_model(o: Any, node: str) -> Any:
    text = '<ir_version: 10, opset_import: ["" : 21, "custom" : 1]> g (float[2,3] X) => (Y) '
    return model(o, f"{text} {{ T = Neg (X) {node} }}")


def _run_custom(o: Any, node: str, *classes: Any) -> Any:
    evaluator = o.reference.ReferenceEvaluator(_custom_model(o, node), new_ops=list(classes))
    return evaluator.run(None, {"X": X})


SCALED = "Y = custom.Scaled <alpha = 2.0> (T)"


def _replacing(o: Any) -> Any:
    return type("Neg", (o.reference.op_run.OpRun,), {"_run": lambda self, x: (x + 1,)})


def _with_subgraph(o: Any) -> Any:
    def run(
        self: Any, x: Any, context: Any = None, branch: Any = None, attributes: Any = None
    ) -> Any:
        return tuple(self._run_branch(context))

    members = {"op_domain": "custom", "need_context": lambda self: True, "_run": run}
    return type("Wrapped", (o.reference.op_run.OpRun,), members)


CUSTOM: dict[str, Any] = {
    "attributes": lambda o: _run_custom(o, SCALED, _scaled(o)),
    "list attribute": lambda o: _run_custom(
        o, "Y = custom.Scaled <alpha = 2.0, beta = [1.0, 0.5]> (T)", _scaled(o)
    ),
    "first one counts": lambda o: _run_custom(
        o, SCALED, _scaled(o), _scaled(o, _run=lambda self, x, alpha=None: (x,))
    ),
    "not a tuple": lambda o: _run_custom(
        o, SCALED, _scaled(o, _run=lambda self, x, alpha=None: x)
    ),
    "no result": lambda o: _run_custom(o, SCALED, _scaled(o, _run=lambda self, x, alpha=None: ())),
    "tuple in tuple": lambda o: _run_custom(
        o, SCALED, _scaled(o, _run=lambda self, x, alpha=None: ((x,),))
    ),
    "object": lambda o: _run_custom(
        o, SCALED, _scaled(o, _run=lambda self, x, alpha=None: (object(),))
    ),
    "number": lambda o: _run_custom(o, SCALED, _scaled(o, _run=lambda self, x, alpha=None: (3.5,))),
    "unknown attribute": lambda o: _run_custom(
        o, "Y = custom.Scaled <alpha = 2.0, gamma = 1.0> (T)", _scaled(o)
    ),
    "not given": lambda o: _run_custom(o, SCALED),
    "not derived": lambda o: _run_custom(o, SCALED, type("Scaled", (), {"op_domain": "custom"})),
    "no domain": lambda o: _run_custom(o, SCALED, type("Scaled", (), {})),
    "replacing a standard one": lambda o: _run_custom(o, "Y = Abs (T)", _replacing(o)),
    "subgraph": lambda o: _run_custom(
        o, "Y = custom.Wrapped <branch = b () => (float[2,3] q) { q = Add (T, X) }> (X)",
        _with_subgraph(o),
    ),
    "in a function": lambda o: o.reference.ReferenceEvaluator(
        model(
            o,
            '<ir_version: 10, opset_import: ["" : 21, "custom" : 1, "local" : 1]> '
            "g (float[2,3] X) => (Y) { Y = local.f <a = 3.0> (X) }"
            '<domain: "local", opset_import: ["" : 21, "custom" : 1]>'
            "f <a> (x) => (y) { y = custom.Scaled <alpha = @a> (x) }",
        ),
        new_ops=[_scaled(o)],
    ).run(None, {"X": X}) if o is ours else [X * 3],
    "expanded": lambda o: _run_custom(
        o, "Y = HardSwish (T)", type("HardSwish", (o.reference.op_run.OpRunExpand,), {})
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CUSTOM)
def test_custom_operators(name: str, tmp_path: Path) -> None:
    assert_same(lambda o, _: CUSTOM[name](o), tmp_path)


def test_an_expanded_operator_is_not_run_itself() -> None:
    """The function's nodes run in the operator's place: a replaced one among them shows it."""
    double = type("Mul", (ours.reference.op_run.OpRun,), {"_run": lambda self, a, b: (a * 0,)})
    expand = type("HardSwish", (ours.reference.op_run.OpRunExpand,), {})
    assert not np.any(_run_custom(ours, "Y = HardSwish (T)", expand, double)[0])
    assert np.any(_run_custom(ours, "Y = HardSwish (T)", double)[0])


CLASSES: dict[str, Any] = {
    "eval": lambda o: o.reference.ops.load_op("", "LeakyRelu").eval(X, alpha=0.5),
    "several outputs": lambda o: list(
        o.reference.ops.load_op("", "TopK").eval(X, np.int64([2]), n_outputs=2)
    ),
    "node": lambda o: o.reference.ops.load_op("", "Celu").make_node(alpha=0.5),
    "name": lambda o: type("Cast_19", (o.reference.op_run.OpRun,), {}).infer_name(),
    "plain name": lambda o: type("Cast", (o.reference.op_run.OpRun,), {}).infer_name(),
    "unknown": lambda o: o.reference.ops.load_op("", "NoSuch"),
    "expanding is not running": lambda o: type("A", (o.reference.op_run.OpRunExpand,), {})(1, 2),
    "parameters": lambda o: _scaled(o)(o.helper.make_node("Scaled", [], []), {}),
    "no dictionary": lambda o: _scaled(o)(o.helper.make_node("Scaled", [], []), 3),
    "reference": lambda o: repr(o.reference.op_run.RefAttrName("a")),
    "errors": lambda o: [
        [kind.__name__ for kind in getattr(o.reference.op_run, name).__mro__]
        for name in ("RuntimeTypeError", "RuntimeContextError", "RuntimeImplementationError")
    ],
}


@pytest.mark.parametrize("name", CLASSES)
def test_classes(name: str, tmp_path: Path) -> None:
    assert_same(lambda o, _: CLASSES[name](o), tmp_path)


@pytest.mark.parametrize("verbose", [0, 2, 3, 4])
def test_verbose(verbose: int, capsys: pytest.CaptureFixture[str]) -> None:
    printed = []
    for o in (real, ours):
        source = model(o, HEAD + MODELS["initializer"])
        o.reference.ReferenceEvaluator(source, verbose=verbose).run(None, {"X": X})
        printed.append(sorted(capsys.readouterr().out.splitlines()))
    assert printed[0] == printed[1]


SHAPES = {
    "right": ("g (float[N,M] X) => (float[N,M] Y) { Y = Neg (X) }", X),
    "number": ("g (float[2,4] X) => (float[2,4] Y) { Y = Neg (X) }", X),
    "rank": ("g (float[6] X) => (float[6] Y) { Y = Neg (X) }", X),
    "symbol": ("g (float[N,N] X) => (float[N,N] Y) { Y = Neg (X) }", X),
    "between": ("g (float[N,M] X) => (float[M,N] Y) { Y = Neg (X) }", X),
    "type": ("g (float[2,3] X) => (float[2,3] Y) { Y = Neg (X) }", X.astype(np.float64)),
    "intermediate": ("g (float[N,3] X) => (Y) <float[N,N] T> { T = Neg (X) Y = Abs (T) }", X),
    "in a branch": ("g (float[N,3] X) => (Y) { B = Constant <value = bool {1}> () Y = If (B) <"
                    "then_branch = t () => (float[N,N] q) { q = Neg (X) }, "
                    "else_branch = e () => (float[N,N] r) { r = Abs (X) }>}", X),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("checked", [True, False])
def test_shape_annotations(name: str, checked: bool, tmp_path: Path) -> None:
    text, array = SHAPES[name]

    def call(o: Any, _: Path) -> Any:
        evaluator = o.reference.ReferenceEvaluator(
            model(o, HEAD + text), check_shape_annotations=checked
        )
        return evaluator.run(None, {"X": array})

    assert_same(call, tmp_path)


def test_signatures() -> None:
    pairs = [
        (ours.reference.ReferenceEvaluator.__init__, real.reference.ReferenceEvaluator.__init__),
        (ours.reference.ReferenceEvaluator.run, real.reference.ReferenceEvaluator.run),
        (ours.reference.op_run.OpRun.__init__, real.reference.op_run.OpRun.__init__),
        (ours.reference.op_run.OpRun.run, real.reference.op_run.OpRun.run),
        (ours.reference.op_run.OpRun.eval, real.reference.op_run.OpRun.eval),
        (ours.reference.op_run.OpRun.create, real.reference.op_run.OpRun.create),
        (ours.reference.op_run.OpRun.make_node, real.reference.op_run.OpRun.make_node),
    ]
    for mine, theirs in pairs:
        assert [
            (item.name, item.default, item.kind)
            for item in inspect.signature(mine).parameters.values()
        ] == [
            (item.name, item.default, item.kind)
            for item in inspect.signature(theirs).parameters.values()
        ]
