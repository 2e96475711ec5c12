"""Which split a molecule belongs to: a function of its connectivity alone."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from rdkit.Chem import Mol

SplitName = Literal["train", "val", "test"]
"""As in the column `split` of the data files that ship with graphwright."""

SPLIT_NAMES: tuple[SplitName, ...] = get_args(SplitName)
SPLIT_RULE = "sha256('f2m-split:' + InChIKey first block), first 8 bytes, big endian, % 100: 0-95, 96-97, 98-99"


def connectivity_block(molecule: Mol) -> str:
    """First block (14 letters) of the InChIKey, blind to stereo, isotopes and most tautomers; empty if none."""
    from rdkit.Chem import rdinchi

    return rdinchi.MolToInchiKey(molecule)[:14]


def connectivity_hash(block: str) -> int:
    """64 bits of an InChIKey's first block: equal for equal connectivities, and the number that splits them."""
    return int.from_bytes(hashlib.sha256(b"f2m-split:" + block.encode()).digest()[:8], "big")


def split_of(connectivity: int) -> SplitName:
    """The split of a `connectivity_hash`: 96 % train, 2 % validation, 2 % test."""
    part = connectivity % 100
    if part < 96:
        return "train"
    return "val" if part < 98 else "test"
