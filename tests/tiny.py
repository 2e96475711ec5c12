"""Small things to train and to match, shared by tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from graphwright.graphs import Graph, GraphBatch, Prediction, Vocabulary
from graphwright.losses import LossSettings
from graphwright.matching import LearnedMatcher
from graphwright.models import TargetEncoder
from graphwright.settings import Loss, Matching, Model, Run, Train
from graphwright.tasks.coloring import ColoringTask
from graphwright.transport import EmbeddingPlan, l1_plan

LABELLED = Vocabulary(("a", "b", "c"), ("none", "single", "double"))
PLAIN = Vocabulary()

WITH_STATE = {"kind": "learned", "plan": "rounded", "linear_costs": 1.0, "probe_every": 2}
"""Settings of a matcher that learns from a loss of its own and counts the steps it has seen."""


def tiny_settings(
    *,
    task: dict[str, Any] | None = None,
    model: dict[str, Any] | None = None,
    matching: dict[str, Any] | None = None,
    loss: dict[str, Any] | None = None,
    train: dict[str, Any] | None = None,
) -> Run:
    """A run of a few steps of a few milliseconds; sections override fields."""
    small_model = {
        "encoder_width": 16,
        "encoder_blocks": 1,
        "width": 16,
        "layers": 1,
        "heads": 2,
        "head_width": 16,
    }
    # Of four slots at dimension 8 this temperature is an epsilon of 1e-3.
    small_matching = {"dimension": 8, "target_width": 8, "target_layers": 1, "temperature": 2.83e-3, "outer": 5}
    few = {"steps": 4, "batch_size": 8, "workers": 0, "threads": 1, "log_every": 1, "validate_every": 1000}
    cpu = {"accelerator": "cpu", "devices": "1", "validation_samples": 4}
    return Run(
        task=ColoringTask(**{"capacity": 4, "min_size": 2, "samples": 400} | (task or {})),
        model=Model(**small_model | (model or {})),
        matching=Matching(**small_matching | (matching or {})),
        loss=Loss(**loss or {}),
        train=Train(**few | cpu | (train or {})),
    )


def random_graph(
    rng: np.random.Generator, size: int, vocabulary: Vocabulary = LABELLED, density: float = 0.5
) -> Graph:
    """Any graph of that many nodes, connected or not."""
    labels = rng.integers(1, len(vocabulary.edges), (size, size))
    matrix = np.triu(labels * (rng.random((size, size)) < density), 1)
    return Graph.from_matrix(rng.integers(0, len(vocabulary.nodes), size), matrix + matrix.T, vocabulary)


def random_batch(
    rng: np.random.Generator, sizes: list[int], capacity: int, vocabulary: Vocabulary = LABELLED
) -> GraphBatch:
    """Graphs of these sizes."""
    return GraphBatch.collate([random_graph(rng, size, vocabulary) for size in sizes], capacity, vocabulary)


def from_edges(size: int, edges: list[tuple[int, int]], vocabulary: Vocabulary = PLAIN) -> Graph:
    """A graph whose nodes and edges all have the first label."""
    matrix = np.zeros((size, size), np.int64)
    for first, second in edges:
        matrix[first, second] = matrix[second, first] = 1
    return Graph.from_matrix(np.zeros(size, np.int64), matrix, vocabulary)


def cycle(size: int) -> Graph:
    return from_edges(size, [(at, (at + 1) % size) for at in range(size)])


def complete(size: int) -> Graph:
    return from_edges(size, [(first, second) for first in range(size) for second in range(first)])


def star(leaves: int) -> Graph:
    return from_edges(leaves + 1, [(0, leaf) for leaf in range(1, leaves + 1)])


def random_prediction(
    generator: torch.Generator,
    batch: int,
    capacity: int,
    vocabulary: Vocabulary = LABELLED,
    *,
    scale: float = 2.0,
    dtype: torch.dtype = torch.float64,
    diffusion: bool = False,
    requires_grad: bool = False,
) -> Prediction:
    """Symmetric logits."""

    def logits(*shape: int) -> torch.Tensor:
        return scale * torch.randn(*shape, generator=generator, dtype=dtype)

    labels, classes = len(vocabulary.nodes), len(vocabulary.edges)
    edges = logits(batch, classes, capacity, capacity)
    edges = edges + edges.mT
    tensors = [
        logits(batch, capacity),
        edges[:, 0] if classes == 2 else edges,
        logits(batch, capacity, labels) if labels > 1 else None,
        logits(batch, capacity, labels) if diffusion else None,
    ]
    return Prediction(*(None if tensor is None else tensor.requires_grad_(requires_grad) for tensor in tensors))


def undecided(batch: GraphBatch, dtype: torch.dtype = torch.float64) -> Prediction:
    """Logits that say nothing at all about the graphs."""
    (b, n), labels, classes = batch.mask.shape, len(batch.vocabulary.nodes), len(batch.vocabulary.edges)
    edges = torch.zeros(b, n, n, dtype=dtype) if classes == 2 else torch.zeros(b, classes, n, n, dtype=dtype)
    named = torch.zeros(b, n, labels, dtype=dtype) if labels > 1 else None
    return Prediction(torch.zeros(b, n, dtype=dtype), edges, named)


def sure_prediction(batch: GraphBatch, slots: torch.Tensor) -> Prediction:
    """Logits that leave no doubt about the graphs, node `slots[s, i]` of graph s on slot i."""
    b, n = batch.mask.shape
    labels = torch.nn.functional.one_hot(batch.node_labels.gather(1, slots), len(batch.vocabulary.nodes))
    matrix = batch.edge_labels.gather(1, slots[:, :, None].expand(b, n, n))
    matrix = matrix.gather(2, slots[:, None, :].expand(b, n, n))
    classes = torch.nn.functional.one_hot(matrix, len(batch.vocabulary.edges)).movedim(-1, 1)
    presence = 2 * batch.mask.gather(1, slots).double() - 1
    return Prediction(100 * presence, 100 * classes.double(), 100 * labels.double())


def learned_matcher(
    vocabulary: Vocabulary = LABELLED,
    *,
    slots: int,
    positions: int = 0,
    embedding_plan: EmbeddingPlan = l1_plan,
    epsilon: float = 1e-3,
    iterations: int = 20,
    random_signs: bool = False,
    dtype: torch.dtype = torch.float64,
    loss: LossSettings | None = None,
    **options: Any,
) -> LearnedMatcher:
    """A matcher of states of width 6, on a two-layer target encoder of width 8."""
    encoder = TargetEncoder(vocabulary, 8, 2, positions, random_signs=random_signs, dropout=0.0)
    return LearnedMatcher(
        encoder,
        slots=slots,
        state_width=6,
        target_width=8,
        dimension=5,
        embedding_plan=embedding_plan,
        epsilon=epsilon,
        iterations=iterations,
        loss=loss or LossSettings(),
        **options,
    ).to(dtype)


def embeddings(
    counts: list[int], n: int, d: int, seed: int = 0, dtype: torch.dtype = torch.float64
) -> list[torch.Tensor]:
    """Slots (b, n, d), nodes (m, d) and what is beyond them (d,), for plans from embeddings."""
    generator = torch.Generator().manual_seed(seed)
    shapes = [(len(counts), n, d), (sum(counts), d), (d,)]
    return [torch.randn(shape, generator=generator, dtype=dtype) for shape in shapes]


def further_costs(counts: list[int], n: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """Costs (b, n, n) beside those of embeddings, one and the same in all columns beyond a sample's nodes."""
    costs = 5 * torch.rand(len(counts), n, n, generator=torch.Generator().manual_seed(seed), dtype=dtype)
    for sample, count in enumerate(counts):
        costs[sample, :, count:] = costs[sample, :, -1:].clone()
    return costs
