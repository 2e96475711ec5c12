"""Node accuracy, edge precision and recall under an alignment."""

import numpy as np
import pytest

from graphwright.graphs import Graph, Vocabulary
from graphwright.metrics import Agreement, is_isomorphic_skeleton, skeleton

VOCABULARY = Vocabulary(("a", "b"), ("none", "single", "double"))


def build(labels: str, *edges: tuple[int, int, str]) -> Graph:
    return Graph.build(list(labels), [edge[:2] for edge in edges], [edge[2] for edge in edges], VOCABULARY)


TARGET = build("aba", (0, 1, "single"), (1, 2, "double"))
CASES = {
    "equal": (TARGET, [0, 1, 2], (1, 1, 1)),
    "another order": (TARGET.permute([2, 0, 1]), [2, 0, 1], (1, 1, 1)),
    "wrong label": (build("bba", (0, 1, "single"), (1, 2, "double")), [0, 1, 2], (2 / 3, 1, 1)),
    "wrong edge label": (build("aba", (0, 1, "double"), (1, 2, "double")), [0, 1, 2], (1, 1 / 2, 1 / 2)),
    "missing edge": (build("aba", (0, 1, "single")), [0, 1, 2], (1, 1, 1 / 2)),
    "added edge": (
        build("aba", (0, 1, "single"), (1, 2, "double"), (0, 2, "single")),
        [0, 1, 2],
        (1, 2 / 3, 1),
    ),
    "missing node": (build("ab", (0, 1, "single")), [0, 1, 2], (2 / 3, 1, 1 / 2)),
    "added node": (
        build("abab", (0, 1, "single"), (1, 2, "double"), (2, 3, "single")),
        [0, 1, 2, 3],
        (1, 2 / 3, 1),
    ),
    "no edges": (build("aba"), [0, 1, 2], (1, 0, 0)),
    "nothing": (build(""), [0, 1, 2], (0, 0, 0)),
}


@pytest.mark.parametrize(("predicted", "alignment", "shares"), CASES.values(), ids=CASES)
def test_shares(predicted: Graph, alignment: list[int], shares: tuple[float, float, float]) -> None:
    found = Agreement.of(predicted, TARGET, np.array(alignment))
    assert (found.node_accuracy, found.edge_precision, found.edge_recall) == pytest.approx(shares)


def test_shares_of_nothing() -> None:
    natural = np.arange(3)
    assert Agreement.of(build(""), build(""), natural[:0]) == Agreement(1.0, 1.0, 1.0)
    assert Agreement.of(build("aba"), build("aba"), natural) == Agreement(1.0, 1.0, 1.0)
    assert Agreement.of(TARGET, build(""), natural) == Agreement(0.0, 0.0, 0.0)
    assert Agreement.of(TARGET, build("aba"), natural) == Agreement(1.0, 0.0, 0.0)


def test_a_skeleton_has_no_edge_labels() -> None:
    other = build("aba", (0, 1, "double"), (1, 2, "single"))
    relabelled = build("abb", (0, 1, "single"), (1, 2, "double"))
    assert skeleton(TARGET) == skeleton(other) != TARGET
    assert skeleton(TARGET).node_names == TARGET.node_names
    assert is_isomorphic_skeleton(TARGET, other.permute([1, 2, 0]))
    assert not is_isomorphic_skeleton(TARGET, relabelled)
    assert not is_isomorphic_skeleton(TARGET, build("aba", (0, 1, "single"), (0, 2, "double")))
    assert not is_isomorphic_skeleton(TARGET, build("abaa", (0, 1, "single"), (1, 2, "double")))
