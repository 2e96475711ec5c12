"""Training spectra to compare with: remembered, and the baselines of a model."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from graphwright.graphs import is_isomorphic
from graphwright.metrics import bootstrap_interval, evaluate_graphs
from graphwright.tasks import Extra, known_graphs, task_of
from graphwright.tasks.spectra import MS2Scaffold, SpectrumTask, memory
from graphwright.tasks.spectra.encoded import stack
from graphwright.tasks.spectra.memory import bags_of_words, baselines, spectrum_memory
from graphwright.tasks.split import Membership, molecule_means
from tiny_spectra import rows, spectrum_settings, write_spectra


@pytest.fixture(scope="module")
def task(spectra_file, prepared_elsewhere):
    assert prepared_elsewhere.is_dir()
    return task_of(spectrum_settings(spectra_file).task)


def cosine(first, second) -> float:
    return float((bags_of_words(stack([first])) @ bags_of_words(stack([second])).T).toarray()[0, 0])


def test_order_padding_and_the_rest_of_the_batch_do_not_count(task):
    data = task.data("train")
    inputs, _ = data.batch([0, 1, 2])
    wider = torch.nn.functional.pad(inputs.peaks, (0, 0, 0, 5))
    mask = torch.nn.functional.pad(inputs.mask, (0, 5))
    order = torch.randperm(wider.shape[1], generator=torch.Generator().manual_seed(0))
    moved = inputs._replace(peaks=wider[:, order], mask=mask[:, order])
    np.testing.assert_allclose(bags_of_words(moved).toarray(), bags_of_words(inputs).toarray(), atol=1e-6)
    alone = bags_of_words(data.batch([1])[0]).toarray()
    np.testing.assert_allclose(bags_of_words(inputs).toarray()[1:2], alone, atol=1e-6)


def test_the_same_peaks_are_alike_and_others_are_not(task):
    data = task.data("train")
    spectrum, other = data[0].spectrum, data[2].spectrum
    assert cosine(spectrum, spectrum) == pytest.approx(1, abs=1e-5)
    assert cosine(spectrum, other) < 0.5
    moved = spectrum.peaks.copy()
    moved[:, 0] += 0.02 / 1000
    assert cosine(spectrum, replace(spectrum, peaks=moved)) < 0.2


def test_a_formula_known_or_not_recalls_the_same(task):
    spectrum = task.data("train")[0].spectrum
    assert spectrum.explained.any()
    assert cosine(spectrum, spectrum.without_formula()) == pytest.approx(1, abs=1e-5)


def test_without_a_precursor_nothing_was_lost(task):
    spectrum = task.data("train")[0].spectrum
    blind = replace(spectrum, precursor=np.zeros_like(spectrum.precursor))
    words = [bags_of_words(stack([each])).nnz for each in (spectrum, blind)]
    assert words == [2 * len(spectrum.peaks), len(spectrum.peaks)]


def test_only_the_most_intense_peaks_count(task, monkeypatch):
    monkeypatch.setattr(memory, "PEAKS", 2)
    assert bags_of_words(task.data("train").batch([0])[0]).nnz == 4


def test_a_few_spectra_of_every_molecule_are_remembered_with_their_scaffolds(task, monkeypatch):
    library = known_graphs(task)
    data = task.data("train")
    whole = spectrum_memory(data, library)
    rows = np.concatenate(data.units)
    assert whole.bags.shape == (len(rows), memory.WORDS)
    assert np.all(np.diff(whole.indices) >= 0)
    found = whole.likeness(bags_of_words(stack([data.encoded(int(row)) for row in rows])))
    for row, likeness in zip(rows, found, strict=True):
        assert likeness[library.distinct.find(data.scaffold(int(row)))] == pytest.approx(1, abs=1e-5)
    monkeypatch.setattr(memory, "SPECTRA", 2)
    assert spectrum_memory(data, library).bags.shape[0] == 2 * len(data)
    monkeypatch.setattr(memory, "MOST", 5)
    assert spectrum_memory(data, library).bags.shape[0] == 5


def test_bags_are_of_spectra(task):
    with pytest.raises(ValueError, match="words are of spectra, got Tensor"):
        task.bags(torch.zeros(2, 3))


def test_a_molecule_counts_once_however_many_spectra_it_has():
    membership = Membership(["a", "a", "a", "b"], ["A", "A", "A", "B"])
    means, groups = membership.by_molecule([1.0, 1.0, 0.0, 0.0])
    assert means.tolist() == pytest.approx([2 / 3, 0])
    assert groups == ["A", "B"]
    with pytest.raises(ValueError, match=r"values must have shape \(4,\), got \(3,\)"):
        membership.by_molecule([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="1 molecules for 2 groups"):
        Membership(["a"], ["A", "B"])


def test_means_over_molecules_are_those_by_hand(spectra_file):
    task = MS2Scaffold(SpectrumTask(data=str(spectra_file), capacity=8))
    data = task.data("test")
    targets = [data[at].graph for at in range(len(data))]
    predicted = [targets[0] for _ in targets]
    membership = data.membership(range(len(data)))
    assert membership.molecules == [data[at].molecule for at in range(len(data))]
    extra = Extra("tanimoto", "Tanimoto similarity", np.arange(len(data), dtype=float), share=False)
    facts = molecule_means(evaluate_graphs(predicted, targets), [extra], membership)
    right = np.array([is_isomorphic(one, other) for one, other in zip(predicted, targets, strict=True)])
    names = np.array(membership.molecules)
    by_hand = [right[names == name].mean() for name in dict.fromkeys(membership.molecules)]
    assert facts["isomorphic"] == pytest.approx(100 * np.mean(by_hand))
    groups = [membership.groups[membership.molecules.index(name)] for name in dict.fromkeys(names.tolist())]
    interval = bootstrap_interval(by_hand, groups)
    assert facts["isomorphic_interval"] == pytest.approx([100 * interval.low, 100 * interval.high])
    assert facts["molecules"] == len(set(names))
    assert facts["tanimoto"] == pytest.approx(
        np.mean([extra.values[names == name].mean() for name in dict.fromkeys(names.tolist())])
    )
    assert "aligned_edit" not in facts


def test_baselines_answer_with_training_scaffolds(spectra_file):
    task = MS2Scaffold(SpectrumTask(data=str(spectra_file), capacity=8))
    training, test = task.data("train"), task.data("test")
    indices = list(range(len(test)))[::-1]
    found = {each.name: each.graphs for each in baselines(training, test, indices)}
    names = ["commonest scaffold", "nearest precursor", "cosine 0.1 Da", "root cosine 0.01 Da"]
    assert list(found) == [*names, "root cosine 0.01 Da, formula"]
    for at, graph in zip(indices, found["root cosine 0.01 Da, formula"], strict=True):
        bound = test.bounds([at])[0]
        assert bound.admits(Counter(graph.node_names), bound.hydrogens)
    assert {len(graphs) for graphs in found.values()} == {len(test)}
    benzene = next(test[at].graph for at in indices if test[at].graph.node_names == ["C"] * 6)
    assert all(is_isomorphic(graph, benzene) for graph in found["commonest scaffold"])


def test_the_nearest_of_a_known_spectrum_is_itself(tmp_path):
    train = [row for row in rows() if row["fold"] == "train"]
    path = write_spectra(tmp_path / "twice.parquet", [*train, *({**row, "fold": "test"} for row in train)])
    task = MS2Scaffold(SpectrumTask(data=str(path), capacity=8))
    training, test = task.data("train"), task.data("test")
    for each in baselines(training, test, range(len(test))):
        right = [is_isomorphic(graph, test[at].graph) for at, graph in enumerate(each.graphs)]
        assert all(right) == ("cosine" in each.name or "precursor" in each.name), each.name
