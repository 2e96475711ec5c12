"""The names behind the codes."""

import pickle
import re

import pytest

from graphwright.graphs import NO_EDGE, Graph, Vocabulary

ATOMS = Vocabulary(("C", "N", "O"), (NO_EDGE, "single", "double"))


def test_the_default_vocabulary_has_one_node_label_and_one_edge_label():
    assert Vocabulary() == Vocabulary(("node",), ("none", "edge"))


def test_a_code_is_the_position_of_its_name():
    assert ATOMS.node_codes(["O", "C", "C"]) == [2, 0, 0]
    assert ATOMS.edge_codes(["double", "single"]) == [2, 1]


def test_names_seen_are_sorted_and_counted_once():
    assert Vocabulary.of("OCCN", ["x", "a", "x"]) == Vocabulary(("C", "N", "O"), (NO_EDGE, "a", "x"))


def test_nothing_seen_gives_the_default_names():
    assert Vocabulary.of([], []) == Vocabulary()


def test_a_vocabulary_made_of_names_does_not_depend_on_their_order():
    assert Vocabulary.of("NCO", "ba") == Vocabulary.of("OCN", "ab")


def test_lists_of_names_become_tuples_so_that_equal_vocabularies_are_equal():
    listed = Vocabulary(["C", "N", "O"], [NO_EDGE, "single", "double"])
    assert listed == ATOMS
    assert hash(listed) == hash(ATOMS)


def test_a_vocabulary_survives_pickling_after_use():
    ATOMS.node_codes(["C"])
    assert pickle.loads(pickle.dumps(ATOMS)) == ATOMS


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        ((), (NO_EDGE, "edge"), "vocabulary.nodes must not be empty"),
        (("C",), (), "vocabulary.edges must not be empty"),
        (("C", "N", "C"), (NO_EDGE, "edge"), "vocabulary.nodes names 'C' twice"),
        (("C",), (NO_EDGE, "a", "a"), "vocabulary.edges names 'a' twice"),
        (("C",), ("edge", NO_EDGE), "vocabulary.edges must start with 'none', got 'edge'"),
        (("C",), (NO_EDGE,), "vocabulary.edges must name a class besides 'none'"),
        ("node", (NO_EDGE, "edge"), "vocabulary.nodes must be a tuple of names, got 'node'"),
        (("C", 7), (NO_EDGE, "edge"), "vocabulary.nodes[1] must be a string, got 7"),
        (("C",), (NO_EDGE, None), "vocabulary.edges[1] must be a string, got None"),
    ],
)
def test_a_malformed_vocabulary_is_refused_by_name(nodes, edges, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Vocabulary(nodes, edges)


@pytest.mark.parametrize("wrong", ["S", "", 0, None, float("nan"), ["C"]])
def test_an_unknown_node_label_is_refused_with_its_position(wrong):
    with pytest.raises(ValueError, match=r"node label 1 is .* not in the vocabulary \('C', 'N', 'O'\)"):
        ATOMS.node_codes(["C", wrong])


def test_an_unknown_edge_label_is_refused_with_its_position():
    with pytest.raises(ValueError, match="edge label 0 is 'triple', which is not in the vocabulary"):
        ATOMS.edge_codes(["triple"])


def test_no_edge_is_not_the_label_of_an_edge():
    with pytest.raises(ValueError, match="edge label 1 is 'none', which means that there is no edge"):
        ATOMS.edge_codes(["single", NO_EDGE])


@pytest.mark.parametrize("wrong", [6, float("nan"), None, ["C"]])
def test_labels_that_are_not_strings_are_refused_when_a_vocabulary_is_made(wrong):
    with pytest.raises(ValueError, match=r"node labels\[1\] must be a string"):
        Graph.build(["C", wrong])
    with pytest.raises(ValueError, match=r"edge labels\[0\] must be a string"):
        Graph.build(2, [(0, 1)], [wrong])
