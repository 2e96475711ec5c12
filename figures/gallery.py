"""The pictures of the README and the gallery, made by the shipped models: `python -m figures.gallery`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphwright.graphs import is_isomorphic
from graphwright.inference import SavedModel, load_model
from graphwright.inference.evaluate import evaluate_saved
from graphwright.inference.model import shipped_names
from graphwright.metrics import edit_distance
from graphwright.report import comparison_sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
CAFFEINE = ROOT / "examples" / "caffeine.mgf"
SHOWN = 4
"""Samples of a model: the first of its test split, right or wrong."""
FIRST_SCREEN = "spectrum-and-picture"
QUIET = "#666666"


def main(words: Sequence[str] | None = None) -> None:
    """Write the picture of the first screen, and one of every shipped model or of those named."""
    parser = argparse.ArgumentParser(prog="python -m figures.gallery", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"{FIRST_SCREEN} or shipped models; without any, all")
    parser.add_argument("--out", type=Path, default=IMAGES)
    arguments = parser.parse_args(words)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.names or [FIRST_SCREEN, *shipped_names()]:
        figure = first_screen() if name == FIRST_SCREEN else first_samples(load_model(name))
        path = arguments.out / (f"{name}.png" if name == FIRST_SCREEN else f"gallery-{name}.png")
        figure.savefig(path, dpi=100)
        print(f"wrote {path}")


def first_samples(model: SavedModel) -> Figure:
    """The first samples of a model's test split, each beside the model's own answer and the truth."""
    return comparison_sheet(evaluate_saved(model, samples=SHOWN), range(SHOWN))


def first_screen() -> Figure:
    """A spectrum and its scaffold; a picture and its graph, of the first test pictures that is right."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.4, 2.7), layout="constrained")
    panels = figure.subplots(1, 7, width_ratios=[1.75, 0.16, 1.05, 0.2, 1, 0.16, 1])
    peaks, first, scaffold, gap, picture, second, graph = panels
    _spectrum(load_model("ms2scaffold"), peaks, scaffold)
    _picture(load_model("coloring10"), picture, graph)
    for panel in (first, gap, second):
        panel.set_axis_off()
    for panel in (first, second):
        arrow = {"arrowstyle": "-|>", "color": QUIET, "linewidth": 1.6}
        panel.annotate("", (1, 0.5), (0, 0.5), xycoords="axes fraction", arrowprops=arrow)
    return figure


def _spectrum(model: SavedModel, left: Axes, right: Axes) -> None:
    (given,) = (each.value for each in model.task.read(CAFFEINE))  # type: ignore[union-attr]
    predicted = model.predict(given)
    model.task.draw_input(given, left)
    _caption(left, "caffeine's mass spectrum", "")
    model.task.draw_graph(predicted.graph, right, None)
    _caption(right, "its scaffold", f"{100 * predicted.confidence:.0f} %")


def _picture(model: SavedModel, left: Axes, right: Axes) -> None:
    sample, predicted = _first_right(model)
    order = edit_distance(predicted.graph, sample.graph).alignment[: predicted.graph.size]
    model.task.draw_input(model.task.input_of(sample), left)
    _caption(left, "a picture", "")
    right.imshow(np.asarray(sample.image).transpose(1, 2, 0), alpha=0.3)
    model.task.draw_graph(predicted.graph, right, model.task.positions(sample)[order])
    _caption(right, "its graph", f"{100 * predicted.confidence:.0f} %")


def _first_right(model: SavedModel) -> tuple[Any, Any]:
    data = model.task.data("test")
    for index in range(len(data)):
        predicted = model.predict(model.task.input_of(data[index]))
        if is_isomorphic(predicted.graph, data[index].graph):
            return data[index], predicted
    raise ValueError(f"{model.name} has no test sample right")


def _caption(axes: Axes, words: str, confidence: str) -> None:
    axes.set_title(f"{words}, {confidence}" if confidence else words, fontsize=10, color="#333333")


if __name__ == "__main__":
    main()
