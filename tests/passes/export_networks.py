"""Small transformers whose exports are simplified, and the operators that must come out.

`python -m tests.passes.export_networks` writes them anew, as text, for tests without torch.
"""

from pathlib import Path
from typing import Any

import numpy as np

import sardonyx as sx
from sardonyx.graph import Model

FOLDER = Path(__file__).parent / "exports"
EXPORTERS = ("dynamo", "torchscript")

COUNTS: dict[str, dict[str, int]] = {
    "bert": {"Attention": 1, "LayerNormalization": 2, "Gelu": 1},
    "distilbert": {"Attention": 1, "LayerNormalization": 2, "Gelu": 1},
    "vit": {"Attention": 1, "LayerNormalization": 2, "Gelu": 1},
    "swin": {"Attention": 2, "LayerNormalization": 5, "Gelu": 2},
    "windows": {"Attention": 1},
    "whisper": {"Attention": 1, "LayerNormalization": 2, "Gelu": 1},
    "gpt2_prefill": {"Attention": 1, "LayerNormalization": 2, "Gelu": 1},
    "gpt2_decode": {"Attention": 1, "LayerNormalization": 2, "Gelu": 1},
    "llama": {"Attention": 1, "RMSNormalization": 2, "Swish": 1, "RotaryEmbedding": 2},
}
"""Operators of each layer; beside them stand those of `ONCE`."""
ONCE: dict[str, dict[str, int]] = {
    "whisper": {"LayerNormalization": 1, "Gelu": 2},
    "llama": {"RMSNormalization": 1},
}
WRITTEN_OUT = ("Softmax", "Erf", "Tanh", "Sigmoid", "Sqrt", "IsNaN")


def expected_counts(name: str, layers: int) -> dict[str, int]:
    """How often each raised operator stands in a network of so many layers."""
    once = ONCE.get(name, {"LayerNormalization": 1})
    return {key: count * layers + once.get(key, 0) for key, count in COUNTS[name].items()}


def make_network(name: str, layers: int, hidden: int) -> Any:
    """A network with two or four heads, of transformers' own configuration."""
    import transformers as kinds

    from benchmarks import language, vision

    heads = 2 if hidden < 32 else 4
    wide = {"hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads,
            "intermediate_size": 2 * hidden}  # fmt: skip
    words: dict[str, Any] = {"vocab_size": 20, "max_position_embeddings": 32}
    gpt2 = {"n_embd": hidden, "n_layer": layers, "n_head": heads, "vocab_size": 20,
            "n_positions": 32}  # fmt: skip
    match name:
        case "bert":
            return language.bert(kinds.BertConfig(**wide, **words), (1, 16))
        case "distilbert":
            return language.distilbert(kinds.DistilBertConfig(
                dim=hidden, n_layers=layers, n_heads=heads, hidden_dim=2 * hidden, **words
            ))  # fmt: skip
        case "vit":
            config = kinds.ViTConfig(**wide, image_size=8, patch_size=4, num_labels=3)
            return vision.classifier(kinds.ViTForImageClassification(config), 8)
        case "swin":
            config = kinds.SwinConfig(
                embed_dim=hidden, depths=[2] * layers, num_heads=[heads] * layers, window_size=2,
                image_size=16, patch_size=2, num_labels=3, mlp_ratio=2.0,
            )  # fmt: skip
            return vision.classifier(kinds.SwinForImageClassification(config), 16)
        case "windows":
            from tests.passes.window_network import window_network

            return window_network(layers, hidden, heads)
        case "whisper":
            return language.whisper_tiny_encoder(kinds.WhisperConfig(
                d_model=hidden, encoder_layers=layers, encoder_attention_heads=heads,
                encoder_ffn_dim=2 * hidden, max_source_positions=10, num_mel_bins=4,
            ))  # fmt: skip
        case "gpt2_prefill":
            return language.gpt2_prefill(kinds.GPT2Config(**gpt2))
        case "gpt2_decode":
            return language.gpt2_decode(kinds.GPT2Config(**gpt2))
    return language.llama_decode(kinds.LlamaConfig(**wide, **words, num_key_value_heads=heads // 2))


def export_network(name: str, exporter: str, layers: int, hidden: int, path: Path) -> Model:
    """Export a network by torch, and read it."""
    import torch

    from benchmarks.models import export

    torch.manual_seed(0)
    export(make_network(name, layers, hidden), path, exporter)
    return sx.load(path)


def _plain(model: Model) -> Model:
    """A model without documentation, under short names, its weights rounded."""
    assert model.graph is not None
    model.metadata = {}
    model.graph.metadata = None
    names: dict[str, str] = {}
    ends = (*model.graph.inputs, *model.graph.outputs)
    for graph in model.graphs():
        graph.declared.clear()
        made = [item for node in graph.nodes for item in node.outputs]
        for value in (*ends, *graph.initializers, *made):
            value.metadata = None
            if value.name and value not in ends:
                value.name = names.setdefault(value.name, f"v{len(names)}")
        for value in graph.initializers:
            array = value.tensor.numpy()
            rounded = array.size > 16 and array.dtype == np.float32
            value.tensor = sx.Tensor(np.round(array, 3) if rounded else array)
        for node in graph.nodes:
            node.name, node.doc_string, node.metadata = "", "", None
    return model


def main() -> None:
    """Write the stored graphs, each of one layer."""
    import tempfile

    FOLDER.mkdir(exist_ok=True)
    for name in COUNTS:
        for exporter in EXPORTERS:
            with tempfile.TemporaryDirectory() as folder:
                model = export_network(name, exporter, 1, 8, Path(folder, "model.onnx"))
                sx.save(_plain(model), FOLDER / f"{name}_{exporter}.onnxtxt")
            print(name, exporter)


if __name__ == "__main__":
    main()
