"""Coloring as a task: its data set, what is in some of its samples, and its drawings."""

from __future__ import annotations

import hashlib
import io
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from graphwright.graphs import Graph, GraphBatch, Vocabulary, draw, save_figure
from graphwright.graphs.drawing import empty_sheet
from graphwright.models import Inputs
from graphwright.settings import DataSettings, InputForm, Override, find_preset, load_run, presets
from graphwright.settings.source import SUFFIX
from graphwright.tasks.coloring.picture import COLORS, RGB, VOCABULARY, PixelLikeness, picture_of, read_picture
from graphwright.tasks.coloring.sample import (
    SYMMETRIES,
    ColoringConfig,
    ColoringSample,
    ColoringTask,
    augment,
    generate,
    stream,
)
from graphwright.tasks.page import Case, ExampleRange, ShownInput, TaskPage, Wish
from graphwright.tasks.split import Split, check_split
from graphwright.tasks.task import (
    BadInput,
    NamedInput,
    Positions,
    Samples,
    Task,
    input_beside_graph,
    register_task,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


HASHED_SAMPLES = 200


@dataclass(frozen=True)
class ColoringDataset(Samples):
    """One split, generated as it is read; nothing is stored, so it is as good in any worker, in any order.

    `dataset[index]` is the sample. `dataset[index, epoch]` is the sample as seen in an epoch of training:
    flipped and turned at random in the training split, the same elsewhere. It too is a pure function of its
    name, so that a run whose sampler yields such pairs resumes exactly.
    """

    config: ColoringConfig
    split: Split = "train"
    seed: int = 0

    def __post_init__(self) -> None:
        check_split(self.split)
        stream(self.seed, self.split, 0)  # refuses a bad seed here rather than in a worker

    def __len__(self) -> int:
        return self.config.length(self.split)

    def __getitem__(self, index: int | tuple[int, int]) -> ColoringSample:
        at, epoch = index if isinstance(index, tuple) else (index, None)
        if not 0 <= at < len(self):
            raise IndexError(f"sample {at} of a {self.split} split of {len(self)}")
        sample = generate(self.config, self.seed, self.split, at)
        if epoch is None or self.split != "train":
            return sample
        return augment(sample, stream(self.seed, self.split, at, epoch))

    def collate(self, samples: Sequence[ColoringSample]) -> tuple[Tensor, GraphBatch]:
        """(b, 3, side, side) pictures, and their graphs padded to the capacity."""
        images = torch.from_numpy(np.stack([sample.image for sample in samples]))
        return images, GraphBatch.collate([sample.graph for sample in samples], self.config.capacity)

    def digest(self) -> str:
        """SHA-256 of the pictures and graphs of the first samples."""
        digest = hashlib.sha256()
        for index in range(min(HASHED_SAMPLES, len(self))):
            sample = self[index]
            digest.update(sample.image.tobytes())
            digest.update(repr((sample.graph.node_names, sample.graph.edges.tolist())).encode())
        return digest.hexdigest()


@dataclass(frozen=True)
class ColoringStatistics:
    """Sizes and edges per graph, degrees and colours over all nodes, share of connected graphs, speed."""

    samples: int
    size_min: int
    size_mean: float
    size_max: int
    edges_mean: float
    degree_mean: float
    degree_max: int
    color_shares: dict[str, float]
    connected_share: float
    samples_per_second: float


def statistics(samples: Iterable[ColoringSample]) -> ColoringStatistics:
    """Statistics of the samples; the speed is that of the iterable, so give it a lazy one."""
    graphs: list[Graph] = []
    start = time.perf_counter()
    graphs.extend(sample.graph for sample in samples)
    seconds = time.perf_counter() - start
    if not graphs:
        raise ValueError("samples must not be empty")
    sizes = np.array([graph.size for graph in graphs])
    edges = np.array([len(graph.edges) for graph in graphs])
    degrees = np.concatenate([np.bincount(graph.edges.ravel(), minlength=graph.size) for graph in graphs])
    colors = np.bincount(np.concatenate([graph.node_labels for graph in graphs]), minlength=len(COLORS))
    return ColoringStatistics(
        samples=len(graphs),
        size_min=int(sizes.min()),
        size_mean=float(sizes.mean()),
        size_max=int(sizes.max()),
        edges_mean=float(edges.mean()),
        degree_mean=float(degrees.mean()),
        degree_max=int(degrees.max()),
        color_shares=dict(zip(COLORS, (colors / colors.sum()).tolist(), strict=True)),
        connected_share=sum(map(_is_connected, graphs)) / len(graphs),
        samples_per_second=len(graphs) / seconds,
    )


def _is_connected(graph: Graph) -> bool:
    pieces, _ = connected_components(graph.edge_matrix(), directed=False)
    return pieces == 1


def draw_sheet(samples: Sequence[ColoringSample], columns: int = 3) -> Figure:
    """`columns` samples a row: each picture, and beside it its graph, nodes where their regions are."""
    figure, panels = empty_sheet(len(samples), columns, cell=(5.6, 2.9), widths=(1, 1))
    for sample, (left, right) in zip(samples, panels, strict=False):
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
    example_file = "picture.png"
    generated = True
    several_views = True

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
    def page(self) -> ColoringPage:
        return ColoringPage(self)

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

    def other_views(self, inputs: Inputs) -> list[Tensor]:
        """The pictures under every other symmetry of the square, which training shows as well."""
        assert isinstance(inputs, Tensor)
        flipped = inputs.flip(-1)
        return [torch.rot90(flipped if code >= 4 else inputs, code % 4, (-2, -1)) for code in range(1, SYMMETRIES)]

    def read(self, path: Path) -> Iterator[NamedInput | BadInput]:
        try:
            yield NamedInput(str(path), path.stem, read_picture(path, self.config.side))
        except ValueError as error:
            yield BadInput(str(error))

    def statistics(self, samples: Iterable[ColoringSample]) -> list[tuple[str, str]]:
        summary = statistics(samples)
        shares = ", ".join(f"{name} {100 * share:.1f} %" for name, share in summary.color_shares.items())
        return [
            ("looked at", f"{summary.samples:,}"),
            ("nodes", f"{summary.size_min} to {summary.size_max}, mean {summary.size_mean:.2f}"),
            ("edges", f"mean {summary.edges_mean:.2f}"),
            ("degree", f"mean {summary.degree_mean:.2f}, largest {summary.degree_max}"),
            ("colours", shares),
            ("connected", f"{100 * summary.connected_share:.1f} %"),
            ("generated", f"{summary.samples_per_second:,.0f} samples/s"),
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
            save_figure(figure, path.with_name(path.name + suffix))

    def draw_graph(self, graph: Graph, axes: Axes, positions: Positions | None) -> None:
        draw(graph, axes, positions, RGB)


PICTURES = ("PNG", "JPEG", "WEBP", "BMP", "GIF")
"""Formats that Pillow reads without the help of other programs."""
MOST_PIXELS = 4096
"""Width and height of a picture that a page reads."""
MOST_NOISE = 0.3


class ColoringPage(TaskPage[Coloring]):
    """Pictures of files, and pictures drawn on demand with as many regions and as much noise as is wished."""

    title = "From a picture to its graph"
    colors = RGB

    @property
    def files(self) -> str:
        return "square colour pictures (PNG, JPEG, WebP, BMP, GIF)"

    @property
    def takes_text(self) -> None:
        return None

    def range(self) -> ExampleRange:
        """From the smallest pictures that the model knows to the largest."""
        config = self.task.config
        return ExampleRange(config.min_size, config.capacity, config.noise, MOST_NOISE)

    def accepted(self, data: bytes, suffix: str) -> tuple[bytes, str]:  # noqa: ARG002
        """The picture as PNG, if it is one of a few formats and not too large."""
        from PIL import Image

        Image.MAX_IMAGE_PIXELS = None  # looked at below, without a warning
        try:
            with Image.open(io.BytesIO(data), formats=PICTURES) as opened:
                width, height = opened.size
                if max(width, height) <= MOST_PIXELS:
                    opened.load()
                    picture = opened.convert("RGB") if opened.mode in ("CMYK", "YCbCr", "HSV") else opened
                    buffer = io.BytesIO()
                    picture.save(buffer, format="PNG")
                    return buffer.getvalue(), ".png"
        except Exception as error:  # Pillow's plugins raise whatever they please at damaged files.
            raise ValueError("not a picture that can be read (PNG, JPEG, WebP, BMP or GIF)") from error
        raise ValueError(f"{width} × {height} pixels; at most {MOST_PIXELS} × {MOST_PIXELS} are read")

    def case(self, chosen: NamedInput, name: str, path: Path) -> Case:  # noqa: ARG002
        side = int(chosen.value.shape[-1])
        return Case([chosen.value], ShownInput(name, f"read as {side} × {side} pixels", picture=chosen.value))

    def example(self, number: int, wish: Wish) -> Case:
        """Another number of regions in a picture of the same side."""
        config = self.task.config
        regions = wish.regions or config.capacity
        if not config.min_size <= regions <= config.capacity:
            raise ValueError(f"This model knows pictures of {config.min_size} to {config.capacity} regions.")
        noise = config.noise if wish.noise is None else min(wish.noise, MOST_NOISE)
        config = replace(config, capacity=regions, min_size=regions, noise=noise)
        data = ColoringDataset(config, "test", seed=self.task.settings.seed)
        sample = data[number % len(data)]
        shown = ShownInput(
            name=f"example {number}",
            caption=f"{config.side} × {config.side} pixels, {regions} regions, noise {noise:.2f}",
            picture=sample.image,
        )
        positions, side = self.task.positions(sample), float(config.side)
        return Case([self.task.input_of(sample)], shown, sample.graph, positions, side)
