"""What a person has of a molecule (SMILES, RDKit molecule, bit vector, file) as fingerprints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphwright.graphs.molecules import MoleculeError, parse_smiles
from graphwright.tasks.molecules.fingerprint import BITS, BitArray, active_bits, bits_of_vector, tokens
from graphwright.tasks.molecules.source import read_smiles
from graphwright.tasks.task import BadInput, NamedInput


@dataclass(frozen=True, eq=False)
class Fingerprint:
    """Active bits that are known to be such."""

    bits: BitArray


def fingerprint_batch(given: Any) -> Tensor:
    """(b, k) tokens of one or many of: SMILES, RDKit molecules, bit vectors (2048,); tokens stay as they are."""
    if isinstance(given, Tensor) and given.ndim == 2 and given.dtype == torch.int64 and given.shape[1] != BITS:
        return given
    one = isinstance(given, str | Fingerprint) or hasattr(given, "GetAtoms") or hasattr(given, "GetOnBits")
    one = one or (isinstance(given, Tensor | np.ndarray) and given.ndim == 1)
    # A list of 2048 numbers is one vector; a list of anything else is many.
    one = one or (isinstance(given, list | tuple) and bool(given) and isinstance(given[0], int | float))
    return tokens([fingerprint_of(each) for each in ([given] if one else given)])


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
        return active_bits(given)
    return bits_of_vector(given.cpu().numpy() if isinstance(given, Tensor) else given)


def read_fingerprints(path: Path) -> Iterator[NamedInput | BadInput]:
    """Every molecule of a file; the name is the file and the row, from 1."""
    if not path.exists():
        yield BadInput(f"{path}: no such file")
        return
    try:
        rows = _vectors(path) if path.suffix.lower() == ".npy" else read_smiles(path).smiles.to_pylist()
    except ValueError as error:
        yield BadInput(str(error))
        return
    for number, row in enumerate(rows, 1):
        name = f"{path}:{number}"
        try:
            yield NamedInput(
                name, f"{path.stem}-{number}", Fingerprint(fingerprint_of("" if row is None else row))
            )
        except MoleculeError as error:
            yield BadInput(f"{name}: {error}; expected a SMILES or {BITS} zeros and ones")
        except ValueError as error:
            yield BadInput(f"{name}: {error}")


def _vectors(path: Path) -> Any:
    try:
        found = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read as a NumPy array: {error}") from error
    vectors = found[None] if found.ndim == 1 else found
    if vectors.ndim != 2 or vectors.shape[1] != BITS:
        raise ValueError(f"{path}: expected fingerprints of shape (m, {BITS}), got {found.shape}")
    return vectors
