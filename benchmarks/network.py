"""What a benchmark model is made of before it is a file: a torch module, its inputs, its sizes."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn

Feeds = dict[str, np.ndarray]
Axes = dict[str, dict[int, str]]

BATCH = {0: "batch"}
BATCHES = (1, 16)
"""How many images or rows are asked at once."""
TOKENS = {0: "batch", 1: "sequence"}


@dataclass(frozen=True)
class Network:
    """A module that takes its inputs in the order of a variant, and how to export it.

    `example` is what it is traced with: no open size is 1 there, which exporters would keep as 1.
    """

    module: nn.Module
    variants: dict[str, Feeds]
    outputs: tuple[str, ...]
    axes: Axes
    example: Feeds
    output_axes: Axes = field(default_factory=dict)


class Adapter(nn.Module):
    """A module called with plain tensors and positions, whatever its own call looks like."""

    def __init__(self, module: nn.Module, call: Callable[..., object]) -> None:
        super().__init__()
        self.module = module
        self.call = call

    def forward(self, *inputs: torch.Tensor) -> object:
        return self.call(self.module, *inputs)


def images(*shape: int) -> np.ndarray:
    """Random numbers in the shape of images, always the same."""
    return np.random.default_rng(1).standard_normal(shape, np.float32)


def tokens(batch: int, length: int, vocabulary: int) -> np.ndarray:
    """Random words, always the same."""
    return np.random.default_rng(2).integers(0, vocabulary, (batch, length), np.int64)


def settle(module: nn.Module, *inputs: np.ndarray) -> nn.Module:
    """Draw weights of convolutions and take a batch's statistics, so that numbers keep their size.

    Networks with batch normalization are otherwise full of numbers next to zero.
    """
    for item in module.modules():
        if isinstance(item, nn.Conv2d):
            nn.init.kaiming_normal_(item.weight)
        if isinstance(item, nn.BatchNorm2d):
            item.train()
            item.momentum = 1.0
    with torch.no_grad():
        module(*map(torch.from_numpy, inputs))
    return module.eval()


def vary(module: nn.Module) -> nn.Module:
    """Move weights that are all equal, as biases and gains of fresh networks are, by a little."""
    with torch.no_grad():
        for weight in module.parameters():
            if weight.numel() > 1 and bool((weight == weight.flatten()[0]).all()):
                weight.add_(torch.randn_like(weight), alpha=0.05)
    return module
