"""Images to tokens: a light convolutional encoder, and SegFormer-B1."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from graphwright.models.arithmetic import Conv2d
from graphwright.models.encoders.encoder import Encoder
from graphwright.settings import ENCODERS, InputForm, Model


@ENCODERS.register("cnn")
class ConvolutionalEncoder(Encoder):
    """A few residual convolutions, down to a quarter of the side, and a learned code of each position.

    Regions that touch in a single pixel are joined, so the first layers run before the picture is shrunk much;
    `detail` blocks run before it is shrunk at all. What these see is added to the first layer, from nothing at
    first: a model trained without them can go on with them.
    """

    reads = ("picture",)

    def __init__(self, side: int, width: int, blocks: int, detail: int = 0) -> None:
        super().__init__()
        if side % 4 or side < 4:
            raise ValueError(f"side must be a multiple of 4, got {side}")
        if width < 2:
            raise ValueError(f"width must be at least 2, got {width}")
        self.side = side
        half = width // 2
        self.stem = nn.Sequential(
            Conv2d(3, half, 5, stride=2, padding=2),
            nn.GELU(),
            _Residual(half),
            Conv2d(half, width, 2, stride=2),
        )
        self.detail = _detail(half, detail) if detail else None
        self.blocks = nn.Sequential(*(_Residual(width) for _ in range(blocks)))
        # The positions' embedding, under the name that models' files have.
        self.places = nn.Parameter(0.02 * torch.randn((side // 4) ** 2, width))
        self.norm = nn.LayerNorm(width)

    @classmethod
    def build(cls, form: InputForm, model: Model) -> Self:
        return cls(form.size, model.encoder_width, model.encoder_blocks, model.encoder_detail)

    def forward(self, images: Tensor) -> Tensor:
        """images (b, 3, side, side) in [0, 1] -> tokens (b, (side / 4)^2, width)."""
        _check_images(images, self.side)
        # Channels last is the layout that CPU convolutions are written for.
        pixels = (images * 4 - 2).contiguous(memory_format=torch.channels_last)
        features = self.stem[0](pixels)
        if self.detail is not None:
            features = features + self.detail(pixels)
        tokens = self.blocks(self.stem[1:](features)).flatten(2).mT
        result: Tensor = self.norm(tokens + self.places)
        return result


def _detail(width: int, blocks: int) -> nn.Sequential:
    """(b, 3, side, side) -> (b, width, side / 2, side / 2), zero until it is trained."""
    shrink = Conv2d(width, width, 2, stride=2)
    nn.init.zeros_(shrink.weight)
    assert shrink.bias is not None
    nn.init.zeros_(shrink.bias)
    residuals = (_Residual(width) for _ in range(blocks))
    return nn.Sequential(Conv2d(3, width, 3, padding=1), nn.GELU(), *residuals, shrink)


class _Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = Conv2d(width, width, 3, padding=1)
        self.second = Conv2d(width, width, 3, padding=1)
        self.norm = nn.GroupNorm(8 if width % 8 == 0 else 1, width)

    def forward(self, features: Tensor) -> Tensor:
        inner = nn.functional.gelu(self.first(self.norm(features)))
        result: Tensor = features + self.second(inner)
        return result


@ENCODERS.register("segformer")
class SegformerEncoder(Encoder):
    """SegFormer-B1 of `transformers`: its four scales, projected and brought to a quarter of the side, summed.

    weights: a local folder as `save_pretrained` writes it, of any SegFormer variant; None for a random B1.
    """

    reads = ("picture",)

    def __init__(self, side: int, width: int, weights: Path | None) -> None:
        super().__init__()
        self.side = side
        self.backbone = _random_b1() if weights is None else _pretrained(weights)
        config = self.backbone.config
        quarter = -(-side // 4)
        # Attention of the first scale shrinks its keys by this much: a smaller picture would leave none.
        if quarter < config.sr_ratios[0]:
            raise ValueError(f"side must be at least {4 * config.sr_ratios[0] - 3} for SegFormer, got {side}")
        self.project = nn.ModuleList(nn.Linear(size, width) for size in config.hidden_sizes)
        self.places = nn.Parameter(0.02 * torch.randn(quarter**2, width))
        self.norm = nn.LayerNorm(width)

    @classmethod
    def build(cls, form: InputForm, model: Model) -> Self:
        return cls(form.size, model.encoder_width, model.encoder_weights)

    def forward(self, images: Tensor) -> Tensor:
        """images (b, 3, side, side) in [0, 1] -> tokens (b, (side / 4)^2, width), a fraction counting as one."""
        _check_images(images, self.side)
        scales = self.backbone(images * 4 - 2, output_hidden_states=True).hidden_states
        finest = scales[0].shape[-2:]
        total = torch.zeros((), device=images.device)
        for features, project in zip(scales, self.project, strict=True):
            mapped = project(features.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
            total = total + nn.functional.interpolate(mapped, size=finest, mode="bilinear", align_corners=False)
        result: Tensor = self.norm(total.flatten(2).mT + self.places)
        return result


def _segformer() -> Any:
    try:
        from transformers import SegformerModel
    except ImportError as error:
        raise ImportError("SegFormer needs transformers: pip install 'graphwright[image]'") from error
    return SegformerModel


def _random_b1() -> Any:
    model = _segformer()
    # The B1 variant: widths and depths of Xie et al. 2021, table 6.
    return model(model.config_class(hidden_sizes=[64, 128, 320, 512], depths=[2, 2, 2, 2]))


def _pretrained(folder: Path) -> Any:
    model = _segformer()
    try:
        kind = json.loads((folder / "config.json").read_text()).get("model_type")
        if kind != "segformer":
            raise ValueError(f"{folder} holds a {kind}, not a SegFormer")
        backbone, report = model.from_pretrained(folder, local_files_only=True, output_loading_info=True)
    except OSError as error:
        raise ValueError(f"{folder} is not a folder of pretrained weights: {error}") from error
    # What a folder does not hold would silently stay random.
    missing = sorted(report["missing_keys"])
    if missing:
        raise ValueError(f"{folder} does not hold a whole SegFormer: {', '.join(missing[:3])} missing")
    return backbone


def _check_images(images: Tensor, side: int) -> None:
    if images.ndim != 4 or tuple(images.shape[1:]) != (3, side, side):
        raise ValueError(f"images must have shape (b, 3, {side}, {side}), got {tuple(images.shape)}")
