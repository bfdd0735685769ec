"""Custom operators: classes, functions, C functions; in any domain, on both providers."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.compiler.forms import Map
from sardonyx.errors import EvaluationError, InputError, UnsupportedError
from sardonyx.ops.fact import Fact
from sardonyx.runtime.operators import C_SIGNATURE

PROVIDERS = ["ReferenceExecutionProvider", "CPUExecutionProvider"]
X = np.array([[1, -2], [3, 4]], np.float32)


def model(call: str, domain: str = "custom", outputs: str = "float[n,2] y") -> sx.Model:
    imports = '"": 17' if domain in ("", "ai.onnx") else f'"": 17, "{domain}": 1'
    return sx.load_text(
        f"<ir_version: 9, opset_import: [{imports}]> g (float[n,2] x) => ({outputs})"
        f"{{ t = {call} y = Neg(t) }}"
    )


@sx.custom_operator("1(x: T, by: float = 1.0) -> y: T; T: floats", infer=lambda x, by: x)
def Shift(x, by):
    """x + by."""
    return x + np.asarray(by, x.dtype)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_function(provider: str) -> None:
    assert (Shift.name, Shift.domain, Shift.__doc__) == ("Shift", "custom", "x + by.")
    source = model("custom.Shift<by = 2.0>(x)")
    session = sx.InferenceSession(source, providers=[provider], operators=[Shift])
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], -(X + 2))
    options = sx.SessionOptions()
    options.register_operators(Shift)
    session = sx.InferenceSession(source, options, providers=[provider])
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], -(X + 2))
    with pytest.raises(UnsupportedError, match="operator Shift of domain 'custom' is not known"):
        sx.InferenceSession(source, providers=[provider])


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("domain", ["", "ai.onnx", "com.microsoft", "my.company.ops"])
def test_any_domain(provider: str, domain: str) -> None:
    kind = sx.custom_operator(
        "1(x: T) -> y: T; T: floats", name="Brand", domain="" if domain == "ai.onnx" else domain
    )(lambda x: x * np.float32(3))
    source = model(f"{domain}.Brand(x)" if domain else "Brand(x)", domain)
    session = sx.InferenceSession(source, providers=[provider], operators=[kind])
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], -3 * X)


def test_errors_name_the_node() -> None:
    @sx.custom_operator("1(x: T) -> y: T; T: floats", infer=lambda x: x)
    def Broken(x):
        raise RuntimeError("no luck")

    session = sx.InferenceSession(model("custom.Broken(x)"), operators=[Broken])
    with pytest.raises(EvaluationError, match=r"no luck.*Broken.*float32\[2, 2\]"):
        session.run(None, {"x": X})
    with pytest.raises(InputError, match="is not a signature"):
        sx.custom_operator("nonsense")


class Square(sx.Operator):
    """x * x, in native code where the session compiles."""

    domain = "custom"
    signatures = ("1(x: T) -> y: T; T: floats",)

    def infer(x):
        return x

    def reference(x):
        return x * x

    def lower(request, x):
        return Map(request.shape(), x.dtype, "mul", (x, x))


def test_lowered_by_itself() -> None:
    session = sx.InferenceSession(
        model("custom.Square(x)"), providers=["CPUExecutionProvider"], operators=[Square]
    )
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], -(X * X))
    assert "reference" not in session.explain()


C_SOURCE = """
#include <stdint.h>
int32_t scale(const void *const *in, const int64_t *const *shapes, const int32_t *ranks, int32_t n,
              void *const *out, const int64_t *const *out_shapes, const int32_t *out_ranks,
              int32_t m, const double *attributes) {
  if (n != 2 || m != 2 || ranks[0] != 2 || out_ranks[1] != 1) return 7;
  const float *x = in[0]; float *y = out[0]; int64_t *rows = out[1];
  int64_t count = shapes[0][0] * shapes[0][1];
  double by = in[1] ? ((const double *)in[1])[0] : attributes[1];
  if (!in[1] && ranks[1] != -1) return 8;
  for (int64_t i = 0; i < count; i++) y[i] = x[i] * by + attributes[0];
  rows[0] = shapes[0][0];
  return 0;
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("c")
    (folder / "scale.c").write_text(C_SOURCE)
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", "scale.so", "scale.c"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "scale.so"


SIGNATURE = "1(x: T, s?: S, add: int = 0, by: float = 1.0) -> (y: T, rows: I); T: float; S: double; I: int64"  # noqa: E501


def infer_scale(x, s=None, add=0, by=1.0):
    from sardonyx.dtypes import DataType
    from sardonyx.ops.fact import tensor

    return tensor(x.dtype, x.shape), tensor(DataType.INT64, (1,))


@pytest.mark.parametrize("provider", PROVIDERS)
def test_c_function(library: Path, provider: str) -> None:
    function = ctypes.CDLL(str(library)).scale
    address = ctypes.cast(function, ctypes.c_void_p).value
    for given in (function, address):
        kind = sx.c_operator(SIGNATURE, given, name="Scale", infer=infer_scale)
        source = sx.load_text(
            '<ir_version: 9, opset_import: ["": 17, "custom": 1]> '
            "g (float[n,2] x, double[1] s) => (float[n,2] y, int64[1] r, float[n,2] z) {"
            "y, r = custom.Scale<add = 1>(x, s) z = custom.Scale<by = 0.5>(x, ) }"
        )
        source.graph.nodes[1].set_outputs([source.graph.nodes[1].outputs[0], sx.Value("r2")])
        session = sx.InferenceSession(source, providers=[provider], operators=[kind])
        for array in (X, X[::-1], X[:0], np.asfortranarray(X)):
            feeds = {"x": array, "s": np.array([2.0])}
            y, rows, z = session.run(None, feeds)
            np.testing.assert_array_equal(y, array * 2 + 1)
            np.testing.assert_array_equal(z, array * np.float32(0.5))
            assert rows.tolist() == [len(array)]


def test_c_functions_that_fail() -> None:
    def fail(*arguments):
        return 3

    pointer = C_SIGNATURE(fail)
    line = "1(x: T) -> y: T; T: floats"
    kind = sx.c_operator(line, pointer, name="Fail", infer=lambda x: x)
    session = sx.InferenceSession(model("custom.Fail(x)"), operators=[kind])
    with pytest.raises(EvaluationError, match="the C function of Fail returned 3"):
        session.run(None, {"x": X})
    with pytest.raises(UnsupportedError, match="has no function"):
        sx.c_operator(line, 0, name="None", infer=lambda x: x)
    with pytest.raises(UnsupportedError, match="'word' of Text is a string"):
        sx.c_operator("1(x: T, word: string) -> y: T; T: floats", pointer, name="Text",
                      infer=lambda x, word: x)  # fmt: skip
    vague = sx.c_operator(line, pointer, name="Vague", infer=lambda x: Fact())
    session = sx.InferenceSession(model("custom.Vague(x)"), operators=[vague])
    with pytest.raises(EvaluationError, match="does not say its output's type and shape"):
        session.run(None, {"x": X})
