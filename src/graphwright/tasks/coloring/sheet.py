"""A sheet of samples, picture beside graph, with matplotlib (extra `image`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from graphwright.graphs import draw
from graphwright.tasks.coloring.picture import RGB
from graphwright.tasks.coloring.sample import ColoringSample

if TYPE_CHECKING:
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
