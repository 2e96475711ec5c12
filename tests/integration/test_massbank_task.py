"""MS2Scaffold on the whole MassBank data: folds that do not leak, scaffolds as RDKit's, baselines as published."""

from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from graphwright.graphs import Graph, is_isomorphic
from graphwright.graphs.molecules import graph_from_molecule, molecule_vocabulary, parse_smiles
from graphwright.tasks import SPLITS
from graphwright.tasks.spectra import MS2Scaffold, SpectrumTask, murcko_scaffold, prepared
from graphwright.tasks.spectra.memory import baselines
from graphwright.tasks.spectra.prepared import fold_fraction
from graphwright.tasks.split import SPLIT_NAMES

DATA = Path(__file__).parents[2] / "data" / "massbank_ms2scaffold.parquet"


@pytest.fixture(scope="module")
def table():
    names = ["fold", "formula", "inchikey14", "smiles", "scaffold_smiles", "adduct", "mzs", "intensities"]
    return pq.read_table(DATA, columns=names)


def folds_of(table, keys) -> dict[object, set[str]]:
    """The folds that each key is found in."""
    found = defaultdict(set)
    for key, fold in zip(keys, table["fold"].to_pylist(), strict=True):
        found[key].add(fold)
    return found


@pytest.mark.parametrize("column", ["formula", "inchikey14", "smiles"])
def test_no_formula_and_no_molecule_is_in_two_folds(table, column):
    shared = [key for key, folds in folds_of(table, table[column].to_pylist()).items() if len(folds) > 1]
    assert shared == []


def test_no_spectrum_is_in_two_folds(table):
    """A copy of a spectrum under another name would give its scaffold away."""
    peaks = zip(*(table[name].to_pylist() for name in ("adduct", "mzs", "intensities")), strict=True)
    keys = [(adduct, tuple(mzs), tuple(heights)) if len(mzs) > 1 else None for adduct, mzs, heights in peaks]
    found = folds_of(table, keys)
    found.pop(None)  # a single peak is no spectrum that one could know again
    assert [key[0] for key, folds in found.items() if len(folds) > 1] == []


def test_the_folds_are_those_of_the_rule(table):
    names = {"train": (0, 0.8), "val": (0.8, 0.9), "test": (0.9, 1)}
    for formula, fold in set(zip(table["formula"].to_pylist(), table["fold"].to_pylist(), strict=True)):
        low, high = names[fold]
        assert low <= fold_fraction(formula) < high, formula


def test_our_scaffolds_are_those_of_the_data(table):
    pairs = sorted(set(zip(table["smiles"].to_pylist(), table["scaffold_smiles"].to_pylist(), strict=True)))[::12]
    wrong = [
        smiles
        for smiles, scaffold in pairs
        if not _same_heavy_atoms(murcko_scaffold(parse_smiles(smiles)), scaffold)
    ]
    assert len(pairs) > 250
    assert wrong == []


def _same_heavy_atoms(found, scaffold: str) -> bool:
    """Whether two scaffolds have the same atoms and bonds, wherever a hydrogen sits."""
    symbols = {6: "C", 7: "N", 8: "O", 16: "S", 15: "P", 14: "Si", 5: "B"}
    vocabulary = molecule_vocabulary(symbols.values())
    bonds = np.array(found.bonds, np.int64).reshape(-1, 3)
    labels = np.array(vocabulary.node_codes([symbols[number] for number in found.atoms]), np.int64)
    mine = Graph(labels, bonds[:, :2], bonds[:, 2], vocabulary)
    return is_isomorphic(mine, graph_from_molecule(parse_smiles(scaffold), vocabulary))


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prepared, "cache_folder", lambda: folder)
        yield MS2Scaffold(SpectrumTask())


@pytest.mark.slow
def test_splits_share_nothing_as_the_task_has_them(task, table):
    data = {split: task.data(split) for split in SPLITS}
    found = {split: [each.membership(range(len(each)))] for split, each in data.items()}
    rows = {split: np.concatenate(each.units) for split, each in data.items()}
    folds = np.array([SPLIT_NAMES[fold] for fold in table["fold"].to_pylist()])
    for split in SPLITS:
        assert sorted(rows[split].tolist()) == np.flatnonzero(folds == split).tolist()
        assert not data[split].rejected
    for one, other in (("train", "validation"), ("train", "test"), ("validation", "test")):
        assert not set(found[one][0].groups) & set(found[other][0].groups)
        assert not set(found[one][0].molecules) & set(found[other][0].molecules)
    assert task.vocabulary.nodes == ("C", "N", "O", "S", "P", "Si", "B")
    assert [len(data[split]) for split in SPLITS] == [2539, 4407, 3950]


@pytest.mark.slow
def test_baselines_are_the_published_ones(task):
    training, test = task.data("train"), task.data("test")
    membership = test.membership(range(len(test)))
    truths = [test[at].graph for at in range(len(test))]
    figures = {}
    for each in baselines(training, test, range(len(test))):
        right = [is_isomorphic(graph, truth) for graph, truth in zip(each.graphs, truths, strict=True)]
        means, _ = membership.by_molecule(right)
        figures[each.name] = (round(100 * np.mean(right), 1), round(100 * means.mean(), 1))
    assert figures == {
        "commonest scaffold": (17.9, 20.2),
        "nearest precursor": (2.2, 3.1),
        "cosine 0.1 Da": (20.5, 19.5),
        "root cosine 0.01 Da": (27.9, 27.5),
        "root cosine 0.01 Da, formula": (35.4, 35.0),
    }
