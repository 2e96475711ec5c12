"""Any file of spectra with structures as an annotated Parquet file in the user's cache, and its rows in memory."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from graphwright.files import cache_folder, cached, sha256_of, shipped_table
from graphwright.graphs.molecules import BONDS, MoleculeError, Reason, parse_smiles
from graphwright.spectra import (
    AnnotatedPeaks,
    Spectrum,
    SpectrumError,
    annotate_parquet,
    clean,
    load_annotated,
    read_spectra,
)
from graphwright.spectra.spectrum import MOST_MZ
from graphwright.tasks.split import SPLIT_NAMES, Split, check_names
from graphwright.tasks.task import RejectedRow

if TYPE_CHECKING:
    from rdkit.Chem import Mol


BOND_CODES = {name.upper(): code for code, name in enumerate(BONDS)}


@dataclass(frozen=True)
class Scaffold:
    """atoms: (n,) atomic numbers. bonds: flat triples of two atoms and a code of `BONDS`."""

    smiles: str
    atoms: tuple[int, ...]
    bonds: tuple[int, ...]


@dataclass(frozen=True)
class MeasuredStructure:
    """What a data set needs to know of a measured molecule."""

    connectivity: str
    formula: str
    scaffold: Scaffold


def structure_of(smiles: str) -> MeasuredStructure:
    """Connectivity (first block of the InChIKey), formula and scaffold of a SMILES, or a `MoleculeError`."""
    from rdkit import Chem, rdBase
    from rdkit.Chem.rdMolDescriptors import CalcMolFormula

    molecule = parse_smiles(smiles)
    with rdBase.BlockLogs():
        key: str = Chem.MolToInchiKey(molecule)  # type: ignore[no-untyped-call]
    return MeasuredStructure(
        key.partition("-")[0] or Chem.MolToSmiles(molecule, isomericSmiles=False),
        CalcMolFormula(molecule).partition("+")[0].partition("-")[0],
        murcko_scaffold(molecule),
    )


def murcko_scaffold(molecule: Mol) -> Scaffold:
    """Rings, what links them, and atoms double-bonded to either, without stereo; no ring is a `MoleculeError`."""
    from rdkit import Chem
    from rdkit.Chem.Scaffolds.MurckoScaffold import GetScaffoldForMol

    flat = Chem.Mol(molecule)
    Chem.RemoveStereochemistry(flat)
    cut: Mol = GetScaffoldForMol(flat)  # type: ignore[no-untyped-call]
    if cut.GetNumAtoms() == 0:
        raise MoleculeError(Reason.EMPTY, f"{Chem.MolToSmiles(flat)} has no ring, so no scaffold")
    # Cutting an N-oxide leaves a proton instead of the oxygen.
    for atom in cut.GetAtoms():
        if atom.GetFormalCharge() == 1 and atom.GetTotalNumHs() and atom.GetSymbol() == "N":
            atom.SetFormalCharge(0)
            atom.SetNumExplicitHs(max(atom.GetNumExplicitHs() - 1, 0))
    # Through its SMILES, so that atoms and aromaticity are those that anyone reads from it.
    parsed = parse_smiles(Chem.MolToSmiles(cut))
    bonds: list[int] = []
    for bond in parsed.GetBonds():
        kind = bond.GetBondType().name
        if kind not in BOND_CODES:
            raise MoleculeError(Reason.UNKNOWN_BOND, f"a bond is {kind.lower()}, none of {' '.join(BONDS[1:])}")
        bonds += [bond.GetBeginAtomIdx(), bond.GetEndAtomIdx(), BOND_CODES[kind]]
    atoms = tuple(atom.GetAtomicNum() for atom in parsed.GetAtoms())
    return Scaffold(Chem.MolToSmiles(parsed), atoms, tuple(bonds))


VERSION = 1
"""Version of the prepared columns; increase it when they change, so that no old file is used."""
TARGET = ("scaffold_atoms", "scaffold_bonds")
ROWS_AT_ONCE = 4096
SCHEMA = pa.schema(
    [
        ("identifier", pa.string()),
        ("mzs", pa.list_(pa.float32())),
        ("intensities", pa.list_(pa.float32())),
        ("precursor_mz", pa.float64()),
        ("adduct", pa.string()),
        ("collision_energy", pa.float32()),
        ("formula", pa.string()),
        ("group_formula", pa.string()),
        ("inchikey14", pa.string()),
        ("scaffold_atoms", pa.list_(pa.uint8())),
        ("scaffold_bonds", pa.list_(pa.uint8())),
        ("fold", pa.string()),
        ("fault", pa.string()),
    ]
)


def find_spectra(name: str) -> Path:
    """The file of a shipped data set's name, or of a path."""
    path = shipped_table(name) or Path(name)
    if not path.is_file():
        raise ValueError(f"no data {name!r}: give a file of spectra with structures, or massbank_ms2scaffold")
    return path


def prepared(path: Path, tolerance: float) -> Path:
    """The annotated file of a file of spectra, from the cache if it was made before.

    Parquet files that have the target's columns are taken row by row as they are; of others, the spectra are
    cleaned, and the scaffolds are those of their SMILES.
    """
    name = f"{path.stem}-{sha256_of(path)[:16]}-{tolerance:g}ppm-{VERSION}.parquet"
    target = cached(cache_folder() / "spectra" / name)
    if target.exists():
        return target
    try:
        # Others may be at the same file: each makes its own, and the last one stays.
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            plain, annotated = path, Path(folder) / target.name
            if not _has_target(path):
                plain = Path(folder) / "plain.parquet"
                _write(path, plain)
            annotate_parquet(plain, annotated, tolerance, on_error=_left_raw)
            annotated.replace(target)
    except OSError as error:
        if error.filename is not None and not str(error.filename).startswith(str(target.parent)):
            raise  # of the file that is read
        raise ValueError(
            f"cannot write to {target.parent}: {error.strerror}; name another folder in GRAPHWRIGHT_CACHE"
        ) from error
    return target


def _left_raw(problem: SpectrumError) -> None:
    """A formula or adduct that cannot be used leaves the peaks of its row unexplained; bad peaks are met again."""


def _has_target(path: Path) -> bool:
    if path.suffix.lower() != ".parquet":
        return False
    try:
        return set(TARGET) <= set(pq.read_schema(path).names)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{path} cannot be read as Parquet: {str(error).splitlines()[0]}") from error


def _write(path: Path, plain: Path) -> None:
    with pq.ParquetWriter(plain, SCHEMA, compression="zstd") as writer:
        rows: list[dict[str, Any]] = []
        for row in _rows(path):
            rows.append(row)
            if len(rows) == ROWS_AT_ONCE:
                writer.write_table(pa.Table.from_pylist(rows, SCHEMA))
                rows = []
        writer.write_table(pa.Table.from_pylist(rows, SCHEMA))


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    """One per spectrum; those that cannot be read come with their fault, before the next that can."""
    problems: list[SpectrumError] = []
    structures = cache(_structure)
    for spectrum in read_spectra(path, on_error=problems.append):
        yield from (_faulty(problem) for problem in problems)
        problems.clear()
        yield _row(spectrum, structures(spectrum.smiles))
    yield from (_faulty(problem) for problem in problems)


def _structure(smiles: str | None) -> MeasuredStructure | str:
    """The structure of a SMILES, or what is wrong with it."""
    if smiles is None:
        return "no structure: a SMILES was expected, for the scaffold"
    try:
        return structure_of(smiles)
    except MoleculeError as error:
        return f"{error.reason}: {error.detail}"


def _faulty(problem: SpectrumError) -> dict[str, Any]:
    return {
        "identifier": str(problem.origin),
        "mzs": [],
        "intensities": [],
        "fault": f"unreadable: {problem.problem}",
    }


def _row(spectrum: Spectrum, structure: MeasuredStructure | str) -> dict[str, Any]:
    try:
        tidy = clean(spectrum)
    except ValueError as error:
        return _faulty(SpectrumError(spectrum.origin, str(error))) | {"fold": spectrum.fold}
    row = {
        "identifier": spectrum.identifier or str(spectrum.origin),
        "mzs": tidy.mzs,
        "intensities": tidy.intensities,
        "precursor_mz": spectrum.precursor_mz,
        "adduct": spectrum.adduct,
        "collision_energy": spectrum.collision_energy,
        "formula": spectrum.formula,
        "fold": spectrum.fold,
    }
    if isinstance(structure, str):
        return row | {"fault": structure}
    return row | {
        "group_formula": structure.formula,
        "inchikey14": structure.connectivity,
        "scaffold_atoms": structure.scaffold.atoms,
        "scaffold_bonds": structure.scaffold.bonds,
    }


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
        """The lists of a Parquet column; null ones are empty."""
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
        size = len(self.atoms[row])
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
    table = pq.read_table(ready, columns=[name for name in pq.read_schema(ready).names if name not in _PEAKS])
    if not len(table):
        raise ValueError(f"{path} has no rows")
    atoms, bonds = Ragged.of(table["scaffold_atoms"]), Ragged.of(table["scaffold_bonds"])
    identifiers = _first_of(table, "accession", "identifier")
    formulas = _texts(table, "formula")
    keys = np.array([key and key.partition("-")[0] for key in _texts(table, "inchikey")], object)
    molecules = _first_known(_texts(table, "inchikey14"), keys, _texts(table, "smiles"), identifiers)
    energies, precursors = _numbers(table, "collision_energy"), _numbers(table, "precursor_mz")
    return SpectrumTable(
        path=path,
        peaks=peaks,
        identifiers=identifiers,
        molecules=molecules,
        formulas=formulas,
        groups=_first_known(_texts(table, "group_formula"), formulas, molecules),
        adducts=_texts(table, "adduct"),
        energies=energies,
        precursors=np.where(precursors == 0, np.nan, precursors),
        folds=_folds(table),
        atoms=atoms,
        bonds=bonds,
        faults=_faults(_texts(table, "fault"), peaks, precursors, energies, atoms, bonds),
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
