"""Spectra as sticks, explained peaks in colour, beside the scaffold."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from graphwright.graphs import Graph
from graphwright.tasks.molecules.drawing import depiction, draw_structure
from graphwright.tasks.spectra.dataset import SpectrumSample
from graphwright.tasks.spectra.encoded import EncodedSpectrum, describe

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EXPLAINED, UNEXPLAINED = "#2b50d8", "#999999"
NAMED = 6
"""Peaks that are named by their sub-formula, the most intense that do not stand in each other's way."""
APART = 0.07
"""Least distance of two names, as a share of the m/z range."""


def draw_spectrum(spectrum: EncodedSpectrum, axes: Axes) -> None:
    """A stick for every peak, blue where a sub-formula explains it, and the precursor as a dashed line."""
    mzs, heights, explained = spectrum.mzs, spectrum.intensities, spectrum.explained
    for chosen, color in ((~explained, UNEXPLAINED), (explained, EXPLAINED)):
        axes.vlines(mzs[chosen], 0, heights[chosen], colors=color, linewidth=1.2)
    precursor = float(spectrum.precursor[0]) * 1000
    if precursor:
        axes.axvline(precursor, color="#bbbbbb", linestyle="--", linewidth=0.8)
    for at in _named(spectrum, precursor):
        axes.annotate(
            str(spectrum.subformulas()[at]), (mzs[at], heights[at]), (0, 2), textcoords="offset points",
            ha="center", va="bottom", fontsize=6, color=EXPLAINED,
        )  # fmt: skip
    axes.set_ylim(0, 1.15)
    axes.set_yticks([])
    axes.tick_params(labelsize=7)
    axes.set_xlabel(f"m/z; {describe(spectrum)}", fontsize=7)


def spectrum_sheet(samples: Sequence[SpectrumSample], columns: int = 3) -> Figure:
    """Spectra, each beside its scaffold."""
    from matplotlib.figure import Figure

    if not samples:
        raise ValueError("samples must not be empty")
    rows = -(-len(samples) // columns)
    figure = Figure(figsize=(5.4 * columns, 2.4 * rows), layout="constrained")
    panels = figure.subplots(rows, 2 * columns, squeeze=False, width_ratios=[1.6, 1] * columns)
    for panel in panels.flat:
        panel.set_axis_off()
    for sample, (left, right) in zip(samples, panels.reshape(-1, 2), strict=False):
        left.set_axis_on()
        draw_spectrum(sample.spectrum, left)
        left.set_title(sample.identifier, fontsize=8)
        draw_structure(sample.graph, right, depiction(sample.graph))
    return figure


def write_candidate(path: Path, spectrum: EncodedSpectrum, graph: Graph, title: str) -> None:
    """A spectrum and a scaffold that may be behind it, as SVG whose text can be searched."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 3.0), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1.7, 1])
    draw_spectrum(spectrum, left)
    draw_structure(graph, right, depiction(graph))
    right.set_title(title, fontsize=9)
    with rc_context({"svg.fonttype": "none"}):
        figure.savefig(path)


def _named(spectrum: EncodedSpectrum, precursor: float) -> list[int]:
    mzs, chosen = spectrum.mzs, list[int]()
    reach = APART * max(float(np.ptp(np.append(mzs, precursor or mzs[-1]))), 1.0)
    for at in np.argsort(-spectrum.intensities, kind="stable").tolist():
        if spectrum.explained[at] and all(abs(mzs[at] - mzs[other]) >= reach for other in chosen):
            chosen.append(at)
        if len(chosen) == NAMED:
            break
    return chosen
