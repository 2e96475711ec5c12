"""One text to one standard molecule, its connectivity and split; or the reason why not, counted and listed."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from pydantic import BaseModel, ConfigDict

from graphwright.files import replacing
from graphwright.graphs.molecules import MoleculeError, Reason, parse_smiles
from graphwright.tasks.split import StoredSplit

if TYPE_CHECKING:
    from rdkit.Chem import Mol
    from rdkit.Chem.MolStandardize.rdMolStandardize import Uncharger


LONGEST_TEXT = 200
"""Characters of a rejected row that are kept to be shown."""


class RejectionReason(StrEnum):
    """What rejections are counted by."""

    MALFORMED = "malformed row"
    EMPTY = Reason.EMPTY.value
    UNPARSABLE = Reason.UNPARSABLE.value
    UNSANITIZABLE = Reason.UNSANITIZABLE.value
    SEVERAL_FRAGMENTS = Reason.SEVERAL_FRAGMENTS.value
    TOO_LARGE = Reason.TOO_LARGE.value
    TOO_SMALL = "too small"
    UNKNOWN_ELEMENT = Reason.UNKNOWN_ELEMENT.value
    UNKNOWN_BOND = Reason.UNKNOWN_BOND.value
    CHARGED = "charged"
    RADICAL = "radical"
    UNSTABLE = "no stable SMILES"
    NO_INCHI = "no InChI"
    CRASHED = "crashed"
    DUPLICATE = "duplicate"


class RejectedMoleculeError(ValueError):
    """A molecule that is not taken."""

    def __init__(self, reason: RejectionReason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True)
class Rejection:
    """A row of a source that is not taken; `row` counts from 1."""

    row: int
    id: str
    text: str
    reason: RejectionReason
    detail: str


class ReasonCount(BaseModel):
    """How many rows were rejected for a reason, and the first of them."""

    model_config = ConfigDict(frozen=True)

    reason: RejectionReason
    count: int
    row: int
    text: str
    detail: str

    def __str__(self) -> str:
        return f"{self.reason} {self.count:,} (first: row {self.row:,}, {self.text!r})"


def count_reasons(rejections: Iterable[Rejection]) -> tuple[ReasonCount, ...]:
    """Counts by reason, in the order of `RejectionReason`."""
    return add_counts(
        ReasonCount(
            reason=rejection.reason,
            count=1,
            row=rejection.row,
            text=rejection.text[:LONGEST_TEXT],
            detail=rejection.detail[:LONGEST_TEXT],
        )
        for rejection in rejections
    )


def add_counts(counts: Iterable[ReasonCount]) -> tuple[ReasonCount, ...]:
    """Counts of several parts as one, each with the example that came first."""
    total: dict[RejectionReason, ReasonCount] = {}
    for own in counts:
        before = total.get(own.reason)
        total[own.reason] = (
            own if before is None else before.model_copy(update={"count": before.count + own.count})
        )
    return tuple(total[reason] for reason in RejectionReason if reason in total)


LISTING, PARTS = "rejected.csv.gz", "rejected"
COLUMNS = ("source", "row", "id", "text", "reason", "detail")


def write_part(folder: Path, name: str, source: str, rejections: Iterable[Rejection]) -> None:
    """The rejections of one shard, in a file of their own until the run is complete."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for rejection in rejections:
        shown = (rejection.text[:LONGEST_TEXT], str(rejection.reason), rejection.detail[:LONGEST_TEXT])
        writer.writerow((source, rejection.row, rejection.id, *shown))
    parts = folder / PARTS
    parts.mkdir(exist_ok=True)
    with replacing(parts / name) as draft:
        draft.write_bytes(gzip.compress(text.getvalue().encode("utf-8", "replace"), mtime=0))


def join_parts(folder: Path) -> None:
    """One listing of all parts; gzip allows its members to be laid end to end."""
    with replacing(folder / LISTING) as draft, draft.open("wb") as joined:
        joined.write(gzip.compress((",".join(COLUMNS) + "\n").encode(), mtime=0))
        for part in sorted((folder / PARTS).glob("*.csv.gz")):
            with part.open("rb") as file:
                shutil.copyfileobj(file, joined)


def remove_parts(folder: Path) -> None:
    """The parts, once they are joined."""
    shutil.rmtree(folder / PARTS, ignore_errors=True)


SPLIT_RULE = "sha256('f2m-split:' + InChIKey first block), first 8 bytes, big endian, % 100: 0-95, 96-97, 98-99"


def connectivity_block(molecule: Mol) -> str:
    """First block (14 letters) of the InChIKey, blind to stereo, isotopes and most tautomers; empty if none."""
    from rdkit.Chem import rdinchi

    return rdinchi.MolToInchiKey(molecule)[:14]


def connectivity_hash(block: str) -> int:
    """64 bits of an InChIKey's first block: equal for equal connectivities, and the number that splits them."""
    return int.from_bytes(hashlib.sha256(b"f2m-split:" + block.encode()).digest()[:8], "big")


def split_of(connectivity: int) -> StoredSplit:
    """The split of a `connectivity_hash`: 96 % train, 2 % validation, 2 % test."""
    part = connectivity % 100
    if part < 96:
        return "train"
    return "val" if part < 98 else "test"


CHARACTERS_PER_ATOM = 128
"""A longer text per allowed atom is too large unread: parsing it could take any time."""

ROUNDS = 4
"""Times to write and read a SMILES again until it stays the same; two are enough for nearly all."""

_ATOM = re.compile(r"\[\d*(se|as|te|si|[bcnops]|[A-Z][a-z]?|\*|#\d+)[^\]]*\]|(Br|Cl|[BCNOSPFIbcnops*])")
_MAPPED = re.compile(r":\d+\]")
_CHARGED = re.compile(r"\[[^\]]*[+-]")
_OTHER_BOND = re.compile(r"->|<-|\$|~")
_BOND_CODES = np.array([0, 0, 1, 4, 2, 0, 3, 0], np.uint8)
"""Twice the bond order (aromatic: 1.5; 7 and more at 7) to its code in `graphs.molecules.BONDS`, 0 for others."""


@dataclass(frozen=True, eq=False)
class StandardMolecule:
    """A molecule without stereo, isotopes, atom maps and avoidable charges, and its canonical SMILES.

    Reading `smiles` gives `molecule`, and writing that gives `smiles`: atoms are in the order of the text.
    """

    smiles: str
    molecule: Mol


def standard_molecule(text: str, max_atoms: int) -> StandardMolecule:
    """The standard molecule of a SMILES: one fragment of 2 to `max_atoms` heavy atoms, uncharged, no radical."""
    from rdkit import Chem

    text = text.strip()
    _refuse_by_size(text, max_atoms)
    molecule = _parse(text)
    smiles = Chem.MolToSmiles(molecule, isomericSmiles=False)
    if _MAPPED.search(smiles) or _CHARGED.search(smiles):
        molecule = _neutral(_unmapped(molecule))
        smiles = Chem.MolToSmiles(molecule, isomericSmiles=False)
    current = text
    for _ in range(ROUNDS):
        if smiles == current:
            _refuse_radical(smiles, molecule)
            return StandardMolecule(smiles, molecule)
        current = smiles
        molecule = _parse(current)
        smiles = Chem.MolToSmiles(molecule, isomericSmiles=False)
    raise RejectedMoleculeError(RejectionReason.UNSTABLE, f"RDKit writes {current} and then {smiles}")


def atomic_numbers(smiles: str) -> list[int]:
    """Atomic numbers in the order of a SMILES; read from the text, which is faster than asking every atom."""
    return [_atomic_number(bracket or plain) for bracket, plain in _ATOM.findall(smiles)]


def bond_triples(standard: StandardMolecule) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Flat i, j, code of every bond, i < j, sorted; codes as in `graphs.molecules.BONDS`."""
    from rdkit import Chem

    doubled = (2 * Chem.GetAdjacencyMatrix(standard.molecule, useBO=True)).astype(np.int64)
    first, second = np.nonzero(np.triu(doubled))
    codes = _BOND_CODES[np.minimum(doubled[first, second], 7)]
    # A dative bond counts as single in the matrix, but not in the text.
    if not codes.all() or _OTHER_BOND.search(standard.smiles):
        raise RejectedMoleculeError(RejectionReason.UNKNOWN_BOND, f"{standard.smiles} has a bond of another type")
    return np.stack([first.astype(np.uint8), second.astype(np.uint8), codes], axis=1).reshape(-1)


def _refuse_by_size(text: str, max_atoms: int) -> None:
    from rdkit import Chem

    if not text:
        raise RejectedMoleculeError(RejectionReason.EMPTY, "the row has no SMILES")
    if len(text) > CHARACTERS_PER_ATOM * max_atoms:
        raise RejectedMoleculeError(RejectionReason.TOO_LARGE, f"{len(text)} characters")
    # Seven times faster than a sanitised molecule, and a fifth of PubChem needs no more.
    # RDKit of 2024 stops at a zero, and would take what comes before it for the whole.
    raw = None if "\0" in text else Chem.MolFromSmiles(text, sanitize=False)
    if raw is None:
        raise RejectedMoleculeError(RejectionReason.UNPARSABLE, "RDKit cannot read it")
    size = raw.GetNumHeavyAtoms()
    if "." in text and len(Chem.GetMolFrags(raw)) > 1:
        raise RejectedMoleculeError(RejectionReason.SEVERAL_FRAGMENTS, f"{len(Chem.GetMolFrags(raw))} fragments")
    if size > max_atoms:
        raise RejectedMoleculeError(
            RejectionReason.TOO_LARGE, f"{size} heavy atoms, at most {max_atoms} are taken"
        )
    if size < 2:
        raise RejectedMoleculeError(RejectionReason.TOO_SMALL, f"{size} heavy atoms make no graph")


def _parse(text: str) -> Mol:
    try:
        return parse_smiles(text)
    except MoleculeError as error:
        raise RejectedMoleculeError(RejectionReason(error.reason.value), error.detail) from error


def _unmapped(molecule: Mol) -> Mol:
    for atom in molecule.GetAtoms():
        atom.SetAtomMapNum(0)
    return molecule


def _neutral(molecule: Mol) -> Mol:
    """The molecule with protons moved, added or removed until no charge is left that one could take away."""
    from rdkit import Chem

    neutral = _uncharger().uncharge(molecule)
    charge = Chem.GetFormalCharge(neutral)
    if charge:
        raise RejectedMoleculeError(RejectionReason.CHARGED, f"net charge {charge:+d}")
    # Some aromatic zwitterions have no neutral form that RDKit can read; balanced, they may stay as they are.
    if Chem.MolFromSmiles(Chem.MolToSmiles(neutral)) is None and not Chem.GetFormalCharge(molecule):
        return molecule
    return neutral


def _refuse_radical(smiles: str, molecule: Mol) -> None:
    # Atoms outside brackets have their hydrogens filled up.
    if "[" in smiles and any(atom.GetNumRadicalElectrons() for atom in molecule.GetAtoms()):
        raise RejectedMoleculeError(RejectionReason.RADICAL, f"{smiles} has unpaired electrons")


@cache
def _uncharger() -> Uncharger:
    from rdkit.Chem.MolStandardize.rdMolStandardize import Uncharger

    return Uncharger()


@cache
def _atomic_number(symbol: str) -> int:
    from rdkit import Chem

    if symbol.startswith("#"):
        return int(symbol[1:])
    return 0 if symbol == "*" else Chem.GetPeriodicTable().GetAtomicNumber(symbol.capitalize())
