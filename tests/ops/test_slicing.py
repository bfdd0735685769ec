"""Regular parts of tensors."""

import itertools

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.dims import Expression, symbol
from sardonyx.errors import ConversionError, InferenceError, SardonyxError
from sardonyx.ops.convert import convert_opset
from sardonyx.ops.slicing import FAR, first_position, sliced_size
from tests.ops.direct import inferred, run, run_text, text_model
from tests.ops.one_node import one_node, run_converted, run_here, run_model, run_there, same

X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
LOW = -(2**63)


@pytest.mark.parametrize(
    ("starts", "ends", "axes", "steps"),
    [
        ([0], [2], None, None),
        ([1, 0], [3, FAR], [0, 2], None),
        ([-1], [LOW], [2], [-1]),
        ([-1, 5], [-6, 0], [1, 2], [-2, -3]),
        ([0, 0, 0], [2, 3, 4], None, [1, 2, 2]),
        ([7], [9], [1], None),
        ([-9], [9], [-1], [2]),
        ([2], [2], [0], None),
    ],
)
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_slice(starts: list[int], ends: list[int], axes: list[int] | None,
               steps: list[int] | None, dtype: type) -> None:  # fmt: skip
    def whole(items: list[int] | None) -> np.ndarray | None:
        if items is None:
            return None
        return np.array([max(item, np.iinfo(dtype).min) for item in items], dtype)

    inputs = {"x": X, "s": whole(starts), "e": whole(ends), "a": whole(axes), "t": whole(steps)}
    content = one_node("Slice", inputs, ["y"], 13)
    expected = run_there(content, inputs)
    same(run_here(content, inputs), expected)
    same(run_converted(content, inputs, 11), expected)


@pytest.mark.parametrize("axes", [None, [2, 0]])
def test_slice_by_attributes(axes: list[int] | None) -> None:
    attributes = {} if axes is None else {"axes": axes}
    content = one_node("Slice", {"x": X}, ["y"], 9, starts=[1, -2], ends=[1000, -1], **attributes)
    same(run_here(content, {"x": X}), run_there(content, {"x": X}))


def test_constant_slices_go_down_to_attributes() -> None:
    text = """g (float[4] x) => (float[2] y) { s = Constant<value = int64[1] {1}>()
        e = Constant<value = int64[1] {3}>() a = Constant<value = int64[1] {0}>()
        t = Constant<value = int64[1] {STEP}>() y = Slice(x, s, e, a, t) }"""
    x = np.arange(4, dtype=np.float32)
    lower = convert_opset(text_model(text.replace("STEP", "1"), 10), 9)
    same(run_model(lower, {"x": x}), [x[1:3]])
    with pytest.raises(ConversionError, match="it has steps"):
        convert_opset(text_model(text.replace("STEP", "2"), 10), 9)
    with pytest.raises(ConversionError, match="is computed"):
        model = text_model("g (float[4] x, int64[1] s) => (float[2] y) { y = Slice(x, s, s) }", 10)
        convert_opset(model, 9)


POSITIONS = (0, 1, 3, 9, -1, -2, -9, FAR, -FAR, LOW)


@pytest.mark.parametrize("step", [1, 2, 3, -1, -2])
def test_symbolic_sizes_agree_with_numbers(step: int) -> None:
    n = symbol("n")
    for start, end in itertools.product(POSITIONS, POSITIONS):
        general = sliced_size(n, start, end, step)
        for size in range(6):
            exact = len(range(size)[first_position(start, size, step) : end : step])
            found = general.substitute({"n": size}) if isinstance(general, Expression) else general
            assert found == exact, (start, end, step, size, general)


def test_symbolic_bounds() -> None:
    n, m = symbol("n"), symbol("m")
    bounds = ((0, m), (m, n), (m, FAR), (0, n - 1), (1, n), (-m, FAR), (0, -m), (-m - 2, -m))
    for size, other in itertools.product(range(5), range(1, 5)):
        sizes = {"n": size, "m": other}
        for start, end in bounds:
            found = sliced_size(n, start, end, 1)
            plain = [
                item if isinstance(item, int) else item.substitute(sizes) for item in (start, end)
            ]
            assert isinstance(found, Expression)
            assert found.substitute(sizes) == len(range(size)[slice(*plain)]), (start, end, sizes)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("Slice(x, zero, far, one)", "float[b,s,8]"),
        ("Slice(x, one, far, one)", "float[b,max(0, s-1),8]"),
        ("Slice(x, zero, minus, one)", "float[b,max(0, s-1),8]"),
        ("Slice(x, minus, far, one)", "float[b,min(1, s),8]"),
        ("Slice(x, zero, three, one)", "float[b,min(3, s),8]"),
        ("Slice(x, zero, length, one)", "float[b,s,8]"),
        ("Slice(x, zero, far, one, two)", "float[b,(s+1)//2,8]"),
        ("Slice(x, minus, low, one, minus)", "float[b,s,8]"),
        ("Slice(x, zero, three, two)", "float[b,s,3]"),
        ("Slice(x, any, three, two)", "float[b,s,?]"),
        ("Slice(x, zero, three, any)", "float[?,?,?]"),
        ("Slice(x, zero, three)", "float[min(3, b),s,8]"),
    ],
)
def test_slice_shapes(call: str, expected: str) -> None:
    text = f"""g (float[b,s,8] x, int64[1] any) => (y) {{
        zero = Constant<value_ints=[0]>() one = Constant<value_ints=[1]>()
        two = Constant<value_ints=[2]>() three = Constant<value_ints=[3]>()
        minus = Constant<value_ints=[-1]>() far = Constant<value_ints=[9223372036854775807]>()
        low = Constant<value_ints=[-9223372036854775808]>()
        length = Shape<start=1, end=2>(x) y = {call} }}"""
    assert inferred(text) == [expected]


def test_added_positions_have_the_size_of_the_sentence() -> None:
    text = """g (float[b,s,8] x, float[512,8] table) => (y) {
        zero = Constant<value_ints=[0]>() n = Shape<start=1, end=2>(x)
        part = Slice(table, zero, n) y = Add(x, part) }"""
    assert inferred(text) == ["float[b,s,8]"]


def test_wrong_slices() -> None:
    text = """g (float[4] x) => (y) { zero = Constant<value_ints=[0]>()
        one = Constant<value_ints=[1]>()
        two = Constant<value_ints=[0,1]>() y = CALL }"""
    for call, message in (
        ("Slice(x, zero, one, zero, zero)", "step of a slice is zero"),
        ("Slice(x, zero, one, one)", "axis 1 does not fit"),
        ("Slice(x, zero, two, zero)", "not of one length"),
    ):
        with pytest.raises(InferenceError, match=message):
            inferred(text.replace("CALL", call))


def test_a_slice_is_a_copy() -> None:
    x = np.arange(4, dtype=np.float32)
    result = run("Slice", x, np.int64([0]), np.int64([4]))
    result[0] = 9
    assert x[0] == 0
    (none,) = run_text("g (float[4] x, int64[0] n) => (y) { y = Slice(x, n, n) }",
                       {"x": x, "n": np.zeros(0, np.int64)})  # fmt: skip
    assert none.shape == (4,)


def test_backwards_from_before_the_front_begins_at_the_front() -> None:
    model = sx.load_text(
        '<ir_version: 10, opset_import: ["": 21]> g (float[4] x) => (y)'
        "<int64[1] a = {-9}, int64[1] b = {-2147483648}, int64[1] c = {0}, int64[1] d = {-1}>"
        "{ y = Slice(x, a, b, c, d) }"
    )
    assert sx.evaluate(model, {"x": np.arange(4, dtype=np.float32)})[0].tolist() == [0.0]
    assert sx.infer_shapes(model).graph.outputs[0].type.shape == (1,)


@pytest.mark.parametrize(
    ("call", "goes"),
    [
        ("Slice(x, one, two)", True),
        ("Slice(x, one, two, zero)", True),
        ("Slice(x, one, two, zero, one)", True),
        ("Slice(x, one, two, , one)", True),
        ("Slice(x, one, two, zero, two)", False),
        ("Slice(x, one, two, zero, s)", False),
    ],
)
def test_steps_begin_with_opset_10(call: str, goes: bool) -> None:
    text = f"""g (float[3,4] x, int64[1] s) => (y) {{ zero = Constant<value_ints=[0]>()
        one = Constant<value_ints=[1]>() two = Constant<value_ints=[2]>() y = {call} }}"""
    model = text_model(text, 13)
    if not goes:
        with pytest.raises(ConversionError, match="begin with opset 10"):
            convert_opset(model, 9)
        return
    lower = convert_opset(model, 9)
    assert lower.graph is not None
    node = next(node for node in lower.graph.nodes if node.op_type == "Slice")
    assert len(node.inputs) == 1 and node.attribute("starts") == (1,)
    assert node.attribute("ends") == (2,)


@pytest.mark.parametrize("place", range(4))
def test_lists_are_lists(place: int) -> None:
    lists = [np.int64([0]), np.int64([1]), np.int64([0]), np.int64([1])]
    lists[place] = lists[place].reshape(())
    with pytest.raises(SardonyxError, match="must be a list"):
        run("Slice", np.arange(3.0), *lists)
