"""Which Coloring dataset: sizes, raster, corruption, number of samples."""

from __future__ import annotations

import math
from dataclasses import dataclass

from graphwright.tasks.split import Split, check_split


@dataclass(frozen=True)
class ColoringConfig:
    """Coloring N, N = `capacity`; the defaults are those of the paper.

    min_size: graph sizes are uniform in min_size..capacity.
    side: the picture is side x side pixels; 0 stands for 4 * capacity.
    noise: standard deviation of the Gaussian noise, for channels in [0, 1].
    blur: standard deviation in pixels of the Gaussian blur, applied before the noise; 0 for none.
    min_pixels: regions of fewer pixels, and contacts along fewer pixel borders, are painted but are not in
        the graph, which may then be smaller than min_size, or in pieces. 0 keeps all: always connected.
    samples: of all splits together, 80/10/10; 0 stands for 20,000 * capacity.
    """

    capacity: int
    min_size: int = 5
    side: int = 0
    noise: float = 0.02
    blur: float = 0.0
    min_pixels: int = 0
    samples: int = 0

    def __post_init__(self) -> None:
        for name in ("capacity", "min_size", "side", "min_pixels", "samples"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 0:
                raise ValueError(f"{name} must be a whole number, at least 0, got {value!r}")
        for name in ("noise", "blur"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} must be a finite number, at least 0, got {value!r}")
        object.__setattr__(self, "side", self.side or 4 * self.capacity)
        object.__setattr__(self, "samples", self.samples or 20_000 * self.capacity)
        if self.min_size < 1:
            raise ValueError(f"min_size must be at least 1, got {self.min_size}")
        if self.capacity < self.min_size:
            raise ValueError(f"capacity must be at least min_size, {self.min_size}, got {self.capacity}")
        if self.capacity > self.side**2:
            raise ValueError(f"capacity must be at most side * side, {self.side**2}, got {self.capacity}")
        # The largest region has at least this many pixels, so that some node always remains.
        if self.min_pixels > self.side**2 // self.capacity:
            raise ValueError(
                f"min_pixels must be at most side * side / capacity, {self.side**2 // self.capacity}, "
                f"got {self.min_pixels}"
            )
        if self.samples < 10:
            raise ValueError(f"samples must be at least 10, one for every split, got {self.samples}")

    @classmethod
    def any2graph(cls) -> ColoringConfig:
        """The smaller task of Krzakala et al., 2024: 32 x 32, blurred, slivers left out of the graph.

        Sizes 5..10 and 100,000 training samples, as that project's page says. The noise, which the
        specification does not exempt, stays at its default; blur comes first, then noise. Colours are proper
        for all regions and contacts painted, those that the graph leaves out included.
        """
        return cls(capacity=10, side=32, blur=0.4, min_pixels=3, samples=125_000)

    def length(self, split: Split) -> int:
        """Number of samples of a split."""
        check_split(split)
        tenth = self.samples // 10
        return self.samples - 2 * tenth if split == "train" else tenth
