"""Programs that come back from a file run as those that were just made."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.compiler.cache import Cache
from sardonyx.compiler.host import host_target
from sardonyx.compiler.image import Image, Unmade, Wanted
from sardonyx.compiler.image_file import read_image, write_image
from sardonyx.compiler.program import Program, Settings, compile_model
from sardonyx.compiler.segment import Segment
from sardonyx.compiler.specialize import with_contents
from sardonyx.errors import FormatError, InputError
from sardonyx.graph import Model
from sardonyx.ops.catalog import standard
from sardonyx.ops.evaluate import Evaluator
from tests.compiler.case import Case
from tests.compiler.cases import CASES

HEAD = '<ir_version: 10, opset_import: ["": 21]>'


class NeverReadError(Exception):
    """The model was asked for although its image is in the cache."""


def never() -> Model:
    raise NeverReadError


def both(model: sx.Model, folder: Path) -> tuple[Any, Any]:
    """A program that was just made, and the one that its image gives."""
    cache = Cache(folder / "cache")
    settings = Settings(threads=1, cache=cache)
    return settings.open(lambda: model, "model"), settings.open(never, "model")


def same(model: sx.Model, folder: Path, *feeds: dict[str, Any]) -> Program:
    made, loaded = both(model, folder)
    for feed in feeds:
        for found, expected in zip(loaded.run(feed), made.run(feed), strict=True):
            np.testing.assert_array_equal(found, expected)
    assert loaded.explain() == made.explain()
    assert loaded.input_names == made.input_names and loaded.output_names == made.output_names
    return loaded  # type: ignore[no-any-return]


@pytest.mark.parametrize("case", CASES[::9], ids=lambda case: case.name)
def test_operators_come_back(case: Case, tmp_path: Path) -> None:
    model, feeds = case.model(True)
    made, loaded = both(model, tmp_path)
    expected = made.run(feeds)
    try:
        results = loaded.run(feeds)
    except NeverReadError:
        pytest.skip("contents of inputs decide about the program")
    for found, wanted in zip(results, expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("places", [
    "i = NonZero(a) t = Constant<value_ints = [0]>() j = Squeeze(i, t)",
    "t = Constant<value_ints = [1]>() e = Unsqueeze(a, t) q, j = Unique<axis = 0>(e)",
], ids=["cut", "reference"])  # fmt: skip
def test_sizes_that_only_a_run_tells_come_back(places: str, tmp_path: Path) -> None:
    model = sx.load_text(
        HEAD + "g (float[n] x) => (float[m] y, float[n] z) {"
        f" a = Relu(x) b = Exp(a) {places}"
        " c = Gather(b, j) d = Neg(c) y = Exp(d) z = Sub(b, a) }"
    )
    feeds = [{"x": np.array(x, np.float32)} for x in ([1, -1, 2, 3], [-1, 0, 5], [1.5])]
    same(model, tmp_path, *feeds)


def test_subgraphs_come_back(tmp_path: Path) -> None:
    model = sx.load_text(
        HEAD + "g (bool c, float[n] x) => (float[n] y)"
        " <float[1] w = {2.0}> { h = Exp(x)"
        " y = If(c) <then_branch = t () => (float[n] u) { u = Mul(h, w) },"
        " else_branch = e () => (float[n] v) { v = Add(h, x) }> }"
    )
    x = np.array([1, 2, 3], np.float32)
    loaded = same(model, tmp_path, *({"c": np.array(flag), "x": x} for flag in (True, False)))
    found = loaded.run({"c": np.array(True), "x": x})[0]
    np.testing.assert_allclose(found, np.exp(x) * 2, rtol=1e-5)


def test_strings_constants_and_defaults_come_back(tmp_path: Path) -> None:
    model = sx.load_text(
        HEAD + "g (float[2] x, float[2] b = {3.0, 4.0}) => (string[2] s, float[2] k, float[2] y) {"
        ' s = Constant<value_strings = ["one", "two"]>()'
        " k = Constant<value_floats = [1.0, 2.0]>() y = Add(x, b) }"
    )
    x = np.array([1, 2], np.float32)
    loaded = same(model, tmp_path, {"x": x}, {"x": x, "b": x})
    assert loaded.run({"x": x})[0].tolist() == ["one", "two"]
    assert loaded.run({"x": x})[2].tolist() == [4.0, 6.0]


def test_sizes_that_must_agree_are_still_checked(tmp_path: Path) -> None:
    model = sx.load_text(HEAD + "g (float[n,m] x, float[k,2] w) => (y) { y = MatMul(x, w) }")
    loaded = same(model, tmp_path, {"x": np.ones((3, 4), "f"), "w": np.ones((4, 2), "f")})
    with pytest.raises(InputError, match="needs them equal"):
        loaded.run({"x": np.ones((3, 4), "f"), "w": np.ones((5, 2), "f")})
    with pytest.raises(InputError, match="input 'w' is missing"):
        loaded.run({"x": np.ones((3, 4), "f")})


def test_constants_lie_in_the_file_aligned_and_read_only(tmp_path: Path) -> None:
    weights = np.random.default_rng(0).standard_normal((300, 70), np.float32)
    graph = sx.Graph("g")
    x = graph.add_input("x", sx.TensorType(sx.DataType.FLOAT, ("n", 300)))
    graph.outputs.append(sx.Builder(graph, opset=21).MatMul(x, weights))
    model = sx.Model(graph, sx.Opsets({"": 21}), ir_version=10)
    loaded = same(model, tmp_path, {"x": np.ones((5, 300), np.float32)})
    (segment,) = (step for step in loaded._steps if isinstance(step, Segment))
    for array in segment._constants:
        assert array.ctypes.data % 64 == 0 and not array.flags.writeable


def image_file(folder: Path) -> Path:
    model = sx.load_text(HEAD + "g (float[n] x) => (y) <float[3] w = {1,2,3}> { y = Mul(x, w) }")
    path = folder / "image"
    from sardonyx.compiler.compile import compile_image

    image = compile_image(model, host_target(), standard(), specialize=True)
    with open(path, "wb") as file:
        write_image(image, file)
    return path


def test_damage_anywhere_is_found(tmp_path: Path) -> None:
    path = image_file(tmp_path)
    whole = path.read_bytes()
    with open(path, "rb") as file:
        assert isinstance(read_image(file, trusted=False), Image)
    places = [0, 20, 30, 80, len(whole) // 2, len(whole) - 70, len(whole) - 1]
    for place in places:
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with open(path, "rb") as file, pytest.raises(FormatError):
            read_image(file, trusted=False)
    for length in (0, 1, 40, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with open(path, "rb") as file, pytest.raises(FormatError):
            read_image(file, trusted=True)


def test_a_plan_is_made_for_each_of_many_shapes() -> None:
    model = sx.load_text(
        HEAD + "g (float[n,m] x) => (y) { a = Softmax(x) t = Transpose(a) y = MatMul(a, t) }"
    )
    program = compile_model(model, threads=1)
    for n in range(1, 30):
        for m in (1, 7, 16, 33):
            x = np.ones((n, m), np.float32)
            np.testing.assert_allclose(program.run({"x": x})[0], np.full((n, n), 1 / m), rtol=1e-5)


def test_sizes_beyond_any_memory_are_refused() -> None:
    model = sx.load_text(
        HEAD + "g (float[n] x, int64[2] s) => (y) { e = Expand(x, s) y = Softmax(e) }"
    )
    program = compile_model(model, threads=1)
    huge = np.array([1 << 40, 1 << 40])
    with pytest.raises((sx.EvaluationError, sx.InputError, MemoryError)):
        program.run({"x": np.ones(1, np.float32), "s": huge})


def test_the_file_is_no_larger_than_its_parts(tmp_path: Path) -> None:
    assert os.path.getsize(image_file(tmp_path)) < 20_000


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("kernel", ["1,1", "3,3", "5,5"])
def test_constants_are_made_when_they_are_written_down(
    kernel: str, cached: bool, tmp_path: Path
) -> None:
    size = kernel[0]
    text = f"g (float[1,24,9,9] x, float[40,24,{kernel}] w) => (float[1,40,h,v] y)"
    model = sx.load_text(f"{HEAD}{text} {{ y = Conv<kernel_shape=[{kernel}]>(x, w) }}")
    generator = np.random.default_rng(int(size))
    x = generator.standard_normal((1, 24, 9, 9), np.float32)
    w = generator.standard_normal((40, 24, int(size), int(size)), np.float32)
    fixed = with_contents(model, {"w": w})
    program = compile_model(fixed, cache=Cache(tmp_path) if cached else None, threads=1)
    (found,) = program.run({"x": x})
    (expected,) = Evaluator(fixed).run(None, {"x": x})
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_what_is_unmade_is_written_like_an_array(tmp_path: Path) -> None:
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    turned = Unmade((4, 3, 2), 1, lambda: array.T)
    assert turned.nbytes == array.nbytes
    with open(tmp_path / "image", "wb") as file:
        write_image(Wanted("m", (), (), (), (turned, "text", array, turned)), file)
    with open(tmp_path / "image", "rb") as file:
        first, text, plain, second = read_image(file, trusted=False).constants
    np.testing.assert_array_equal(first, array.T)
    np.testing.assert_array_equal(second, array.T)
    np.testing.assert_array_equal(plain, array)
    assert text == "text"
