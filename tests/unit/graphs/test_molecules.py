"""Molecules to graphs and back."""

import copy
import pickle
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from graphwright.graphs import Graph, Vocabulary, is_isomorphic
from graphwright.graphs.molecule_structure import VALENCES, usual_kinds
from graphwright.graphs.molecules import (
    BONDS,
    MoleculeError,
    Reason,
    graph_from_molecule,
    is_molecule,
    molecule_from_graph,
    molecule_vocabulary,
    parse_smiles,
    smiles_from_graph,
    usual_molecule,
)

Chem = pytest.importorskip("rdkit.Chem")

VOCABULARY = molecule_vocabulary(["C", "N", "O", "F", "S", "Cl", "Br", "I", "P", "B", "Si"])
DATA = Path(__file__).parents[3] / "data"


def graph_of(smiles: str) -> Graph:
    return graph_from_molecule(parse_smiles(smiles), VOCABULARY)


def reason_of(smiles: str, capacity: int | None = None) -> Reason:
    with pytest.raises(MoleculeError) as caught:
        graph_from_molecule(parse_smiles(smiles), VOCABULARY, capacity)
    return caught.value.reason


def test_atoms_and_bonds_are_those_of_rdkit() -> None:
    graph = graph_of("N#Cc1ccc[nH]1")
    assert graph.node_names == ["N", "C", "C", "C", "C", "C", "N"]
    assert graph.edge_names == ["triple", "single", *["aromatic"] * 5]
    assert VOCABULARY.edges == BONDS == ("none", "single", "double", "triple", "aromatic")


def test_codes_follow_the_vocabulary_given() -> None:
    other = Vocabulary(("O", "C"), ("none", "aromatic", "triple", "double", "single"))
    graph = graph_from_molecule(parse_smiles("C=O"), other)
    assert (graph.node_names, graph.edge_names) == (["C", "O"], ["double"])
    assert smiles_from_graph(graph) == "C=O"


def test_explicit_hydrogens_isotopes_and_stereo_are_dropped() -> None:
    assert graph_of("[H]C([H])([H])[C@@]([2H])(F)Cl") == graph_of("CC(F)Cl")


@pytest.mark.parametrize(
    ("smiles", "reason"),
    [
        ("", Reason.EMPTY),
        ("  ", Reason.EMPTY),
        ("[H][H]", Reason.EMPTY),
        ("C(", Reason.UNPARSABLE),
        ("not a molecule", Reason.UNPARSABLE),
        ("CN(C)(C)C", Reason.UNSANITIZABLE),
        ("c1cccc1", Reason.UNSANITIZABLE),
        ("CC.O", Reason.SEVERAL_FRAGMENTS),
        ("C[Se]C", Reason.UNKNOWN_ELEMENT),
        ("C[N]->[B]", Reason.UNKNOWN_BOND),
    ],
)
def test_what_is_refused_says_why(smiles: str, reason: Reason, capfd: pytest.CaptureFixture[str]) -> None:
    assert reason_of(smiles) is reason
    assert capfd.readouterr().err == ""


def test_the_capacity_counts_heavy_atoms() -> None:
    assert graph_from_molecule(parse_smiles("CCO"), VOCABULARY, 3).size == 3
    assert reason_of("CCCO", 3) is Reason.TOO_LARGE


def test_the_message_names_the_atom_and_the_error_survives_a_process_border() -> None:
    with pytest.raises(MoleculeError, match=r"CN\(C\)\(C\)C.*# 1 N, 4") as caught:
        parse_smiles("CN(C)(C)C")
    for again in (pickle.loads(pickle.dumps(caught.value)), copy.copy(caught.value)):
        assert (again.reason, str(again), again.atoms) == (caught.value.reason, str(caught.value), ())


def test_a_vocabulary_has_elements_only() -> None:
    for name in ("H", "Xx", "c"):
        with pytest.raises(ValueError, match=f"'{name}'"):
            molecule_vocabulary(["C", name])


@pytest.mark.parametrize(
    "smiles",
    [
        "C",
        "O",
        "c1cc[nH]c1",  # one N of an azole has the hydrogen
        "c1ccncc1",
        "c1ncc2nc[nH]c2n1",
        "O=c1cc[nH]cc1",
        "C[N+](=O)[O-]",  # nitro
        "OCC[N+](=O)[O-]",  # the charge is the nitro group's, not the alcohol's
        "[O-][n+]1ccccc1",  # N-oxide
        "OCc1cc[n+]([O-])cc1",
        "CN=[N+]=[N-]",  # azide
        "C=[N+]=[N-]",
        "[C-]#[N+]C",  # isocyanide
        "C#CC[N+]#[C-]",
        "CS(C)=O",
        "C[S+](C)[O-]",  # a sulfoxide written with charges
        "CS(=O)(=O)N",
        "O=C([O-])C[N+](C)(C)C",  # betaine
        "c1ccc([B-](c2ccccc2)(c2ccccc2)[n+]2ccccc2)cc1",
        "F[B-](F)(F)[N+](C)(C)C",
        "CP(=O)(O)O",
        "CO[PH](=O)OC",
        "C[P+](C)(C)CC(=O)[O-]",
        "Cn1cc[n+](C)c1C(=O)[O-]",
        "O=c1c2ccccc2[nH]c2ccccc12",
        "c1ccc2c(c1)ccc1ccccc12",
        "O=[N+]([O-])c1ccc2nonc2c1",
        "c1ccn2cccc2c1",  # an indolizine's N has three aromatic bonds
        "C[Si](C)(C)C",
        "OB(O)c1ccccc1",
        "O=I(=O)c1ccccc1",
        "CN(C)[SH](=O)=O",
        "c1csc2nnnn12",
        "[O-]c1c[n+](-c2ccccc2)no1",  # sydnone
    ],
)
def test_charges_and_hydrogens_come_back(smiles: str) -> None:
    smiles = Chem.CanonSmiles(smiles)
    graph = graph_of(smiles)
    order = np.random.default_rng(0).permutation(graph.size)
    assert smiles_from_graph(graph.permute(order)) == smiles


def test_atoms_keep_their_place() -> None:
    graph = graph_of("O=[N+]([O-])c1cc[nH]c1").permute([7, 2, 5, 0, 1, 6, 3, 4])
    assert graph_from_molecule(molecule_from_graph(graph), VOCABULARY) == graph


def test_what_has_no_charges_that_fit_is_a_cation() -> None:
    graph = Graph.build(list("NCCCC"), [(0, at) for at in range(1, 5)], ["single"] * 4, VOCABULARY)
    assert smiles_from_graph(graph) == "C[N+](C)(C)C"
    with pytest.raises(MoleculeError, match="net charge") as caught:
        usual_molecule(graph)
    assert caught.value.reason is Reason.NET_CHARGE


def ring(symbols: str, bonds: list[str]) -> Graph:
    n = len(symbols)
    return Graph.build(list(symbols), [(at, (at + 1) % n) for at in range(n)], bonds, VOCABULARY)


@pytest.mark.parametrize(
    "graph",
    [
        Graph.build(list("CFF"), [(0, 1), (1, 2)], ["single", "single"], VOCABULARY),
        Graph.build(list("CCCCCC"), [(0, at) for at in range(1, 6)], ["single"] * 5, VOCABULARY),
        Graph.build(list("CC"), [(0, 1)], ["aromatic"], VOCABULARY),
        ring("CCCC", ["aromatic"] * 4),  # four electrons
        ring("CCCCCC", ["single", "double"] * 3),  # RDKit calls these bonds aromatic
        ring("CCCCCC", ["aromatic"] * 5 + ["single"]),
        Graph.build(list("CO"), (), (), VOCABULARY),
        Graph.build([], (), (), VOCABULARY),
    ],
)
def test_what_is_not_a_molecule(graph: Graph) -> None:
    assert not is_molecule(graph)


def test_the_atoms_at_fault_are_named() -> None:
    benzene, bad = ring("CCCCCC", ["aromatic"] * 6), ring("CCCC", ["aromatic"] * 4)
    both = Graph.build(
        benzene.node_names + bad.node_names,
        [*benzene.edges.tolist(), *(bad.edges + 6).tolist(), [0, 6]],
        [*benzene.edge_names, *bad.edge_names, "single"],
        VOCABULARY,
    )
    with pytest.raises(MoleculeError, match="C10") as caught:
        usual_molecule(both)
    assert caught.value.atoms == (6, 7, 8, 9)
    assert caught.value.reason is Reason.UNSANITIZABLE


def test_labels_that_are_not_chemistry_are_named() -> None:
    with pytest.raises(MoleculeError, match="'edge'"):
        molecule_from_graph(Graph.build(["C", "C"], [(0, 1)]))
    with pytest.raises(MoleculeError, match="'red'"):
        molecule_from_graph(Graph.build(["red"]))


@pytest.mark.parametrize("symbol", sorted(VALENCES))
def test_rdkit_agrees_with_every_valence(symbol: str) -> None:
    for charge, valences in VALENCES[symbol].items():
        for valence in valences:
            atom = Chem.Atom(symbol)
            atom.SetFormalCharge(charge)
            atom.SetNumExplicitHs(valence)
            atom.SetNoImplicit(True)
            molecule = Chem.RWMol()
            molecule.AddAtom(atom)
            Chem.SanitizeMol(molecule)
            assert molecule.GetAtomWithIdx(0).GetNumRadicalElectrons() == 0, (charge, valence)
    assert {kind.charge for kind in usual_kinds(symbol)} <= set(VALENCES[symbol])


def survivors(file: str, start: int, count: int) -> tuple[int, int]:
    """How many of the file's molecules come back as the same graph, and how many are usual molecules."""
    rng = np.random.default_rng(0)
    table = pq.read_table(DATA / file, columns=["smiles"]).slice(start, count)
    same = usual = 0
    for smiles in table["smiles"].to_pylist():
        graph = graph_of(smiles)
        shuffled = graph.permute(rng.permutation(graph.size))
        same += is_isomorphic(graph, graph_of(smiles_from_graph(shuffled)))
        usual += is_molecule(shuffled)
    return same, usual


@pytest.mark.parametrize("file", ["molecules.parquet", "qm9.parquet"])
def test_real_molecules_survive_the_round_trip(file: str) -> None:
    assert survivors(file, 0, 250) == (250, 250)


@pytest.mark.slow
@pytest.mark.parametrize("file", ["molecules.parquet", "qm9.parquet"])
def test_ten_thousand_real_molecules_survive_the_round_trip(file: str) -> None:
    same, usual = survivors(file, 5_000, 10_000)
    assert same == 10_000
    assert usual >= 9_980


@pytest.mark.parametrize("text", ["CC\ufffd", "CC\x01", "CC\u00e9", "C\ufffdC"])
def test_text_with_damaged_bytes_is_not_its_beginning(text: str) -> None:
    with pytest.raises(MoleculeError, match="is not SMILES") as error:
        parse_smiles(text)
    assert error.value.reason is Reason.UNPARSABLE
    assert parse_smiles("CC na\u00efve").GetNumAtoms() == 2  # a name behind it may be anything
