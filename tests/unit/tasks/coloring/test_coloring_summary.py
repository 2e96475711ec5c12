import io
import sys
import time
from collections.abc import Iterator

import numpy as np
import pytest

from graphwright.graphs import Graph
from graphwright.tasks.coloring import (
    VOCABULARY,
    ColoringConfig,
    ColoringDataset,
    ColoringSample,
    draw_sheet,
    statistics,
)


def _sample(names: list[str], edges: list[tuple[int, int]]) -> ColoringSample:
    graph = Graph.build(names, edges, vocabulary=VOCABULARY)
    return ColoringSample(np.zeros((3, 4, 4), np.float32), graph, np.zeros((len(names), 2), np.int64))


def test_statistics_by_hand() -> None:
    result = statistics(
        [
            _sample(["blue", "green", "red"], [(0, 1), (1, 2), (0, 2)]),
            _sample(["blue", "blue", "red", "red", "green"], [(0, 2), (0, 3), (0, 4)]),
        ]
    )
    assert (result.samples, result.size_min, result.size_mean, result.size_max) == (2, 3, 4.0, 5)
    assert (result.edges_mean, result.degree_mean, result.degree_max) == (3.0, 1.5, 3)
    assert result.color_shares == {"blue": 3 / 8, "green": 2 / 8, "red": 3 / 8, "yellow": 0}
    assert result.connected_share == 0.5


def test_speed_is_that_of_the_samples() -> None:
    def slow() -> Iterator[ColoringSample]:
        for _ in range(5):
            time.sleep(0.01)
            yield _sample(["blue"], [])

    assert 1 < statistics(slow()).samples_per_second < 100


def test_statistics_of_the_task() -> None:
    dataset = ColoringDataset(ColoringConfig(20))
    result = statistics(dataset[index] for index in range(400))
    assert (result.size_min, result.size_max, result.connected_share) == (5, 20, 1.0)
    assert result.degree_mean < 6  # planar
    nodes = result.size_mean * result.samples
    assert all(abs(share - 0.25) < 5 * (0.25 * 0.75 / nodes) ** 0.5 for share in result.color_shares.values())


def test_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="samples must not be empty"):
        statistics([])
    with pytest.raises(ValueError, match="samples must not be empty"):
        draw_sheet([])


@pytest.mark.parametrize(("count", "panels"), [(1, 6), (3, 6), (4, 12)])
def test_sheet_shows_every_sample(count: int, panels: int) -> None:
    dataset = ColoringDataset(ColoringConfig(10), "test")
    samples = [dataset[index] for index in range(count)]
    figure = draw_sheet(samples)
    assert len(figure.axes) == panels
    titles = [panel.get_title() for panel in figure.axes[1::2]]
    drawn = [f"{sample.graph.size} nodes, {len(sample.graph.edges)} edges" for sample in samples]
    assert titles[:count] == drawn
    shown = figure.axes[0].images[0].get_array()
    assert shown is not None
    np.testing.assert_array_equal(shown, samples[0].image.transpose(1, 2, 0))
    figure.savefig(buffer := io.BytesIO(), format="png", dpi=30)
    assert buffer.getvalue().startswith(b"\x89PNG")


def test_a_missing_matplotlib_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"graphwright\[image\]"):
        draw_sheet([_sample(["blue"], [])])
