"""ECFP4 fingerprints: of molecules, of whatever else a person has in hand, and as tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor

from graphwright.graphs.molecules import MoleculeError, Reason, parse_smiles
from graphwright.tasks.likeness import Floats, KernelLikeness
from graphwright.tasks.task import Samples

if TYPE_CHECKING:
    from rdkit.Chem import Mol


BITS = 2048
RADIUS = 2
START, PADDING = BITS, BITS + 1
"""Codes of the token before all bits, and of no token."""

NO_BIT = 2**16 - 1
"""Where an atom is the centre of fewer than three bits."""

BitArray = NDArray[np.uint16]


def active_bits(molecule: Mol) -> BitArray:
    """Sorted active bits of the ECFP4 fingerprint (Morgan, radius 2, 2048 bits, without chirality)."""
    bits = _generator().GetFingerprint(molecule).GetOnBits()
    return np.array(sorted(bits), np.uint16)


def active_bits_and_centres(molecule: Mol) -> tuple[BitArray, BitArray]:
    """The active bits, and (atoms, 3) those of which each heavy atom is the centre, `NO_BIT` at the end.

    RDKit drops an environment whose bonds another one has: an end atom has no bit of radius 2 of its own.
    """
    from rdkit.Chem.rdFingerprintGenerator import AdditionalOutput

    output = AdditionalOutput()
    output.AllocateAtomToBits()
    on = _generator().GetFingerprint(molecule, additionalOutput=output).GetOnBits()
    rows = [
        (*bits, *[NO_BIT] * (RADIUS + 1 - len(bits)))
        for atom, bits in zip(molecule.GetAtoms(), output.GetAtomToBits(), strict=True)
        if atom.GetAtomicNum() != 1
    ]
    return np.array(sorted(on), np.uint16), np.array(rows, np.uint16).reshape(-1, RADIUS + 1)


def token_owners(fingerprints: Sequence[BitArray], centres: Sequence[BitArray], capacity: int) -> Tensor:
    """(b, 1 + k, capacity) bool: whether a token of `tokens` is an environment of an atom."""
    longest = max((len(bits) for bits in fingerprints), default=0)
    owners = np.zeros((len(fingerprints), 1 + longest, capacity), bool)
    for owner, bits, around in zip(owners, fingerprints, centres, strict=True):
        atoms, radii = np.nonzero(around != NO_BIT)
        owner[1 + np.searchsorted(bits, around[atoms, radii]), atoms] = True
    return torch.from_numpy(owners)


def bits_of_vector(vector: Any) -> BitArray:
    """Sorted active bits of a vector of 2048 zeros and ones, or of a string of them."""
    if isinstance(vector, str):
        if len(vector) != BITS or set(vector) - {"0", "1"}:
            raise ValueError(f"a fingerprint must be {BITS} zeros and ones, got {len(vector)} characters")
        vector = [character == "1" for character in vector]
    values = np.asarray(vector)
    if values.shape != (BITS,):
        raise ValueError(f"a fingerprint must have {BITS} bits, got shape {values.shape}")
    if not np.isin(values, (0, 1)).all():
        raise ValueError("a fingerprint must hold zeros and ones only")
    return np.flatnonzero(values).astype(np.uint16)


def tokens(fingerprints: Sequence[BitArray]) -> Tensor:
    """(b, 1 + k) int64 codes: the start token, then the active bits, padded to the longest."""
    longest = max((len(bits) for bits in fingerprints), default=0)
    codes = np.full((len(fingerprints), 1 + longest), PADDING, np.int64)
    codes[:, 0] = START
    for row, bits in zip(codes, fingerprints, strict=True):
        row[1 : 1 + len(bits)] = bits
    return torch.from_numpy(codes)


def bits_of_tokens(codes: Tensor) -> list[BitArray]:
    """The active bits behind each row of `tokens`."""
    rows = codes.cpu().numpy()
    return [np.sort(row[row < BITS]).astype(np.uint16) for row in rows]


@cache
def _generator() -> Any:
    try:
        from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator
    except ImportError as error:
        raise ImportError("fingerprints need RDKit: pip install 'graphwright[chem]'") from error
    return GetMorganGenerator(radius=RADIUS, fpSize=BITS)


EXPECTED = f"expected a SMILES, an RDKit molecule, {BITS} zeros and ones, or several of these"


@dataclass(frozen=True, eq=False)
class Fingerprint:
    """Active bits that are known to be such."""

    bits: BitArray


def fingerprint_batch(given: Any) -> Tensor:
    """(b, k) tokens of one or many of: SMILES, RDKit molecules, bit vectors (2048,); tokens stay as they are."""
    if isinstance(given, Tensor) and given.ndim == 2 and given.dtype == torch.int64 and _are_tokens(given):
        return given
    if not is_one_molecule(given) and not isinstance(given, Iterable):
        raise ValueError(f"{EXPECTED}, got {type(given).__name__}")
    return tokens([fingerprint_of(each) for each in ([given] if is_one_molecule(given) else given)])


def is_one_molecule(given: Any) -> bool:
    """Whether it is one molecule, not several."""
    if isinstance(given, np.ndarray):
        return given.ndim == 1 and given.dtype.kind not in "OUS"
    if isinstance(given, Tensor):
        return given.ndim == 1
    if isinstance(given, list | tuple):  # of numbers is one vector
        return bool(given) and isinstance(given[0], int | float | np.number | np.bool_)
    return isinstance(given, str | Fingerprint) or hasattr(given, "GetAtoms") or hasattr(given, "GetOnBits")


def fingerprint_of(given: Any) -> BitArray:
    """Active bits of a SMILES, a string of 2048 zeros and ones, an RDKit molecule, or a bit vector."""
    if isinstance(given, Fingerprint):
        return given.bits
    if isinstance(given, str):
        is_bits = len(given) > BITS // 2 and not set(given) - {"0", "1"}
        return bits_of_vector(given) if is_bits else active_bits(parse_smiles(given))
    if hasattr(given, "GetOnBits"):
        if given.GetNumBits() != BITS:
            raise ValueError(f"a fingerprint must have {BITS} bits, got {given.GetNumBits()}")
        return np.array(sorted(given.GetOnBits()), np.uint16)
    if hasattr(given, "GetAtoms"):
        return active_bits(_as_if_parsed(given))
    return bits_of_vector(given.cpu().numpy() if isinstance(given, Tensor) else given)


def _are_tokens(given: Tensor) -> bool:
    """Whether every row starts with the start token, as no row of bits does."""
    return given.shape[1] > 0 and bool(
        (given[:, 0] == START).all() and (given >= 0).all() and (given <= PADDING).all()
    )


def _as_if_parsed(molecule: Mol) -> Mol:
    """The molecule as its SMILES would give it: sanitised, and without explicit hydrogens, which add bits."""
    from rdkit import Chem, rdBase

    with rdBase.BlockLogs():
        try:
            return Chem.RemoveHs(molecule)
        except ValueError as error:
            raise MoleculeError(Reason.UNSANITIZABLE, f"RDKit refuses the molecule: {error}") from error


@dataclass(frozen=True)
class FingerprintLikeness(KernelLikeness):
    """Fingerprints by the Tanimoto similarity of their active bits."""

    name: str = "Tanimoto"

    def features(self, samples: Samples, indices: Sequence[int]) -> csr_array[np.float32]:
        """(m, 2048) sparse zeros and ones."""
        return bit_matrix([samples[index].bits for index in indices])

    def similarity(self, queries: csr_array[np.float32], references: csr_array[np.float32]) -> Floats:
        """(q, m) |a & b| / |a | b|; two fingerprints without any bit are the same."""
        common: Floats = (queries @ references.T).toarray()
        union = queries.sum(1)[:, None] + references.sum(1) - common
        similarity: Floats = np.where(union > 0, common / np.maximum(union, 1), 1).astype(np.float32)
        return similarity


def bit_matrix(fingerprints: Sequence[BitArray]) -> csr_array[np.float32]:
    """(m, 2048) sparse zeros and ones of fingerprints, each given by its active bits."""
    starts = np.cumsum([0, *map(len, fingerprints)]).astype(np.int32)
    columns = np.concatenate([np.zeros(0, np.int32), *fingerprints]).astype(np.int32)
    return csr_array((np.ones(len(columns), np.float32), columns, starts), shape=(len(fingerprints), BITS))
