"""Spectra with scaffolds: files in, samples out."""

from dataclasses import replace

import numpy as np
import pytest

from graphwright.graphs import is_isomorphic
from graphwright.graphs.molecules import graph_from_molecule, parse_smiles
from graphwright.spectra import ELEMENTS, read_spectra
from graphwright.spectra.spectrum import ELEMENT_SCALES
from graphwright.tasks import task_of
from graphwright.tasks.spectra import MS2Scaffold, NoSpectrumError, SpectrumTask, read_spectrum_table
from graphwright.tasks.spectra.encoded import encode_as, vary
from graphwright.tasks.spectra.prepared import fold_fraction, prepared
from tiny_spectra import FOLDS, SPECTRA, rows, write_spectra


def task(path, **settings) -> MS2Scaffold:
    return MS2Scaffold(SpectrumTask(**{"data": str(path), "capacity": 8} | settings))


def same(one, other) -> bool:
    """Whether two encoded spectra are equal."""
    arrays = np.array_equal(one.peaks, other.peaks) and np.array_equal(one.precursor, other.precursor)
    energies = one.energy == other.energy or (np.isnan(one.energy) and np.isnan(other.energy))
    return arrays and energies and (one.adduct, one.formula) == (other.adduct, other.formula)


def test_training_goes_by_molecule_or_by_spectrum_and_the_rest_by_spectrum(spectra_file):
    sizes = {fold: len(names) for fold, names in FOLDS.items()}
    assert len(task(spectra_file).data("train")) == sizes["train"]
    assert len(task(spectra_file, unit="spectrum").data("train")) == sizes["train"] * SPECTRA
    for unit in ("molecule", "spectrum"):
        assert len(task(spectra_file, unit=unit).data("validation")) == sizes["val"] * SPECTRA
        assert len(task(spectra_file, unit=unit).data("test")) == sizes["test"] * SPECTRA


def test_every_spectrum_of_a_molecule_is_drawn_in_time(spectra_file):
    data = task(spectra_file).data("train")
    drawn = {data[0, epoch].identifier for epoch in range(40)}
    assert len(drawn) == SPECTRA
    assert {data[0, epoch].molecule for epoch in range(40)} == {data[0].molecule}


def test_a_training_sample_is_a_pure_function_of_seed_index_and_epoch(spectra_file):
    one, again = (task(spectra_file, jitter=0.3, drop_peaks=0.3).data("train") for _ in range(2))
    again[3, 1]  # what was asked for before does not matter
    assert all(same(one[at, 5].spectrum, again[at, 5].spectrum) for at in range(len(one)))
    other = task(spectra_file, jitter=0.3, drop_peaks=0.3, seed=1).data("train")
    assert not all(same(one[at, 5].spectrum, other[at, 5].spectrum) for at in range(len(one)))
    assert not same(one[0, 5].spectrum, one[0, 6].spectrum)


def test_evaluation_samples_are_as_measured_and_in_no_molecules_order(spectra_file):
    data = task(spectra_file).data("test")
    by_name = {row["accession"]: row for row in rows()}
    for at in range(len(data)):
        row, sample = by_name[data[at].identifier], data[at]
        assert (sample.molecule, sample.group) == (row["inchikey14"], row["formula"])
        np.testing.assert_allclose(sample.spectrum.mzs, row["mzs"], rtol=1e-6)
        expected = np.array(row["intensities"]) / max(row["intensities"])
        np.testing.assert_allclose(sample.spectrum.intensities, expected, rtol=1e-5)
        assert sample.spectrum.precursor[0] * 1000 == pytest.approx(row["precursor_mz"])
    molecules = [data[at].molecule for at in range(len(data))]
    assert molecules != sorted(molecules, key=molecules.index)


def test_targets_are_the_scaffolds_of_the_molecules(spectra_file):
    data = task(spectra_file).data("validation")
    _, target = data.batch(range(len(data)))
    smiles = {row["accession"]: row["scaffold_smiles"] for row in rows()}
    for at, graph in enumerate(target.graphs()):
        expected = graph_from_molecule(parse_smiles(smiles[data[at].identifier]), data.vocabulary)
        assert is_isomorphic(graph, expected)
        assert data[at].graph == graph


def test_the_vocabulary_is_that_of_the_scaffolds_commonest_first(spectra_file):
    found = task(spectra_file)
    assert found.vocabulary.nodes == ("C", "O", "N", "S") or found.vocabulary.nodes == ("C", "N", "O", "S")
    assert found.resolved().elements == " ".join(found.vocabulary.nodes)
    assert task(spectra_file, elements="N C O S").vocabulary.nodes == ("N", "C", "O", "S")


def test_rows_that_no_sample_is_made_of_are_told_with_the_reason(tmp_path):
    good = rows()[:3]
    bad = [
        good[0] | {"scaffold_atoms": [], "scaffold_bonds": []},
        good[0] | {"mzs": [], "intensities": []},
        good[0] | {"mzs": [50.0], "intensities": [0.0]},
        good[0] | {"scaffold_bonds": [0, 9, 1]},
        good[0] | {"scaffold_bonds": [0, 1, 5]},
        good[0] | {"scaffold_bonds": [0, 1]},
        good[0] | {"scaffold_atoms": [6, 16], "scaffold_bonds": [0, 1, 1]},
        good[0] | {"scaffold_atoms": [6] * 9, "scaffold_bonds": [0, 1, 1]},
        good[0] | {"collision_energy": -5.0},
        good[0] | {"precursor_mz": 1e300},
        good[0] | {"mzs": [1e30], "intensities": [1.0]},
    ]
    path = write_spectra(tmp_path / "some.parquet", [*good, *bad])
    data = task(path, elements="C N", unit="spectrum").data("train")
    assert len(data) == len(good)
    assert [(each.row, each.reason) for each in data.rejected] == [
        (3, "no scaffold"),
        (4, "no peaks"),
        (5, "bad peaks"),
        (6, "bad scaffold"),
        (7, "bad scaffold"),
        (8, "bad scaffold"),
        (9, "unknown element"),
        (10, "too large"),
        (11, "bad energy"),
        (12, "bad precursor"),
        (13, "bad peaks"),
    ]
    with pytest.raises(NoSpectrumError, match=r"some.parquet has no usable spectrum here \(0 unusable\)"):
        task(path, elements="C N").data("test")


def test_without_folds_the_formula_decides_and_a_file_may_name_its_own(tmp_path):
    path = write_spectra(tmp_path / "none.parquet", [row | {"fold": None} for row in rows()])
    table = read_spectrum_table(path, 10.0)
    for split, low, high in (("train", 0, 0.8), ("validation", 0.8, 0.9), ("test", 0.9, 1)):
        assert all(low <= fold_fraction(table.groups[row]) < high for row in table.rows(split))
    assert sum(len(table.rows(split)) for split in ("train", "validation", "test")) == len(table)
    strange = write_spectra(tmp_path / "strange.parquet", [row | {"fold": "fold 1"} for row in rows()])
    with pytest.raises(ValueError, match=r"strange.parquet: column fold holds 'fold 1', expected train, valid"):
        read_spectrum_table(strange, 10.0).rows("train")


def test_all_of_a_file_is_read_whatever_its_folds_are_called(tmp_path, spectra_file):
    other = write_spectra(tmp_path / "other.parquet", [row | {"fold": "fold 1"} for row in rows()])
    assert len(task(spectra_file).data_from(other)) == len(task(spectra_file).data_from(spectra_file)) > 0


def test_the_file_is_prepared_once(spectra_file, monkeypatch):
    first = prepared(spectra_file, 10.0)
    monkeypatch.setattr("graphwright.tasks.spectra.prepared.annotate_parquet", None)
    assert prepared(spectra_file, 10.0) == first
    with pytest.raises(TypeError):
        prepared(spectra_file, 7.0)


def massspecgym(path, given) -> None:
    """Rows as MassSpecGym's table; one has no ring, one cannot be read."""
    names = ("identifier", "mzs", "intensities", "smiles", "formula", "precursor_mz", "adduct", "fold")
    lines = ["\t".join(names)]
    for row in given:
        peaks = [",".join(f"{value:.7f}" for value in row[name]) for name in ("mzs", "intensities")]
        cells = [row["accession"], *peaks, row["smiles"], row["formula"], f"{row['precursor_mz']}", row["adduct"]]
        lines.append("\t".join([*cells, row["fold"]]))
    lines.insert(3, "acyclic\t20.0,30.0\t1,0.5\tCCO\tC2H6O\t47.05\t[M+H]+\ttrain")
    lines.insert(4, "above\t50.0,60.0\t1,0.5\tc1ccccc1\tC6H6\t47.05\t[M+H]+\ttrain")
    lines.insert(5, "broken\t50.0,x\t1,0.5\tc1ccccc1\tC6H6\t79.05\t[M+H]+\ttrain")
    path.write_text("\n".join(lines) + "\n")


def test_massspecgym_is_read_with_its_own_folds_and_gives_the_same_samples(tmp_path, spectra_file):
    path = tmp_path / "MassSpecGym.tsv"
    massspecgym(path, rows())
    for split in ("train", "validation", "test"):
        one, other = (task(each, unit="spectrum", elements="C N O S").data(split) for each in (spectra_file, path))
        assert len(one) == len(other)
        mine = {one[at].identifier: one[at] for at in range(len(one))}
        for at in range(len(other)):
            sample = other[at]
            twin = mine[sample.identifier]
            np.testing.assert_allclose(sample.spectrum.peaks, twin.spectrum.peaks, atol=1e-4)
            assert (sample.molecule, sample.group) == (twin.molecule, twin.group)
            assert is_isomorphic(sample.graph, twin.graph)
    told = task(path, elements="C N O S").data("train").rejected
    assert [each.reason for each in told] == ["empty", "unreadable"]  # "broken" is in no split
    everything = task(path, elements="C N O S").data_from(path).rejected
    assert [each.reason for each in everything] == ["empty", "unreadable", "unreadable"]
    assert everything[2].detail.startswith("mzs: ")


def test_a_spectrum_of_a_file_is_encoded_as_a_row_of_the_data_is(spectra_file):
    found = task(spectra_file, peaks=5, elements="C N O S", unit="spectrum")
    data = found.data_from(spectra_file)
    for at, spectrum in enumerate(read_spectra(spectra_file)):
        mine, theirs = data[at].spectrum, encode_as(found.settings, spectrum)
        assert len(mine.peaks) == 5
        np.testing.assert_allclose(theirs.peaks, mine.peaks, rtol=1e-5)
        assert same(replace(theirs, peaks=mine.peaks), mine)


def test_annotation_is_what_was_put_in(spectra_file):
    sample = task(spectra_file, unit="spectrum").data("train")[0]
    assert sample.spectrum.explained.tolist() == [abs(mz - 33.3333) > 0.01 for mz in sample.spectrum.mzs]
    ion = dict(zip(ELEMENTS, sample.spectrum.precursor[2:] * ELEMENT_SCALES, strict=True))
    assert (ion["C"], ion["H"]) == pytest.approx((7, 9))
    for formula in sample.spectrum.subformulas():
        assert formula is None or all(count <= ion[element] + 1e-4 for element, count in formula.counts)


def test_raw_tokens_have_no_counts_and_hidden_formulas_no_formula(spectra_file):
    raw = task(spectra_file, tokens="raw").data("test")[0].spectrum
    assert not raw.explained.any()
    assert not raw.precursor[2:].any()
    assert raw.formula is not None  # still a bound for decoding
    hidden = raw.without_formula()
    assert hidden.formula is None


def test_variation_does_what_it_says(spectra_file):
    spectrum = task(spectra_file).data("test")[0].spectrum
    nothing = SpectrumTask(hide_formula=0, hide_conditions=0, drop_peaks=0, jitter=0)
    assert same(vary(spectrum, nothing, np.random.default_rng(0)), spectrum)
    some = SpectrumTask(hide_formula=0.5, hide_conditions=0.25, drop_peaks=0.4, jitter=0.3)
    varied = [vary(spectrum, some, np.random.default_rng(at)) for at in range(400)]
    assert np.mean([each.formula is None for each in varied]) == pytest.approx(0.5, abs=0.08)
    assert all(each.explained.any() <= (each.formula is not None) for each in varied)
    for hidden in ([np.isnan(each.energy) for each in varied], [each.precursor[0] == 0 for each in varied]):
        assert np.mean(hidden) == pytest.approx(0.25, abs=0.07)
    kept = np.mean([len(each.peaks) for each in varied]) / len(spectrum.peaks)
    assert kept == pytest.approx(0.6, abs=0.1)
    assert all(each.intensities.max() == pytest.approx(1) and len(each.peaks) for each in varied)


def test_the_formula_bounds_the_scaffolds_atoms(spectra_file):
    found = task(spectra_file, elements="C N O S")
    data = found.data("test")
    for at, bound in enumerate(data.bounds(range(len(data)))):
        counts = {name: data[at].graph.node_names.count(name) for name in data.vocabulary.nodes}
        assert bound.admits({name: count for name, count in counts.items() if count}, 0)
        assert not bound.admits({"C": 50}, 0)


@pytest.mark.parametrize("adduct", [None, "[M+X?]+"])
def test_a_formula_bounds_also_where_the_adduct_is_unknown(tmp_path, adduct):
    path = write_spectra(tmp_path / "x.parquet", [rows()[0] | {"adduct": adduct}])
    found = task(path, elements="C N O S")
    data, read = found.data("train"), next(found.read(path))
    [bound], [same] = data.bounds([0]), found.input_bounds(read.value)
    assert bound == same
    assert bound.admits({"C": 6}, 0)
    assert not bound.admits({"N": 1}, 0)
    for spectrum in (data[0].spectrum, read.value):
        assert not spectrum.peaks[:, 2:].any()
        assert not spectrum.precursor[2:].any()
    assert read.note.endswith("C7H8, adduct unknown; a molecule of the training set")


def test_a_precursor_of_zero_is_an_unknown_one(tmp_path):
    path = write_spectra(tmp_path / "x.parquet", [rows()[0] | {"precursor_mz": 0.0}])
    assert not task(path, elements="C N O S").data("train")[0].spectrum.precursor.any()


def test_a_seed_cannot_be_changed_where_nothing_is_generated(spectra_file):
    with pytest.raises(ValueError, match="read, not generated"):
        task_of(SpectrumTask(data=str(spectra_file))).data("test", seed=3)


def test_data_that_are_not_there_are_named():
    with pytest.raises(ValueError, match=r"no data 'nowhere\.tsv'"):
        task("nowhere.tsv").data("test")
