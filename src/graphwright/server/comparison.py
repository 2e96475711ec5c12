"""A predicted graph beside the truth and beside the slots it was read from: edits, certainty, transport plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from graphwright.graphs import Graph, GraphBatch, Prediction
from graphwright.inference.evaluate import alignments
from graphwright.losses import LossSettings, matching_problem
from graphwright.metrics import EditDistance, edit_distances
from graphwright.server.schema import ShownPlan, Verdict
from graphwright.transport import mirror_descent, round_to_permutation

PRESENT = 0.5
"""Slots that match no node are shown in a plan from this presence on."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """alignment: (n,) the true node that each predicted one meets; an index past the truth's end is none.

    nodes, edges: verdicts on the predicted graph's. missing_nodes, missing_edges: the truth's that it lacks.
    """

    truth: Graph
    edits: int
    alignment: list[int]
    nodes: list[Verdict]
    edges: list[Verdict]
    missing_nodes: list[int]
    missing_edges: list[int]

    def index_of(self, node: int) -> int:
        """The index of a true node among the predicted nodes, with the missing ones after them."""
        if node in self.missing_nodes:
            return len(self.nodes) + self.missing_nodes.index(node)
        return self.alignment.index(node)

    def lacking(self) -> tuple[list[Verdict], list[Verdict]]:
        """Verdicts on the truth's nodes and edges: missing where the prediction has them not, or otherwise."""
        met = {node for node, verdict in zip(self.alignment, self.nodes, strict=True) if verdict == "right"}
        nodes: list[Verdict] = ["right" if node in met else "missing" for node in range(self.truth.size)]
        edges: list[Verdict] = [
            "missing" if edge in self.missing_edges else "right" for edge in range(len(self.truth.edges))
        ]
        return nodes, edges


def compare(predicted: Sequence[Graph], truth: Graph) -> list[Comparison]:
    """Each by the cheapest alignment known."""
    distances = edit_distances(predicted, [truth] * len(predicted))
    return [_compared(graph, truth, edit) for graph, edit in zip(predicted, distances, strict=True)]


def _compared(predicted: Graph, truth: Graph, edit: EditDistance) -> Comparison:
    alignment = [int(node) for node in edit.alignment[: predicted.size]]
    nodes: list[Verdict] = [
        "right" if node < truth.size and truth.node_names[node] == name else "wrong"
        for node, name in zip(alignment, predicted.node_names, strict=True)
    ]
    true_edges = {
        (int(i), int(j)): (at, name)
        for at, ((i, j), name) in enumerate(zip(truth.edges.tolist(), truth.edge_names, strict=True))
    }
    edges: list[Verdict] = []
    met = set()
    for (i, j), name in zip(predicted.edges.tolist(), predicted.edge_names, strict=True):
        ends = sorted((alignment[i], alignment[j]))
        at, true_name = true_edges.get((ends[0], ends[1]), (-1, None))
        edges.append("right" if name == true_name else "wrong")
        if name == true_name:
            met.add(at)
    missing = sorted(set(range(truth.size)) - set(alignment))
    lacking = [at for at in range(len(truth.edges)) if at not in met]
    return Comparison(truth, edit.distance, alignment, nodes, edges, missing, lacking)


@torch.no_grad()
def certainties(
    prediction: Prediction, graphs: Sequence[Graph], loss: LossSettings
) -> list[tuple[list[float], list[float]]]:
    """For every graph the probabilities of its nodes and of its edges, each on the slot that it fits best.

    prediction: of one sample.
    """
    target = GraphBatch.collate(list(graphs), capacity=prediction.capacity)
    slots = alignments(_repeated(prediction, len(graphs)), target, loss)
    return [
        (_nodes(prediction, graph, mine[: graph.size]).tolist(), _edges(prediction, graph, mine).tolist())
        for graph, mine in zip(graphs, slots, strict=True)
    ]


def _repeated(prediction: Prediction, count: int) -> Prediction:
    parts = {name: value for name, value in vars(prediction).items() if value is not None}
    return replace(
        prediction, **{name: value.repeat(count, *[1] * (value.ndim - 1)) for name, value in parts.items()}
    )


def _nodes(prediction: Prediction, graph: Graph, slots: Tensor) -> Tensor:
    present = prediction.presence[0].sigmoid()[slots]
    if prediction.node_labels is None:
        return present
    labels = prediction.node_labels[0].softmax(1)[slots]
    return present * labels[torch.arange(graph.size), torch.tensor(graph.node_labels)]


def _edges(prediction: Prediction, graph: Graph, slots: Tensor) -> Tensor:
    logits = prediction.edges[0]
    logits = (logits + logits.mT) / 2
    first, second = (slots[torch.tensor(ends)] for ends in graph.edges.T)
    if logits.ndim == 2:
        return logits.sigmoid()[first, second]
    return logits.softmax(0)[torch.tensor(graph.edge_labels), first, second]


@torch.no_grad()
def transport_plan(prediction: Prediction, truth: Graph, loss: LossSettings) -> ShownPlan:
    """Between the slots of one sample's prediction and the true nodes, by mirror descent on the model's loss."""
    target = GraphBatch.collate([truth], capacity=prediction.capacity)
    plan = mirror_descent(matching_problem(prediction, target, loss)).matrix
    order = round_to_permutation(plan.mT)[0]
    presence = prediction.presence[0].sigmoid()[order]
    labels = [""] * len(order)
    if prediction.node_labels is not None:
        labels = [truth.vocabulary.nodes[code] + ", " for code in prediction.node_labels[0][order].argmax(1)]
    shown = [at for at in range(len(order)) if at < truth.size or float(presence[at]) > PRESENT]
    mass = plan[0][order][shown][:, shown]
    return ShownPlan(
        slots=[
            f"slot {int(order[at]) + 1} ({labels[at]}present {100 * float(presence[at]):.0f} %)" for at in shown
        ],
        nodes=[f"node {at + 1} ({truth.node_names[at]})" if at < truth.size else "no node" for at in shown],
        mass=[[round(value, 4) for value in row] for row in mass.tolist()],
        size=truth.size,
    )
