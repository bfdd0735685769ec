"""The verbs that write a model."""

from pathlib import Path

import numpy as np
import pytest

import sardonyx as sx
from tests.cli.invoke import DIGITS, fails, invoke, told

HEAD = '<ir_version: 8, opset_import: ["": 13]>'


def save_text(path: Path, body: str, head: str = HEAD) -> Path:
    sx.save(sx.load_text(head + body), path)
    return path


def test_convert_opset_ir_and_form(tmp_path: Path) -> None:
    invoke("convert", DIGITS, tmp_path / "old.onnx", "--opset", "13", "--ir", "8")
    old = sx.load(tmp_path / "old.onnx")
    assert (old.opset, old.ir_version) == (13, 8)
    image = np.zeros((1, 64), np.float32)
    assert np.array_equal(
        sx.evaluate(old, {"pixels": image})[0], sx.evaluate(sx.load(DIGITS), {"pixels": image})[0]
    )
    for suffix in ("onnxtxt", "textproto", "json"):
        invoke("convert", DIGITS, tmp_path / f"m.{suffix}")
        invoke("convert", tmp_path / f"m.{suffix}", tmp_path / "back.onnx")
        assert sx.to_bytes(sx.load(tmp_path / "back.onnx")) == sx.to_bytes(sx.load(DIGITS))


def test_convert_floats(tmp_path: Path) -> None:
    target = tmp_path / "half.onnx"
    said = told("convert", DIGITS, target, "--fp16")
    assert said["target"] == str(target) and said["file_bytes"] == target.stat().st_size
    assert target.stat().st_size < DIGITS.stat().st_size * 0.65
    assert sx.load(target).graph.initializers[0].tensor.dtype == sx.DataType.FLOAT16
    invoke("convert", DIGITS, target, "--bf16", "--opset", "22")
    assert sx.load(target).graph.initializers[0].tensor.dtype == sx.DataType.BFLOAT16
    assert "contradict" in fails("convert", DIGITS, target, "--bf16", "--fp16")


def test_every_verb_that_writes_tells_programs_what(tmp_path: Path) -> None:
    first = save_text(tmp_path / "a.onnx", "a (float[n] x) => (float[n] y) { y = Neg(x) }")
    target, text = tmp_path / "t.onnx", tmp_path / "a.onnxtxt"
    for words in (
        ["convert", first, target],
        ["infer-shapes", first, target],
        ["extract", first, target, "--inputs", "x", "--outputs", "y"],
        ["merge", first, first, target, "--map", "y:x"],
        ["set-metadata", first, "a=b", "--output", target],
        ["simplify", first, target],
        ["optimize", first, target],
    ):
        said = told(*words)
        assert (said["target"], said["file_bytes"]) == (str(target), target.stat().st_size)
    assert told("text", first, "--output", text)["target"] == str(text)
    assert told("parse", text, target)["nodes"] == 1
    assert "Neg (x)" in told("text", first)["text"]


def test_convert_keeps_types_when_asked(tmp_path: Path) -> None:
    head = '<ir_version: 10, opset_import: ["": 21]>'
    text = "g (int4[n] x, float s) => (float[n] y) { y = DequantizeLinear(x, s) }"
    source, target = save_text(tmp_path / "m.onnx", text, head), tmp_path / "older.onnx"
    assert "types='keep'" in fails("convert", source, target, "--opset", "17")
    result = invoke("convert", source, target, "--opset", "17", "--keep-types")
    assert "outside of opset 17" in result.stderr and "tensor(int4)" in result.stderr
    assert sx.load(target).opset == 17
    assert "--opset" in fails("convert", source, target, "--keep-types")


def test_convert_for_a_release(tmp_path: Path) -> None:
    invoke("convert", DIGITS, tmp_path / "fit.onnx", "--compat", "onnxruntime>=1.12")
    fitted = sx.load(tmp_path / "fit.onnx")
    assert fitted.opset <= 17 and fitted.ir_version <= 8


def test_external_data_stays_outside_until_embedded(tmp_path: Path) -> None:
    first, second = tmp_path / "a.onnx", tmp_path / "b.onnx"
    invoke("convert", DIGITS, first, "--external-data", "weights.bin")
    assert (tmp_path / "weights.bin").stat().st_size > 8000
    invoke("convert", first, second, "--opset", "20")
    assert (tmp_path / "b.onnx.data").exists()
    invoke("set-metadata", second, "author=Ada")
    assert second.stat().st_size < 4000
    invoke("convert", second, tmp_path / "whole.onnx", "--embed")
    assert (tmp_path / "whole.onnx").stat().st_size > 8000
    for path in (first, second, tmp_path / "whole.onnx"):
        assert np.array_equal(
            sx.load(path).graph.initializers[0].tensor.numpy(),
            sx.load(DIGITS).graph.initializers[0].tensor.numpy(),
        )
    assert "contradict" in fails("convert", first, second, "--embed", "--external-data", "w.bin")


def test_infer_shapes(tmp_path: Path) -> None:
    source = save_text(tmp_path / "m.onnx", "g (float[n,3] x) => (y) { t = Abs(x)  y = Exp(t) }")
    invoke("infer-shapes", source, tmp_path / "typed.onnx")
    typed = sx.load(tmp_path / "typed.onnx")
    assert str(typed.graph.value("t").type) == "float[n,3]"
    wrong = save_text(tmp_path / "wrong.onnx", "g (float[n,3] x) => (float[n,4] y) { y = Abs(x) }")
    assert "declared otherwise" in fails("infer-shapes", wrong, tmp_path / "no.onnx", "--strict")
    assert not (tmp_path / "no.onnx").exists()


def test_extract(tmp_path: Path) -> None:
    part = tmp_path / "part.onnx"
    invoke("extract", DIGITS, part, "--inputs", "Relu", "--outputs", "Gemm_1,probabilities")
    model = sx.load(part)
    assert [node.op_type for node in model.graph.nodes] == ["Gemm", "Softmax"]
    assert [str(value.type) for value in model.graph.inputs] == ["float[batch,32]"]
    assert len(model.graph.initializers) == 2
    sx.check(model, full=True)
    image = np.linspace(0, 16, 64, dtype=np.float32).reshape(1, 64)
    whole = sx.InferenceSession(str(DIGITS))
    results, inner = whole.run(None, {"pixels": image}, intermediates="Relu")
    after = sx.evaluate(model, {"Relu": inner["Relu"]})[1]
    np.testing.assert_allclose(after, results[0], rtol=1e-5)
    assert "no value 'nowhere'" in fails("extract", DIGITS, part, "--inputs", "pixels", "--outputs",
                                         "nowhere")  # fmt: skip
    assert "depend on the input 'pixels'" in fails(
        "extract", DIGITS, part, "--inputs", "Relu", "--outputs", "Gemm"
    )


def test_extract_from_the_middle_of_a_node_with_two_outputs(tmp_path: Path) -> None:
    source = save_text(
        tmp_path / "m.onnx",
        "g (float[4] x) => (float[2] z) { a, b = Split(x)  z = Add(a, b) }",
    )
    invoke("extract", source, tmp_path / "p.onnx", "--inputs", "x,a", "--outputs", "z")
    model = sx.load(tmp_path / "p.onnx")
    sx.check(model)
    feeds = {"x": np.arange(4, dtype=np.float32), "a": np.array([10, 20], np.float32)}
    assert sx.evaluate(model, feeds)[0].tolist() == [12, 23]


def test_extract_keeps_subgraphs_and_functions(tmp_path: Path) -> None:
    source = save_text(
        tmp_path / "m.onnx",
        "g (float[n] x, bool c) => (float[n] y) { t = local.Twice(x)"
        " u = If(c) <then_branch = a () => (float[n] p) { p = Neg(t) },"
        " else_branch = b () => (float[n] q) { q = Abs(t) }>  y = Exp(u) }"
        '<domain: "local", opset_import: ["": 13]> Twice (a) => (b) { b = Add(a, a) }',
        '<ir_version: 8, opset_import: ["": 13, "local": 1]>',
    )
    invoke("extract", source, tmp_path / "p.onnx", "--inputs", "t,c", "--outputs", "u")
    model = sx.load(tmp_path / "p.onnx")
    assert model.functions == []
    feeds = {"t": np.array([-1], np.float32), "c": np.array(True)}
    assert sx.evaluate(model, feeds)[0].tolist() == [1]
    invoke("extract", source, tmp_path / "q.onnx", "--inputs", "x", "--outputs", "t")
    assert sx.evaluate(sx.load(tmp_path / "q.onnx"), {"x": np.array([3], np.float32)})[
        0
    ].tolist() == [6]


def test_merge(tmp_path: Path) -> None:
    first = save_text(
        tmp_path / "a.onnx", "a (float[n] x) => (float[n] y, float[n] t) { t = Abs(x)  y = Neg(t) }"
    )
    second = save_text(
        tmp_path / "b.onnx",
        "b (float[n] x, float[n] k) => (float[n] z) <float[1] t = {2}>"
        "{ u = Mul(x, t)  z = Add(u, k) }",
        '<ir_version: 10, opset_import: ["": 21]>',
    )
    invoke("merge", first, second, tmp_path / "ab.onnx", "--map", "y:x")
    model = sx.load(tmp_path / "ab.onnx")
    sx.check(model)
    assert (model.opset, model.ir_version) == (21, 10)
    assert [value.name for value in model.graph.inputs] == ["x", "k"]
    assert [value.name for value in model.graph.outputs] == ["t", "z"]
    feeds = {"x": np.array([-3], np.float32), "k": np.array([1], np.float32)}
    assert [item.tolist() for item in sx.evaluate(model, feeds)] == [[3], [-5]]
    target = tmp_path / "no.onnx"
    assert "no output 'q'" in fails("merge", first, second, target, "--map", "q:x")
    assert "no input 'q'" in fails("merge", first, second, target, "--map", "y:q")
    assert "OUTPUT:INPUT" in fails("merge", first, second, target, "--map", "y")
    assert invoke("merge", first, second, target, code=2).stderr
    assert not target.exists()


def test_merge_digits_with_what_follows(tmp_path: Path) -> None:
    best = save_text(
        tmp_path / "best.onnx",
        "best (float[batch,10] scores) => (int64[batch] digit)"
        "{ digit = ArgMax<axis = 1, keepdims = 0>(scores) }",
    )
    invoke("merge", DIGITS, best, tmp_path / "m.onnx", "--map", "probabilities:scores")
    image = np.linspace(0, 16, 64, dtype=np.float32).reshape(1, 64)
    (digit,) = sx.evaluate(sx.load(tmp_path / "m.onnx"), {"pixels": image})
    assert digit[0] == sx.evaluate(sx.load(DIGITS), {"pixels": image})[0].argmax()


def test_set_metadata(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    invoke("set-metadata", DIGITS, "author=Ada", "note=a=b", "--output", path)
    assert sx.load(path).metadata == {"author": "Ada", "note": "a=b"}
    invoke("set-metadata", path, "author=")
    assert sx.load(path).metadata == {"note": "a=b"}
    assert "no metadata 'author'" in fails("set-metadata", path, "author=")
    assert "KEY=VALUE" in fails("set-metadata", path, "author")


@pytest.mark.parametrize(
    "words",
    [
        ["convert", "absent.onnx", "t.onnx"],
        ["infer-shapes", "absent.onnx", "t.onnx"],
        ["extract", "absent.onnx", "t.onnx", "--inputs", "x", "--outputs", "y"],
        ["merge", "absent.onnx", "absent.onnx", "t.onnx", "--map", "a:b"],
        ["set-metadata", "absent.onnx", "a=b"],
        ["parse", "absent.txt", "t.onnx"],
        ["convert", str(DIGITS), "no/such/folder/t.onnx"],
        ["convert", str(DIGITS), "t.onnx", "--opset", "99"],
        ["convert", str(DIGITS), "t.onnx", "--ir", "99"],
        ["convert", str(DIGITS), "t.onnx", "--compat", "nobody>=1"],
        ["convert", str(DIGITS), "t.onnx", "--external-data", "../w.bin"],
    ],
)
def test_mistakes_write_nothing(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    fails(*words)
    assert list(tmp_path.iterdir()) == []


REDUNDANT = (
    "g (float[n,6] x) => (float[n,2,3] y) { shape = Shape(x)  zero = Constant<value_int = 0>()"
    " size = Gather(shape, zero)  axis = Constant<value_ints = [0]>()"
    " row = Unsqueeze(size, axis)  rest = Constant<value_ints = [2, 3]>()"
    " target = Concat<axis = 0>(row, rest)  same = Identity(x)  y = Reshape(same, target) }"
)


@pytest.mark.parametrize("words", [["simplify"], ["optimize", "--level", "2"]])
def test_simplify_and_optimize(words: list[str], tmp_path: Path) -> None:
    source, target = save_text(tmp_path / "m.onnx", REDUNDANT), tmp_path / "small.onnx"
    said = told(words[0], source, target, *words[1:])
    assert said["nodes"]["before"] == 9 and said["nodes"]["after"] < 9
    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    before, after = (sx.evaluate(sx.load(path), {"x": x})[0] for path in (source, target))
    assert np.array_equal(before, after)
    assert f"wrote {target}" in invoke(words[0], source, target, *words[1:]).stdout


def test_simplify_options(tmp_path: Path) -> None:
    source, target = save_text(tmp_path / "m.onnx", REDUNDANT), tmp_path / "small.onnx"
    invoke("simplify", source, target, "--input-shape", "x=4,6")
    assert str(sx.load(target).graph.inputs[0].type) == "float[4,6]"
    invoke("simplify", source, target, "--static")
    assert str(sx.load(target).graph.inputs[0].type) == "float[1,6]"
    invoke("simplify", source, target, "--dim", "n=3")
    assert str(sx.load(target).graph.inputs[0].type) == "float[3,6]"
    invoke("simplify", source, target, "--opset", "24", "--fold-limit", "0")
    assert sx.load(target).opset == 24
    invoke("simplify", source, target, "--skip", "drop_identities")
    invoke("simplify", source, target, "--verify", "2")
    target.unlink()
    assert "no input 'w'" in fails("simplify", source, target, "--input-shape", "w=1")
    assert "no input has a dimension 'q'" in fails("simplify", source, target, "--dim", "q=1")
    assert "NAME=SIZE" in fails("simplify", source, target, "--input-shape", "4,6")
    assert "negative size" in fails("simplify", source, target, "--input-shape", "x=-1,6")
    assert "empty size" in fails("simplify", source, target, "--input-shape", "x=4,,6")
    assert "no pass 'nothing'" in fails("simplify", source, target, "--skip", "nothing")
    assert "no level 9" in fails("optimize", source, target, "--level", "9")
    assert not target.exists()


def test_parse_tells_where_text_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_text(HEAD + "g (float[n] x) => (float[n] y) { y = Relu(x }")
    assert "line 1" in fails("parse", tmp_path / "bad.txt", tmp_path / "t.onnx")
    assert "UTF-8" in fails("parse", DIGITS, tmp_path / "t.onnx")
