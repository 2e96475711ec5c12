"""Which columns of a table hold the SMILES and the identifiers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from graphwright.tasks.molecules.prepare.lines import SourceError

SMILES_NAMES = ("smiles", "canonical_smiles", "canonicalsmiles", "isomeric_smiles", "isomericsmiles", "isosmiles")
ID_NAMES = ("id", "cid", "source_id", "molecule_id", "mol_id", "compound_id", "chembl_id", "zinc_id", "name")


def smiles_column(path: Path, names: Sequence[str], wanted: str | None) -> int:
    """Position of the named column, or of the one that its name gives away."""
    if wanted is not None:
        return _named(path, names, wanted)
    found = _guess(names, SMILES_NAMES)
    if found is None:
        candidates = [at for at, name in enumerate(names) if "smiles" in name.lower()]
        if len(candidates) != 1:
            problem = "no column is called smiles" if not candidates else "several columns could hold the SMILES"
            raise SourceError(f"{path}: {problem}; name one with --smiles-column, there are {_shown(names)}")
        found = candidates[0]
    return found


def id_column(path: Path, names: Sequence[str], wanted: str | None) -> int | None:
    """Position of the named column, or of a usual name; None: rows are identified by their number."""
    return _guess(names, ID_NAMES) if wanted is None else _named(path, names, wanted)


def _named(path: Path, names: Sequence[str], wanted: str) -> int:
    if wanted not in names:
        raise SourceError(f"{path} has no column {wanted!r}, there are {_shown(names)}")
    return list(names).index(wanted)


def _guess(names: Sequence[str], usual: Sequence[str]) -> int | None:
    lower = [name.strip().lower() for name in names]
    return next((lower.index(name) for name in usual if name in lower), None)


def _shown(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name[:40]) for name in names[:20])
    return shown + (f" and {len(names) - 20} more" if len(names) > 20 else "")
