"""Groups that are alike are built once; what they read stays their own."""

from collections.abc import Callable

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.compiler import build
from sardonyx.compiler.build import Step
from sardonyx.compiler.compile import build_parts
from sardonyx.compiler.host import host_target
from sardonyx.compiler.kernels.reader import Packed
from sardonyx.compiler.numbering import Numbering
from sardonyx.compiler.program import compile_model
from sardonyx.loops import Kernel, kernel_text
from sardonyx.ops.catalog import standard

HEAD = '<ir_version: 10, opset_import: ["": 21]>'
LAYERS = (
    "g (float[n,20] x) => (y) <float[20,20] a = {A}, float[20,20] b = {B}, float[20] c = {C}> {"
    " d = MatMul(x, a) e = Add(d, c) f = Tanh(e) h = Softmax<axis = 1>(f)"
    " i = MatMul(h, b) j = Add(i, c) k = Tanh(j) y = Softmax<axis = 1>(k) }"
)


def layers() -> sx.Model:
    rng = np.random.default_rng(0)
    text = LAYERS
    for name, count in (("A", 400), ("B", 400), ("C", 20)):
        numbers = ", ".join(f"{item:.3f}" for item in rng.standard_normal(count))
        text = text.replace(f"{{{name}}}", f"{{{numbers}}}")
    return sx.load_text(HEAD + text)


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Every group for which kernels are built."""
    groups: list[object] = []
    original: Callable[..., object] = build.group_calls

    def counted(fusion: object, group: object, target: object) -> object:
        groups.append(group)
        return original(fusion, group, target)

    monkeypatch.setattr(build, "group_calls", counted)
    return groups


def texts(model: sx.Model) -> list[str]:
    steps = build_parts(model, host_target(), standard()).built.steps
    calls = [call for step in steps if isinstance(step, Step) for call in step.calls]
    return [kernel_text(call.kernel) for call in calls]


@pytest.mark.parametrize("rows", [0, 1, 3, 13])
def test_layers_are_built_once_and_read_their_own_weights(built: list[object], rows: int) -> None:
    model = layers()
    program = compile_model(model, threads=1)
    assert len(built) == program.kernels == 2
    x = np.random.default_rng(1).standard_normal((rows, 20)).astype(np.float32)
    expected = sx.evaluate(model, {"x": x})[0]
    np.testing.assert_allclose(program.run({"x": x})[0], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "body",
    [
        "a = Mul(x, p) b = Softmax<axis = 1>(a) c = Mul(b, q) y = Softmax<axis = 1>(c)",
        "a = Elu<alpha = 0.5>(x) b = Softmax<axis = 1>(a) c = Elu<alpha = 0.25>(b)"
        " y = Softmax<axis = 1>(c)",
        "a = Neg(x) b = Softmax<axis = 1>(a) c = Abs(b) y = Softmax<axis = 1>(c)",
        "a = Neg(x) b = Softmax<axis = 1>(a) t = Transpose(b) c = Neg(t) y = Softmax<axis = 1>(c)",
    ],
)
def test_groups_that_differ_are_built_apart(built: list[object], body: str) -> None:
    head = f"{HEAD} g (float[5,6] x) => (y) <float p = {{2.0}}, float q = {{3.0}}>"
    model = sx.load_text(f"{head} {{ {body} }}")
    found = texts(model)
    assert len(built) == len(found) == len(set(found))
    x = np.random.default_rng(1).standard_normal((5, 6)).astype(np.float32)
    made = compile_model(model, threads=1).run({"x": x})[0]
    np.testing.assert_allclose(made, sx.evaluate(model, {"x": x})[0], rtol=1e-5, atol=1e-6)


def test_zeros_of_either_sign_are_different(built: list[object]) -> None:
    body = "a = Div(x, p) c = Div(z, q)"
    head = (
        f"{HEAD} g (float[5,6] x, float[5,6] z) => (a, c) <float p = {{0.0}}, float q = {{-0.0}}>"
    )
    found = texts(sx.load_text(f"{head} {{ {body} }}"))
    assert len(built) == len(set(found)) == 2


def test_a_constant_that_two_groups_read_is_packed_once() -> None:
    rng = np.random.default_rng(0)
    numbers = ", ".join(f"{item:.3f}" for item in rng.standard_normal(400))
    text = (
        f"{HEAD} g (float[3,20] x) => (y) <float[20,20] a = {{{numbers}}}> {{"
        " b = MatMul(x, a) c = Tanh(b) y = MatMul(c, a) }"
    )
    added: list[Kernel] = []
    numbering = Numbering(added.append)
    (step,) = build_parts(sx.load_text(text), host_target(), standard()).built.steps
    assert isinstance(step, Step)
    packed = [place for call in step.calls for place in call.places if isinstance(place, Packed)]
    assert len(packed) == 2
    assert len({numbering.constant(place) for place in packed}) == len(numbering.constants) == 1
