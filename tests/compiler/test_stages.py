"""What each stage of the compiler shows."""

import pytest

import sardonyx as sx
from sardonyx.compiler.stages import compiled_text

MODEL = """<ir_version: 10, opset_import: ["": 21]>
g (float[n,8] x, string[1] s) => (float[n,4] y, string[1] t) <float[8,4] w = {%s}>
{ p = MatMul(x, w)  q = Relu(p)  r = Abs(q)  y = Identity(r)  t = StringConcat(s, s) }"""


def model() -> sx.Model:
    return sx.load_text(MODEL % ", ".join(map(str, range(32))))


def test_kernels_name_what_they_compute_and_the_rest_says_why() -> None:
    lines = compiled_text(model(), "fuse").splitlines()
    assert lines[0] == "contraction 0: MatMul, Relu, Abs"
    assert any(line.startswith("reference: StringConcat") for line in lines)
    assert lines[-1].startswith("  StringConcat: ")


def test_every_stage_is_text_of_its_own_kind() -> None:
    texts = {stage: sx.text_after(model(), stage) for stage in sx.stage_names()}
    assert texts["loops"].startswith("kernel(") and "vector" in texts["loops"]
    assert 'define void @"kernel0"' in texts["llvm"]
    assert "kernel0:" in texts["assembly"]
    assert len(set(texts.values())) == len(texts) or texts["inline"] == texts["upgrade"]
    with pytest.raises(sx.InputError, match="the stages are: load"):
        sx.text_after(model(), "later")
    with pytest.raises(sx.InputError, match="no stage 'load'"):
        compiled_text(model(), "load")
