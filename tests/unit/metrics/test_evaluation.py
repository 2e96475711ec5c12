"""All metrics together, and the summary that scripts read."""

import json

import numpy as np
import pytest
import torch

from graphwright.decoding import Slots
from graphwright.graphs import Graph, Vocabulary
from graphwright.metrics import AlignedSlots, bootstrap_interval, edit_distances, evaluate_graphs, evaluation
from unit.metrics.graph_pairs import edited, random_graph, region_graph

VOCABULARY = Vocabulary(("a", "b"), ("none", "single", "double"))
CONTRACT = (
    "samples",
    "isomorphic",
    "isomorphic_interval",
    "edit",
    "edit_interval",
    "edit_proved_optimal",
    "aligned_exact",
    "aligned_edit",
    "size_accuracy",
    "node_accuracy",
    "edge_precision",
    "edge_recall",
)


def build(labels: str, *edges: tuple[int, int, str]) -> Graph:
    return Graph.build(list(labels), [edge[:2] for edge in edges], [edge[2] for edge in edges], VOCABULARY)


TARGET = build("aba", (0, 1, "single"), (1, 2, "double"))
PREDICTED = [
    TARGET.permute([2, 0, 1]),
    build("aba", (0, 1, "double"), (1, 2, "double")),
    build("ab", (0, 1, "single")),
    build("abab", (0, 1, "single"), (1, 2, "double"), (0, 3, "single")),
]


def natural_slots(graphs: list[Graph], capacity: int) -> AlignedSlots:
    """The graphs in slots, node i in slot i, aligned with target node i."""
    presence, labels = torch.zeros(len(graphs), capacity), torch.zeros(len(graphs), capacity)
    edges = torch.zeros(len(graphs), capacity, capacity)
    for at, graph in enumerate(graphs):
        presence[at, : graph.size] = 1
        labels[at, : graph.size] = torch.from_numpy(graph.node_labels.copy())
        edges[at, : graph.size, : graph.size] = torch.from_numpy(graph.edge_matrix())
    return AlignedSlots(
        Slots(presence > 0, labels.long(), edges.long()), torch.arange(capacity).repeat(len(graphs), 1)
    )


def test_every_figure_of_a_small_set() -> None:
    report = evaluate_graphs(PREDICTED, [TARGET] * 4, natural_slots(PREDICTED, 5))
    assert len(report) == 4
    assert report.isomorphic.tolist() == [True, False, False, False]
    assert report.isomorphic_skeleton.tolist() == [True, True, False, False]
    assert report.edit.tolist() == [0, 1, 2, 2]
    assert report.edit_proved.all()
    assert report.size_correct.tolist() == [True, True, False, False]
    assert report.node_accuracy.tolist() == pytest.approx([1, 1, 2 / 3, 1])
    assert report.edge_precision.tolist() == pytest.approx([1, 1 / 2, 1, 2 / 3])
    assert report.edge_recall.tolist() == pytest.approx([1, 1 / 2, 1 / 2, 1])
    assert report.aligned_edit is not None
    # In natural order the first has two labels and three edges wrong; nothing looks at the last one's extra edge.
    assert report.aligned_edit.tolist() == [5, 1, 2, 1]
    assert report.aligned_exact is not None
    assert report.aligned_exact.tolist() == [False] * 4


def test_the_summary_keeps_the_contract() -> None:
    report = evaluate_graphs(PREDICTED, [TARGET] * 4, natural_slots(PREDICTED, 5))
    summary = json.loads(json.dumps(report.to_json()))
    assert set(CONTRACT) <= set(summary)
    assert (summary["samples"], summary["isomorphic"], summary["isomorphic_skeleton"]) == (4, 25.0, 50.0)
    assert (summary["edit"], summary["edit_proved_optimal"], summary["size_accuracy"]) == (1.25, 100.0, 50.0)
    assert summary["node_accuracy"] == pytest.approx(100 * 11 / 12)
    assert summary["edge_precision"] == pytest.approx(100 * 19 / 24)
    assert summary["edge_recall"] == pytest.approx(75)
    interval = bootstrap_interval([1, 0, 0, 0])
    assert summary["isomorphic_interval"] == [100 * interval.low, 100 * interval.high]
    interval = bootstrap_interval([0, 1, 2, 2])
    assert summary["edit_interval"] == [interval.low, interval.high]


def test_without_an_alignment_the_aligned_figures_are_absent() -> None:
    report = evaluate_graphs(PREDICTED, [TARGET] * 4)
    assert report.aligned_edit is None
    assert report.to_json()["aligned_edit"] is None
    assert report.to_json()["aligned_exact"] is None


def test_intervals_follow_the_groups() -> None:
    groups = ["x", "x", "y", "y"]
    report = evaluate_graphs(PREDICTED, [TARGET] * 4, groups=groups)
    interval = bootstrap_interval([0, 1, 2, 2], groups)
    assert report.to_json()["edit_interval"] == [interval.low, interval.high]


def test_the_skeleton_of_graphs_with_one_edge_label_is_the_graph() -> None:
    rng = np.random.default_rng(0)
    targets = [region_graph(rng, 8) for _ in range(10)]
    report = evaluate_graphs([edited(rng, target, 1) for target in targets], targets)
    assert np.array_equal(report.isomorphic, report.isomorphic_skeleton)


def test_the_alignment_given_is_tried_for_the_edit_distance(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def record(predicted, targets, starts):
        tried.extend(starts)
        return edit_distances(predicted, targets, starts)

    monkeypatch.setattr(evaluation, "edit_distances", record)
    aligned = natural_slots(PREDICTED[:2], 5)
    turned = AlignedSlots(aligned.slots, torch.tensor([[1, 2, 0, 3, 4], [2, 1, 0, 3, 4]]))
    evaluate_graphs(PREDICTED[:2], [TARGET] * 2, turned)
    assert [start.tolist() for start in tried] == [[2, 0, 1], [2, 1, 0]]


def test_a_decoder_may_drop_slots() -> None:
    aligned = natural_slots([TARGET] * 4, 5)
    report = evaluate_graphs(PREDICTED, [TARGET] * 4, aligned)
    assert report.aligned_exact is not None
    assert report.aligned_exact.all()
    assert report.edit.tolist() == [0, 1, 2, 2]


def test_processes_change_nothing() -> None:
    rng = np.random.default_rng(1)
    targets = [random_graph(rng, int(rng.integers(0, 9))) for _ in range(20)]
    predicted = [edited(rng, target, 3) for target in targets]
    aligned = natural_slots(predicted, 12)
    one, two = (evaluate_graphs(predicted, targets, aligned, processes=processes) for processes in (1, 2))
    for name, values in vars(one).items():
        assert np.array_equal(values, vars(two)[name]), name


def test_wrong_input_is_named() -> None:
    plain = Graph.build(3)
    with pytest.raises(ValueError, match=r"targets has 1 graphs, predicted has 2"):
        evaluate_graphs([plain, plain], [plain])
    with pytest.raises(ValueError, match=r"targets\[1\] has another vocabulary than predicted\[1\]"):
        evaluate_graphs([plain, plain], [plain, TARGET])
    with pytest.raises(ValueError, match="predicted is empty"):
        evaluate_graphs([], [])
    with pytest.raises(ValueError, match=r"aligned has 4 samples, targets has 1"):
        evaluate_graphs([TARGET], [TARGET], natural_slots(PREDICTED, 5))
    with pytest.raises(ValueError, match=r"groups has 2 samples, targets has 1"):
        evaluate_graphs([TARGET], [TARGET], groups=["a", "b"])
    with pytest.raises(ValueError, match=r"targets\[0\] has 3 nodes, aligned has 2 slots"):
        evaluate_graphs([TARGET], [TARGET], natural_slots([build("ab")], 2))
    with pytest.raises(ValueError, match="processes must be positive, got 0"):
        evaluate_graphs([TARGET], [TARGET], processes=0)
