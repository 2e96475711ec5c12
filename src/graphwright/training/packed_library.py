"""Known graphs as tensors, so that a model that was handed on needs no data to choose from them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from graphwright.decoding import Library
from graphwright.graphs import Graph, GraphBatch, Vocabulary

PREFIX = "known."


def packed(library: Library) -> dict[str, Tensor]:
    """Of k graphs: sizes, counts and edge_numbers (k,), and all nodes' labels (n,) and edges (e, 3) in a row."""
    graphs = library.graphs
    edges = [np.column_stack([graph.edges, graph.edge_labels]) for graph in graphs]
    arrays = {
        "sizes": np.array([graph.size for graph in graphs]),
        "counts": library.counts,
        "edge_numbers": np.array([len(part) for part in edges]),
        "labels": np.concatenate([graph.node_labels for graph in graphs]),
        "edges": np.concatenate(edges),
    }
    return {PREFIX + name: torch.from_numpy(array.astype(np.int32)) for name, array in arrays.items()}


def unpacked(tensors: Mapping[str, Tensor], vocabulary: Vocabulary, slots: int) -> Library | None:
    """The library among a model's tensors, if there is one."""
    if f"{PREFIX}sizes" not in tensors:
        return None
    sizes, counts, numbers, labels, edges = (
        tensors[PREFIX + name].numpy().astype(np.int64)
        for name in ("sizes", "counts", "edge_numbers", "labels", "edges")
    )
    graphs = [
        Graph(nodes, part[:, :2], part[:, 2], vocabulary)
        for nodes, part in zip(
            np.split(labels, np.cumsum(sizes)[:-1]), np.split(edges, np.cumsum(numbers)[:-1]), strict=True
        )
    ]
    return Library(tuple(graphs), GraphBatch.collate(graphs, slots), counts)
