"""Code in documents that others wrote about ONNX runs here with only its import lines changed."""

import ast
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import json_format, text_format

import sardonyx as sx
from sardonyx.compat import onnx
from tests.shared_models import FOLDER as MODELS

FOLDER = MODELS.parent / "seeds"
GUIDE, GLOSSARY, FORMAT, WIKI = (
    "000_d2977ac6a4d80655.txt",
    "001_5b1a3242f13b107b.txt",
    "002_f4d7575eefdea2dc.txt",
    "003_418a05a50177e787.txt",
)
pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason=f"the folder of documents, {FOLDER}, is absent"
)
IMPORTS = {
    "import onnx": "from sardonyx.compat import onnx",
    "from onnx import helper": "from sardonyx.compat.onnx import helper",
    "import onnxruntime as ort": "from sardonyx.compat import onnxruntime as ort",
}
RUNTIMES = ("from sardonyx.compat import onnxruntime as ort", "import sardonyx as ort")


def passage(document: str, first: str, last: str, skip: int = 0) -> str:
    """Lines of a document, from the one that is `first`, behind `skip` such, to one with `last`."""
    lines = (FOLDER / document).read_text().splitlines()
    starts = [index for index, line in enumerate(lines) if line.strip() == first.strip()]
    start = starts[skip]
    ends = [i for i in range(start, len(lines)) if lines[i].rstrip().endswith(last)]
    return textwrap.dedent("\n".join(lines[start : ends[0] + 1]))


def run(code: str, names: dict[str, Any] | None = None, runtime: str = RUNTIMES[0]) -> Any:
    """Execute a block, with its import lines changed; returns the names it leaves."""
    lines = [IMPORTS.get(line, line) for line in code.splitlines()]
    lines = [runtime if line == RUNTIMES[0] else line for line in lines]
    scope: dict[str, Any] = dict(names or {})
    exec(compile("\n".join(lines), "<seed>", "exec"), scope)
    return scope


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in that has a small image classifier as model.onnx."""
    monkeypatch.chdir(tmp_path)
    graph = sx.Graph("classifier")
    pixels = graph.add_input("pixels", sx.TensorType(sx.DataType.FLOAT, ("batch_size", 3, 8, 8)))
    op = sx.Builder(graph, opset=18)
    weights = np.random.default_rng(0).standard_normal((4, 3, 3, 3)).astype(np.float32)
    features = op.Relu(op.Conv(pixels, weights, kernel_shape=[3, 3], pads=[1, 1, 1, 1]))
    flat = op.Flatten(op.GlobalAveragePool(features))
    scores = op.Gemm(flat, np.eye(4, dtype=np.float32))
    scores.type = sx.TensorType(sx.DataType.FLOAT, ("batch_size", 4))
    graph.outputs.append(scores)
    model = sx.Model(graph, sx.Opsets({"": 18}), 9)
    model.producer_name, model.producer_version = "pytorch", "2.0"
    sx.check(model, full=True)
    sx.save(model, "model.onnx")
    return tmp_path


def sentiment_model() -> sx.Model:
    """What the guide exports: token numbers and a mask to two scores."""
    tokens = sx.TensorType(sx.DataType.INT64, ("batch", "seq"))
    graph = sx.Graph("sentiment")
    ids, mask = graph.add_input("input_ids", tokens), graph.add_input("attention_mask", tokens)
    op = sx.Builder(graph, opset=17)
    chance = np.random.default_rng(0)
    table = chance.standard_normal((100, 8)).astype(np.float32)
    kept = op.Unsqueeze(op.Cast(mask, to=int(sx.DataType.FLOAT)), [2])
    words = op.Mul(op.Gather(table, ids), kept)
    mean = op.Div(op.ReduceSum(words, [1], keepdims=0), op.ReduceSum(kept, [1], keepdims=0))
    logits = op.MatMul(mean, chance.standard_normal((8, 2)).astype(np.float32))
    logits.name, logits.type = "logits", sx.TensorType(sx.DataType.FLOAT, ("batch", 2))
    graph.outputs.append(logits)
    return sx.Model(graph, sx.Opsets({"": 17}), 8)


def tokenizer(text: str, return_tensors: str) -> dict[str, np.ndarray]:
    """Stands for the one that is fetched: a number for each word."""
    assert return_tensors == "np"
    ids = np.array([[sum(map(ord, word)) % 100 for word in text.split()]], np.int64)
    return {"input_ids": ids, "attention_mask": np.ones_like(ids)}


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_guide_inference(folder: Path, runtime: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The export needs torch and a download; the model is built here, the rest is the guide's."""
    sx.save(sentiment_model(), "sentiment_model.onnx")
    last = "# [[negative_score, positive_score]]"
    code = passage(GUIDE, "# Run inference with ONNX Runtime", last)
    scope = run(
        f"{IMPORTS['import onnxruntime as ort']}\n{code}", {"tokenizer": tokenizer}, runtime
    )
    assert scope["outputs"][0].shape == (1, 2)
    assert capsys.readouterr().out.startswith("Logits: [[")


def save_small_classifier(folder: str) -> None:
    """What the guide fetches by its name, made here: a tokenizer and a classifier with 2 layers."""
    tokenizers = pytest.importorskip("tokenizers")
    transformers = pytest.importorskip("transformers")
    words = ["[PAD]", "[UNK]", "this", "is", "a", "test", "great", "product", "highly", "recommend"]
    numbers = {word: number for number, word in enumerate(words)}
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel(numbers, unk_token="[UNK]"))
    inner.normalizer = tokenizers.normalizers.Lowercase()
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, unk_token="[UNK]", pad_token="[PAD]",
        model_input_names=["input_ids", "attention_mask"],
    ).save_pretrained(folder)  # fmt: skip
    settings = transformers.DistilBertConfig(
        vocab_size=len(words), dim=16, n_layers=2, n_heads=2, hidden_dim=32,
        max_position_embeddings=16, num_labels=2,
    )  # fmt: skip
    transformers.DistilBertForSequenceClassification(settings).save_pretrained(folder)


@pytest.mark.slow
def test_guide_export_and_inference(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole block, with the name of the model it fetches replaced by a folder.

    A torchvision that does not fit torch would stop transformers, which needs none for text.
    """
    monkeypatch.setitem(sys.modules, "torchvision", None)
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnxscript")
    save_small_classifier("small")
    first, last = "import torch", "# [[negative_score, positive_score]]"
    code = passage(GUIDE, first, last)
    name = "distilbert-base-uncased-finetuned-sst-2-english"
    assert code.count(name) == 1
    scope = run(code.replace(name, "./small"))
    assert "Logits: [[" in capsys.readouterr().out
    inputs = scope["tokenizer"]("Great product, highly recommend!", return_tensors="pt")
    with torch.no_grad():
        expected = scope["model"](**inputs).logits.numpy()
    np.testing.assert_allclose(scope["outputs"][0], expected, rtol=1e-3, atol=1e-5)


def test_initializers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(passage(FORMAT, "import onnx", 'Shape: {initializer.dims}")'))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("Shape: ")[1] for line in lines] == ["[4, 3, 3, 3]", "[4, 4]"]


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_optimized_model_is_written(folder: Path, runtime: str) -> None:
    code = passage(
        FORMAT, "import onnxruntime as ort", 'InferenceSession("model.onnx", sess_options)'
    )
    scope = run(code, runtime=runtime)
    image = np.ones((2, 3, 8, 8), np.float32)
    expected = scope["session"].run(None, {"pixels": image})[0]
    found = sx.evaluate(sx.load("model.ort"), {"pixels": image})[0]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_external_data(folder: Path) -> None:
    model = onnx.helper.make_model(
        onnx.helper.make_graph(
            [onnx.helper.make_node("Add", ["x", "w"], ["y"])],
            "g",
            [onnx.helper.make_tensor_value_info("x", 1, [512])],
            [onnx.helper.make_tensor_value_info("y", 1, [512])],
            [onnx.numpy_helper.from_array(np.arange(512, dtype=np.float32), "w")],
        )
    )
    run(passage(FORMAT, "import onnx", "convert_attribute=False", 1) + "\n)", {"model": model})
    assert (folder / "weights.bin").stat().st_size >= 2048
    back = onnx.load("model.onnx").graph.initializer[0]
    assert onnx.numpy_helper.to_array(back).tolist() == list(range(512))


METADATA = {"author": "Your Name", "license": "MIT", "description": "Image classifier"}


def test_metadata(folder: Path) -> None:
    run(passage(FORMAT, "import onnx", '"model_with_metadata.onnx")', 2))
    assert sx.load("model_with_metadata.onnx").metadata == METADATA


def test_inspecting(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(passage(FORMAT, "import onnx", 'inp.type.tensor_type.shape.dim]}")', 3))
    shown = capsys.readouterr().out
    for text in ("Producer: pytorch 2.0", "IR version: 9", "OpSet version: 18", "Nodes: 5"):
        assert text in shown
    assert "Shape: ['batch_size', 3, 8, 8]" in shown


def test_best_practices(folder: Path) -> None:
    model = onnx.load("model.onnx")
    scope = {"model": model, "input_tensor": model.graph.input[0]}
    size = model.graph.input[0].type.tensor_type.shape.dim[0]
    dimension = "input_tensor.type.tensor_type.shape.dim[0]"
    run(passage(FORMAT, f"{dimension}.dim_value = -1", "-1"), scope)
    assert size.dim_value == -1
    run(passage(FORMAT, f'{dimension}.dim_param = "batch_size"', '"'), scope)
    assert size.dim_param == "batch_size" and not size.HasField("dim_value")
    run(passage(FORMAT, "model.model_version = 2", "2"), scope)
    last = '"Main inference graph"'
    start = 'model.doc_string = "ResNet-50 image classifier trained on ImageNet"'
    run(passage(FORMAT, start, last), scope)
    onnx.save(model, "documented.onnx")
    saved = sx.load("documented.onnx")
    assert saved.graph is not None
    assert (saved.model_version, saved.graph.doc_string) == (2, "Main inference graph")


def literal(first: str, skip: int) -> dict[str, Any]:
    """A dictionary that the document shows, found by its second line."""
    lines = (FOLDER / FORMAT).read_text().splitlines()
    index = [i for i, line in enumerate(lines) if line.strip() == first][skip]
    end = next(i for i in range(index, len(lines)) if lines[i] == "}")
    said = ast.literal_eval("\n".join(lines[index - 1 : end + 1]).replace("<GraphProto>", "{}"))
    assert isinstance(said, dict)
    return said


def test_shown_messages_are_messages() -> None:
    node = json_format.ParseDict(
        literal('"input": ["data", "conv_weight", "conv_bias"],', 0), onnx.NodeProto()
    )
    assert node.op_type == "Conv" and list(node.attribute[2].ints) == [1, 1, 1, 1]
    info = json_format.ParseDict(literal('"name": "input_tensor",', 0), onnx.ValueInfoProto())
    assert info.type.tensor_type.shape.dim[0].dim_param == "batch_size"
    for name, count in (("If", 2), ("Loop", 1)):
        made = json_format.ParseDict(literal(f'"op_type": "{name}",', 0), onnx.NodeProto())
        assert [item.type for item in made.attribute] == [onnx.AttributeProto.GRAPH] * count
    text = passage(FORMAT, "# OpSet import in model", "version: 1")
    model = text_format.Parse(text + "\n}", onnx.ModelProto())
    assert [(item.domain, item.version) for item in model.opset_import] == [
        ("", 18),
        ("com.microsoft", 1),
    ]


def test_shown_fields_and_element_types_have_their_numbers() -> None:
    text = (FOLDER / FORMAT).read_text()
    messages = re.findall(r"message (\w+) \{\n(.*?)\n\}", text, re.S)
    assert [name for name, _ in messages] == ["ModelProto", "GraphProto", "NodeProto"]
    for name, body in messages:
        fields = getattr(onnx, name).DESCRIPTOR.fields_by_name
        for field, number in re.findall(r"(\w+) = (\d+);", body):
            assert fields[field].number == int(number)
    table = text.split("TypeValueDescription\n")[1].split("\n\n")[0].splitlines()
    assert len(table) == 17
    known = [f"{item.name}{int(item)}" for item in sx.DataType]
    wrong = [row for row in table if not any(row.startswith(start) for start in known)]
    assert [row[:6] for row in wrong] == ["INT421", "UINT42"], "the document swaps these two"


STARTS = {
    GUIDE: ["import torch"],
    GLOSSARY: [],
    FORMAT: ["import onnx", "import onnxruntime as ort", *["import onnx"] * 3],
    WIKI: [],
}
"""With what each block of Python that imports something begins; the tests above run them all."""


@pytest.mark.parametrize("document", STARTS)
def test_there_are_no_other_blocks(document: str) -> None:
    """If code is ever added, it must be run here."""
    marks = ("import ", "from ", ">>> ")
    lines = [line.strip() for line in (FOLDER / document).read_text().splitlines()]
    starts = [
        line
        for before, line in zip(["", *lines], lines, strict=False)
        if line.startswith(marks) and not before.startswith(marks)
    ]
    assert starts == STARTS[document]
