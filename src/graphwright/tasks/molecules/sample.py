"""One molecule as the task sees it: active bits in, graph out; and the same packed in a few bytes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphwright.graphs import Graph, Vocabulary
from graphwright.graphs.molecules import graph_from_molecule, parse_smiles
from graphwright.tasks.molecules.fingerprint import BitArray, active_bits

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class MoleculeSample:
    """bits: (k,) sorted active bits. atoms: (n,) codes. bonds: (e, 3) first atom, second atom, code."""

    bits: BitArray
    atoms: Bytes
    bonds: Bytes
    vocabulary: Vocabulary
    smiles: str | None

    @property
    def graph(self) -> Graph:
        """The heavy-atom graph."""
        bonds = self.bonds.astype(np.int64)
        return Graph(self.atoms.astype(np.int64), bonds[:, :2], bonds[:, 2], self.vocabulary)


def read_molecule(smiles: str | None, vocabulary: Vocabulary, capacity: int) -> MoleculeSample:
    """The sample of a SMILES, or a `MoleculeError` with its reason."""
    molecule = parse_smiles(smiles or "")
    graph = graph_from_molecule(molecule, vocabulary, capacity)
    bonds = np.concatenate([graph.edges, graph.edge_labels[:, None]], 1).astype(np.uint8)
    return MoleculeSample(active_bits(molecule), graph.node_labels.astype(np.uint8), bonds, vocabulary, smiles)


def pack(sample: MoleculeSample) -> bytes:
    """About 130 bytes for a molecule of QM9, 220 for one of 24 atoms."""
    sizes = np.array([len(sample.bits), len(sample.atoms)], np.uint16)
    return b"".join(array.tobytes() for array in (sizes, sample.bits, sample.atoms, sample.bonds))


def unpack(packed: bytes, vocabulary: Vocabulary, smiles: str | None) -> MoleculeSample:
    """The sample that `pack` packed."""
    bits, atoms = np.frombuffer(packed, np.uint16, 2).tolist()
    behind = 4 + 2 * bits
    return MoleculeSample(
        np.frombuffer(packed, np.uint16, bits, 4),
        np.frombuffer(packed, np.uint8, atoms, behind),
        np.frombuffer(packed, np.uint8, offset=behind + atoms).reshape(-1, 3),
        vocabulary,
        smiles,
    )
