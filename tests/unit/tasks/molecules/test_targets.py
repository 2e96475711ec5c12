"""A chemist's metrics of predicted molecules."""

import numpy as np
import pytest

from graphwright.graphs import Graph
from graphwright.graphs.molecules import graph_from_molecule, molecule_vocabulary, parse_smiles
from graphwright.metrics import skeleton
from graphwright.tasks.molecules.targets import chemistry_metrics, fingerprint

pytest.importorskip("rdkit")

VOCABULARY = molecule_vocabulary(["C", "N", "O", "S", "F"])


def graph_of(smiles: str) -> Graph:
    return graph_from_molecule(parse_smiles(smiles), VOCABULARY)


def test_the_figures_are_those_of_rdkit() -> None:
    from rdkit import DataStructs
    from rdkit.Chem import rdFingerprintGenerator

    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048)
    pairs = [("CCO", "CCN"), ("c1ccncc1", "c1ccccc1"), ("Cc1cc[nH]c1", "Cc1cc[nH]c1"), ("C[N+](=O)[O-]", "CCCF")]
    metrics = chemistry_metrics([graph_of(one) for one, _ in pairs], [graph_of(other) for _, other in pairs])
    bits = [[generator.GetFingerprint(parse_smiles(smiles)) for smiles in pair] for pair in pairs]
    np.testing.assert_allclose(metrics.tanimoto, [DataStructs.TanimotoSimilarity(*pair) for pair in bits])
    assert metrics.same_fingerprint.tolist() == [False, False, True, False]
    assert metrics.valid.tolist() == [True] * 4
    assert metrics.isomorphic_skeleton.tolist() == [False, False, True, False]


def test_the_skeleton_has_atoms_and_adjacency_only() -> None:
    predicted, target = [graph_of("CC=CC"), graph_of("CCCN")], [graph_of("CCC#C"), graph_of("CCNC")]
    assert chemistry_metrics(predicted, target).isomorphic_skeleton.tolist() == [True, False]
    assert skeleton(graph_of("C=C")) == skeleton(graph_of("C#C")) == skeleton(graph_of("CC"))


def test_the_same_fingerprint_may_be_another_molecule() -> None:
    """Chains that differ in length alone: the bits have no counts."""
    one, other = graph_of("C" * 12), graph_of("C" * 13)
    metrics = chemistry_metrics([one], [other])
    assert (metrics.same_fingerprint.tolist(), metrics.tanimoto.tolist()) == ([True], [1.0])
    assert not metrics.isomorphic_skeleton.any()


def test_isomorphic_graphs_have_the_same_fingerprint_whatever_tautomer_their_order_gives() -> None:
    one, other = graph_of("Cc1ccn[nH]1"), graph_of("Cc1cc[nH]n1")
    orders = [one.permute(np.roll(np.arange(one.size), by)) for by in range(one.size)]
    guesses = [other, *orders]
    assert len({fingerprint(guess).ToBitString() for guess in guesses}) > 1
    metrics = chemistry_metrics(guesses, [one] * len(guesses))
    assert metrics.same_fingerprint.all()
    assert (metrics.tanimoto == 1).all()


def test_what_is_no_molecule_has_no_fingerprint() -> None:
    star = Graph.build(list("CFFFFF"), [(0, at) for at in range(1, 6)], ["single"] * 5, VOCABULARY)
    parts = Graph.build(["C", "O"], (), (), VOCABULARY)
    empty = Graph.build([], (), (), VOCABULARY)
    target = graph_of("CO")
    metrics = chemistry_metrics([star, parts, empty, target], [target] * 4)
    assert metrics.valid.tolist() == [False, False, False, True]
    assert fingerprint(star) is None
    assert fingerprint(empty) is None
    assert (metrics.tanimoto[0], metrics.tanimoto[2], metrics.tanimoto[3]) == (0.0, 0.0, 1.0)
    # Methane beside water shares no environment with methanol, but it does have a fingerprint.
    assert metrics.tanimoto[1] == 0.0
    assert fingerprint(parts) is not None


def test_lists_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match="1 predicted molecules for 2 targets"):
        chemistry_metrics([graph_of("C")], [graph_of("C")] * 2)


def test_no_pairs_give_empty_arrays() -> None:
    assert chemistry_metrics([], []).tanimoto.shape == (0,)
