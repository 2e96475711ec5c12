"""The paper's diagnostic, on examples small enough to count by hand."""

import pytest
import torch

from graphwright.decoding import Slots
from graphwright.graphs import Attribute, Graph, GraphBatch, Vocabulary
from graphwright.metrics import AlignedSlots, aligned_errors
from graphwright.metrics.aligned import decoded_alignments

VOCABULARY = Vocabulary(("a", "b"), ("none", "single", "double"))
# a - b = a, with an empty fourth position.
TARGET = Graph.build(["a", "b", "a"], [(0, 1), (1, 2)], ["single", "double"], VOCABULARY)
NATURAL = [0, 1, 2, 3]


def slots(presence: list[int], labels: list[int], edges: dict[tuple[int, int], int]) -> Slots:
    matrix = torch.zeros(1, len(presence), len(presence), dtype=torch.int64)
    for (i, j), label in edges.items():
        matrix[0, i, j] = matrix[0, j, i] = label
    return Slots(torch.tensor([presence]) > 0, torch.tensor([labels]), matrix)


def errors(prediction: Slots, assignment: list[int]) -> tuple[int, int, int, int]:
    found = aligned_errors(
        AlignedSlots(prediction, torch.tensor([assignment])), GraphBatch.collate([TARGET], capacity=4)
    )
    assert int(found.edit) == int(found.presence + found.labels + found.edges)
    assert bool(found.exact) == (int(found.edit) == 0)
    return int(found.presence), int(found.labels), int(found.edges), int(found.unseen)


RIGHT = ([1, 1, 1, 0], [0, 1, 0, 0], {(0, 1): 1, (1, 2): 2})
PRESENCE, LABELS, EDGES = RIGHT
CASES = {
    "right": (RIGHT, (0, 0, 0, 0)),
    "wrong label": ((PRESENCE, [0, 0, 0, 0], EDGES), (0, 1, 0, 0)),
    "label of an absent slot does not matter": ((PRESENCE, [0, 1, 0, 1], EDGES), (0, 0, 0, 0)),
    "missing edge": ((PRESENCE, LABELS, {(0, 1): 1}), (0, 0, 1, 0)),
    "edge of another label": ((PRESENCE, LABELS, {(0, 1): 2, (1, 2): 2}), (0, 0, 1, 0)),
    "added edge": ((PRESENCE, LABELS, {**EDGES, (0, 2): 1}), (0, 0, 1, 0)),
    "edges of an absent slot do not matter": ((PRESENCE, LABELS, {**EDGES, (0, 3): 1}), (0, 0, 0, 0)),
    "spurious node": (([1, 1, 1, 1], LABELS, EDGES), (1, 0, 0, 0)),
    "spurious node with edges": (([1, 1, 1, 1], LABELS, {**EDGES, (0, 3): 1, (1, 3): 2}), (1, 0, 0, 2)),
    "missing node, its edges foreseen": (([1, 0, 1, 0], LABELS, EDGES), (1, 0, 0, 2)),
    "missing node and all about it": (([1, 0, 1, 0], [0, 0, 0, 0], {}), (1, 1, 2, 2)),
    "one missing, one spurious, joined": (([0, 1, 1, 1], LABELS, {**EDGES, (0, 3): 1}), (2, 0, 0, 1)),
}


@pytest.mark.parametrize(("prediction", "counts"), CASES.values(), ids=CASES)
def test_errors_are_counted(prediction, counts: tuple[int, int, int, int]) -> None:
    assert errors(slots(*prediction), NATURAL) == counts


def test_the_assignment_gives_the_slot_of_each_target_node() -> None:
    # Target nodes 0, 1, 2 sit in slots 3, 0, 2.
    moved = slots([1, 0, 1, 1], [1, 0, 0, 0], {(3, 0): 1, (0, 2): 2})
    assert errors(moved, [3, 0, 2, 1]) == (0, 0, 0, 0)
    assert errors(moved, [1, 3, 0, 2]) != (0, 0, 0, 0)


def test_samples_are_independent() -> None:
    predictions = [slots(*prediction) for prediction, _ in CASES.values()]
    decisions = ("presence", "node_labels", "edge_labels")
    together = Slots(*(torch.cat([getattr(each, name) for each in predictions]) for name in decisions))
    batch = GraphBatch.collate([TARGET] * len(CASES), capacity=4)
    found = aligned_errors(AlignedSlots(together, torch.tensor([NATURAL] * len(CASES))), batch)
    counted = torch.stack([found.presence, found.labels, found.edges, found.unseen], dim=1)
    assert counted.tolist() == [list(counts) for _, counts in CASES.values()]


def test_decoded_nodes_follow_their_slots() -> None:
    moved = slots([1, 0, 1, 1], [1, 0, 0, 0], {})
    (alignment,) = decoded_alignments(AlignedSlots(moved, torch.tensor([[3, 0, 2, 1]])), [3])
    assert alignment.tolist() == [1, 2, 0]  # Slots 0, 2, 3 are decoded, at target positions 1, 2, 0.
    (alignment,) = decoded_alignments(AlignedSlots(moved, torch.tensor([[3, 1, 2, 0]])), [3])
    assert alignment.tolist() == [1, 2, 0]  # Slot 0 meets padding, position 1 an absent slot: they meet.
    (alignment,) = decoded_alignments(AlignedSlots(moved, torch.tensor([[3, 0, 2, 1]])), [1])
    assert alignment.tolist() == [1, 2, 0]
    (alignment,) = decoded_alignments(AlignedSlots(slots([0] * 4, [0] * 4, {}), torch.tensor([NATURAL])), [2])
    assert alignment.tolist() == [0, 1]


def test_wrong_input_is_named() -> None:
    right = slots(*RIGHT)
    with pytest.raises(ValueError, match=r"assignment must be int64 of shape \(1, 4\)"):
        AlignedSlots(right, torch.tensor([[0, 1, 2]]))
    with pytest.raises(ValueError, match=r"assignment must permute the slots \(sample 0\)"):
        AlignedSlots(right, torch.tensor([[0, 1, 2, 2]]))
    with pytest.raises(ValueError, match=r"targets must have shape \(1, 4\)"):
        aligned_errors(AlignedSlots(right, torch.tensor([NATURAL])), GraphBatch.collate([TARGET]))


def test_the_error_of_attributes_is_in_deviations_under_the_alignment() -> None:
    vocabulary = Vocabulary(attributes=(Attribute("x", 10.0, 2.0), Attribute("y", 0.0, 1.0)))
    target = GraphBatch.collate([Graph.build(2, [(0, 1)], None, vocabulary, [[12.0, 0.0], [10.0, 1.0]])], 3)
    # Standardised, target nodes are (1, 0) and (0, 1); they sit in slots 2 and 0.
    said = torch.tensor([[[0.0, 1.0], [9.0, 9.0], [1.0, 0.5]]])
    edges = torch.zeros(1, 3, 3, dtype=torch.int64)
    edges[0, 0, 2] = edges[0, 2, 0] = 1
    labels = torch.zeros(1, 3, dtype=torch.int64)
    order = torch.tensor([[2, 0, 1]])

    def error(presence: list[bool]) -> float:
        found = aligned_errors(AlignedSlots(Slots(torch.tensor([presence]), labels, edges, said), order), target)
        assert found.attributes is not None
        return float(found.attributes[0])

    assert error([True, False, True]) == pytest.approx((0.25 / 4) ** 0.5)
    # A slot too many says nothing of a node; one too few counts as the mean, 0.
    assert error([True, True, True]) == error([True, False, True])
    assert error([False, False, True]) == pytest.approx(((0.25 + 1) / 4) ** 0.5)
    without = Slots(torch.tensor([[True, False, True]]), labels, edges)
    assert aligned_errors(AlignedSlots(without, order), target).attributes is None
