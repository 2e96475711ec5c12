"""Figures by molecule, and the simple methods that a model must beat."""

from collections import Counter

import numpy as np
import pytest

from graphwright.graphs import is_isomorphic
from graphwright.metrics import bootstrap_interval, evaluate_graphs
from graphwright.tasks import Extra
from graphwright.tasks.spectra import MS2Scaffold, SpectrumTask
from graphwright.tasks.spectra.memory import baselines
from graphwright.tasks.split import Membership, molecule_means
from tiny_spectra import rows, write_spectra


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
