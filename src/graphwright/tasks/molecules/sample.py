"""One molecule as the task sees it: active bits in, graph out; and the same packed in a few bytes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphwright.graphs import Graph, Vocabulary
from graphwright.graphs.molecules import graph_from_molecule, parse_smiles
from graphwright.tasks.molecules.fingerprint import BitArray, active_bits_and_centres

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class MoleculeSample:
    """bits: (k,) sorted active bits. atoms: (n,) codes. bonds: (e, 3) first atom, second atom, code.

    known_centres: (n, 3) the bits of which each atom is the centre, where they were asked for already.
    """

    bits: BitArray
    atoms: Bytes
    bonds: Bytes
    vocabulary: Vocabulary
    smiles: str | None
    known_centres: BitArray | None = None

    @property
    def centres(self) -> BitArray:
        """(n, 3) the bits of which each atom is the centre, `NO_BIT` where there are fewer."""
        if self.known_centres is not None:
            return self.known_centres
        return active_bits_and_centres(parse_smiles(self.smiles or ""))[1]

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
    bits, centres = active_bits_and_centres(molecule)
    return MoleculeSample(bits, graph.node_labels.astype(np.uint8), bonds, vocabulary, smiles, centres)


def pack(sample: MoleculeSample) -> bytes:
    """About 180 bytes for a molecule of QM9, 360 for one of 24 atoms."""
    sizes = np.array([len(sample.bits), len(sample.atoms)], np.uint16)
    arrays = (sizes, sample.bits, sample.centres, sample.atoms, sample.bonds)
    return b"".join(array.tobytes() for array in arrays)


def unpack(packed: bytes, vocabulary: Vocabulary, smiles: str | None) -> MoleculeSample:
    """The sample that `pack` packed."""
    bits, atoms = np.frombuffer(packed, np.uint16, 2).tolist()
    centres = 3 * atoms
    behind = 4 + 2 * (bits + centres)
    return MoleculeSample(
        np.frombuffer(packed, np.uint16, bits, 4),
        np.frombuffer(packed, np.uint8, atoms, behind),
        np.frombuffer(packed, np.uint8, offset=behind + atoms).reshape(-1, 3),
        vocabulary,
        smiles,
        np.frombuffer(packed, np.uint16, centres, 4 + 2 * bits).reshape(-1, 3),
    )
