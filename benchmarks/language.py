"""Language and speech networks of the benchmark."""

from collections.abc import Callable

import numpy as np
import torch
from torch import nn
from transformers import (
    BertConfig,
    BertModel,
    DistilBertConfig,
    DistilBertModel,
    DynamicCache,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    WhisperConfig,
)
from transformers.models.whisper.modeling_whisper import WhisperEncoder

from benchmarks.network import BATCH, TOKENS, Adapter, Feeds, Network, images, tokens


def _encode(model: nn.Module, words: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return model(input_ids=words, attention_mask=mask).last_hidden_state


def _on_words(
    model: nn.Module, call: Callable[..., object], output: str, *sizes: tuple[int, int]
) -> Network:
    """A network of words and a mask of those that are there."""
    vocabulary = model.config.vocab_size

    def feeds(batch: int, length: int) -> Feeds:
        words = tokens(batch, length, vocabulary)
        return {"input_ids": words, "attention_mask": np.ones_like(words)}

    return Network(
        Adapter(model.eval(), call),
        {f"{batch}x{length}": feeds(batch, length) for batch, length in sizes},
        (output,),
        {"input_ids": TOKENS, "attention_mask": TOKENS},
        feeds(2, 24),
        {output: TOKENS},
    )


def bert(config: BertConfig, *sizes: tuple[int, int]) -> Network:
    """A BERT of any size."""
    return _on_words(BertModel(config, add_pooling_layer=False), _encode, "hidden", *sizes)


def bert_base() -> Network:
    """BERT-base: 12 layers of width 768."""
    return bert(BertConfig(), (1, 128), (8, 128), (1, 512))


def distilbert(config: DistilBertConfig | None = None) -> Network:
    """DistilBERT: 6 layers of width 768."""
    model = DistilBertModel(config or DistilBertConfig())
    return _on_words(model, _encode, "hidden", (1, 128), (32, 32))


def minilm_l6() -> Network:
    """MiniLM-L6: 6 layers of width 384."""
    config = BertConfig(hidden_size=384, num_hidden_layers=6, intermediate_size=1536)
    return bert(config, (1, 32), (64, 128))


def whisper_tiny_encoder(config: WhisperConfig | None = None) -> Network:
    """The encoder of Whisper-tiny on 30 seconds of sound."""
    config = config or WhisperConfig(
        d_model=384, encoder_layers=4, encoder_attention_heads=6, encoder_ffn_dim=1536
    )
    frames, bands = 2 * config.max_source_positions, config.num_mel_bins
    return Network(
        Adapter(WhisperEncoder(config).eval(), lambda model, x: model(x).last_hidden_state),
        {f"1x{bands}x{frames}": {"features": images(1, bands, frames)}},
        ("hidden",),
        {"features": BATCH},
        {"features": images(2, bands, frames)},
        {"hidden": BATCH},
    )


def _complete(model: nn.Module, words: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return model(input_ids=words, attention_mask=mask, use_cache=False).logits


def gpt2_prefill(config: GPT2Config | None = None) -> Network:
    """GPT-2 on a prompt of 128 words, without a past."""
    model = GPT2LMHeadModel(config or GPT2Config())
    return _on_words(model, _complete, "logits", (1, 128))


def _step(model: nn.Module, words: torch.Tensor, mask: torch.Tensor, *past: torch.Tensor) -> object:
    """One step of a decoder: the logits, and keys and values with those of the step."""
    cache = DynamicCache(list(zip(past[::2], past[1::2], strict=True)))
    found = model(input_ids=words, attention_mask=mask, past_key_values=cache, use_cache=True)
    layers = found.past_key_values.layers
    return found.logits, *(part for layer in layers for part in (layer.keys, layer.values))


def _decoder(model: nn.Module, layers: int, heads: int, width: int, past: int) -> Network:
    """A decoder of one word after `past` others, whose keys and values are inputs."""
    vocabulary = model.config.vocab_size
    kinds = [f"{layer}_{kind}" for layer in range(layers) for kind in ("key", "value")]

    def feeds(batch: int, length: int, seen: int) -> Feeds:
        words = {"input_ids": tokens(batch, length, vocabulary)}
        words["attention_mask"] = np.ones((batch, seen + length), np.int64)
        return words | {f"past_{kind}": images(batch, heads, seen, width) for kind in kinds}

    axes = {f"past_{kind}": {0: "batch", 2: "past"} for kind in kinds}
    axes |= {"input_ids": BATCH, "attention_mask": {0: "batch", 1: "total"}}
    after = {f"present_{kind}": {0: "batch", 2: "total"} for kind in kinds}
    return Network(
        Adapter(model.eval(), _step),
        {f"1x1, past {past}": feeds(1, 1, past)},
        ("logits", *after),
        axes,
        feeds(2, 1, 12),
        {"logits": BATCH} | after,
    )


def gpt2_decode(config: GPT2Config | None = None) -> Network:
    """GPT-2: one word after 128 others."""
    config = config or GPT2Config()
    width = config.n_embd // config.n_head
    return _decoder(GPT2LMHeadModel(config), config.n_layer, config.n_head, width, 128)


def llama_decode(config: LlamaConfig | None = None) -> Network:
    """A decoder of 100 million weights in Llama's style: one word after 128 others."""
    config = config or LlamaConfig(
        vocab_size=32000, hidden_size=768, intermediate_size=2048, num_hidden_layers=10,
        num_attention_heads=12, num_key_value_heads=4, tie_word_embeddings=True,
    )  # fmt: skip
    heads = config.num_key_value_heads
    width = config.hidden_size // config.num_attention_heads
    return _decoder(LlamaForCausalLM(config), config.num_hidden_layers, heads, width, 128)
