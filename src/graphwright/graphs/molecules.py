"""Molecules as graphs: heavy atoms labelled by element, bonds by type."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

import numpy as np

from graphwright.graphs.graph import NO_EDGE, Graph, Vocabulary
from graphwright.graphs.molecule_structure import (
    Bonds,
    MoleculeError,
    Reason,
    Structure,
    StructureSearch,
    element_symbols,
)

if TYPE_CHECKING:
    from rdkit.Chem import Mol, RWMol

__all__ = [
    "BONDS",
    "MoleculeError",
    "Reason",
    "graph_from_molecule",
    "is_molecule",
    "molecule_from_graph",
    "molecule_vocabulary",
    "parse_smiles",
    "smiles_from_graph",
    "usual_molecule",
]

BONDS = (NO_EDGE, "single", "double", "triple", "aromatic")
"""Edge classes of every molecule, as RDKit types bonds after it has perceived aromaticity."""

_TRIALS = 30
"""Structures shown to RDKit before a graph is given up; real molecules take one, rarely a few."""

_BOND_NAMES = {name.upper(): name for name in BONDS[1:]}


def molecule_vocabulary(symbols: Iterable[str]) -> Vocabulary:
    """The vocabulary of molecules made of the elements named, in that order."""
    names = tuple(symbols)
    for name in names:
        if name not in element_symbols():
            raise ValueError(f"{name!r} is not the symbol of an element heavier than hydrogen")
    return Vocabulary(names, BONDS)


LONGEST_SMILES = 10_000
"""Characters: of 100,000 atoms RDKit takes 6 GB and most of a minute."""


def parse_smiles(text: str) -> Mol:
    """A sanitised RDKit molecule of a SMILES; what RDKit would log is in the error instead."""
    from rdkit import Chem, rdBase

    if not text.strip():
        raise MoleculeError(Reason.EMPTY, f"{text!r} names no atom")
    if len(text) > LONGEST_SMILES:
        raise MoleculeError(
            Reason.TOO_LARGE, f"{text[:20]!r}...: {len(text):,} characters, {LONGEST_SMILES:,} at most"
        )
    # RDKit stops at bytes that are no ASCII, and would take what comes before them for the whole.
    if not (word := text.split()[0]).isascii() or not word.isprintable():
        raise MoleculeError(Reason.UNPARSABLE, f"{text!r} is not SMILES")
    with rdBase.BlockLogs():
        molecule = cast("Mol | None", Chem.MolFromSmiles(text.strip()))
        if molecule is not None:
            return molecule
        raw = cast("Mol | None", Chem.MolFromSmiles(text.strip(), sanitize=False))
        if raw is None:
            raise MoleculeError(Reason.UNPARSABLE, f"{text!r} is not SMILES")
        problems = Chem.DetectChemistryProblems(raw)
    told = problems[0].Message() if problems else "RDKit refuses it"
    raise MoleculeError(Reason.UNSANITIZABLE, f"{text!r}: {told}")


def graph_from_molecule(molecule: Mol, vocabulary: Vocabulary, capacity: int | None = None) -> Graph:
    """The heavy atoms of a sanitised molecule in its own order; hydrogens, charges and stereo are dropped.

    Refuses, by a `MoleculeError` with its reason, what has no atom, several fragments, more than `capacity`
    heavy atoms, or an element or bond type that the vocabulary does not name.
    """
    from rdkit import Chem

    symbols = [atom.GetSymbol() for atom in molecule.GetAtoms()]
    if "H" in symbols:
        molecule = _without_hydrogens(molecule)
        symbols = [atom.GetSymbol() for atom in molecule.GetAtoms()]
    size = len(symbols)
    if size == 0:
        raise MoleculeError(Reason.EMPTY, "the molecule has no heavy atom")
    if len(Chem.GetMolFrags(molecule)) > 1:
        raise MoleculeError(Reason.SEVERAL_FRAGMENTS, "the molecule is in several parts")
    if capacity is not None and size > capacity:
        raise MoleculeError(Reason.TOO_LARGE, f"{size} heavy atoms, at most {capacity} are allowed")
    elements = {name: code for code, name in enumerate(vocabulary.nodes)}
    unknown = next((symbol for symbol in symbols if symbol not in elements), None)
    if unknown is not None:
        raise MoleculeError(Reason.UNKNOWN_ELEMENT, f"{unknown} is not one of {' '.join(vocabulary.nodes)}")
    ends, codes = [], []
    for bond in molecule.GetBonds():
        kind = bond.GetBondType().name
        if kind not in _BOND_NAMES:
            raise MoleculeError(Reason.UNKNOWN_BOND, f"a bond is {kind.lower()}, none of {' '.join(BONDS[1:])}")
        ends.append((bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()))
        codes.append(_BOND_NAMES[kind])
    return Graph(
        np.array([elements[symbol] for symbol in symbols], np.int64),
        np.array(ends, np.int64).reshape(-1, 2),
        np.array(vocabulary.edge_codes(codes), np.int64),
        vocabulary,
    )


def _without_hydrogens(molecule: Mol) -> Mol:
    from rdkit import Chem, rdBase

    with rdBase.BlockLogs():
        try:
            return Chem.RemoveAllHs(molecule)
        except ValueError as error:
            raise MoleculeError(Reason.UNSANITIZABLE, f"without its explicit hydrogens: {error}") from error


def is_molecule(graph: Graph) -> bool:
    """Whether `usual_molecule` accepts the graph."""
    try:
        usual_molecule(graph)
    except MoleculeError:
        return False
    return True


def usual_molecule(graph: Graph) -> Mol:
    """The molecule of a graph, if a chemist would accept it; otherwise a `MoleculeError` that says why not.

    RDKit accepts it and types its bonds as the graph does, it is in one part and neutral as a whole, and every
    atom is of a usual kind (`usual_kinds`): a charge such as that of nitro groups, azides and isocyanides, but
    no F+ and no carbanion beside a carbon chain, and no hydrogen on a sulfoxide's sulfur.
    """
    from rdkit import Chem

    molecule = _rebuilt(graph, usual=True)
    parts = len(Chem.GetMolFrags(molecule))
    if parts > 1:
        raise MoleculeError(Reason.SEVERAL_FRAGMENTS, f"the graph is in {parts} parts")
    charge = Chem.GetFormalCharge(molecule)
    if charge:
        raise MoleculeError(Reason.NET_CHARGE, f"{Chem.MolToSmiles(molecule)} has the charge {charge:+d}")
    return molecule


def smiles_from_graph(graph: Graph) -> str:
    """The canonical SMILES of `molecule_from_graph`."""
    from rdkit import Chem

    return Chem.MolToSmiles(molecule_from_graph(graph))


def molecule_from_graph(graph: Graph) -> Mol:
    """A sanitised molecule whose atoms are the nodes, in order, and whose bond types are the edge labels.

    The graph says nothing of charges and hydrogens: they are the cheapest (net charge first, then charges) for
    which RDKit perceives exactly the graph's bond types. A graph in several parts gives a molecule in as many.
    """
    return _rebuilt(graph, usual=False)


def _rebuilt(graph: Graph, *, usual: bool) -> Mol:
    if graph.size == 0:
        raise MoleculeError(Reason.EMPTY, "the graph has no node")
    bonds = _bonds(graph)
    search = StructureSearch(bonds, usual=usual)
    fault: set[int] = set()
    for _ in range(_TRIALS):
        structure = search.best()
        if structure is None:
            fault |= search.impossible()
            break
        molecule = _sanitised(bonds, structure)
        if molecule is None:
            fault = set()
            touched = list(range(len(search.systems)))
        else:
            wrong = _retyped(molecule, bonds)
            if not wrong:
                return molecule
            fault = _aromatic_region(molecule, bonds, wrong)
            touched = [at for at, system in enumerate(search.systems) if system & fault]
        if not touched:
            break  # no choice of ours bears on the bonds that RDKit sees otherwise
        for system in touched:
            search.refuse(system)
    raise MoleculeError(
        Reason.UNSANITIZABLE,
        f"no charges and hydrogens make a molecule of {_formula(graph)} with these bonds",
        tuple(sorted(fault)),
    )


def _bonds(graph: Graph) -> Bonds:
    localised, aromatic = {}, []
    for (first, second), name in zip(graph.edges.tolist(), graph.edge_names, strict=True):
        if name not in BONDS:
            raise MoleculeError(Reason.UNKNOWN_BOND, f"{name!r} is none of {' '.join(BONDS[1:])}")
        if name == "aromatic":
            aromatic.append((first, second))
        else:
            localised[first, second] = BONDS.index(name)
    return Bonds(tuple(graph.node_names), localised, tuple(aromatic))


def _sanitised(bonds: Bonds, structure: Structure) -> Mol | None:
    """The molecule of a structure, or None where RDKit refuses it or finds an unpaired electron."""
    from rdkit import Chem

    orders = (Chem.BondType.ZERO, Chem.BondType.SINGLE, Chem.BondType.DOUBLE, Chem.BondType.TRIPLE)
    molecule = Chem.RWMol()
    for symbol, charge, hydrogens in zip(bonds.symbols, structure.charges, structure.hydrogens, strict=True):
        atom = Chem.Atom(symbol)
        atom.SetFormalCharge(charge)
        atom.SetNumExplicitHs(hydrogens)
        atom.SetNoImplicit(True)
        molecule.AddAtom(atom)
    for (first, second), order in bonds.localised.items():
        molecule.AddBond(first, second, orders[order])
    for pair in bonds.aromatic:
        molecule.AddBond(*pair, orders[2 if pair in structure.double_bonds else 1])
    return accepted(molecule)


def accepted(molecule: RWMol) -> Mol | None:
    """The molecule as RDKit completes it, or None where it refuses it or finds an unpaired electron."""
    from rdkit import Chem, rdBase

    with rdBase.BlockLogs():
        try:
            Chem.SanitizeMol(molecule)
        except ValueError:
            return None
    if any(atom.GetNumRadicalElectrons() for atom in molecule.GetAtoms()):
        return None
    return molecule.GetMol()


def _retyped(molecule: Mol, bonds: Bonds) -> list[tuple[int, int]]:
    """The pairs whose bond RDKit types otherwise than the graph does."""
    wrong = []
    aromatic = set(bonds.aromatic)
    for bond in molecule.GetBonds():
        pair = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
        kind = "aromatic" if pair in aromatic else BONDS[bonds.localised[pair]]
        if _BOND_NAMES.get(bond.GetBondType().name) != kind:
            wrong.append(pair)
    return wrong


def _aromatic_region(molecule: Mol, bonds: Bonds, wrong: list[tuple[int, int]]) -> set[int]:
    """The atoms that bonds aromatic by graph or by RDKit join to a wrong pair: what the disagreement is about."""
    perceived = [bond for bond in molecule.GetBonds() if bond.GetIsAromatic()]
    edges = [*bonds.aromatic, *((bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in perceived)]
    region = {atom for pair in wrong for atom in pair}
    grown = True
    while grown:
        near = {atom for pair in edges if region.intersection(pair) for atom in pair}
        grown = not near <= region
        region |= near
    return region


def _formula(graph: Graph) -> str:
    names = graph.node_names
    return "".join(f"{name}{names.count(name)}" for name in sorted(set(names)))
