"""Coloring: from a noisy picture of coloured regions to the graph of which region touches which."""

from graphwright.tasks.coloring.picture import COLORS, RGB, VOCABULARY, read_picture
from graphwright.tasks.coloring.sample import ColoringConfig, ColoringSample, ColoringTask, augment, generate
from graphwright.tasks.coloring.task import Coloring, ColoringDataset, ColoringStatistics, draw_sheet, statistics
from graphwright.tasks.split import SPLITS, Split

__all__ = [
    "COLORS",
    "RGB",
    "SPLITS",
    "VOCABULARY",
    "Coloring",
    "ColoringConfig",
    "ColoringDataset",
    "ColoringSample",
    "ColoringStatistics",
    "ColoringTask",
    "Split",
    "augment",
    "draw_sheet",
    "generate",
    "read_picture",
    "statistics",
]
