"""Spectra as bags of words, and which of them are remembered."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from graphwright.tasks import known_graphs, task_of
from graphwright.tasks.spectra import memory
from graphwright.tasks.spectra.encoded import stack
from graphwright.tasks.spectra.memory import bags_of_words, spectrum_memory
from tiny_spectra import spectrum_settings


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
