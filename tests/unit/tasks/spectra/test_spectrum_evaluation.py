"""Evaluation of spectra: by molecule, beside simple methods, within the formula."""

import json

import numpy as np
import pytest

from graphwright.cli.main import main
from graphwright.decoding import Formula, FormulaRule
from graphwright.inference.evaluate import baseline_figures, evaluate_saved
from graphwright.inference.model import load_model
from graphwright.metrics import bootstrap_interval
from tiny_spectra import rows, write_mgf, write_spectra


def test_figures_by_spectrum_and_by_molecule_with_intervals_by_formula(tiny_spectrum_run):
    result = evaluate_saved(load_model(str(tiny_spectrum_run)))
    facts, report = result.figures(), result.evaluation.report
    membership = result.data.membership(result.evaluation.indices)
    interval = bootstrap_interval(report.edit, membership.groups)
    assert facts["edit_interval"] == pytest.approx([interval.low, interval.high])
    assert facts["per_molecule"]["molecules"] == 3
    assert facts["per_molecule"]["edit"] == pytest.approx(membership.by_molecule(report.edit)[0].mean())
    assert {"top5", "top10", "tanimoto", "validity", "aligned_edit"} <= set(facts["per_molecule"])


def test_simple_methods_stand_in_the_same_table(tiny_spectrum_run, tmp_path, capsys):
    out = tmp_path / "figures.json"
    assert main(["evaluate", str(tiny_spectrum_run), "--baseline", "--json", str(out)]) == 0
    facts = json.loads(out.read_text())
    names = ["commonest scaffold", "nearest precursor", "cosine 0.1 Da", "root cosine 0.01 Da"]
    assert list(facts["baselines"]) == [*names, "root cosine 0.01 Da, formula"]
    text = capsys.readouterr().out
    assert "mean over molecules" in text
    assert "beside simple methods" in text
    for figures in facts["baselines"].values():
        assert 0 <= figures["per_molecule"]["isomorphic"] <= 100
        expected = facts["per_molecule"]["isomorphic"] - figures["per_molecule"]["isomorphic"]
        better, low, high = figures["model_better_by"]
        assert better == pytest.approx(expected)
        assert low <= better <= high


def test_simple_methods_are_for_tasks_that_know_some(tiny_run):
    with pytest.raises(ValueError, match="no simple methods to compare with for coloring4"):
        baseline_figures(evaluate_saved(load_model(str(tiny_run)), samples=3))


def test_valid_decoding_stays_within_the_formula(tiny_spectrum_run, tmp_path):
    model = load_model(str(tiny_spectrum_run))
    file = write_spectra(tmp_path / "few.parquet", rows()[-3:])
    result = evaluate_saved(model, file=file, decode="valid")
    for found, row in zip(result.evaluation.ranked, rows()[-3:], strict=True):
        bound = Formula.parse(row["formula"], FormulaRule.AT_MOST)
        for candidate in found.candidates:
            names = candidate.graph.node_names
            assert bound.admits({name: names.count(name) for name in set(names)}, 0)


def test_a_formula_bounds_what_is_predicted(tiny_spectrum_run, tmp_path):
    model = load_model(str(tiny_spectrum_run))
    path = write_mgf(tmp_path / "one.mgf", [rows()[0] | {"formula": "C3H8"}], formula=True)
    (given,) = model.task.read(path)
    assert "C3H8" in given.note
    bounds = model.task.input_bounds([given.value, (np.array([50.0]), np.array([1.0]))])
    assert dict(bounds[0].atoms) == {"C": 3}
    assert bounds[1] is None
    predicted = model.predict([given.value], top=3, decode="valid")[0]
    assert all(set(each.graph.node_names) == {"C"} and each.graph.size <= 3 for each in predicted.candidates)
