"""All figures of many predicted graphs, their summary and its intervals."""

import json

import numpy as np
import pytest
import torch
from scipy.stats import norm

from graphwright.decoding import Slots
from graphwright.graphs import Graph, Vocabulary
from graphwright.metrics import (
    AlignedSlots,
    Interval,
    bootstrap_interval,
    edit_distances,
    evaluate_graphs,
    evaluation,
)
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


@pytest.mark.parametrize("level", [0.5, 0.95])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_it_is_the_normal_interval_of_a_share(share: float, level: float) -> None:
    values = np.arange(1000) < 1000 * share
    half = norm.ppf((1 + level) / 2) * np.sqrt(share * (1 - share) / 1000)
    found = bootstrap_interval(values, level=level, resamples=20_000)
    assert found.low == pytest.approx(share - half, abs=0.1 * half)
    assert found.high == pytest.approx(share + half, abs=0.1 * half)


def test_it_covers_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    intervals = [bootstrap_interval(rng.normal(3, 2, 80), resamples=400, seed=run) for run in range(300)]
    covered = np.mean([interval.low <= 3 <= interval.high for interval in intervals])
    assert 0.9 < covered < 0.98


def test_groups_widen_it_as_much_as_they_repeat() -> None:
    rng = np.random.default_rng(2)
    once = rng.random(200)
    values, groups = np.repeat(once, 9), [f"formula {at}" for at in np.repeat(np.arange(200), 9)]
    alone, grouped = bootstrap_interval(values), bootstrap_interval(values, groups)
    assert (grouped.high - grouped.low) / (alone.high - alone.low) == pytest.approx(3, rel=0.1)
    single = bootstrap_interval(once)
    assert (grouped.low, grouped.high) == pytest.approx((single.low, single.high))


def test_groups_of_one_are_no_groups_and_their_names_do_not_matter() -> None:
    values = np.random.default_rng(3).random(50)
    assert bootstrap_interval(values, list(range(50))) == bootstrap_interval(values)
    assert bootstrap_interval(values, [("a", at) for at in range(50)]) == bootstrap_interval(values)


def test_larger_groups_weigh_more() -> None:
    values, groups = [0.0] * 90 + [1.0] * 10, ["large"] * 90 + ["small"] * 10
    # Two draws of two groups give means 0, 0.1, 0.1 and 1; averaging groups would give 0, 0.5, 0.5 and 1.
    assert bootstrap_interval(values, groups, level=0.4) == Interval(pytest.approx(0.1), pytest.approx(0.1))


def test_all_alike_leave_nothing_open_and_a_seed_repeats() -> None:
    assert bootstrap_interval([True] * 20) == Interval(1.0, 1.0)
    assert bootstrap_interval([7]) == Interval(7.0, 7.0)
    values = np.random.default_rng(4).random(30)
    assert bootstrap_interval(values, seed=5) == bootstrap_interval(values, seed=5)
    assert bootstrap_interval(values, seed=5) != bootstrap_interval(values, seed=6)


def test_the_memory_bound_does_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(5).random(30)
    whole = bootstrap_interval(values)
    monkeypatch.setattr(evaluation, "DRAWS_TOGETHER", 100)
    assert bootstrap_interval(values) == whole


def test_a_wrong_resampling_is_named() -> None:
    for values, message in (([], "values must have shape"), ([[1.0]], "values must have shape")):
        with pytest.raises(ValueError, match=message):
            bootstrap_interval(values)
    with pytest.raises(ValueError, match=r"values\[1\] is not finite"):
        bootstrap_interval([0.0, np.nan])
    with pytest.raises(ValueError, match="groups has 1 entries for 2 values"):
        bootstrap_interval([0, 1], ["a"])
    with pytest.raises(ValueError, match="level must lie between 0 and 1, got 95"):
        bootstrap_interval([0, 1], level=95)
    with pytest.raises(ValueError, match="resamples must be positive, got 0"):
        bootstrap_interval([0, 1], resamples=0)
