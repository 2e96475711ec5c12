"""Coloring: from a noisy picture of coloured regions to the graph of which region touches which."""

from graphwright.tasks.coloring.config import SPLITS, ColoringConfig, Split
from graphwright.tasks.coloring.dataset import ColoringDataset
from graphwright.tasks.coloring.picture import COLORS, RGB, VOCABULARY
from graphwright.tasks.coloring.picture_file import read_picture
from graphwright.tasks.coloring.sample import ColoringSample, augment, generate
from graphwright.tasks.coloring.sheet import draw_sheet
from graphwright.tasks.coloring.summary import ColoringStatistics, statistics

__all__ = [
    "COLORS",
    "RGB",
    "SPLITS",
    "VOCABULARY",
    "ColoringConfig",
    "ColoringDataset",
    "ColoringSample",
    "ColoringStatistics",
    "Split",
    "augment",
    "draw_sheet",
    "generate",
    "read_picture",
    "statistics",
]
