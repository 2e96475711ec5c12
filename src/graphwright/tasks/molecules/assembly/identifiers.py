"""The numbers that RDKit's Morgan fingerprint gives to the environments of an atom.

An atom's identifier of radius 0 is a hash of its element, its neighbours and hydrogens, its charge and whether it
is in a ring; that of radius r + 1 is a hash of its own of radius r, of its bonds, and of the identifiers of radius
r of its neighbours. A fingerprint has bit `identifier % 2048` on. So whoever knows the hash can tell, of any
environment that might be in a molecule, which bits it would set, without the molecule.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Identifiers = NDArray[np.uint32]
AROMATIC = 12
"""What stands for an aromatic bond in the hash; a single, double or triple one is its order."""
_GOLDEN = 0x9E3779B9


def atom_identifiers(atoms: NDArray[np.int64]) -> Identifiers:
    """(a,) of radius 0 of atoms (a, 5): atomic number, neighbours and hydrogens, hydrogens, charge, in a ring."""
    seed = np.zeros(len(atoms), np.uint32)
    for column in atoms[:, :4].T:
        seed = _combined(seed, column.astype(np.uint32))
    seed = _combined(seed, np.zeros(len(atoms), np.uint32))  # no isotopes here
    return np.where(atoms[:, 4] > 0, _combined(seed, np.ones(len(atoms), np.uint32)), seed)


def wider_identifiers(radius: int, own: Identifiers, bonds: NDArray[np.int64], around: Identifiers) -> Identifiers:
    """(k,) of the radius from those that are narrower by one: own (k,), and around (k, d) over bonds (k, d).

    A bond is 0 where an atom has fewer than d neighbours.
    """
    pairs = np.where(bonds > 0, (bonds.astype(np.uint64) << np.uint64(32)) | around, np.uint64(0))
    pairs = np.sort(pairs, axis=1)
    seed = _combined(np.full(len(own), radius - 1, np.uint32), own)
    for column in pairs.T:
        bond, other = (column >> np.uint64(32)).astype(np.uint32), column.astype(np.uint32)
        pair = _combined(_combined(np.zeros(len(own), np.uint32), bond), other)
        seed = np.where(column > 0, _combined(seed, pair), seed)
    return seed


def _combined(seed: Identifiers, value: Any) -> Identifiers:
    """One more value in the hash: 32 bits, as they overflow."""
    result: Identifiers = seed ^ (value + np.uint32(_GOLDEN) + (seed << np.uint32(6)) + (seed >> np.uint32(2)))
    return result
