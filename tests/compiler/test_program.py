"""Compiled programs give what the reference gives, for every lowering, with sizes that change."""

import threading

import numpy as np
import pytest
from numpy.typing import NDArray

import sardonyx as sx
from sardonyx.compiler.host import host_features
from sardonyx.compiler.lowerings import LOWERINGS
from sardonyx.compiler.program import compile_model
from sardonyx.compiler.segment import Segment
from sardonyx.compiler.targets import TARGETS
from sardonyx.errors import EvaluationError, InputError
from tests.compiler.case import Case, run_cases
from tests.compiler.cases import ALL_CASES

RUNNABLE = [target.name for target in TARGETS if host_features().issuperset(target.needs)]


@pytest.mark.parametrize("target", RUNNABLE)
@pytest.mark.parametrize("case", ALL_CASES, ids=lambda case: case.name)
def test_lowered_operators_agree_with_their_reference(case: Case, target: str) -> None:
    run_cases(case, target)


def test_every_lowering_has_a_case() -> None:
    tested = {case.op_type for case in ALL_CASES}
    assert {name for _, name in LOWERINGS} - tested == set()


def chain(length: int) -> sx.Model:
    """`length` operators on single elements, one after another."""
    graph = sx.Graph("chain")
    value = graph.add_input("x", sx.TensorType(sx.DataType.FLOAT, (4, 4)))
    op = sx.Builder(graph, opset=21)
    steps = (op.Relu, lambda v: op.Add(v, np.float32(0.5)), op.Tanh, op.Neg, lambda v: op.Mul(v, v))
    for number in range(length):
        value = steps[number % len(steps)](value)
    graph.outputs.append(value)
    return sx.Model(graph, sx.Opsets({"": 21}), ir_version=10)


def test_a_chain_of_201_operators_is_one_kernel() -> None:
    model = chain(201)
    program = compile_model(model, threads=1)
    assert (program.kernels, program.segments) == (1, 1)
    x = np.random.default_rng(0).standard_normal((4, 4), np.float32)
    np.testing.assert_allclose(
        program.run({"x": x})[0], sx.evaluate(model, {"x": x})[0], rtol=1e-4, atol=1e-6
    )
    assert {row.kernel for row in program.explain()} == {"map 0"}
    assert len(program.explain()[0].together) == 200


def test_longer_chains_are_cut() -> None:
    model = chain(900)
    program = compile_model(model, threads=1)
    assert program.kernels == 3
    x = np.random.default_rng(0).standard_normal((4, 4), np.float32)
    np.testing.assert_allclose(
        program.run({"x": x})[0], sx.evaluate(model, {"x": x})[0], rtol=1e-4, atol=1e-6
    )


def with_fallback() -> sx.Model:
    """An operator without a native form between some that have one, and a size known only later."""
    return sx.load_text(
        '<ir_version: 10, opset_import: ["": 21]>'
        "g (float[n] x) => (float[m] y, float[n] z) {"
        " a = Relu(x) b = Exp(a)"
        " e = Cast<to = 8>(a) q, j = Unique(e) s = Size(j) c = Gather(b, j)"
        " d = Neg(c) y = Exp(d) z = Sub(b, a) }"
    )


def test_fallbacks_run_between_native_segments() -> None:
    model = with_fallback()
    program = compile_model(model, threads=1)
    for values in ([1, -1, 2, 3], [-1, 0, 5], [1.5]):
        x = np.array(values, np.float32)
        for found, expected in zip(
            program.run({"x": x}), sx.evaluate(model, {"x": x}), strict=True
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-5)
    said = {row.operator: row for row in program.explain()}
    assert said["Unique"].kernel == "reference" and "string" in said["Unique"].reason
    assert said["Size"].kernel == "view"
    assert said["Exp"].reason == "" and program.segments == 2


def row_model() -> sx.Model:
    return sx.load_text(
        '<ir_version: 10, opset_import: ["": 21]>'
        "g (float[n,m] x, float[m] w) => (float[n,m] y, float[n,1] s) {"
        " a = Mul(x, w) y = Softmax<axis = 1>(a)"
        " t = Constant<value_ints = [1]>() s = ReduceSum(x, t) }"
    )


def test_one_compilation_serves_all_sizes_and_threads() -> None:
    model = row_model()
    one, two = (compile_model(model, threads=count) for count in (1, 2))
    rng = np.random.default_rng(0)
    for rows, columns in [(1, 1), (3, 17), (700, 301), (2, 4096), (0, 5), (3, 17)]:
        feeds = {
            "x": rng.standard_normal((rows, columns), np.float32),
            "w": rng.standard_normal(columns, np.float32),
        }
        first, second = one.run(feeds), two.run(feeds)
        for found, same, expected in zip(first, second, sx.evaluate(model, feeds), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
            assert found.tobytes() == same.tobytes()


def test_concurrent_runs_do_not_disturb_each_other() -> None:
    program = compile_model(row_model(), threads=2)
    rng = np.random.default_rng(0)
    feeds = [
        {"x": rng.standard_normal((400, 256), np.float32), "w": np.ones(256, np.float32)}
        for _ in range(4)
    ]
    expected = [program.run(item) for item in feeds]
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(30):
            found = program.run(feeds[number])
            if any(
                a.tobytes() != b.tobytes() for a, b in zip(found, expected[number], strict=True)
            ):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ({"x": np.zeros((2, 3), np.float32)}, "input 'w' is missing"),
        ({"x": np.zeros((2, 3)), "w": np.zeros(3, np.float32)}, "float is expected|cast it"),
        ({"x": np.zeros((2, 3), np.float32), "w": np.zeros(4, np.float32)}, "does not fit"),
        ({"x": np.zeros(3, np.float32), "w": np.zeros(3, np.float32)}, "has .*shape"),
        ({"q": np.zeros(3, np.float32), "w": np.zeros(3, np.float32)}, "no input 'q'"),
    ],
)
def test_wrong_feeds_say_what_was_expected(feeds: dict[str, NDArray], message: str) -> None:
    program = compile_model(row_model(), threads=1)
    with pytest.raises(InputError, match=message):
        program.run(feeds)


def test_an_index_out_of_range_is_an_error_and_not_a_crash() -> None:
    model = sx.load_text(
        '<ir_version: 10, opset_import: ["": 21]>'
        "g (float[n,4] x, int64[k] i) => (float[k,4] y) { y = Gather(x, i) }"
    )
    program = compile_model(model, threads=1)
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert program.run({"x": x, "i": np.array([2, -3])})[0].tolist() == [
        x[2].tolist(),
        x[0].tolist(),
    ]
    for bad in (3, -4, 2**40, -(2**40)):
        with pytest.raises(EvaluationError, match="out of range"):
            program.run({"x": x, "i": np.array([0, bad])})
    assert program.run({"x": x, "i": np.array([1])})[0].tolist() == [x[1].tolist()]


def test_inputs_need_not_be_contiguous() -> None:
    program = compile_model(row_model(), threads=1)
    x = np.random.default_rng(0).standard_normal((6, 8), np.float32).T
    feeds = {"x": x, "w": np.ones(6, np.float32)}
    np.testing.assert_allclose(program.run(feeds)[0], sx.evaluate(row_model(), feeds)[0], rtol=1e-5)
    np.testing.assert_allclose(program.run(feeds)[0], sx.evaluate(row_model(), feeds)[0], rtol=1e-5)


def test_outputs_may_be_inputs_constants_and_each_other() -> None:
    model = sx.load_text(
        '<ir_version: 10, opset_import: ["": 21]>'
        "g (float[n] x) => (float[n] y, float[n] z, float[2] c, float[n,1] u) {"
        " y = Identity(x) z = Relu(x) c = Constant<value_floats = [1.0, 2.0]>()"
        " t = Constant<value_ints = [1]>() u = Unsqueeze(z, t) }"
    )
    x = np.array([1, -2, 3], np.float32)
    found = compile_model(model, threads=1).run({"x": x})
    for array, expected in zip(found, sx.evaluate(model, {"x": x}), strict=True):
        np.testing.assert_array_equal(array, expected)


def test_sizes_may_come_from_inputs_that_no_kernel_reads() -> None:
    model = sx.load_text(
        '<ir_version: 10, opset_import: ["": 21]>'
        "g (float[n,m] x, float[1,1] w) => (float[n,m] y) { s = Shape(x) y = Expand(w, s) }"
    )
    program = compile_model(model, threads=1)
    assert program.explain()[1].kernel == "view 0"
    for shape in ((2, 3), (5, 1)):
        feeds = {"x": np.zeros(shape, np.float32), "w": np.full((1, 1), 4, np.float32)}
        assert program.run(feeds)[0].tolist() == np.full(shape, 4.0).tolist()


@pytest.mark.parametrize("group", [1, 2, 24])
def test_images_of_any_size_with_one_compilation(group: int) -> None:
    graph = sx.Graph("g")
    x = graph.add_input("x", sx.TensorType(sx.DataType.FLOAT, ("n", 24, "h", "w")))
    op = sx.Builder(graph, opset=21)
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((24, 24 // group, 3, 3), np.float32)
    bias = rng.standard_normal(24, np.float32)
    hidden = op.Relu(op.Conv(x, weights, bias, pads=[1, 1, 1, 1], group=group))
    pooled = op.MaxPool(hidden, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    graph.outputs.extend(
        [op.Conv(pooled, weights, strides=[1, 2], group=group), op.GlobalAveragePool(pooled)]
    )
    model = sx.Model(graph, sx.Opsets({"": 21}), ir_version=10)
    program = compile_model(model, threads=2)
    assert all(row.kernel != "reference" for row in program.explain())
    for shape in ((1, 24, 7, 6), (2, 24, 12, 40), (1, 24, 30, 9)):
        feeds = {"x": rng.standard_normal(shape, np.float32)}
        for found, expected in zip(program.run(feeds), sx.evaluate(model, feeds), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)


def test_sizes_that_must_agree_are_checked() -> None:
    graph = sx.Graph("g")
    x = graph.add_input("x", sx.TensorType(sx.DataType.FLOAT, ("n", "m")))
    op = sx.Builder(graph, opset=21)
    graph.outputs.append(op.MatMul(x, np.ones((4, 3), np.float32)))
    program = compile_model(sx.Model(graph, sx.Opsets({"": 21}), ir_version=10), threads=1)
    assert program.run({"x": np.ones((2, 4), np.float32)})[0].tolist() == [[4.0] * 3] * 2
    with pytest.raises(InputError, match="m is 5, but the model needs 4"):
        program.run({"x": np.ones((2, 5), np.float32)})


def test_many_shapes_share_one_arena() -> None:
    program = compile_model(row_model(), threads=1)
    for columns in range(1, 40):
        feeds = {"x": np.ones((3, columns), np.float32), "w": np.ones(columns, np.float32)}
        np.testing.assert_allclose(program.run(feeds)[0], 1 / columns, rtol=1e-5)
        np.testing.assert_allclose(program.run(feeds)[1], columns, rtol=1e-5)
    (segment,) = (step for step in program._steps if isinstance(step, Segment))
    assert len(segment._free) == 1


def test_constants_that_are_returned_cannot_be_spoilt() -> None:
    model = sx.load_text(
        '<ir_version: 10, opset_import: ["": 21]>'
        "g (float[2] x) => (float[2] c, float[2] y) {"
        " c = Constant<value_floats = [1.0, 2.0]>() y = Add(x, c) }"
    )
    program = compile_model(model, threads=1)
    x = np.zeros(2, np.float32)
    program.run({"x": x})[0][:] = 9
    assert [item.tolist() for item in program.run({"x": x})] == [[1.0, 2.0], [1.0, 2.0]]


def test_what_depends_on_constants_alone_is_computed_at_once() -> None:
    model = sx.load_text(
        '<ir_version: 10, opset_import: ["": 21]>'
        "g (float[2] x) => (float[2] y) {"
        " c = Constant<value_floats = [1.0, 4.0]>() d = Cos(c) y = Add(x, d) }"
    )
    program = compile_model(model, threads=1)
    assert [row.kernel for row in program.explain()] == ["constant", "constant", "map 0"]
    x = np.zeros(2, np.float32)
    np.testing.assert_allclose(program.run({"x": x})[0], np.cos([1, 4]), rtol=1e-6)


def test_a_size_with_a_long_expression_is_told_by_what_makes_it() -> None:
    count = 120
    inputs = ", ".join(f"float[n{number}] x{number}" for number in range(count))
    names = ", ".join(f"x{number}" for number in range(count))
    model = sx.load_text(
        f'<ir_version: 10, opset_import: ["": 21]> g ({inputs}) => (float[k] y) '
        f"{{ a = Concat<axis = 0>({names}) b = Relu(a) c = Concat<axis = 0>(b, b) y = Neg(c) }}"
    )
    feeds = {f"x{number}": np.arange(number % 3, dtype=np.float32) for number in range(count)}
    (result,) = compile_model(model, threads=1).run(feeds)
    np.testing.assert_array_equal(result, sx.evaluate(model, feeds)[0])
