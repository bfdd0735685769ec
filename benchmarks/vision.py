"""Image networks of the benchmark: classifiers, a detector, a segmenter."""

import torch
from torch import nn
from transformers import (
    ConvNextConfig,
    ConvNextForImageClassification,
    EfficientNetConfig,
    EfficientNetForImageClassification,
    MobileNetV2Config,
    MobileNetV2ForImageClassification,
    ResNetConfig,
    ResNetForImageClassification,
    SegformerConfig,
    SegformerForSemanticSegmentation,
    SwinConfig,
    SwinForImageClassification,
    ViTConfig,
    ViTForImageClassification,
)

from benchmarks.network import BATCH, BATCHES, Adapter, Network, images, settle


def classifier(model: nn.Module, size: int = 224, *, settled: bool = False) -> Network:
    """A network from an image to logits, its batch normalizations settled first if asked."""
    module = Adapter(model.eval(), lambda model, pixels: model(pixel_values=pixels).logits)
    if settled:
        settle(module, images(2, 3, size, size))
    return Network(
        module,
        {f"{batch}x3x{size}x{size}": {"pixels": images(batch, 3, size, size)} for batch in BATCHES},
        ("logits",),
        {"pixels": BATCH},
        {"pixels": images(2, 3, size, size)},
        {"logits": BATCH},
    )


def resnet50() -> Network:
    """ResNet-50: convolutions, batch normalization, residual sums."""
    return classifier(ResNetForImageClassification(ResNetConfig(num_labels=1000)), settled=True)


def mobilenetv2() -> Network:
    """MobileNetV2: depthwise convolutions."""
    config = MobileNetV2Config(num_labels=1000)
    return classifier(MobileNetV2ForImageClassification(config), settled=True)


def efficientnet_b0() -> Network:
    """EfficientNet-B0: depthwise convolutions, squeeze and excitation, SiLU."""
    config = EfficientNetConfig(
        image_size=224, width_coefficient=1.0, depth_coefficient=1.0, hidden_dim=1280,
        num_labels=1000,
    )  # fmt: skip
    return classifier(EfficientNetForImageClassification(config), settled=True)


def convnext_tiny() -> Network:
    """ConvNeXt-T: 7x7 depthwise convolutions and layer normalization over channels."""
    return classifier(ConvNextForImageClassification(ConvNextConfig(num_labels=1000)))


def vit_b16() -> Network:
    """ViT-B/16: a transformer over 196 patches."""
    return classifier(ViTForImageClassification(ViTConfig(num_labels=1000)))


def swin_tiny() -> Network:
    """Swin-T: attention in shifted windows with a relative position bias."""
    config = SwinConfig(num_labels=1000, window_size=7, embed_dim=96, depths=[2, 2, 6, 2])
    return classifier(SwinForImageClassification(config))


def segformer_b0() -> Network:
    """SegFormer-B0: attention with shortened keys, and a decoder of upsampled maps."""
    model = SegformerForSemanticSegmentation(SegformerConfig(num_labels=150))
    return classifier(model, 512, settled=True)


class _Unit(nn.Sequential):
    def __init__(self, inner: int, outer: int, kernel: int = 3, stride: int = 1) -> None:
        super().__init__(
            nn.Conv2d(inner, outer, kernel, stride, kernel // 2, bias=False),
            nn.BatchNorm2d(outer),
            nn.SiLU(),
        )


class _Stage(nn.Module):
    """Half of the channels go through residual pairs; every step is kept and joined."""

    def __init__(self, inner: int, outer: int, depth: int) -> None:
        super().__init__()
        half = outer // 2
        self.first = _Unit(inner, outer, 1)
        self.pairs = nn.ModuleList(
            nn.Sequential(_Unit(half, half), _Unit(half, half)) for _ in range(depth)
        )
        self.last = _Unit((2 + depth) * half, outer, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = list(self.first(x).chunk(2, 1))
        for pair in self.pairs:
            parts.append(parts[-1] + pair(parts[-1]))
        return self.last(torch.cat(parts, 1))


class _Pyramid(nn.Module):
    """Poolings of growing reach, joined."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = _Unit(channels, channels // 2, 1)
        self.pool = nn.MaxPool2d(5, 1, 2)
        self.last = _Unit(channels * 2, channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = [self.first(x)]
        for _ in range(3):
            parts.append(self.pool(parts[-1]))
        return self.last(torch.cat(parts, 1))


class _Detector(nn.Module):
    """A one-stage detector over three scales: boxes as expected distances, and class scores."""

    bins, classes = 16, 80

    def __init__(self) -> None:
        super().__init__()
        widths = (16, 32, 64, 128, 256)
        self.stem = _Unit(3, widths[0], 3, 2)
        self.stages = nn.ModuleList(
            nn.Sequential(_Unit(inner, outer, 3, 2), _Stage(outer, outer, depth))
            for inner, outer, depth in zip(widths, widths[1:], (1, 2, 2, 1), strict=False)
        )
        self.pyramid = _Pyramid(256)
        self.up = nn.Upsample(scale_factor=2)
        self.merge4, self.merge3 = _Stage(384, 128, 1), _Stage(192, 64, 1)
        self.down3, self.down4 = _Unit(64, 64, 3, 2), _Unit(128, 128, 3, 2)
        self.join4, self.join5 = _Stage(192, 128, 1), _Stage(384, 256, 1)
        self.boxes = nn.ModuleList(self._head(width, 4 * self.bins) for width in (64, 128, 256))
        self.scores = nn.ModuleList(self._head(width, self.classes) for width in (64, 128, 256))
        self.register_buffer("distance", torch.arange(self.bins).float().view(1, self.bins, 1, 1))

    @staticmethod
    def _head(inner: int, outer: int) -> nn.Module:
        return nn.Sequential(_Unit(inner, 64), _Unit(64, 64), nn.Conv2d(64, outer, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        maps, x = [], self.stem(x)
        for stage in self.stages:
            x = stage(x)
            maps.append(x)
        p5 = self.pyramid(maps[3])
        p4 = self.merge4(torch.cat((self.up(p5), maps[2]), 1))
        p3 = self.merge3(torch.cat((self.up(p4), maps[1]), 1))
        p4 = self.join4(torch.cat((self.down3(p3), p4), 1))
        p5 = self.join5(torch.cat((self.down4(p4), p5), 1))
        return torch.cat([self._decode(*item) for item in zip((p3, p4, p5), (8, 16, 32),
                          self.boxes, self.scores, strict=True)], 2)  # fmt: skip

    def _decode(
        self, x: torch.Tensor, stride: int, boxes: nn.Module, scores: nn.Module
    ) -> torch.Tensor:
        height, width = x.shape[2:]
        reach = boxes(x).reshape(x.shape[0], 4, self.bins, height * width).transpose(1, 2)
        reach = (reach.softmax(1) * self.distance).sum(1)
        rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
        centers = torch.stack((columns, rows)).reshape(2, -1) + 0.5
        first, last = centers - reach[:, :2], centers + reach[:, 2:]
        box = torch.cat(((first + last) / 2, last - first), 1) * stride
        return torch.cat((box, scores(x).flatten(2).sigmoid()), 1)


def detector() -> Network:
    """A YOLO-like detector of 640x640 images, without the suppression at its end."""
    module = settle(_Detector(), images(2, 3, 640, 640))
    return Network(
        module,
        {"1x3x640x640": {"pixels": images(1, 3, 640, 640)}},
        ("detections",),
        {"pixels": BATCH},
        {"pixels": images(2, 3, 640, 640)},
        {"detections": BATCH},
    )
