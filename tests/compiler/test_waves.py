"""Batches that run a few images at a time: the same results, and only where images are apart."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sardonyx as sx
from sardonyx.compiler import waves
from sardonyx.compiler.program import Program, compile_model
from sardonyx.compiler.segment import Segment
from sardonyx.compiler.separate import leading
from sardonyx.dims import symbol

Value = sx.Value
Body = Callable[[sx.Builder, Value], Value | tuple[Value, ...]]
RANDOM = np.random.default_rng(0)
BATCHES = (0, 1, 2, 3, 5)


@pytest.fixture(autouse=True)
def small_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    """An image of these tests is what a cache holds."""
    monkeypatch.setattr(waves, "SHARE", 1 / 64)
    monkeypatch.setattr(waves, "BALANCE", 1000)


def random(*shape: int) -> NDArray[np.float32]:
    return RANDOM.standard_normal(shape, np.float32)


def model_of(body: Body) -> sx.Model:
    graph = sx.Graph("images")
    x = graph.add_input("x", sx.TensorType(sx.DataType.FLOAT, ("batch", 8, 20, 20)))
    made = body(sx.Builder(graph, opset=21), x)
    graph.outputs.extend(made if isinstance(made, tuple) else (made,))
    return sx.Model(graph, sx.Opsets({"": 21}), ir_version=10)


def blocks(op: Any, x: Value, count: int = 2) -> Value:
    """Convolutions as mobile networks have them."""
    for _ in range(count):
        wide = op.Relu(op.Conv(x, random(24, 8, 1, 1) / 3))
        deep = op.Relu(op.Conv(wide, random(24, 1, 3, 3) / 3, group=24, pads=[1, 1, 1, 1]))
        x = op.Add(x, op.Conv(deep, random(8, 24, 1, 1) / 5))
    return x


def waves_of(program: Program) -> list[tuple[int, int, int]]:
    return [
        (wave.first, wave.end, wave.images)
        for step in program._steps
        if isinstance(step, Segment)
        for wave in step.image.waves
    ]


def check(model: sx.Model, program: Program, batches: tuple[int, ...] = BATCHES) -> None:
    for batch in batches:
        x = random(batch, 8, 20, 20)
        wanted = sx.evaluate(model, {"x": x})
        for found, right in zip(program.run({"x": x}), wanted, strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_batch_gives_what_its_images_give(threads: int) -> None:
    model = model_of(lambda op, x: op.ReduceMean(blocks(op, x), np.array([2, 3])))
    program = compile_model(model, threads=threads)
    ((first, end, images),) = waves_of(program)
    assert end - first > 6 and images == 1
    check(model, program)
    x = random(5, 8, 20, 20)
    single = [program.run({"x": x[at : at + 1]})[0] for at in range(5)]
    np.testing.assert_array_equal(program.run({"x": x})[0], np.concatenate(single))


def test_waves_of_several_images_leave_a_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waves, "SHARE", 1)
    model = model_of(blocks)
    program = compile_model(model, threads=1)
    ((_, _, images),) = waves_of(program)
    assert 5 < images < 20
    check(model, program, batches=(images, images + 1, 3 * images - 1))


def test_what_others_read_lies_there_for_the_whole_batch() -> None:
    def body(op: Any, x: Value) -> tuple[Value, ...]:
        first = blocks(op, x, 1)
        mixed = op.Sub(first, op.ReduceMean(first, np.array([0])))
        second = blocks(op, mixed, 1)
        return second, op.Relu(first), op.Add(second, first)

    model = model_of(body)
    program = compile_model(model, threads=1)
    assert len(waves_of(program)) == 2
    check(model, program)


MIXING: dict[str, Body] = {
    "a sum over the batch": lambda op, x: op.Sub(x, op.ReduceSum(x, np.array([0]))),
    "a softmax over the batch": lambda op, x: op.Softmax(x, axis=0),
    "images in another order": lambda op, x: op.Slice(
        x, np.array([-1]), np.array([-100]), np.array([0]), np.array([-1])
    ),
    "all but the last image, and it": lambda op, x: op.Concat(
        op.Slice(x, np.array([-1]), np.array([100]), np.array([0])),
        op.Slice(x, np.array([0]), np.array([-1]), np.array([0])),
        axis=0,
    ),
    "the batch at the end": lambda op, x: op.Transpose(
        op.Softmax(op.Transpose(x, perm=[1, 2, 3, 0]), axis=-1), perm=[3, 0, 1, 2]
    ),
    "the batch among others": lambda op, x: op.Reshape(
        op.Softmax(op.Reshape(x, np.array([8, -1])), axis=1), op.Shape(x), allowzero=1
    ),
    "the number of images": lambda op, x: op.Div(x, op.Cast(op.Size(x), to=1)),
    "the number of an image": lambda op, x: op.Mul(x, op.CumSum(op.Sign(x), np.array(0))),
    "products of images": lambda op, x: op.Add(
        x,
        op.Reshape(
            op.ReduceSum(
                op.MatMul(op.Reshape(x, np.array([-1, 3200])),
                          op.Transpose(op.Reshape(x, np.array([-1, 3200])), perm=[1, 0])),
                np.array([1]),
            ),
            np.array([-1, 1, 1, 1]),
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("mix", MIXING.values(), ids=MIXING.keys())
def test_what_mixes_images_waits_for_all_of_them(mix: Body) -> None:
    def body(op: Any, x: Value) -> Value:
        made = mix(op, blocks(op, x, 1))
        assert isinstance(made, Value)
        return blocks(op, made, 1)

    model = model_of(body)
    program = compile_model(model, threads=1)
    assert waves_of(program)
    check(model, program)


APART: dict[str, Body] = {
    "windows": lambda op, x: op.Softmax(
        op.Reshape(
            op.Transpose(op.Reshape(x, np.array([-1, 8, 4, 5, 4, 5])), perm=[0, 2, 4, 3, 5, 1]),
            np.array([-1, 25, 8]),
        ),
        axis=1,
    ),
    "products by themselves": lambda op, x: op.MatMul(x, op.Transpose(x, perm=[0, 1, 3, 2])),
    "products by constants": lambda op, x: op.Relu(op.MatMul(x, random(20, 7))),
    "pools": lambda op, x: op.AveragePool(op.MaxPool(x, kernel_shape=[3, 3]), kernel_shape=[2, 2]),
    "channels put together": lambda op, x: op.Concat(x, op.Relu(x), axis=1),
    "borders": lambda op, x: op.Pad(x, np.array([0, 0, 1, 2, 0, 0, 3, 0]), mode="reflect"),
    "larger images": lambda op, x: op.Resize(x, None, np.array([1, 1, 2, 2], np.float32)),
    "repeated constants": lambda op, x: op.Add(
        x, op.Expand(random(1, 8, 1, 1), op.Shape(x))
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", APART)
def test_forms_of_images_that_are_apart(name: str) -> None:
    """They run in the wave of what comes before; some that take elements by their places do not."""
    model = model_of(lambda op, x: APART[name](op, blocks(op, x, 1)))
    program = compile_model(model, threads=1)
    ((first, end, _),) = waves_of(program)
    (calls,) = [len(step.image.calls) for step in program._steps if isinstance(step, Segment)]
    assert first == 0 and (end == calls) == (name not in ("borders", "larger images"))
    check(model, program)


def test_runs_at_the_same_time_have_waves_of_their_own() -> None:
    program = compile_model(model_of(blocks), threads=1)
    feeds = [random(3 + number % 2, 8, 20, 20) for number in range(4)]
    wanted = [program.run({"x": x})[0] for x in feeds]
    wrong: list[int] = []

    def run(number: int) -> None:
        for _ in range(20):
            if not np.array_equal(program.run({"x": feeds[number]})[0], wanted[number]):
                wrong.append(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_profile_counts_every_wave() -> None:
    session = sx.InferenceSession(model_of(blocks))
    profile = session.profile({"x": random(3, 8, 20, 20)}, runs=2)
    assert max(row.calls for row in profile.kernels) == 6


def test_little_that_is_moved_needs_no_waves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waves, "BALANCE", 0)
    assert not waves_of(compile_model(model_of(blocks), threads=1))


def test_where_the_batch_stands() -> None:
    batch = symbol("batch")
    assert leading((batch * 3, 4), "batch") == 3
    assert leading((2, 4), "batch") == 0
    for shape in ((4, batch), (batch, batch), (batch + 1, 4), (symbol("other"), 4)):
        assert leading(shape, "batch") is None


def test_every_other_image_is_a_batch_that_no_run_is_told() -> None:
    def every_other(op: Any, x: Value) -> Value:
        return blocks(op, op.Slice(x, np.array([0]), np.array([99]), np.array([0]), np.array([2])))

    program = compile_model(model_of(every_other), threads=1)
    x = random(5, 8, 20, 20)
    (found,) = program.run({"x": x})
    for place in range(3):
        (alone,) = program.run({"x": x[2 * place : 2 * place + 1]})
        np.testing.assert_array_equal(found[place : place + 1], alone)


def test_an_element_of_a_batch_is_not_a_batch() -> None:
    text = (
        '<ir_version: 10, opset_import: ["": 21]> g (float[batch] x) => (float[batch] y)'
        " <int64[1] zero = {0}, int64[1] one = {1}>"
        " { first = Slice(x, zero, one) number = Squeeze(first) y = Mul(x, number) }"
    )
    program = compile_model(sx.load_text(text), threads=1)
    (found,) = program.run({"x": np.array([2, 3, 5], np.float32)})
    assert found.tolist() == [4, 6, 10]
