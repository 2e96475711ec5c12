"""What a person has of a molecule (SMILES, RDKit molecule, bit vector, file) as fingerprints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from graphwright.graphs.molecules import MoleculeError, Reason, parse_smiles
from graphwright.tasks.molecules.fingerprint import (
    BITS,
    PADDING,
    START,
    BitArray,
    active_bits,
    bits_of_vector,
    tokens,
)
from graphwright.tasks.molecules.source import read_smiles
from graphwright.tasks.task import BadInput, NamedInput

if TYPE_CHECKING:
    from rdkit.Chem import Mol

EXPECTED = f"expected a SMILES, an RDKit molecule, {BITS} zeros and ones, or several of these"


@dataclass(frozen=True, eq=False)
class Fingerprint:
    """Active bits that are known to be such."""

    bits: BitArray


def fingerprint_batch(given: Any) -> Tensor:
    """(b, k) tokens of one or many of: SMILES, RDKit molecules, bit vectors (2048,); tokens stay as they are."""
    if isinstance(given, Tensor) and given.ndim == 2 and given.dtype == torch.int64 and _are_tokens(given):
        return given
    if not _is_one(given) and not isinstance(given, Iterable):
        raise ValueError(f"{EXPECTED}, got {type(given).__name__}")
    return tokens([fingerprint_of(each) for each in ([given] if _is_one(given) else given)])


def _is_one(given: Any) -> bool:
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


def read_fingerprints(path: Path) -> Iterator[NamedInput | BadInput]:
    """Every molecule of a file; the name is the file and the number of the line or row, from 1."""
    if not path.exists():
        yield BadInput(f"{path}: no such file")
        return
    try:
        rows = list(enumerate(_vectors(path), 1)) if path.suffix.lower() == ".npy" else _texts(path)
    except ValueError as error:
        yield BadInput(str(error))
        return
    for number, row in rows:
        name = f"{path}:{number}"
        try:
            yield NamedInput(
                name, f"{path.stem}-{number}", Fingerprint(fingerprint_of("" if row is None else row))
            )
        except MoleculeError as error:
            yield BadInput(f"{name}: {error}; expected a SMILES or {BITS} zeros and ones")
        except ValueError as error:
            yield BadInput(f"{name}: {error}")


def _texts(path: Path) -> list[tuple[int, str | None]]:
    table = read_smiles(path)
    return list(zip(table.numbers.tolist(), table.smiles.to_pylist(), strict=True))


def _vectors(path: Path) -> Any:
    try:
        found = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read as a NumPy array: {error}") from error
    vectors = found[None] if found.ndim == 1 else found
    if vectors.ndim != 2 or vectors.shape[1] != BITS:
        raise ValueError(f"{path}: expected fingerprints of shape (m, {BITS}), got {found.shape}")
    return vectors
