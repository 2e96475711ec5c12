"""Any file of spectra with structures as one annotated Parquet file with scaffolds, kept in the user's cache."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from graphwright.files import cache_folder, sha256_of, shipped_table
from graphwright.graphs.molecules import BONDS, MoleculeError, Reason, parse_smiles
from graphwright.spectra import Spectrum, SpectrumError, annotate_parquet, clean, read_spectra

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
    # Cutting an N-oxide leaves a proton in the place of the oxygen.
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
"""Of the prepared columns: a change of them needs another number, lest an old file be taken."""
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
    target = cache_folder() / "spectra" / f"{path.stem}-{sha256_of(path)[:16]}-{tolerance:g}ppm-{VERSION}.parquet"
    if target.exists():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # Others may be at the same file: each makes its own, and the last one stays.
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            plain, annotated = path, Path(folder) / target.name
            if not _has_target(path):
                plain = Path(folder) / "plain.parquet"
                _write(path, plain)
            annotate_parquet(plain, annotated, tolerance, on_error=_left_raw)
            annotated.replace(target)
    except PermissionError as error:
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
