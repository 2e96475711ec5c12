"""The rows of a prepared file in memory: peaks, conditions, scaffolds, folds."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from graphwright.files import sha256_of
from graphwright.graphs.molecules import BONDS
from graphwright.spectra import AnnotatedPeaks, load_annotated
from graphwright.spectra.spectrum import MOST_MZ
from graphwright.tasks.spectra.prepared import prepared
from graphwright.tasks.split import SPLIT_NAMES, Split, check_names
from graphwright.tasks.task import RejectedRow

BOUNDS: dict[Split, tuple[float, float]] = {"train": (0.0, 0.8), "validation": (0.8, 0.9), "test": (0.9, 1.0)}
HEAVIEST = 118

Texts = NDArray[np.object_]


@dataclass(frozen=True, eq=False)
class Ragged:
    """Lists one after the other: list i is values[offsets[i] : offsets[i + 1]]."""

    offsets: NDArray[np.int64]
    values: NDArray[np.uint8]

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> Ragged:
        """Of a Parquet column; null lists are empty."""
        lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy()
        values = pc.list_flatten(column).to_numpy().astype(np.uint8)
        return cls(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), values)

    def __getitem__(self, row: int) -> NDArray[np.uint8]:
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(rows,)"""
        return np.diff(self.offsets)


@dataclass(frozen=True, eq=False)
class SpectrumTable:
    """Rows of a file, each a spectrum. Every array is (rows,); unknown texts are None, unknown numbers NaN.

    molecules: what measured molecule it is. formulas: as the file gives them. groups: the molecular formulas by
    which the data are split and resampled, known also where the file gives none. atoms: atomic numbers of the
    scaffolds. bonds: flat triples. faults: why there is no sample of a row.
    """

    path: Path
    peaks: AnnotatedPeaks
    identifiers: Texts
    molecules: Texts
    formulas: Texts
    groups: Texts
    adducts: Texts
    energies: NDArray[np.float64]
    precursors: NDArray[np.float64]
    folds: Texts | None
    atoms: Ragged
    bonds: Ragged
    faults: Texts

    def __len__(self) -> int:
        return len(self.identifiers)

    def rows(self, split: Split) -> NDArray[np.int64]:
        """Rows of a split: by the file's folds, or 80, 10 and 10 % by a hash of the molecular formula."""
        if self.folds is not None:
            check_names(self.folds.tolist(), "fold", self.path)
            meant = np.array([SPLIT_NAMES.get(str(name).strip().lower(), "") for name in self.folds])
            return np.flatnonzero(meant == split)
        low, high = BOUNDS[split]
        fractions = np.array([fold_fraction(str(group)) for group in self.groups])
        return np.flatnonzero((fractions >= low) & (fractions < high))

    def elements(self) -> tuple[str, ...]:
        """Symbols of the elements in the scaffolds, the commonest first."""
        numbers, counts = np.unique(self.atoms.values, return_counts=True)
        return tuple(_symbols(numbers[np.argsort(-counts, kind="stable")].tolist()))

    def digest(self) -> str:
        """SHA-256 of the file."""
        return sha256_of(self.path)

    def rejections(self, elements: Sequence[str], capacity: int) -> list[RejectedRow]:
        """The rows that no sample can be made of, in their order."""
        allowed = np.zeros(HEAVIEST + 1, bool)
        allowed[[number for number, symbol in _numbered() if symbol in elements]] = True
        foreign = np.bincount(
            np.repeat(np.arange(len(self)), self.atoms.lengths), ~allowed[self.atoms.values], minlength=len(self)
        )
        sizes = self.atoms.lengths
        usable = (self.faults == None) & (sizes > 0) & (sizes <= capacity) & (foreign == 0)  # noqa: E711
        return [self._rejection(row, elements, capacity) for row in np.flatnonzero(~usable).tolist()]

    def _rejection(self, row: int, elements: Sequence[str], capacity: int) -> RejectedRow:
        size = int(self.atoms.lengths[row])
        if self.faults[row] is not None:
            reason, _, detail = str(self.faults[row]).partition(": ")
            return RejectedRow(row, reason, detail or reason)
        if not size:
            return RejectedRow(row, "no scaffold", f"{self.identifiers[row]} has no scaffold")
        if size > capacity:
            return RejectedRow(row, "too large", f"{size} scaffold atoms, at most {capacity} are allowed")
        unknown = next(symbol for symbol in _symbols(self.atoms[row].tolist()) if symbol not in elements)
        return RejectedRow(row, "unknown element", f"{unknown} is not one of {' '.join(elements)}")


def fold_fraction(formula: str) -> float:
    """Where in [0, 1) a formula lies: train below 0.8, validation below 0.9, else test: MassBank data's rule."""
    digest = hashlib.sha256(f"massbank-fold|{formula}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def read_spectrum_table(path: Path, tolerance: float) -> SpectrumTable:
    """The spectra of a file with structures, whatever of the formats it is in."""
    ready = prepared(path, tolerance)
    peaks = load_annotated(ready)
    found = pq.read_table(ready, columns=[name for name in pq.read_schema(ready).names if name not in _PEAKS])
    if not len(found):
        raise ValueError(f"{path} has no rows")
    atoms, bonds = Ragged.of(found["scaffold_atoms"]), Ragged.of(found["scaffold_bonds"])
    identifiers = _first_of(found, "accession", "identifier")
    formulas = _texts(found, "formula")
    keys = np.array([key and key.partition("-")[0] for key in _texts(found, "inchikey")], object)
    molecules = _first_known(_texts(found, "inchikey14"), keys, _texts(found, "smiles"), identifiers)
    energies, precursors = _numbers(found, "collision_energy"), _numbers(found, "precursor_mz")
    return SpectrumTable(
        path=path,
        peaks=peaks,
        identifiers=identifiers,
        molecules=molecules,
        formulas=formulas,
        groups=_first_known(_texts(found, "group_formula"), formulas, molecules),
        adducts=_texts(found, "adduct"),
        energies=energies,
        precursors=np.where(precursors == 0, np.nan, precursors),
        folds=_folds(found),
        atoms=atoms,
        bonds=bonds,
        faults=_faults(_texts(found, "fault"), peaks, precursors, energies, atoms, bonds),
    )


_PEAKS = ("mzs", "intensities", "peak_counts", "peak_ppm")


def _faults(
    faults: Texts,
    peaks: AnnotatedPeaks,
    precursors: NDArray[np.float64],
    energies: NDArray[np.float64],
    atoms: Ragged,
    bonds: Ragged,
) -> Texts:
    """What was wrong when the file was prepared, or is with the peaks, what is said of them, or the scaffold."""
    row_of_peak = np.repeat(np.arange(len(faults)), np.diff(peaks.offsets))
    bad = ~(np.isfinite(peaks.intensities) & (peaks.intensities > 0) & (peaks.mzs > 0) & (peaks.mzs <= MOST_MZ))
    for row in np.flatnonzero((precursors < 0) | (precursors > MOST_MZ)).tolist():
        faults[row] = f"bad precursor: precursor_mz must be positive and at most {MOST_MZ:g}"
    for row in np.flatnonzero((energies < 0) | np.isinf(energies)).tolist():
        faults[row] = "bad energy: collision_energy must be a number of eV, at least 0"
    for row in np.unique(row_of_peak[bad]).tolist():
        faults[row] = "bad peaks: m/z and intensities must be positive numbers"
    for row in np.flatnonzero(np.diff(peaks.offsets) == 0).tolist():
        faults[row] = faults[row] or "no peaks"
    for row in _bad_bonds(atoms, bonds):
        faults[row] = "bad scaffold: scaffold_bonds must hold triples of two atoms and a type, 1 to 4"
    return faults


def _bad_bonds(atoms: Ragged, bonds: Ragged) -> list[int]:
    """Rows whose bonds are no triples, or join what is not there, or have a type that there is not."""
    broken = bonds.lengths % 3 != 0
    sound = np.repeat(~broken, bonds.lengths)
    first, second, code = bonds.values[sound].reshape(-1, 3).astype(np.int64).T
    row = np.repeat(np.arange(len(bonds.lengths)), bonds.lengths)[sound][::3]
    wrong = (np.maximum(first, second) >= atoms.lengths[row]) | (first == second)
    wrong |= (code < 1) | (code >= len(BONDS))
    broken[row[wrong]] = True
    return [int(at) for at in np.flatnonzero(broken)]


def _folds(table: pa.Table) -> Texts | None:
    folds = _texts(table, "fold")
    return None if all(name is None for name in folds) else folds


def _texts(table: pa.Table, name: str) -> Texts:
    if name not in table.column_names:
        return np.full(len(table), None, object)
    return np.array(table[name].cast(pa.string()).to_pylist(), object)


def _numbers(table: pa.Table, name: str) -> NDArray[np.float64]:
    if name not in table.column_names:
        return np.full(len(table), np.nan)
    return np.asarray(table[name].cast(pa.float64()).to_numpy(), np.float64)


def _first_of(table: pa.Table, *names: str) -> Texts:
    rows = np.array([f"row {row}" for row in range(len(table))], object)
    return _first_known(*(_texts(table, name) for name in names), rows)


def _first_known(*columns: Texts) -> Texts:
    known = columns[0].copy()
    for column in columns[1:]:
        missing = np.array([value is None for value in known])
        known[missing] = column[missing]
    return known


def _numbered() -> list[tuple[int, str]]:
    from rdkit.Chem import GetPeriodicTable

    table = GetPeriodicTable()
    return [(number, table.GetElementSymbol(number)) for number in range(2, HEAVIEST + 1)]


def _symbols(numbers: Sequence[int]) -> list[str]:
    named = dict(_numbered())
    return [named.get(number, f"element {number}") for number in numbers]


def element_codes(elements: Sequence[str]) -> NDArray[np.int64]:
    """(119,) code of every atomic number, -1 for those that are not among the elements."""
    codes = np.full(HEAVIEST + 1, -1, np.int64)
    for number, symbol in _numbered():
        if symbol in elements:
            codes[number] = list(elements).index(symbol)
    return codes
