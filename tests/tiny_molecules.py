"""A small file of molecules and a run on it, shared by tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from rdkit.Chem import Mol, MolFromSmiles

from graphwright.settings import Run
from graphwright.tasks.molecules import FingerprintTask, find_data
from tiny import tiny_settings

SMILES = [
    "CCO",
    "CCN",
    "CC(C)O",
    "c1ccccc1",
    "CC#N",
    "C1CC1",
    "CC(=O)N",
    "COC",
    "CCF",
    "OCC(O)C",
    "NCCO",
    "C1CCOC1",
    "CC=O",
    "C=CC",
    "c1ccncc1",
    "CC(C)C",
    "OC1CC1",
    "CNC",
    "CC(=O)C",
    "N#CC=O",
    "C1COC1",
    "CCC",
    "CCCC",
    "CCCO",
    "CCCN",
    "c1ccoc1",
    "C1=CC=CC1",
    "FC(F)F",
    "CC(F)C",
    "OCCO",
]
BAD = {
    "not_smiles": "unparsable",
    "CCCCCCCCCCCC": "too large",
    "C[Si]C": "unknown element",
    "C.C": "several fragments",
}
"""Rows that no sample is made of, and why."""


def training_molecules(count: int) -> list[Mol]:
    """The first molecules of the training split of the larger shipped set."""
    table = pq.read_table(find_data("molecules"), columns=["smiles", "split"])[: 2 * count].to_pylist()
    return [MolFromSmiles(row["smiles"]) for row in table if row["split"] == "train"][:count]


def write_molecules(path: Path, smiles: list[str], splits: list[str] | None = None) -> Path:
    """A CSV of molecules."""
    rows = zip(smiles, splits, strict=True) if splits else ((each,) for each in smiles)
    header = "smiles,split" if splits else "smiles"
    path.write_text("\n".join([header, *(",".join(row) for row in rows)]) + "\n")
    return path


def tiny_file(folder: Path) -> Path:
    """Every molecule in every split, with the bad rows among them."""
    names = [*SMILES[:5], *BAD, *SMILES[5:]]
    splits = [split for split in ("train", "val", "test") for _ in names]
    return write_molecules(folder / "few.csv", names * 3, splits)


def molecule_settings(path: Path, *, task: dict[str, Any] | None = None, **sections: dict[str, Any]) -> Run:
    """A run of a few steps on a file."""
    wanted = {"data": str(path), "capacity": 9, "elements": "C O N F"} | (task or {})
    sections["model"] = {"encoder_layers": 1, "encoder_heads": 2} | sections.get("model", {})
    tiny = tiny_settings(**sections).model_dump(exclude={"task"})
    del tiny["model"]["encoder"]
    return Run.model_validate(tiny | {"task": FingerprintTask(**wanted)})
