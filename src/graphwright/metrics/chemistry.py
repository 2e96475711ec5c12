"""How predicted molecules compare with their targets, as a chemist would look at them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphwright.graphs import Graph, is_isomorphic
from graphwright.graphs.molecules import MoleculeError, is_molecule, molecule_from_graph
from graphwright.metrics.evaluation import is_isomorphic_skeleton

if TYPE_CHECKING:
    from rdkit.DataStructs import ExplicitBitVect

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ChemistryMetrics:
    """Per pair of predicted and target molecule, (p,) each.

    valid: the prediction is a molecule in one part (`graphs.molecules.is_molecule`).
    same_fingerprint: both have the same ECFP4 (2048 bits); so do isomorphic graphs, whichever tautomer the order
    of their atoms makes of each.
    tanimoto: of the two fingerprints, 0 where one graph has none because RDKit accepts no structure of it.
    isomorphic_skeleton: same atoms and adjacency, whatever the bonds' labels.
    """

    valid: BoolArray
    same_fingerprint: BoolArray
    tanimoto: FloatArray
    isomorphic_skeleton: BoolArray


def chemistry_metrics(predicted: Sequence[Graph], target: Sequence[Graph]) -> ChemistryMetrics:
    """The figures of p pairs, predicted[i] against target[i]."""
    if len(predicted) != len(target):
        raise ValueError(f"{len(predicted)} predicted molecules for {len(target)} targets")
    from rdkit.DataStructs import TanimotoSimilarity

    similarities = np.zeros(len(target))
    same = np.zeros(len(target), bool)
    for at, (guess, truth) in enumerate(zip(predicted, target, strict=True)):
        one, other = fingerprint(guess), fingerprint(truth)
        if one is not None and other is not None:
            same[at] = one == other or is_isomorphic(guess, truth)
            similarities[at] = 1.0 if same[at] else TanimotoSimilarity(one, other)
    return ChemistryMetrics(
        np.array([is_molecule(graph) for graph in predicted], bool),
        same,
        similarities,
        np.array(
            [is_isomorphic_skeleton(guess, truth) for guess, truth in zip(predicted, target, strict=True)], bool
        ),
    )


def fingerprint(graph: Graph) -> ExplicitBitVect | None:
    """ECFP4 (Morgan, radius 2, 2048 bits) of the graph's molecule, in one part or several; None without one."""
    from rdkit.Chem import rdFingerprintGenerator

    try:
        molecule = molecule_from_graph(graph)
    except MoleculeError:
        return None
    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048)
    bits: ExplicitBitVect = generator.GetFingerprint(molecule)
    return bits
