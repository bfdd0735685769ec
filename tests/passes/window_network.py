"""Attention in windows as Swin was first written: scores get a fifth axis for their mask."""

import torch
from torch import nn

from benchmarks.network import BATCH, Adapter, Network, images

WINDOWS, LENGTH = 4, 3


class WindowAttention(nn.Module):
    """Attention of each window by itself, with a bias for all and a mask for each."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.bias = nn.Parameter(torch.randn(heads, LENGTH, LENGTH))
        mask = torch.zeros(WINDOWS, LENGTH, LENGTH)
        mask[1, :2, 2:] = mask[1, 2:, :2] = -100.0
        self.register_buffer("mask", mask)

    def _split(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(x.size(0), LENGTH, self.heads, -1).permute(0, 2, 1, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The sum of an input [batch*windows, length, width] and what it attends to."""
        query, key, value = (self._split(part(x)) for part in (self.query, self.key, self.value))
        scores = query @ key.transpose(-1, -2) / query.size(-1) ** 0.5 + self.bias.unsqueeze(0)
        shape = x.size(0) // WINDOWS, WINDOWS, self.heads, LENGTH, LENGTH
        scores = scores.view(*shape) + self.mask.unsqueeze(1).unsqueeze(0)
        weights = scores.view(-1, self.heads, LENGTH, LENGTH).softmax(-1)
        return x + (weights @ value).permute(0, 2, 1, 3).reshape(x.shape)


def window_network(layers: int, width: int, heads: int) -> Network:
    """A stack of such attention over images cut into windows."""
    stack = nn.Sequential(*(WindowAttention(width, heads) for _ in range(layers)))

    def call(model: nn.Module, windows: torch.Tensor) -> torch.Tensor:
        return model(windows.reshape(-1, LENGTH, width)).view(windows.shape)

    shape = WINDOWS, LENGTH, width
    return Network(
        Adapter(stack.eval(), call),
        {"1": {"x": images(1, *shape)}},
        ("y",),
        {"x": BATCH},
        {"x": images(2, *shape)},
        {"y": BATCH},
    )
