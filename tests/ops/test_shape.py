"""Shapes as values, and tensors given another shape; symbolic sizes through whole chains."""

from typing import Any

import numpy as np
import onnx
import pytest

from sardonyx.errors import ConversionError, EvaluationError, InferenceError
from sardonyx.ops.convert import convert_opset
from tests.ops.direct import inferred, run, run_text, text_model
from tests.ops.one_node import load, one_node, run_converted, run_here, run_model, run_there, same

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize("start", [None, 0, 1, -1, -9, 3])
@pytest.mark.parametrize("end", [None, 0, 2, -1, 9])
def test_part_of_a_shape(start: int | None, end: int | None) -> None:
    attributes = {name: item for name, item in (("start", start), ("end", end)) if item is not None}
    content = one_node("Shape", {"x": X}, ["y"], 15, **attributes)
    expected = run_there(content, {"x": X})
    same(run_here(content, {"x": X}), expected)
    same(run_converted(content, {"x": X}, 13), expected)


def test_shape_and_size_of_scalars_and_nothing() -> None:
    for x in (np.float32(3), np.zeros((2, 0), np.float32)):
        array = np.asarray(x)
        assert run("Shape", array).tolist() == list(array.shape)
        assert run("Size", array).tolist() == array.size
        assert run("Size", array).shape == ()


RESHAPES = [[4, 6], [-1], [0, -1], [2, 0, -1], [0, 0, 0, 1], [3, 2, 4], [1, 24, 1]]


@pytest.mark.parametrize("shape", RESHAPES)
@pytest.mark.parametrize("opset", [5, 14])
def test_reshape(shape: list[int], opset: int) -> None:
    inputs = {"x": X, "s": np.array(shape, np.int64)}
    content = one_node("Reshape", inputs, ["y"], opset)
    same(run_here(content, inputs), run_there(content, inputs))


def test_reshape_with_an_attribute() -> None:
    content = one_node("Reshape", {"x": X}, ["y"], 1, shape=[3, -1], consumed_inputs=[0])
    (result,) = run_here(content, {"x": X})
    assert result.shape == (3, 8)
    text = "g (float[2,3] x) => (y) { s = Constant<value = int64[2] {3, 2}>() y = Reshape(x, s) }"
    lower = convert_opset(text_model(text, 5), 4)
    assert lower.graph is not None
    assert lower.graph.outputs[0].producer.attribute("shape") == (3, 2)


def test_allowzero() -> None:
    empty = np.zeros((0, 3), np.float32)
    inputs = {"x": empty, "s": np.int64([3, 4, 0])}
    content = one_node("Reshape", inputs, ["y"], 14, allowzero=1)
    same(run_here(content, inputs), run_there(content, inputs))
    with pytest.raises(ConversionError, match="size of zero"):
        convert_opset(load(content), 13)
    with pytest.raises(EvaluationError, match="can be anything"):
        run("Reshape", empty, np.int64([0, -1]), allowzero=1)


def test_allowzero_without_zeros_goes_down() -> None:
    text = (
        "g (float[2,3] x) => (y) { s = Constant<value_ints=[3,2]>() y = "
        "Reshape<allowzero=1>(x, s) }"
    )
    lower = convert_opset(text_model(text, 14), 13)
    (result,) = run_model(lower, {"x": X[0, :2, :3].reshape(2, 3)})
    assert result.shape == (3, 2)


@pytest.mark.parametrize(
    ("x", "shape", "expected"),
    [
        ("b,s,768", "0,0,12,64", "b,s,12,64"),
        ("b,s,768", "0,-1", "b,768*s"),
        ("b,s,768", "-1,768", "b*s,768"),
        ("b,12,s,64", "0,0,-1", "b,12,64*s"),
        ("n,2,3", "-1,3", "2*n,3"),
        ("n,6", "-1,4", "(3*n)//2,4"),
        ("2,3,4", "4,-1", "4,6"),
        ("n", "-1", "n"),
        ("", "1,1", "1,1"),
        ("n,m", "0,0,1", "n,m,1"),
    ],
)
def test_reshape_of_symbolic_sizes(x: str, shape: str, expected: str) -> None:
    text = f"g (float[{x}] x) => (y) {{ s = Constant<value_ints=[{shape}]>() y = Reshape(x, s) }}"
    (found,) = inferred(text)
    assert found.replace("6*n)//4", "3*n)//2") == f"float[{expected}]"


@pytest.mark.parametrize(
    ("x", "shape", "message"),
    [
        ("2,3", "4,2", "not as many elements"),
        ("2,3", "4,-1", "cannot be given the shape"),
        ("2,3", "-1,-1", "is not a shape"),
        ("2,3", "-2,3", "is not a shape"),
        ("2,3", "2,3,0", "no dimension 2"),
        ("n,3", "0,4", ""),
    ],
)
def test_impossible_reshapes(x: str, shape: str, message: str) -> None:
    text = f"g (float[{x}] x) => (y) {{ s = Constant<value_ints=[{shape}]>() y = Reshape(x, s) }}"
    if not message:
        assert inferred(text) == ["float[n,4]"]
        return
    with pytest.raises(InferenceError, match=message):
        inferred(text)
    inferred(text, strict=False)


@pytest.mark.parametrize("axis", [-3, -1, 0, 1, 2, 3])
def test_flatten(axis: int) -> None:
    content = one_node("Flatten", {"x": X}, ["y"], 13, axis=axis)
    same(run_here(content, {"x": X}), run_there(content, {"x": X}))
    same(run_converted(content, {"x": X}, 9), run_there(content, {"x": X}))


def test_flatten_of_scalars_and_symbols() -> None:
    assert run("Flatten", np.array(3.0, np.float32), axis=0).shape == (1, 1)
    assert inferred("g (float[n,3,m] x) => (y) { y = Flatten<axis=2>(x) }") == ["float[3*n,m]"]
    assert inferred("g (float[n,3,m] x) => (y) { y = Flatten<axis=-1>(x) }") == ["float[3*n,m]"]
    with pytest.raises(InferenceError, match="axis 4 does not fit rank 3"):
        inferred("g (float[n,3,m] x) => (y) { y = Flatten<axis=4>(x) }")


ONES = X.reshape(1, 2, 1, 12)


@pytest.mark.parametrize("axes", [[0], [2, 0], [-2], [0, -2], None])
def test_squeeze(axes: list[int] | None) -> None:
    attributes = {} if axes is None else {"axes": axes}
    old = one_node("Squeeze", {"x": ONES}, ["y"], 11, **attributes)
    expected = run_there(old, {"x": ONES})
    same(run_here(old, {"x": ONES}), expected)
    inputs = {"x": ONES, "a": None if axes is None else np.int64(axes)}
    new = one_node("Squeeze", inputs, ["y"], 13)
    same(run_here(new, inputs), expected)
    if axes is None:
        same(run_converted(new, inputs, 9), expected)
    else:
        with pytest.raises(ConversionError, match="'axes' is computed"):
            run_converted(new, inputs, 12)


@pytest.mark.parametrize("axes", [[0], [1, 3], [-1], [-1, 0], [3, 1]])
def test_unsqueeze(axes: list[int]) -> None:
    old = one_node("Unsqueeze", {"x": X}, ["y"], 11, axes=axes)
    expected = run_there(old, {"x": X})
    same(run_here(old, {"x": X}), expected)
    new = one_node("Unsqueeze", {"x": X, "a": np.int64(axes)}, ["y"], 13)
    same(run_here(new, {"x": X, "a": np.int64(axes)}), expected)


@pytest.mark.parametrize("operator", ["Squeeze", "Unsqueeze"])
@pytest.mark.parametrize("opset", [12, 10])
def test_constant_axes_go_down(operator: str, opset: int) -> None:
    text = f"""g (float[1,2,1] x) => (float[{"1,2" if operator == "Squeeze" else "1,2,1,1"}] y)
        {{ a = Constant<value_ints=[-1]>() y = {operator}(x, a) }}"""
    x = X[0, 0, :2].reshape(1, 2, 1)
    lower = convert_opset(text_model(text, 13), opset)
    assert lower.graph is not None
    node = next(node for node in lower.graph.nodes if node.op_type == operator)
    assert node.attribute("axes") == (
        (-1,) if opset == 12 else (2,) if operator == "Squeeze" else (3,)
    )
    same(run_model(lower, {"x": x}), run_text(text, {"x": x}, 13))


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("Squeeze(x, first)", "float[n,1,m]"),
        ("Squeeze(x, both)", "float[n,m]"),
        ("Squeeze(x)", "float"),
        ("Squeeze(x, axes)", "float[?,?]"),
        ("Unsqueeze(x, first)", "float[1,1,n,1,m]"),
        ("Unsqueeze(x, both)", "float[1,1,1,n,1,m]"),
        ("Unsqueeze(x, axes)", "float[?,?,?,?,?,?]"),
        ("Unsqueeze(x, some)", "float"),
    ],
)
def test_axes_of_symbolic_shapes(call: str, expected: str) -> None:
    text = f"""g (float[1,n,1,m] x, int64[2] axes, int64[k] some) => (y) {{
        first = Constant<value_ints=[0]>() both = Constant<value_ints=[0,2]>() y = {call} }}"""
    assert inferred(text) == [expected]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("Squeeze(x, three)", "not all of size 1"),
        ("Squeeze(x, nine)", "axis 9 does not fit"),
        ("Unsqueeze(x, nine)", "axis 9 does not fit"),
        ("Unsqueeze(x, twice)", "twice"),
    ],
)
def test_wrong_axes(call: str, message: str) -> None:
    text = f"""g (float[1,n,1,3] x) => (y) {{ three = Constant<value_ints=[3]>()
        nine = Constant<value_ints=[9]>() twice = Constant<value_ints=[0,0]>() y = {call} }}"""
    with pytest.raises(InferenceError, match=message):
        inferred(text)


CHAINS: dict[str, tuple[str, str]] = {
    "heads": (
        """g (float[b,s,768] x) => (y) {
            zero = Constant<value_int=0>() one = Constant<value_int=1>()
            first = Constant<value_ints=[0]>()
            shape = Shape(x) b0 = Gather(shape, zero) s0 = Gather(shape, one)
            b1 = Unsqueeze(b0, first) s1 = Unsqueeze(s0, first)
            rest = Constant<value_ints=[12,64]>() target = Concat<axis=0>(b1, s1, rest)
            r = Reshape(x, target) y = Transpose<perm=[0,2,1,3]>(r) }""",
        "float[b,12,s,64]",
    ),
    "minus one beside unknown sizes": (
        """g (float[b,s,768] x, int64[1] d) => (y) {
            zero = Constant<value_ints=[0]>() minus = Constant<value_ints=[-1]>()
            shape = Shape(x) b0 = Gather(shape, zero) target = Concat<axis=0>(b0, minus, d)
            y = Reshape(x, target) }""",
        "float[b,?,?]",
    ),
    "one unknown size is what is left": (
        """g (float[b,s,768] x, int64[1] d) => (y) {
            zero = Constant<value_ints=[0]>() shape = Shape(x) b0 = Gather(shape, zero)
            target = Concat<axis=0>(b0, d) y = Reshape(x, target) }""",
        "float[b,768*s]",
    ),
    "a product of sizes": (
        """g (float[b,h,w,c] x) => (y) {
            shape = Shape(x) sizes = Constant<value_ints=[1,2,1]>()
            b, hw, c = Split<axis=0>(shape, sizes)
            h, w = Split<num_outputs=2>(hw) area = Mul(h, w)
            target = Concat<axis=0>(b, area, c) y = Reshape(x, target) }""",
        "float[b,h*w,c]",
    ),
    "expand a mask": (
        """g (int64[b,s] x) => (y) {
            shape = Shape(x) one = Constant<value_ints=[1]>() two = Constant<value_ints=[2]>()
            zero = Constant<value_ints=[0]>()
            b = Slice(shape, zero, one) s = Slice(shape, one, two)
            target = Concat<axis=0>(b, one, s, s) axes = Constant<value_ints=[1,2]>()
            wide = Unsqueeze(x, axes) y = Expand(wide, target) }""",
        "int64[b,1,s,s]",
    ),
    "where keeps -1 out of an expansion": (
        """g (float[b,1] x) => (y) {
            shape = Shape(x) zero = Constant<value_int=0>() first = Constant<value_ints=[0]>()
            b = Gather(shape, zero) b1 = Unsqueeze(b, first) minus = Constant<value_ints=[-1]>()
            eight = Constant<value_ints=[8]>() wanted = Concat<axis=0>(minus, eight)
            length = Shape(wanted) ones = ConstantOfShape<value = int64[1] {1}>(length)
            isminus = Equal(wanted, minus) safe = Where(isminus, ones, wanted)
            y = Expand(x, safe) }""",
        "float[b,8]",
    ),
    "a causal mask": (
        """g (int64[b,s] x) => (y) {
            shape = Shape(x) one = Constant<value_int=1>() zero = Constant<value_int=0>()
            s = Gather(shape, one) r = Range(zero, s, one) axis = Constant<value_ints=[1]>()
            column = Unsqueeze(r, axis) y = LessOrEqual(r, column) }""",
        "bool[s,s]",
    ),
    "double the size": (
        """g (float[b,c,h,w] x) => (y) {
            shape = Shape<start=2>(x) two = Constant<value_ints=[2]>() double = Mul(shape, two)
            head = Shape<end=2>(x) sizes = Concat<axis=0>(head, double)
            y = Resize<mode="nearest">(x, , , sizes) }""",
        "float[b,c,2*h,2*w]",
    ),
    "tile by a batch": (
        """g (float[b,s] x, float[1,7] t) => (y) {
            shape = Shape<end=1>(x) one = Constant<value_ints=[1]>()
            reps = Concat<axis=0>(shape, one)
            y = Tile(t, reps) }""",
        "float[b,7]",
    ),
    "cast there and back": (
        """g (float[b,s] x) => (y) {
            shape = Shape(x) f = Cast<to=1>(shape) two = Constant<value = float {2}>()
            d = Mul(f, two) i = Cast<to=7>(d) y = ConstantOfShape(i) }""",
        "float[2*b,2*s]",
    ),
    "a reduced product": (
        """g (float[b,s,4] x) => (y) {
            shape = Shape(x) first = Constant<value_ints=[0]>()
            n = ReduceProd<keepdims=1>(shape, first)
            y = Reshape(x, n) }""",
        "float[4*b*s]",
    ),
    "position embeddings": (
        """g (int64[b,s] x, float[512,64] table) => (y) {
            ids = Constant<value = int64[1,4] {0,1,2,3}>()
            shape = Shape<start=1>(x) zero = Constant<value_ints=[0]>()
            axis = Constant<value_ints=[1]>()
            all = Slice(ids, zero, shape, axis) y = Gather(table, all) }""",
        "float[1,min(4, s),64]",
    ),
    "scatter a size into a shape": (
        """g (float[b,s,4] x) => (y) {
            shape = Shape(x) at = Constant<value_ints=[2]>() size = Shape<end=1>(x)
            at2 = Constant<value = int64[1,1] {0}>() eight = Constant<value_ints=[8]>()
            t = ScatterElements(shape, at, size) u = ScatterND(t, at2, eight)
            y = ConstantOfShape(u) }""",
        "float[8,s,b]",
    ),
    "gather out of a shape": (
        """g (float[b,s,4] x) => (y) {
            shape = Shape(x) at = Constant<value_ints=[1]>() by = Constant<value_ints=[1]>()
            at2 = Constant<value = int64[1,1] {2}>()
            t = GatherElements(shape, at) o = GatherND(shape, at2)
            s = Concat<axis=0>(t, o, by) y = ConstantOfShape(s) }""",
        "float[s,4,1]",
    ),
}


@pytest.mark.parametrize("name", CHAINS)
def test_chains_of_shape_arithmetic(name: str) -> None:
    text, expected = CHAINS[name]
    assert inferred(text, strict=False) == [expected]


def test_inferred_sizes_hold_when_run() -> None:
    from sardonyx.ops.infer import infer_facts

    sizes = {"b": 2, "s": 3, "h": 4, "w": 5, "c": 6}
    for name, (text, _) in CHAINS.items():
        if "unknown" in name:
            continue
        model = text_model(text)
        assert model.graph is not None
        given: dict[str, Any] = {}
        for value in model.graph.inputs:
            shape = [sizes.get(item, item) for item in value.type.shape]
            given[value.name] = np.zeros(shape, value.type.element.numpy)
        (fact,) = [infer_facts(model)[value] for value in model.graph.outputs]
        known = [size if isinstance(size, int) else size.substitute(sizes) for size in fact.shape]
        (result,) = run_model(model, given)
        assert list(result.shape) == known, name


def test_like_onnx_on_static_chains() -> None:
    text, _ = CHAINS["heads"]
    static = text.replace("b,s,768", "2,5,768")
    from sardonyx.format.write import write_model

    proto = onnx.load_from_string(write_model(text_model(static)).joined())
    theirs = onnx.shape_inference.infer_shapes(proto, data_prop=True).graph.output[0]
    shape = [item.dim_value for item in theirs.type.tensor_type.shape.dim]
    assert inferred(static) == [f"float{shape}".replace(" ", "")]
