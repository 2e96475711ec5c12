"""One batch of rows to arrays: against the shipped data, RDKit itself and `graph_from_molecule`."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("rdkit")
from rdkit import Chem
from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator

from graphwright.graphs.molecules import graph_from_molecule, molecule_vocabulary, parse_smiles
from graphwright.tasks.molecules import find_data
from graphwright.tasks.molecules.prepare import PreparedBatch, PrepareSettings, RowBatch, SourceRow, prepare_batch
from graphwright.tasks.molecules.prepare.batch import SCHEMA
from graphwright.tasks.molecules.prepare.standard import atomic_numbers

SETTINGS = PrepareSettings()


def prepared(*texts: str | None, options: PrepareSettings = SETTINGS) -> PreparedBatch:
    return prepare_batch(RowBatch(1, [SourceRow(f"id{at}", text) for at, text in enumerate(texts, 1)]), options)


def kept(text: str) -> dict:
    rows = prepared(text).molecules.to_pylist()
    assert len(rows) == 1, prepared(text).rejections
    return rows[0]


def reason(text: str | None, **options) -> str:
    (rejection,) = prepared(text, options=PrepareSettings(**options)).rejections
    return str(rejection.reason)


@pytest.fixture(scope="module", params=["molecules", "qm9"])
def shipped(request):
    return pq.read_table(find_data(request.param)).slice(1000, 150)


def test_shipped_molecules_come_out_as_they_are_with_their_split(shipped):
    result = prepared(*shipped["smiles"].to_pylist())
    table = result.molecules
    assert result.rejections == ()
    for column in ("n_atoms", "split"):
        assert table[column].to_pylist() == shipped[column].to_pylist()
    # QM9 also has zwitterions, which are neutralised; nitro groups and their like stay.
    pairs = list(zip(table["smiles"].to_pylist(), shipped["smiles"].to_pylist(), strict=True))
    assert all(ours == theirs for ours, theirs in pairs if "[NH" not in theirs)
    assert sum(ours == theirs for ours, theirs in pairs) > 0.97 * len(pairs)
    assert table.schema == SCHEMA
    assert table["row"].to_pylist() == list(range(1, 151))
    assert table["id"].to_pylist()[:2] == ["id1", "id2"]


def test_arrays_are_the_graph_of_the_smiles_in_its_own_order(shipped):
    vocabulary = molecule_vocabulary(SETTINGS.elements)
    numbers = [Chem.GetPeriodicTable().GetAtomicNumber(symbol) for symbol in SETTINGS.elements]
    morgan = GetMorganGenerator(radius=2, fpSize=2048)
    for row in prepared(*shipped["smiles"].to_pylist()).molecules.to_pylist():
        molecule = parse_smiles(row["smiles"])
        graph = graph_from_molecule(molecule, vocabulary)
        assert row["atoms"] == [numbers[code] for code in graph.node_labels]
        triples = np.array(row["bonds"]).reshape(-1, 3)
        assert np.array_equal(triples[:, :2], graph.edges)
        assert np.array_equal(triples[:, 2], graph.edge_labels)
        assert row["fingerprint"] == list(morgan.GetFingerprint(molecule).GetOnBits())


@pytest.mark.parametrize("seed", range(3))
def test_any_spelling_of_a_molecule_gives_the_same_row(shipped, seed):
    smiles = shipped["smiles"].to_pylist()[seed::5]
    molecules = [Chem.MolFromSmiles(text) for text in smiles]
    shuffle = np.random.default_rng(seed).permutation
    shuffled = [Chem.RenumberAtoms(m, shuffle(m.GetNumAtoms()).tolist()) for m in molecules]
    others = [Chem.MolToSmiles(molecule, canonical=False) for molecule in shuffled]
    for molecule in molecules:
        Chem.Kekulize(molecule, clearAromaticFlags=True)
    kekulized = [Chem.MolToSmiles(molecule, kekuleSmiles=True, canonical=False) for molecule in molecules]
    assert others != smiles
    for texts in (others, kekulized):
        assert prepared(*texts).molecules.equals(prepared(*smiles).molecules)


@pytest.mark.parametrize(
    ("text", "smiles"),
    [
        ("C[C@H](N)C(=O)O", "CC(N)C(=O)O"),
        ("C/C=C/C", "CC=CC"),
        ("[13CH3]C", "CC"),
        ("[2H]C([2H])([2H])O", "CO"),
        ("[CH3:1][CH2:2]O", "CCO"),
        ("C1=CC=CC=C1", "c1ccccc1"),
        ("CC(=O)[O-]", "CC(=O)O"),
        ("[NH3+]CC(=O)[O-]", "NCC(=O)O"),
        ("CN(=O)=O", "C[N+](=O)[O-]"),
        ("Cn1cc[c-](C#N)c1=[NH2+]", "Cn1cc[c-](C#N)c1=[NH2+]"),
        ("C1.C1CC", "CCCC"),
        (" CCO ", "CCO"),
        ("[H]OC([H])([H])C", "CCO"),
    ],
)
def test_standard_form(text, smiles):
    assert kept(text)["smiles"] == smiles


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "malformed row"),
        ("", "empty"),
        ("  ", "empty"),
        ("C(C", "unparsable"),
        ("hello world", "unparsable"),
        ("C\x00C", "unparsable"),
        ("\ufffd", "unparsable"),
        ("C(C)(C)(C)(C)C", "unsanitizable"),
        ("c1cccc1", "unsanitizable"),
        ("CC.O", "several fragments"),
        ("C" * 33, "too large"),
        ("C" * 100_000, "too large"),
        ("C", "too small"),
        ("[H][H]", "too small"),
        ("C[Se]C", "unknown element"),
        ("CC*", "unknown element"),
        ("CCO[Na]", "unknown element"),
        ("N->B", "unknown bond"),
        ("C$C", "unknown bond"),
        ("CC~C", "unknown bond"),
        ("C[N+](C)(C)C", "charged"),
        ("[CH2]C", "radical"),
    ],
)
def test_reasons(text, why):
    assert reason(text) == why


def test_settings_move_the_limits():
    assert reason("CCCO", max_atoms=3) == "too large"
    assert reason("CCO", elements=("C", "N")) == "unknown element"
    assert prepared("C[Se]C", options=PrepareSettings(elements=("C", "Se"))).molecules["atoms"].to_pylist() == [
        [6, 34, 6]
    ]
    with pytest.raises(ValueError, match="Xx"):
        PrepareSettings(elements=("C", "Xx"))


def test_rejections_name_their_row():
    (rejection,) = prepare_batch(RowBatch(41, [SourceRow("a", "CC"), SourceRow("b", "C.C")]), SETTINGS).rejections
    assert (rejection.row, rejection.id, rejection.text) == (42, "b", "C.C")


def test_stereoisomers_and_charge_states_share_a_connectivity():
    same = ["C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O", "C[C@H]([NH3+])C(=O)[O-]"]
    assert len({kept(text)["connectivity"] for text in same}) == 1
    assert kept("CCC(N)C(=O)O")["connectivity"] != kept(same[0])["connectivity"]


@pytest.mark.parametrize(
    "text", ["[Si](C)(C)Cl", "[nH]1cccc1", "c1cc[se]c1", "[Sc]", "Clc1ccc(Br)s1", "[B-](F)(F)(F)F"]
)
def test_atoms_are_read_off_the_text(text):
    molecule = Chem.MolFromSmiles(text)
    assert atomic_numbers(text) == [atom.GetAtomicNum() for atom in molecule.GetAtoms()]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.one_of(st.none(), st.text(max_size=30), st.text("CNOc1()[]=#+-.H@:*$~%2", max_size=20)), max_size=8
    )
)
def test_no_text_ever_stops_a_batch(texts):
    result = prepared(*texts)
    assert result.rows == len(texts)
    rows = result.molecules["row"].to_pylist() + [rejection.row for rejection in result.rejections]
    assert sorted(rows) == list(range(1, len(texts) + 1))


def test_the_format_of_shards_is_the_golden_one():
    golden = json.loads((Path(__file__).parents[3] / "golden" / "prepared_molecules.json").read_text())
    rows = [SourceRow(row["id"], row["text"]) for row in golden]
    found = prepare_batch(RowBatch(1, rows), SETTINGS).molecules.to_pylist()
    assert found == [{name: value for name, value in row.items() if name != "text"} for row in golden]
    assert [str(field.type) for field in SCHEMA] == [
        "uint32",
        "string",
        "string",
        "uint8",
        "list<item: uint8 not null>",
        "list<item: uint8 not null>",
        "list<item: uint16 not null>",
        "uint64",
        "string",
    ]
