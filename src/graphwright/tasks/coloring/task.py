"""Coloring as a task, and its drawings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from graphwright.graphs import Graph, Vocabulary, draw
from graphwright.settings import DataSettings, InputForm, Override, find_preset, load_run, presets
from graphwright.settings.source import SUFFIX
from graphwright.tasks.coloring.dataset import ColoringDataset, statistics
from graphwright.tasks.coloring.picture import RGB, VOCABULARY, PixelLikeness, picture_of, read_picture
from graphwright.tasks.coloring.sample import ColoringConfig, ColoringSample, ColoringTask
from graphwright.tasks.split import Split
from graphwright.tasks.task import BadInput, NamedInput, Positions, Task, input_beside_graph, register_task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_sheet(samples: Sequence[ColoringSample], columns: int = 3) -> Figure:
    """`columns` samples a row: each picture, and beside it its graph, nodes where their regions are."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("drawing needs matplotlib: pip install 'graphwright[image]'") from error
    if not samples:
        raise ValueError("samples must not be empty")
    rows = -(-len(samples) // columns)
    figure = Figure(figsize=(5.6 * columns, 2.9 * rows), layout="constrained")
    panels = figure.subplots(rows, 2 * columns, squeeze=False)
    for panel in panels.flat:
        panel.set_axis_off()
    for sample, (left, right) in zip(samples, panels.reshape(-1, 2), strict=False):
        side = sample.image.shape[-1]
        left.imshow(sample.image.transpose(1, 2, 0), interpolation="nearest")
        left.set_title(f"{side} x {side}", fontsize=9)
        draw(sample.graph, right, sample.pixels[:, ::-1].astype(np.float64), RGB)
        margin = 0.06 * side  # half a node, so that one at the rim is not cut
        right.set_xlim(-margin, side - 1 + margin)
        right.set_ylim(side - 1 + margin, -margin)
        right.set_title(f"{sample.graph.size} nodes, {len(sample.graph.edges)} edges", fontsize=9)
    return figure


ANY_SIZE = re.compile(r"coloring(?P<n>[0-9]{1,3})(?P<scale>-cpu|-paper)?")
"""Names of Colorings; presets exist for the paper's sizes."""


@register_task(ColoringTask)
@dataclass(frozen=True)
class Coloring(Task):
    """From a picture of coloured regions to the graph of which touch."""

    settings: ColoringTask

    files = "pictures (png, ...)"
    generated = True

    @classmethod
    def settings_for(cls, source: str) -> DataSettings | None:
        """For coloring15 the preset of the next larger size, or of the largest, made for 15 regions."""
        named = ANY_SIZE.fullmatch(source)
        if named is None or find_preset(source) is not None or int(named["n"]) == 0:
            return None
        n, scale = int(named["n"]), named["scale"] or SUFFIX
        sizes = [int(match["n"]) for preset in presets() if (match := ANY_SIZE.fullmatch(preset.name))]
        preset = f"coloring{min((size for size in sizes if size >= n), default=max(sizes))}{scale}"
        base = load_run(preset).task
        assert isinstance(base, ColoringTask)
        smallest = min(base.min_size, n)
        return DataSettings((Override("task.capacity", n), Override("task.min_size", smallest)), preset)

    @property
    def name(self) -> str:
        return f"coloring{self.capacity}"

    @property
    def heading(self) -> str:
        return f"Coloring {self.capacity}"

    @property
    def summary(self) -> str:
        sizes = f"{self.settings.min_size} to {self.capacity}"
        return f"From a noisy picture of {sizes} coloured regions to the graph of which touch (the Coloring task)."

    @property
    def limits(self) -> str:
        """What a model has never seen."""
        return (
            "Pictures must be like the task's: flat regions in its four colours, up to "
            f"{self.capacity} of them. On anything else it still answers, and is wrong."
        )

    @property
    def capacity(self) -> int:
        """Largest number of regions."""
        return self.settings.capacity

    @property
    def vocabulary(self) -> Vocabulary:
        return VOCABULARY

    @property
    def config(self) -> ColoringConfig:
        return self.settings.config

    def likeness(self) -> PixelLikeness:
        return PixelLikeness()

    def data(self, split: Split, *, seed: int | None = None, limit: int | None = None) -> ColoringDataset:  # noqa: ARG002
        """A split, of these settings' seed or of another; any number of samples costs the same."""
        return ColoringDataset(self.config, split, self.settings.seed if seed is None else seed)

    def data_from(self, path: Path, *, limit: int | None = None) -> ColoringDataset:  # noqa: ARG002
        raise ValueError(f"{path}: Coloring's samples are generated, not read; use --seed for fresh ones")

    @property
    def input_form(self) -> InputForm:
        """Pictures of so many pixels to a side."""
        return InputForm("picture", self.config.side)

    def is_one(self, given: Any) -> bool:
        """Several are a list, or an array of four dimensions."""
        return getattr(given, "ndim", 3) < 4 and super().is_one(given)

    def inputs(self, given: Any) -> Tensor:
        """(b, 3, side, side) from pictures as `picture_of` takes them, one, a list or an array (b, ...)."""
        several = [given] if self.is_one(given) else given
        return torch.stack([picture_of(each, self.config.side) for each in several])

    def read(self, path: Path) -> Iterator[NamedInput | BadInput]:
        try:
            yield NamedInput(str(path), path.stem, read_picture(path, self.config.side))
        except ValueError as error:
            yield BadInput(str(error))

    def statistics(self, samples: Iterable[ColoringSample]) -> list[tuple[str, str]]:
        found = statistics(samples)
        shares = ", ".join(f"{name} {100 * share:.1f} %" for name, share in found.color_shares.items())
        return [
            ("looked at", f"{found.samples:,}"),
            ("nodes", f"{found.size_min} to {found.size_max}, mean {found.size_mean:.2f}"),
            ("edges", f"mean {found.edges_mean:.2f}"),
            ("degree", f"mean {found.degree_mean:.2f}, largest {found.degree_max}"),
            ("colours", shares),
            ("connected", f"{100 * found.connected_share:.1f} %"),
            ("generated", f"{found.samples_per_second:,.0f} samples/s"),
        ]

    def sheet(self, samples: Sequence[ColoringSample]) -> Figure:
        return draw_sheet(samples)

    def input_of(self, sample: ColoringSample) -> Tensor:
        return torch.from_numpy(sample.image)

    def positions(self, sample: ColoringSample) -> Positions:
        """A pixel of each region."""
        return sample.pixels[:, ::-1].astype(np.float64)

    def draw_input(self, given: Tensor, axes: Axes) -> None:
        axes.imshow(given.permute(1, 2, 0).numpy(), interpolation="nearest")
        axes.set_axis_off()

    def write_drawing(
        self,
        path: Path,
        given: Tensor,
        graph: Graph,
        title: str,
        text: str | None = None,  # noqa: ARG002
    ) -> None:
        """Picture and graph, as SVG and PNG."""
        figure = input_beside_graph(self, given, graph, title)
        for suffix in (".svg", ".png"):
            figure.savefig(path.with_name(path.name + suffix))

    def draw_graph(self, graph: Graph, axes: Axes, positions: Positions | None) -> None:
        draw(graph, axes, positions, RGB)
