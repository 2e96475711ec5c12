"""What is in a set of molecules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from graphwright.graphs import Vocabulary
from graphwright.tasks.molecules.sample import MoleculeSample


@dataclass(frozen=True)
class MoleculeStatistics:
    """Sizes, bonds and active bits per molecule, elements and bond types over all of them."""

    molecules: int
    size_min: int
    size_mean: float
    size_max: int
    bonds_mean: float
    bits_mean: float
    bits_max: int
    element_shares: Mapping[str, float]
    bond_shares: Mapping[str, float]

    def rows(self) -> list[tuple[str, str]]:
        """For a table."""
        return [
            ("looked at", f"{self.molecules:,}"),
            ("heavy atoms", f"{self.size_min} to {self.size_max}, mean {self.size_mean:.2f}"),
            ("bonds", f"mean {self.bonds_mean:.2f}"),
            ("active bits", f"mean {self.bits_mean:.1f}, most {self.bits_max}"),
            ("elements", _shares(self.element_shares)),
            ("bond types", _shares(self.bond_shares)),
        ]


def molecule_statistics(samples: Iterable[MoleculeSample], vocabulary: Vocabulary) -> MoleculeStatistics:
    """Statistics of the samples."""
    found = list(samples)
    if not found:
        raise ValueError("samples must not be empty")
    sizes = np.array([len(sample.atoms) for sample in found])
    bits = np.array([len(sample.bits) for sample in found])
    atoms = np.bincount(np.concatenate([s.atoms for s in found]), minlength=len(vocabulary.nodes))
    bonds = np.bincount(np.concatenate([s.bonds[:, 2] for s in found]), minlength=len(vocabulary.edges))
    return MoleculeStatistics(
        molecules=len(found),
        size_min=int(sizes.min()),
        size_mean=float(sizes.mean()),
        size_max=int(sizes.max()),
        bonds_mean=float(bonds.sum() / len(found)),
        bits_mean=float(bits.mean()),
        bits_max=int(bits.max()),
        element_shares=dict(zip(vocabulary.nodes, (atoms / atoms.sum()).tolist(), strict=True)),
        bond_shares=dict(zip(vocabulary.edges[1:], (bonds[1:] / max(bonds.sum(), 1)).tolist(), strict=True)),
    )


def _shares(shares: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {100 * share:.2f} %" for name, share in shares.items())
