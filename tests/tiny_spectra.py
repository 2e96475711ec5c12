"""A small file of spectra in the columns of the MassBank data, and a run on it, shared by tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from graphwright.settings import Run
from graphwright.spectra import parse_adduct, parse_formula, table_of
from graphwright.spectra.formula import ELECTRON_MASS, MASS
from graphwright.tasks.spectra import SpectrumTask
from graphwright.tasks.spectra.prepared import structure_of
from tiny import tiny_settings

FOLDS = {
    "train": [
        "Cc1ccccc1",
        "CCc1ccccn1",
        "OC1CCCCC1",
        "Nc1ccco1",
        "CC1CCNC1",
        "OCc1cccs1",
        "Clc1ccccc1C",
        "CC1CC1",
    ],
    "val": ["CCCc1ccccc1", "OCCc1ccccn1", "CC1CCOC1"],
    "test": ["CCCCc1ccccc1", "NCCc1ccccn1", "CCC1CCCO1"],
}
SPECTRA = 3
"""Of each molecule."""


def fragments(formula: str, adduct: str, seed: int, count: int = 7) -> tuple[list[float], list[float]]:
    """m/z of some sub-formulas of an ion, exact to a ppm, one that nothing explains, and intensities."""
    rng = np.random.default_rng(seed)
    table = table_of(formula, adduct)
    possible = np.flatnonzero(table.most_hydrogens >= 1)
    rows = rng.choice(possible, min(count, len(possible)), replace=False)
    mzs = table.masses[rows] + MASS["H"] - ELECTRON_MASS
    mzs = np.unique(np.append(mzs * (1 + 1e-6 * rng.standard_normal(len(rows))), 33.3333))
    return mzs.tolist(), rng.uniform(0.01, 1, len(mzs)).tolist()


def row_of(smiles: str, fold: str, number: int) -> dict[str, Any]:
    """One spectrum as a row of the MassBank data."""
    structure = structure_of(smiles)
    adduct = "[M+Na]+" if number == 2 else "[M+H]+"
    mzs, intensities = fragments(structure.formula, adduct, number)
    return {
        "accession": f"{structure.connectivity}-{number}",
        "adduct": adduct,
        "collision_energy": None if number == 1 else 10.0 * (1 + number),
        "precursor_mz": parse_adduct(adduct).mz(parse_formula(structure.formula).mass),
        "mzs": mzs,
        "intensities": intensities,
        "smiles": smiles,
        "inchikey14": structure.connectivity,
        "formula": structure.formula,
        "scaffold_smiles": structure.scaffold.smiles,
        "scaffold_atoms": structure.scaffold.atoms,
        "scaffold_bonds": structure.scaffold.bonds,
        "fold": fold,
    }


SCHEMA = pa.schema(
    [
        *[(name, pa.string()) for name in ("accession", "adduct")],
        ("collision_energy", pa.float32()),
        ("precursor_mz", pa.float64()),
        *[(name, pa.list_(pa.float32())) for name in ("mzs", "intensities")],
        *[(name, pa.string()) for name in ("smiles", "inchikey14", "formula", "scaffold_smiles")],
        *[(name, pa.list_(pa.uint8())) for name in ("scaffold_atoms", "scaffold_bonds")],
        ("fold", pa.string()),
    ]
)


def rows() -> list[dict[str, Any]]:
    """Every molecule's spectra."""
    return [row_of(smiles, fold, at) for fold, names in FOLDS.items() for smiles in names for at in range(SPECTRA)]


def write_spectra(path: Path, given: list[dict[str, Any]] | None = None) -> Path:
    """A Parquet file of rows, of all by default."""
    pq.write_table(pa.Table.from_pylist(rows() if given is None else given, SCHEMA), path)
    return path


def spectrum_settings(path: Path, *, task: dict[str, Any] | None = None, **sections: dict[str, Any]) -> Run:
    """A run of a few steps on a file."""
    sections["model"] = {"encoder_layers": 1, "encoder_heads": 2} | sections.get("model", {})
    tiny = tiny_settings(**sections).model_dump(exclude={"task"})
    del tiny["model"]["encoder"]
    return Run.model_validate(tiny | {"task": SpectrumTask(**{"data": str(path), "capacity": 8} | (task or {}))})


def write_mgf(path: Path, given: list[dict[str, Any]], *, formula: bool) -> Path:
    """The spectra of some rows, as an instrument's software would hand them over."""
    lines = []
    for row in given:
        lines += ["BEGIN IONS", f"TITLE={row['accession']}", f"PEPMASS={row['precursor_mz']:.5f}", "CHARGE=1+"]
        lines += [f"ADDUCT={row['adduct']}", *([f"FORMULA={row['formula']}"] if formula else [])]
        lines += [f"{mz:.5f} {height:.4f}" for mz, height in zip(row["mzs"], row["intensities"], strict=True)]
        lines += ["END IONS", ""]
    path.write_text("\n".join(lines))
    return path
