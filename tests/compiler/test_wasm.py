"""Models as WebAssembly modules give what the reference gives, run in Node."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sardonyx as sx
from sardonyx.compiler.targets import TARGETS, WASM, choose_target
from sardonyx.compiler.wasm import compile_wasm, description
from sardonyx.errors import EvaluationError, FormatError, InputError, UnsupportedError
from tests.compiler.browser import needs_node, node, run_model, run_module
from tests.compiler.case import Case, compare, normal
from tests.compiler.cases import ALL_CASES
from tests.compiler.random_compare import apart
from tests.compiler.random_graphs import random_case

SAMPLED = 5
"""Of the cases every so many runs quickly; all among the slow tests."""
SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 7.25, 1e-310, -5e-324, 1e300, np.inf, -np.inf, np.nan]
)


def text(content: str) -> sx.Model:
    return sx.load_text(f'<ir_version: 10, opset_import: ["": 21]> {content}')


def agree(model: sx.Model, feeds: dict[str, NDArray[Any]], rtol: float = 2e-5) -> None:
    """Assert that a module gives what the reference gives."""
    for found, wanted in zip(run_model(model, feeds), sx.evaluate(model, feeds), strict=True):
        assert found.dtype == wanted.dtype and found.shape == wanted.shape
        compare(found, wanted, rtol, rtol)


def test_no_processor_is_taken_for_it() -> None:
    assert WASM not in TARGETS
    assert choose_target(frozenset(WASM.needs)).name == "generic"
    with pytest.raises(UnsupportedError, match=r"run the target 'wasm'; it runs: .*generic"):
        choose_target(frozenset({"avx2", "fma", *WASM.needs}), "wasm")


def test_a_session_says_that_it_cannot_run_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SARDONYX_TARGET", "wasm")
    with pytest.raises(InputError, match="this processor does not run the target 'wasm'"):
        sx.InferenceSession("examples/digits.onnx")


@needs_node
@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=case.name, marks=[pytest.mark.slow] if number % SAMPLED else [])
     for number, case in enumerate(ALL_CASES)],
)  # fmt: skip
def test_operators_agree_with_their_reference(case: Case) -> None:
    model, feeds = case.model(case.symbolic)
    for found, wanted in zip(run_model(model, feeds), sx.evaluate(model, feeds), strict=True):
        assert found.dtype == wanted.dtype and found.shape == wanted.shape
        compare(found, wanted, case.rtol, case.atol)


@needs_node
@pytest.mark.filterwarnings("ignore:Mean of empty slice")
@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 17])
def test_sizes_around_a_vector(size: int) -> None:
    model = text("""g (float[n,k] x, float[k,n] w, float[n] s) => (float[n,n] y, float[n,1] r,
        float[n,n] z, int64[m,1] c) {
          p = MatMul(x, w)
          a = Tanh(p)
          e = Erf(p)
          b = Add(a, e)
          y = Softmax(b)
          r = ReduceMax<keepdims = 1>(x, axes)
          axes = Constant<value_ints = [1]>()
          z = LayerNormalization(b, s)
          i = Cast<to = 7>(x)
          c = ReduceSum<keepdims = 1>(i, axes)
        }""")
    feeds = {"x": normal(size, 5) * 3, "w": normal(5, size), "s": normal(size)}
    if size:
        feeds["x"].flat[0] = np.nan
    agree(model, feeds)


@needs_node
@pytest.mark.parametrize("type_", ["float", "double", "float16", "bfloat16"])
@pytest.mark.parametrize(
    "operator", ["Exp", "Tanh", "Erf", "Sigmoid", "Log", "Sqrt", "Floor", "Round", "Sin", "Atan"]
)
def test_functions_of_special_numbers(operator: str, type_: str) -> None:
    model = text(f"g ({type_}[n] x) => ({type_}[n] y) {{ y = {operator}(x) }}")
    assert model.graph is not None
    declared = model.graph.inputs[0].type
    assert isinstance(declared, sx.TensorType)
    with np.errstate(all="ignore"):
        agree(model, {"x": SPECIAL.astype(declared.element.numpy)})


@needs_node
@pytest.mark.parametrize("operator", ["Pow", "Mod<fmod = 1>"])
def test_functions_of_two_special_numbers(operator: str) -> None:
    model = text(f"g (double[n,1] x, double[m] y) => (double[n,m] z) {{ z = {operator}(x, y) }}")
    with np.errstate(all="ignore"):
        agree(model, {"x": SPECIAL[:, None], "y": SPECIAL}, 1e-14)


@needs_node
def test_own_functions_of_float64_are_exact_to_their_last_places() -> None:
    x = np.random.default_rng(0).standard_normal(2000) * 3
    y = np.random.default_rng(1).standard_normal(2000) * 10.0 ** np.arange(-10, 10).repeat(100)
    agree(text("g (double[n] x) => (double[n] y) { y = Erf(x) }"), {"x": x}, 1e-15)
    model = text("g (double[n] x, double[n] y) => (double[n] z) { z = Mod<fmod = 1>(x, y) }")
    [found] = run_model(model, {"x": x, "y": y})
    np.testing.assert_array_equal(found, np.fmod(x, y))


@needs_node
@pytest.mark.parametrize(
    ("source", "target"),
    [("float", "int8"), ("float", "uint8"), ("float", "int64"), ("double", "uint32"),
     ("float16", "float"), ("float", "float16"), ("bfloat16", "int32"), ("float", "bfloat16"),
     ("int64", "float"), ("uint8", "float16"), ("float", "bool"), ("int32", "double")],
)  # fmt: skip
def test_casts(source: str, target: str) -> None:
    kinds = {kind.text: kind for kind in sx.DataType}
    model = text(
        f"g ({source}[n] x) => ({target}[n] y) {{ y = Cast<to = {kinds[target].value}>(x) }}"
    )
    values = np.array([0, 1, 2, 3.5, 100, 7, 65, 90.25, 1.0009765625])
    agree(model, {"x": values.astype(kinds[source].numpy)}, 0)


@needs_node
@pytest.mark.parametrize("seed", range(8))
def test_random_models_agree(seed: int) -> None:
    case = random_case(seed)
    wanted = sx.evaluate(case.model, case.feeds)
    found = run_model(case.model, case.feeds)
    assert [apart(a, b) for a, b in zip(found, wanted, strict=True)] == [""] * len(wanted)


@needs_node
def test_a_module_runs_again_and_again() -> None:
    model = sx.load("examples/digits.onnx")
    pixels = np.load("examples/digits_input.npy")
    module = compile_wasm(model, {"pixels": pixels.shape})
    told = description(module)
    [run], [fed], [made] = told["runs"], told["inputs"], told["outputs"]
    calls = [("run", [run["record"]])] * 3
    write = [(fed["address"], pixels.tobytes())]
    codes, [content] = node().run(module, write, calls, [(made["address"], made["bytes"])])
    assert codes == [0, 0, 0]
    found = np.frombuffer(content, np.float32).reshape(made["shape"])
    np.testing.assert_allclose(found, sx.evaluate(model, {"pixels": pixels})[0], rtol=1e-5)


def test_a_module_of_float32_imports_nothing() -> None:
    single, double = (
        compile_wasm(text(f"g ({type_}[4] x) => ({type_}[4] y) {{ y = Exp(x) }}"))
        for type_ in ("float", "double")
    )
    assert b"Math" not in single
    assert b"Math" in double


@needs_node
def test_constants_and_inputs_may_be_outputs() -> None:
    model = text("""g (float[3] x, float[3] unread) => (float[3] x, float[2] c, float[3] y)
        <float[2] c = {5, 6}> { y = Relu(x) }""")
    agree(model, {"x": np.array([1, -2, 3], np.float32), "unread": np.zeros(3, np.float32)})


@needs_node
def test_inputs_with_a_default_are_constants() -> None:
    model = text("g (float[3] x, float[3] w = {1, 2, 3}) => (float[3] y) { y = Mul(x, w) }")
    module = compile_wasm(model)
    assert [item["name"] for item in description(module)["inputs"]] == ["x"]
    [found] = run_module(module, {"x": np.array([2, 2, 2], np.float32)})
    assert found.tolist() == [2, 4, 6]


@needs_node
def test_an_index_out_of_range_is_told() -> None:
    model = text("g (float[4] x, int64[2] i) => (float[2] y) { y = Gather(x, i) }")
    module = compile_wasm(model)
    x = np.arange(4, dtype=np.float32)
    [found] = run_module(module, {"x": x, "i": np.array([3, -4])})
    assert found.tolist() == [3, 0]
    with pytest.raises(EvaluationError, match="out of range"):
        run_module(module, {"x": x, "i": np.array([0, 4])})


def test_what_a_module_cannot_do_is_told() -> None:
    relu = text("g (float[n,3] x) => (float[n,3] y) { y = Relu(x) }")
    with pytest.raises(UnsupportedError, match=r"'x' has sizes that are not known: \[n, 3\]; give"):
        compile_wasm(relu)
    with pytest.raises(InputError, match=r"has no input 'z'; its inputs are: x"):
        compile_wasm(relu, {"z": [1, 3]})
    with pytest.raises(InputError, match=r"has no input 'z'; its inputs are: x"):
        compile_wasm(relu, {"x": [1, 3]}, {"z": np.zeros(3)})
    with pytest.raises(UnsupportedError, match=r"not known: \[\?, 3\]; give its shape"):
        compile_wasm(relu, {"x": [-1, 3]})
    with pytest.raises(InputError, match="'x' has the size 3 where 4 is asked for"):
        compile_wasm(relu, {"x": [2, 4]})
    with pytest.raises(UnsupportedError, match=r"needs \d+ bytes of memory"):
        compile_wasm(relu, {"x": [1 << 31, 3]})
    with pytest.raises(UnsupportedError, match="beyond those of arrays"):
        compile_wasm(relu, {"x": [1 << 60, 3]})
    with pytest.raises(UnsupportedError, match="decide what the program is: k; give their"):
        compile_wasm(text("g (float[9] x, int64[1] k) => (float[m] y, int64[m] i) "
                          "{ y, i = TopK(x, k) }"))  # fmt: skip
    with pytest.raises(
        UnsupportedError, match=r"StringNormalizer cannot become WebAssembly: .*node"
    ):
        compile_wasm(text("g (string[2] x) => (string[m] y) { y = StringNormalizer(x) }"))
    with pytest.raises(UnsupportedError, match="known only by a run"):
        compile_wasm(text("g (float[9] x) => (float[m] y) "
                          "{ i = NonZero(x) f = Cast<to = 1>(i) y = Relu(f) }"))  # fmt: skip


@pytest.mark.parametrize(
    "content",
    ["g (string[2] x) => (string[2] y) { y = Identity(x) }",
     "g (float[2] x) => (string[1] y) { y = Constant<value_strings = [\"a\"]>() }",
     "g (seq(float[2]) x) => (seq(float[2]) y) { y = Identity(x) }"],
)  # fmt: skip
def test_texts_and_lists_are_refused(content: str) -> None:
    with pytest.raises(UnsupportedError, match=r"cannot become WebAssembly|no tensor of numbers"):
        compile_wasm(text(content))


def test_a_module_without_a_description_is_refused() -> None:
    with pytest.raises(FormatError, match="no section 'sardonyx'"):
        description(b"\0asm\x01\0\0\0")
