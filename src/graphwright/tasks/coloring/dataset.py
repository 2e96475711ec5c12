"""Coloring as a torch dataset, and what is in some of its samples."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from graphwright.graphs import Graph, GraphBatch
from graphwright.tasks.coloring.picture import COLORS
from graphwright.tasks.coloring.sample import ColoringConfig, ColoringSample, augment, generate, stream
from graphwright.tasks.split import Split, check_split
from graphwright.tasks.task import Samples

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
