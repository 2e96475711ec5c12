"""Figures of lists of candidates."""

from __future__ import annotations

import numpy as np
import pytest

from graphwright.decoding import Candidate, Candidates
from graphwright.graphs import Graph, Vocabulary
from graphwright.inference import evaluate
from graphwright.inference.decoders import decoder_named
from graphwright.inference.evaluate import Evaluation
from graphwright.metrics import evaluate_graphs

VOCABULARY = Vocabulary(("a",), ("none", "edge"))


def path(size: int) -> Graph:
    return Graph.build(["a"] * size, [(at, at + 1) for at in range(size - 1)], ["edge"] * (size - 1), VOCABULARY)


def ranked(truths: list[int], *, proved: bool = True) -> Evaluation:
    """Paths of 1 to 10 nodes are the candidates of every sample."""
    found = Candidates(tuple(Candidate(path(size), 0.0, 0.1, 0.1, proved) for size in range(1, 11)), 0.0)
    targets = [path(size) for size in truths]
    predicted = [path(1)] * len(truths)
    report = evaluate_graphs(predicted, targets)
    return Evaluation(list(range(len(truths))), predicted, targets, report, [found] * len(truths))


@pytest.mark.parametrize(
    ("size", "top5", "top10"), [(1, 1, 1), (5, 1, 1), (6, 0, 1), (10, 0, 1), (11, 0, 0), (16, 0, 0)]
)
def test_the_truth_counts_up_to_its_place(size: int, top5: int, top10: int) -> None:
    found = {extra.name: extra.values.tolist() for extra in evaluate._tops(ranked([size]))}
    assert found == {"top5": [top5], "top10": [top10]}


def test_few_candidates_do_not_make_a_hit() -> None:
    whole = ranked([7])
    few = Candidates(whole.ranked[0].candidates[:2], 0.0)
    short = Evaluation(whole.indices, whole.predicted, whole.targets, whole.report, [few])
    assert [extra.values.tolist() for extra in evaluate._tops(short)] == [[0], [0]]


def test_what_is_not_proved_is_counted_as_such() -> None:
    for proved in (True, False):
        (extra,) = decoder_named("valid").extras([], ranked([1, 2], proved=proved).ranked)
        np.testing.assert_array_equal(extra.values, [proved, proved])
