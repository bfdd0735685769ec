"""`shape_inference`: types where onnx adds them, at least as precise, and the same refusals."""

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import onnx as real
import onnx.shape_inference
import pytest

from sardonyx.compat import onnx as ours
from tests.compat.differential import assert_same
from tests.compat.text_models import function, model

HEAD = '<ir_version: 10, opset_import: ["" : 21]> '

EQUAL = {
    "one node": "g (float[2,3] X) => (Y) { Y = Neg (X) }",
    "intermediate": "g (float[2,3] X) => (float[2,3] Y) { T = Neg (X) Y = Abs (T) }",
    "symbols pass through": "g (float[N,3] X) => (float[N,3] Y) { T = Neg (X) Y = Abs (T) }",
    "declared symbol stays": "g (float[N] X) => (float[M] Y) { Y = Neg (X) }",
    "declared symbol gives way to a number": "g (float[5] X) => (float[M] Y) { Y = Neg (X) }",
    "declared number stays": "g (float[N] X) => (float[4] Y) { Y = Neg (X) }",
    "no shape": "g (float X) => (Y) { Y = Neg (X) }",
    "unknown rank": "g (float[] X, float[N] Z) => (Y) { Y = Transpose (X) }",
    "element type only": "g (X) => (Y) { Y = Cast <to = 7> (X) }",
    "nothing known": "g (X) => (Y) { Y = Neg (X) }",
    "names for unknown sizes": "g (float[N] X) => (Y) { I = NonZero (X) J = NonZero (X) "
    "Y = Concat <axis = 0> (I, J) }",
    "constant": "g (float[2,3] X) => (Y) { S = Constant <value = int64[1] {-1}> () "
    "Y = Reshape (X, S) }",
    "initializer": "g (float[2,3] X) => (Y) <int64[2] S = {3, 2}> { Y = Reshape (X, S) }",
    "branches": "g (bool C, float[2] X) => (Y) { Y = If (C) <"
    "then_branch = a () => (p) { q = Neg (X) p = Abs (q) }, "
    "else_branch = b () => (r) { r = Neg (X) }> }",
    "missing outputs": "g (float[4] X) => (Y) { Y, = Dropout (X) }",
    "sequence": "g (float[2] X) => (Y) { S = SequenceConstruct (X, X) Y = ConcatFromSequence "
    "<axis = 0> (S) }",
    "optional": "g (float[2] X) => (Y) { O = Optional (X) Y = OptionalGetElement (O) }",
    "unknown operator": "g (float[2] X) => (Y) { T = NoSuch (X) Y = Neg (T) }",
    "declared otherwise": "g (float[2] X) => (float[3] Y) { Y = Neg (X) }",
    "other element type": "g (float[2] X) => (int64[2] Y) { Y = Neg (X) }",
    "other rank": "g (float[2] X) => (float[2,2] Y) { Y = Neg (X) }",
    "no broadcast": "g (float[2] X, float[3] Z) => (Y) { Y = Add (X, Z) }",
    "wrong types": "g (float[2] X, int64[2] Z) => (Y) { Y = Add (X, Z) }",
    "type not taken": "g (string[2] X) => (Y) { Y = Neg (X) }",
    "too few inputs": "g (float[2] X) => (Y) { Y = Add (X) }",
    "value info": "g (float[2] X) => (Y) <float[2] T> { T = Neg (X) Y = Abs (T) }",
    "domain not imported": "g (float[2] X) => (Y) { Y = other.Neg (X) }",
}
LATER = {
    "local function": HEAD.replace("]>", ', "local" : 1]>')
    + "g (float[N,2] X) => (Y) { T = local.f (X) Y = Neg (T) }"
    '<domain: "local", opset_import: ["" : 21]> f (x) => (y) { y = Transpose (x) }',
    "recursive function": HEAD.replace("]>", ', "local" : 1]>')
    + "g (float[N,2] X) => (Y) { Y = local.f (X) }"
    '<domain: "local", opset_import: ["" : 21, "local" : 1]> f (x) => (y) { y = local.f (x) }',
    "old version": '<ir_version: 3, opset_import: ["" : 6]> '
    "g (float[2,3] X, float[3] Z) => (Y) { Y = Add <broadcast = 1, axis = 1> (X, Z) }",
    "long domain name": '<ir_version: 10, opset_import: ["ai.onnx" : 21]> '
    "g (float[2] X) => (Y) { Y = Neg (X) }",
    "initializer differs from input": HEAD + "g (float[2] X = {1, 2, 3}) => (Y) { Y = Neg (X) }",
}
TEXTS = {name: HEAD + text for name, text in EQUAL.items()} | LATER
OPTIONS: dict[str, dict[str, bool]] = {
    "plain": {},
    "strict": {"strict_mode": True},
    "types": {"check_type": True},
    "all": {"strict_mode": True, "check_type": True, "data_prop": True},
}
STRICTER = {"wrong types", "too few inputs"}
"""Contradictions that onnx only looks for with `check_type`; found here by inference itself."""
KNOWN_ENOUGH = {("nothing known", "strict"), ("nothing known", "all")}
"""Where onnx counts an input without a type as a contradiction."""


def _check_stricter(text: str, options: str) -> None:
    if options == "strict":
        with pytest.raises(ours.shape_inference.InferenceError):
            ours.shape_inference.infer_shapes(model(ours, TEXTS[text]), strict_mode=True)
    else:
        inferred = ours.shape_inference.infer_shapes(model(ours, TEXTS[text]))
        assert not inferred.graph.value_info


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("text", TEXTS)
def test_models(text: str, options: str, tmp_path: Path) -> None:
    if text in STRICTER and "check_type" not in OPTIONS[options]:
        return _check_stricter(text, options)
    if (text, options) in KNOWN_ENOUGH:
        found = ours.shape_inference.infer_shapes(model(ours, TEXTS[text]), **OPTIONS[options])
        assert not found.graph.value_info
        return None
    return assert_same(
        lambda o, _: o.shape_inference.infer_shapes(model(o, TEXTS[text]), **OPTIONS[options]),
        tmp_path,
    )


def _sizes(proto: Any) -> list[Any]:
    return [item.dim_param or item.dim_value for item in proto.tensor_type.shape.dim]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("g (float[N,3] X) => (Y) { Y = Concat <axis = 0> (X, X) }", ["2*N", 3]),
        ("g (float[N] X) => (Y) <int64[2] P = {1, 1}> { Y = Pad (X, P) }", ["N+2"]),
        ("g (float[N,M] X) => (Y) { Y = Flatten <axis = 0> (X) }", [1, "M*N"]),
        ("g (float[B,S] X) => (Y) { T = Shape (X) Y = ConstantOfShape (T) }", ["B", "S"]),
        ("g (float[N] X, float[M] Z) => (Y) { Y = Add (X, Z) }", ["broadcast(M, N)"]),
    ],
)
def test_more_precise_than_onnx(text: str, expected: list[Any]) -> None:
    found = ours.shape_inference.infer_shapes(model(ours, HEAD + text)).graph.output[0].type
    assert _sizes(found) == expected


def test_bytes_and_copies() -> None:
    original = model(ours, TEXTS["intermediate"])
    before = original.SerializeToString()
    inferred = ours.shape_inference.infer_shapes(before)
    assert inferred == ours.shape_inference.infer_shapes(original)
    assert original.SerializeToString() == before
    assert len(inferred.graph.value_info) == 1


WRONG_CALLS: dict[str, Any] = {
    "path": lambda o: o.shape_inference.infer_shapes("model.onnx"),
    "path object": lambda o: o.shape_inference.infer_shapes(Path("model.onnx")),
    "graph": lambda o: o.shape_inference.infer_shapes(o.GraphProto()),
    "none": lambda o: o.shape_inference.infer_shapes(None),
    "flag is a number": lambda o: o.shape_inference.infer_shapes(o.ModelProto(), 1),
    "model to path": lambda o: o.shape_inference.infer_shapes_path(o.ModelProto()),
    "path is a number": lambda o: o.shape_inference.infer_shapes_path(3),
    "output is a number": lambda o: o.shape_inference.infer_shapes_path("a", 3),
    "error": lambda o: [kind.__name__ for kind in o.shape_inference.InferenceError.__mro__],
}


@pytest.mark.parametrize("name", WRONG_CALLS)
def test_wrong_calls(name: str, tmp_path: Path) -> None:
    assert_same(lambda o, _: WRONG_CALLS[name](o), tmp_path)


@pytest.mark.parametrize("in_place", [True, False])
def test_paths(in_place: bool, tmp_path: Path) -> None:
    def call(o: Any, folder: Path) -> Any:
        source, target = folder / "m.onnx", folder / "n.onnx"
        o.save(model(o, TEXTS["intermediate"]), source)
        o.shape_inference.infer_shapes_path(source, "" if in_place else target)
        return o.load(source), None if in_place else o.load(target)

    assert_same(call, tmp_path)


def test_external_data_is_read_and_left_alone(tmp_path: Path) -> None:
    text = HEAD + "g (float[2,300] X) => (Y) <int64[1] S = {600}> { Y = Reshape (X, S) }"
    source = model(ours, text)
    constant = source.graph.initializer[0]
    constant.CopyFrom(ours.numpy_helper.from_array(np.int64([600]), constant.name))
    ours.external_data_helper.convert_model_to_external_data(
        source, location="w.bin", size_threshold=0
    )
    ours.save(source, tmp_path / "m.onnx")
    before = (tmp_path / "w.bin").read_bytes()
    ours.shape_inference.infer_shapes_path(tmp_path / "m.onnx")
    assert (tmp_path / "w.bin").read_bytes() == before
    found = ours.load(tmp_path / "m.onnx", load_external_data=False)
    assert found.graph.initializer[0].data_location == ours.TensorProto.EXTERNAL
    assert _sizes(found.graph.output[0].type) == [600]


def test_missing_file(tmp_path: Path) -> None:
    assert_same(lambda o, folder: o.shape_inference.infer_shapes_path(folder / "none"), tmp_path)


def _node(
    o: Any, op_type: str, inputs: dict[str, Any], version: int | None = None, **more: Any
) -> Any:
    schema = o.defs.get_schema(op_type) if version is None else o.defs.get_schema(op_type, version)
    data = more.pop("data", {})
    imports = more.pop("imports", None)
    node = o.helper.make_node(op_type, list(more.pop("names", inputs)), ["y"], **more)
    return o.shape_inference.infer_node_outputs(
        schema,
        node,
        {name: o.helper.make_tensor_type_proto(*item) for name, item in inputs.items()},
        {name: o.numpy_helper.from_array(item, name) for name, item in data.items()},
        opset_imports=imports and [o.helper.make_opsetid(*item) for item in imports],
    )


FLOAT, INT64 = real.TensorProto.FLOAT, real.TensorProto.INT64
NODES: dict[str, Any] = {
    "transpose": lambda o: _node(o, "Transpose", {"x": (FLOAT, [2, "N"])}),
    "unknown sizes": lambda o: _node(o, "Add", {"a": (FLOAT, [None, 2]), "b": (FLOAT, [2])}),
    "constant": lambda o: _node(
        o, "Reshape", {"x": (FLOAT, [5, 4]), "s": (INT64, [3])}, data={"s": np.int64([2, 2, 5])}
    ),
    "absent input": lambda o: _node(
        o, "Clip", {"x": (FLOAT, [3]), "h": (FLOAT, [])}, names=["x", "", "h"]
    ),
    "old version": lambda o: _node(o, "Softmax", {"x": (FLOAT, [3, 2])}, 11, axis=0),
    "imports": lambda o: _node(o, "Neg", {"x": (FLOAT, [3])}, imports=[("", 21)]),
    "missing type": lambda o: _node(o, "Add", {"a": (FLOAT, [2])}, names=["a", "b"]),
    "too few inputs": lambda o: _node(o, "Add", {"a": (FLOAT, [2])}),
    "types differ": lambda o: _node(o, "Add", {"a": (FLOAT, [2]), "b": (INT64, [2])}),
    "sizes differ": lambda o: _node(o, "Add", {"a": (FLOAT, [2]), "b": (FLOAT, [3])}),
    "type not taken": lambda o: _node(o, "Neg", {"x": (real.TensorProto.STRING, [2])}),
    "missing attribute": lambda o: _node(o, "Cast", {"x": (FLOAT, [2])}),
}


@pytest.mark.parametrize("name", NODES)
def test_single_nodes(name: str, tmp_path: Path) -> None:
    assert_same(lambda o, _: NODES[name](o), tmp_path)


BODY = '<opset_import: ["" : 18], domain: "local"> '
FUNCTIONS: dict[str, tuple[str, list[Any], dict[str, Any]]] = {
    "plain": ("f (x) => (y) { y = Neg (x) }", [(FLOAT, [2, "N"])], {}),
    "two": ("f (x) => (y, z) { y = Neg (x) z = Shape (x) }", [(FLOAT, [2, 3])], {}),
    "attribute": ("f <to> (x) => (y) { y = Cast <to = @to> (x) }", [(FLOAT, [2])], {"to": 7}),
    "default": ("f <to: int = 6> (x) => (y) { y = Cast <to = @to> (x) }", [(FLOAT, [2])], {}),
    "absent": ("f (x, low, high) => (y) { y = Clip (x, low, high) }", [(FLOAT, [2]), None], {}),
    "contradiction": ("f (x, z) => (y) { y = Add (x, z) }", [(FLOAT, [2]), (FLOAT, [3])], {}),
    "wrong type": ("f (x) => (y) { y = Neg (x) }", [(real.TensorProto.STRING, [2])], {}),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str, tmp_path: Path) -> None:
    text, types, attributes = FUNCTIONS[name]

    def call(o: Any, _: Path) -> Any:
        return o.shape_inference.infer_function_output_types(
            function(o, BODY + text),
            [
                o.TypeProto() if item is None else o.helper.make_tensor_type_proto(*item)
                for item in types
            ],
            [o.helper.make_attribute(key, value) for key, value in attributes.items()],
        )

    assert_same(call, tmp_path)


def _custom(o: Any, infer: Any, text: str = "") -> Any:
    """What is inferred for a custom operator with an inference function of its own."""
    formal = o.defs.OpSchema.FormalParameter
    schema = o.defs.OpSchema(
        "Custom",
        "test.inference",
        1,
        inputs=[formal("x", "T"), formal("n", "tensor(int64)")],
        outputs=[formal("y", "T")],
        type_constraints=[("T", ["tensor(float)"], "")],
        attributes=[o.defs.OpSchema.Attribute("axis", o.defs.OpSchema.AttrType.INT)],
    )
    schema.set_type_and_shape_inference_function(lambda context: infer(o, context))
    o.defs.register_schema(schema)
    try:
        source = model(
            o,
            '<ir_version: 10, opset_import: ["" : 21, "test.inference" : 1]> '
            "g (float[A,2] X) => (Y) <int64[1] S = {7}>"
            "{ T = test.inference.Custom <axis = 1> (X, S) Y = Neg (T) }",
        )
        return o.shape_inference.infer_shapes(source, strict_mode=True)
    finally:
        o.defs.deregister_schema("Custom", 1, "test.inference")


def _from_attribute_and_data(o: Any, context: Any) -> None:
    assert (context.get_num_inputs(), context.get_num_outputs()) == (2, 1)
    assert context.has_input(1) and not context.has_input(2) and context.has_output(0)
    kind = context.get_input_type(0)
    axis = context.get_attribute("axis").i
    assert context.get_attribute("none") is None
    size = int(o.numpy_helper.to_array(context.get_input_data(1))[0])
    kind.tensor_type.shape.dim[axis].dim_value = size
    context.set_output_type(0, kind)


def _like_a_standard_operator(o: Any, context: Any) -> None:
    o.defs.get_schema("Identity").get_type_and_shape_inference_function()(context)


def _refusing(o: Any, context: Any) -> None:
    raise o.shape_inference.InferenceError("no")


@pytest.mark.parametrize("infer", [_from_attribute_and_data, _refusing])
def test_custom_operators(infer: Any, tmp_path: Path) -> None:
    assert_same(lambda o, _: _custom(o, infer), tmp_path)


def test_inference_of_a_standard_operator_in_a_custom_one() -> None:
    formal = ours.defs.OpSchema.FormalParameter
    schema = ours.defs.OpSchema(
        "Same", "test.same", 1, inputs=[formal("x", "tensor(float)")],
        outputs=[formal("y", "tensor(float)")],
    )  # fmt: skip
    schema.set_type_and_shape_inference_function(
        lambda context: _like_a_standard_operator(ours, context)
    )
    node = ours.helper.make_node("Same", ["x"], ["y"], domain="test.same")
    kind = ours.helper.make_tensor_type_proto(FLOAT, ["N", 2])
    assert ours.shape_inference.infer_node_outputs(schema, node, {"x": kind}) == {"y": kind}


def test_signatures() -> None:
    for name in ("infer_shapes", "infer_shapes_path", "infer_node_outputs",
                 "infer_function_output_types"):  # fmt: skip
        mine = inspect.signature(getattr(ours.shape_inference, name))
        theirs = inspect.signature(getattr(real.shape_inference, name))
        assert [(item.name, item.default, item.kind) for item in mine.parameters.values()] == [
            (item.name, item.default, item.kind) for item in theirs.parameters.values()
        ]


def test_a_model_that_claims_too_much() -> None:
    """Sizes that no tensor has are refused, not followed."""
    text = HEAD + "g (float[4611686018427387904] X) => (Y) { Y = Concat <axis = 0> (X, X, X) }"
    inferred = ours.shape_inference.infer_shapes(model(ours, text))
    assert not inferred.graph.output[0].type.tensor_type.HasField("shape")
    with pytest.raises(ours.shape_inference.InferenceError, match="a size would be"):
        ours.shape_inference.infer_shapes(model(ours, text), strict_mode=True)
