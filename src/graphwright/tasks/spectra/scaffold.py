"""The Murcko scaffold of a molecule, as the MassBank data has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphwright.graphs.molecules import BONDS, MoleculeError, Reason, parse_smiles

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
class Structure:
    """What a data set needs to know of a measured molecule."""

    connectivity: str
    formula: str
    scaffold: Scaffold


def structure_of(smiles: str) -> Structure:
    """Connectivity (first block of the InChIKey), formula and scaffold of a SMILES, or a `MoleculeError`."""
    from rdkit import Chem, rdBase
    from rdkit.Chem.rdMolDescriptors import CalcMolFormula

    molecule = parse_smiles(smiles)
    with rdBase.BlockLogs():
        key: str = Chem.MolToInchiKey(molecule)  # type: ignore[no-untyped-call]
    return Structure(
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
