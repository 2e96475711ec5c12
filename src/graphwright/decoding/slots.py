"""What the logits of a prediction say of graphs on its slots: the likeliest slot by slot, the score of each,
and all of them from the highest score down.

A prediction makes independent decisions: whether a slot is a node, its label, the class of a pair. A graph
fixes the decisions it uses: all presences, labels at present slots, classes at pairs of present slots. Its
score is the log-probability of these, with the decisions that absent slots leave unused at their most probable
value. So taking a node away is not rewarded for the decisions that it spares, and the plain decoder, which takes
every decision at its most probable value, has the highest score of all.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphwright.graphs import Graph, Prediction, Vocabulary
from graphwright.graphs.graph import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Slots:
    """Hard decisions of a predictor on b graphs with n slots each, absent slots included.

    presence: (b, n) bool, whether the slot is a node.
    node_labels: (b, n) int64 codes.
    edge_labels: (b, n, n) int64 codes, symmetric, 0 where there is no edge and on the diagonal.
    attributes: (b, n, a) numbers in deviations from their means; None where nodes have none.
    """

    presence: Tensor
    node_labels: Tensor
    edge_labels: Tensor
    attributes: Tensor | None = None

    def __post_init__(self) -> None:
        if self.presence.ndim != 2:
            raise ValueError(f"presence must have shape (b, n), got {tuple(self.presence.shape)}")
        b, n = self.presence.shape
        for name, tensor, dtype, shape in (
            ("presence", self.presence, torch.bool, (b, n)),
            ("node_labels", self.node_labels, torch.int64, (b, n)),
            ("edge_labels", self.edge_labels, torch.int64, (b, n, n)),
        ):
            if tuple(tensor.shape) != shape or tensor.dtype != dtype:
                raise ValueError(
                    f"{name} must be {dtype} of shape {shape}, got {tensor.dtype} {tuple(tensor.shape)}"
                )
        numbers = self.attributes
        if numbers is not None and (numbers.ndim != 3 or tuple(numbers.shape[:2]) != (b, n)):
            raise ValueError(f"attributes must have shape ({b}, {n}, numbers), got {tuple(numbers.shape)}")
        loops = self.edge_labels.diagonal(dim1=1, dim2=2) != 0
        uneven = self.edge_labels != self.edge_labels.mT
        for wrong, what in ((loops, "0 on the diagonal"), (uneven, "symmetric")):
            if wrong.any():
                sample = int(wrong.flatten(1).any(1).nonzero()[0])
                raise ValueError(f"edge_labels must be {what} (sample {sample})")

    def __len__(self) -> int:
        return self.presence.shape[0]

    @property
    def capacity(self) -> int:
        """Number of slots, n."""
        return self.presence.shape[1]

    def graphs(self, vocabulary: Vocabulary) -> list[Graph]:
        """The graphs on the slots that are present, in their order."""
        presence, labels = self.presence.cpu().numpy(), self.node_labels.cpu().numpy()
        edges = self.edge_labels.cpu().numpy()
        numbers = in_their_units(self.attributes, len(self), vocabulary)
        return [
            Graph.from_matrix(
                label[here], matrix[here][:, here], vocabulary, None if values is None else values[here]
            )
            for here, label, matrix, values in zip(presence, labels, edges, numbers, strict=True)
        ]


def decode(prediction: Prediction, vocabulary: Vocabulary) -> list[Graph]:
    """The predicted graphs, without a look at any target: `harden`, then the slots present."""
    return harden(prediction, vocabulary).graphs(vocabulary)


def harden(prediction: Prediction, vocabulary: Vocabulary) -> Slots:
    """Hard decisions from logits: presence with sigmoid(u) > 1/2, labels and edges by the largest logit.

    Edge logits are symmetrised first, (Y + Y') / 2, and the diagonal is never an edge. Where the prediction is
    Z alone, `Y = (0, Z)`. Of equal logits the first class wins, so an undecided pair is not joined.
    """
    with torch.no_grad():
        edges = edge_logits(prediction, vocabulary)
        labels = label_logits(prediction, vocabulary)
        for name, logits in (
            ("presence", prediction.presence),
            ("node_labels", labels),
            ("edges", edges),
            ("attributes", prediction.attributes),
        ):
            if logits is None:
                continue
            missing = logits.isnan()
            if missing.any():
                raise ValueError(f"{name} has a NaN (sample {int(missing.flatten(1).any(1).nonzero()[0])})")
        codes = edges.argmax(1)
        codes.diagonal(dim1=1, dim2=2).zero_()
        return Slots(prediction.presence > 0, labels.argmax(2), codes, prediction.attributes)


def in_their_units(
    attributes: Tensor | None, samples: int, vocabulary: Vocabulary
) -> Sequence[FloatArray] | Sequence[None]:
    """For every sample the attributes (n, a) of its slots as people measure them; None without any."""
    if attributes is None:
        return [None] * samples
    return list(vocabulary.in_their_units(attributes.detach().double().cpu().numpy()))


def edge_logits(prediction: Prediction, vocabulary: Vocabulary) -> Tensor:
    """(b, classes, n, n) symmetric logits, "none" first."""
    edges = prediction.edges
    if edges.ndim == 3:
        edges = torch.stack([torch.zeros_like(edges), edges], dim=1)
    if edges.shape[1] != len(vocabulary.edges):
        raise ValueError(f"edges has {edges.shape[1]} classes, the vocabulary {len(vocabulary.edges)}")
    return (edges + edges.mT) / 2


def label_logits(prediction: Prediction, vocabulary: Vocabulary) -> Tensor:
    """(b, n, labels); without node labels a single one."""
    labels = prediction.node_labels
    if labels is None:
        labels = torch.zeros_like(prediction.presence)[:, :, None]
    if labels.shape[2] != len(vocabulary.nodes):
        raise ValueError(f"node_labels has {labels.shape[2]} labels, the vocabulary {len(vocabulary.nodes)}")
    return labels


BoolArray = NDArray[np.bool_]
_LEAST_LOG_PROBABILITY = -1e4
"""What stands for log 0: sums stay finite, and a solver can work with them."""


@dataclass(frozen=True, eq=False)
class Assignment:
    """Decisions on n slots, those that absent slots leave unused set to 0.

    presence: (n,) bool; labels: (n,) codes; edges: (n, n) symmetric codes.
    regret: how far the score lies below that of the plain decoder; never negative.
    attributes: (n, a) of the slots, in their units; None where nodes have none.
    """

    presence: BoolArray
    labels: IntArray
    edges: IntArray
    regret: float
    attributes: FloatArray | None = None

    def graph(self, vocabulary: Vocabulary) -> Graph:
        """The graph on the slots present, in their order."""
        here = self.presence
        attributes = None if self.attributes is None else self.attributes[here]
        return Graph.from_matrix(self.labels[here], self.edges[here][:, here], vocabulary, attributes)


@dataclass(frozen=True, eq=False)
class SlotScores:
    """Log-probabilities of one prediction with n slots.

    presence: (n, 2), absent first; labels: (n, labels); edges: (n, n, classes), symmetric, "none" first.
    attributes: (n, a) of the slots, in their units, the same in every graph on them; None where nodes have none.
    """

    presence: FloatArray
    labels: FloatArray
    edges: FloatArray
    attributes: FloatArray | None = None

    @property
    def slots(self) -> int:
        """Number of slots, n."""
        return len(self.presence)

    @cached_property
    def presence_regrets(self) -> FloatArray:
        """(n, 2) how much less probable a choice is than the best one, in log-probability."""
        return _regrets(self.presence)

    @cached_property
    def label_regrets(self) -> FloatArray:
        """(n, labels)."""
        return _regrets(self.labels)

    @cached_property
    def edge_regrets(self) -> FloatArray:
        """(n, n, classes)."""
        return _regrets(self.edges)

    @cached_property
    def highest(self) -> float:
        """The score of the plain decoder."""
        pairs = np.triu_indices(self.slots, 1)
        decisions = (self.presence.max(1), self.labels.max(1), self.edges[pairs].max(1))
        return float(sum(decision.sum() for decision in decisions))

    def score(self, assignment: Assignment) -> float:
        """The model score: log-probability of the decisions used, the others at their most probable value."""
        return self.highest - assignment.regret

    def log_probability(self, assignment: Assignment) -> float:
        """Log-probability that the decisions give this graph on these slots, unused ones summed out."""
        here = np.flatnonzero(assignment.presence)
        first, second = (here[side] for side in np.triu_indices(len(here), 1))
        slots = np.arange(self.slots)
        return float(
            self.presence[slots, assignment.presence.astype(int)].sum()
            + self.labels[here, assignment.labels[here]].sum()
            + self.edges[first, second, assignment.edges[first, second]].sum()
        )

    def assign(self, presence: BoolArray, labels: IntArray, edges: IntArray) -> Assignment:
        """The assignment of decisions given for all slots; what absent slots have is dropped."""
        labels = np.where(presence, labels, 0)
        edges = np.where(presence[:, None] & presence, edges, 0)
        here = np.flatnonzero(presence)
        first, second = (here[side] for side in np.triu_indices(len(here), 1))
        regret = (
            self.presence_regrets[np.arange(self.slots), presence.astype(int)].sum()
            + self.label_regrets[here, labels[here]].sum()
            + self.edge_regrets[first, second, edges[first, second]].sum()
        )
        return Assignment(presence, labels, edges, float(regret), self.attributes)


def slot_scores(prediction: Prediction, vocabulary: Vocabulary) -> list[SlotScores]:
    """The log-probabilities of every sample; edge logits are symmetrised as `harden` does."""
    harden(prediction, vocabulary)  # refuses NaN and wrong shapes, naming the sample
    presence = prediction.presence.detach().cpu().double().numpy()
    labels = label_logits(prediction, vocabulary).detach().cpu().double().numpy()
    edges = edge_logits(prediction, vocabulary).detach().cpu().double().movedim(1, -1).numpy()
    numbers = in_their_units(prediction.attributes, len(prediction), vocabulary)
    return [
        SlotScores(_log_softmax(np.stack([np.zeros_like(u), u], axis=1)), _log_softmax(v), _log_softmax(y), x)
        for u, v, y, x in zip(presence, labels, edges, numbers, strict=True)
    ]


def _log_softmax(logits: FloatArray) -> FloatArray:
    logits = np.nan_to_num(logits, posinf=-_LEAST_LOG_PROBABILITY, neginf=_LEAST_LOG_PROBABILITY)
    shifted = logits - logits.max(-1, keepdims=True)
    log_probabilities = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    clipped: FloatArray = np.maximum(log_probabilities, _LEAST_LOG_PROBABILITY)
    return clipped


def _regrets(log_probabilities: FloatArray) -> FloatArray:
    regrets: FloatArray = log_probabilities.max(-1, keepdims=True) - log_probabilities
    return regrets


def assignments(scores: SlotScores) -> Iterator[Assignment]:
    """Every assignment once, by increasing regret.

    Presences are enumerated in an outer stream, and for each set of present slots the labels and pairs that it
    uses in an inner one; a heap merges them, opening an outer set only when its own regret is next.
    """
    outer = _choices([row.tolist() for row in scores.presence_regrets])
    tie = count()
    heap: list[tuple[float, int, Assignment, Iterator[Assignment]]] = []
    ahead = next(outer, None)
    while ahead is not None or heap:
        if ahead is not None and (not heap or ahead[0] <= heap[0][0]):
            presence = np.array(ahead[1], bool)
            inner = _on_slots(scores, presence, ahead[0])
            first = next(inner)
            heapq.heappush(heap, (first.regret, next(tie), first, inner))
            ahead = next(outer, None)
            continue
        _, _, assignment, inner = heapq.heappop(heap)
        yield assignment
        following = next(inner, None)
        if following is not None:
            heapq.heappush(heap, (following.regret, next(tie), following, inner))


def _on_slots(scores: SlotScores, presence: BoolArray, regret: float) -> Iterator[Assignment]:
    """The assignments with these slots present, by increasing regret."""
    here = np.flatnonzero(presence)
    first, second = (here[side] for side in np.triu_indices(len(here), 1))
    decisions: list[FloatArray] = [*scores.label_regrets[here], *scores.edge_regrets[first, second]]
    for extra, picked in _choices([decision.tolist() for decision in decisions]):
        labels = np.zeros(scores.slots, np.int64)
        labels[here] = picked[: len(here)]
        edges: IntArray = np.zeros((scores.slots, scores.slots), np.int64)
        edges[first, second] = edges[second, first] = picked[len(here) :]
        yield Assignment(presence, labels, edges, regret + extra, scores.attributes)


def _choices(costs: Sequence[Sequence[float]]) -> Iterator[tuple[float, list[int]]]:
    """Every way to pick one option per decision, by increasing total cost; the cheapest option of each is 0.

    Decisions are sorted by the cost of their second option. A state is a few changed decisions, the last of
    them at its option c; from it follow: the last one's option c + 1; the next decision changed as well; and, if
    c = 1, the next decision changed instead. Each state is reached once, and never before a cheaper one.
    """
    ranked = [sorted(range(len(own)), key=own.__getitem__) for own in costs]
    order = sorted(
        (at for at, own in enumerate(ranked) if len(own) > 1),
        key=lambda at: costs[at][ranked[at][1]] - costs[at][ranked[at][0]],
    )
    best = [own[0] for own in ranked]
    steps = [[costs[at][option] - costs[at][ranked[at][0]] for option in ranked[at]] for at in order]
    yield 0.0, best
    tie = count()
    heap: list[tuple[float, int, tuple[tuple[int, int], ...]]] = []
    if order:
        heap.append((steps[0][1], next(tie), ((0, 1),)))
    while heap:
        cost, _, changed = heapq.heappop(heap)
        picked = best.copy()
        for index, option in changed:
            picked[order[index]] = ranked[order[index]][option]
        yield cost, picked
        index, option = changed[-1]
        now = steps[index]
        if option + 1 < len(now):
            again = cost + (now[option + 1] - now[option])
            heapq.heappush(heap, (again, next(tie), (*changed[:-1], (index, option + 1))))
        if index + 1 < len(steps):
            extra = steps[index + 1][1]
            heapq.heappush(heap, (cost + extra, next(tie), (*changed, (index + 1, 1))))
            if option == 1:
                heapq.heappush(heap, (cost - now[1] + extra, next(tie), (*changed[:-1], (index + 1, 1))))
