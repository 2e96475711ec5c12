"""Coloring samples per second beside a plain loop over pixels."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from graphwright.bench.coloring_reference import plain_sample
from graphwright.bench.row import Row
from graphwright.bench.timing import median_milliseconds
from graphwright.tasks.coloring import ColoringConfig, ColoringSample, Split, generate
from graphwright.training.threads import threads

Generator = Callable[[ColoringConfig, int, Split, int], ColoringSample]


def measure_data(
    sizes: tuple[int, ...] = (10, 20, 60), samples: int = 300, peer_samples: int = 5, repeats: int = 3
) -> Iterator[Row]:
    """Whole samples (picture, noise, graph, colouring) on one core."""
    with threads(1):
        for n in sizes:
            ours = _milliseconds(generate, n, samples, repeats)
            peer = _milliseconds(plain_sample, n, peer_samples, 1)
            speed = {"samples_per_second": 1000 / ours}
            yield Row("coloring sample", n, 1, 1, ours, "plain loop over pixels", peer, extras=speed)


def _milliseconds(generator: Generator, n: int, samples: int, repeats: int) -> float:
    config = ColoringConfig(n)

    def make_all() -> None:
        for index in range(samples):
            generator(config, 0, "train", index)

    return median_milliseconds(make_all, repeats) / samples
