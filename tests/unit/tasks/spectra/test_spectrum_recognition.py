"""Scaffolds recognised as wholes: from the settings to predictions."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from graphwright.cli import main as cli
from graphwright.inference.export import export_model
from graphwright.inference.model import load_model
from graphwright.known import Library
from graphwright.known.head import SMOOTHING, Recognition
from graphwright.known.library import WEIGHT, Recalling
from graphwright.settings import Run
from graphwright.tasks import resolved
from graphwright.tasks.spectra import SpectrumDataset
from graphwright.training import build
from graphwright.training.log import Display
from graphwright.training.loop import Session
from resuming import assert_resumes_exactly


def settings(tiny_run) -> dict:
    return load_model(str(tiny_run)).run.model_dump()


def test_a_run_counts_the_graphs_and_learns_to_tell_them(tiny_spectrum_run):
    plain = settings(tiny_spectrum_run)
    run = resolved(Run.model_validate(plain | {"loss": plain["loss"] | {"recognition": 0.5}}))
    model = build(run)
    library = load_model(str(tiny_spectrum_run)).known.library
    assert run.model.known_graphs == len(library) > 1
    assert resolved(Run.model_validate(plain)).model.known_graphs == 0
    data = load_model(str(tiny_spectrum_run)).task.data("train")
    inputs, target = data.batch([0, 1])
    model.eval()
    model.recognition = None
    without = model(inputs, target.mask, target.node_labels, target.edge_labels)
    model.recognition = (Recognition(library), 0.5)
    whole = model(inputs, target.mask, target.node_labels, target.edge_labels)
    torch.testing.assert_close(whole.loss, without.loss + 0.5 * whole.terms[-1])
    logits, places = model.predictor(inputs).graphs.known, Recognition(library).indices(target)
    expected = torch.nn.functional.cross_entropy(logits, places, label_smoothing=SMOOTHING)
    torch.testing.assert_close(whole.terms[-1], expected)
    whole.loss.backward()
    assert model.predictor.recogniser.graphs.parts.grad.abs().max() > 0


def train_recognising(like: Path, out: Path) -> int:
    return cli.main(["train", str(like / "config.yaml"), "--out", str(out), "--loss.recognition", "1"])


def test_from_training_to_predictions_that_are_recognised(tiny_spectrum_run, tmp_path):
    out = tmp_path / "run"
    assert train_recognising(tiny_spectrum_run, out) == cli.DONE
    figures = tmp_path / "figures.json"
    assert cli.main(["evaluate", str(out), "--decode", "known", "--json", str(figures)]) == cli.DONE
    assert json.loads(figures.read_text())["validity"] == 100
    model = load_model(str(out))
    data = model.task.data("train")
    prediction = model.predictor(data.batch([0])[0]).graphs
    assert prediction.known.shape == (1, len(model.known.library))
    assert "recognition" in (out / "log.csv").read_text().splitlines()[0]
    handed = tmp_path / "handed"
    assert cli.main(["export", str(out), str(handed), "--decode", "known"]) == cli.DONE
    assert "among all that it knows" in (handed / "README.md").read_text()
    small = load_model(str(handed))
    assert small.known.library.graphs == model.known.library.graphs
    logits = small.predictor(data.batch([0])[0]).graphs.known
    torch.testing.assert_close(logits, prediction.known, rtol=0.1, atol=0.1)
    # So do what it was trained with and how sure it may be, also from hand to hand.
    again = tmp_path / "again"
    assert cli.main(["export", str(handed), str(again), "--decode", "known"]) == cli.DONE
    for each in (handed, again):
        record = json.loads((each / "record.json").read_text())
        assert record["progress"]["step"] == 3
        assert record["temperature"] == load_model(str(each)).known.temperature
        assert "mean over molecules" in (each / "README.md").read_text()
        assert (each / "model.json").stat().st_mode == next(each.glob("*.safetensors")).stat().st_mode
    # What it remembers goes along, to three digits.
    assert small.remembered is not None
    inputs = data.batch(range(len(data)))[0]
    before, after = (each.memory.likeness(each.task.bags(inputs)) for each in (model, small))
    np.testing.assert_allclose(after, before, atol=0.02)
    assert before.max() > 0.9


def test_a_model_recalls_where_it_is_asked_for_known_graphs_and_nowhere_else(tiny_spectrum_run, tmp_path):
    plain = load_model(str(tiny_spectrum_run))
    assert plain.memory is None
    assert plain.answering("known") is plain.predictor
    out = tmp_path / "run"
    assert train_recognising(tiny_spectrum_run, out) == cli.DONE
    model = load_model(str(out))
    assert model.answering("plain") is model.predictor
    inputs, _ = model.task.data("test").batch([0, 1])
    recalled, forgotten = (each(inputs).graphs for each in (model.answering("known"), model.predictor))
    likeness = torch.from_numpy(model.memory.likeness(model.task.bags(inputs)))
    torch.testing.assert_close(recalled.known, forgotten.known + WEIGHT * likeness)
    assert torch.equal(recalled.presence, forgotten.presence)
    assert likeness.max() > 0


def test_a_run_that_was_not_resolved_is_refused(tiny_spectrum_run):
    plain = settings(tiny_spectrum_run)
    with pytest.raises(ValueError, match=r"known_graphs is 0, .* tasks.resolved"):
        build(Run.model_validate(plain | {"loss": plain["loss"] | {"recognition": 0.5}}))


def test_a_temperature_changes_confidence_and_no_order(tiny_spectrum_run, tmp_path):
    out = tmp_path / "run"
    assert train_recognising(tiny_spectrum_run, out) == cli.DONE
    cold = load_model(str(out))
    warm = replace(cold, facts={**cold.facts, "temperature": 5.0})
    spectrum = cold.task.data("test")[0].spectrum
    sure, unsure = (each.predict(spectrum, top=3, decode="known").candidates for each in (cold, warm))
    assert [each.graph for each in sure] == [each.graph for each in unsure]
    assert sure[0].probability > unsure[0].probability


def test_a_resumed_run_that_recognises_is_the_run_that_was_never_stopped(tiny_spectrum_run, tmp_path, monkeypatch):
    plain = settings(tiny_spectrum_run)
    training = plain["train"] | {"steps": 6, "validate_every": 100, "log_every": 1}
    run = resolved(Run.model_validate(plain | {"loss": plain["loss"] | {"recognition": 1.0}, "train": training}))
    assert_resumes_exactly(run, tmp_path, monkeypatch)


def test_a_model_handed_on_with_known_graphs_alone_remembers_nothing(tiny_spectrum_run, tmp_path):
    out = tmp_path / "run"
    assert train_recognising(tiny_spectrum_run, out) == cli.DONE
    run = load_model(str(out))
    export_model(str(out), tmp_path / "before", {"decoder": "known"}, run.known.library)
    before = load_model(str(tmp_path / "before"))
    assert before.memory is None
    assert before.answering("known") is before.predictor
    assert before.known.temperature == 1
    other = Recalling(run.predictor, replace(run.memory, graphs=run.memory.graphs + 1), run.task.bags)
    with pytest.raises(ValueError, match="not of the data that the model was trained on"):
        other(run.task.data("test").batch([0])[0])


def test_a_model_can_be_handed_on_from_its_file(tiny_spectrum_run, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    assert cli.main(["export", str(tiny_spectrum_run), str(first), "--samples", "3"]) == cli.DONE
    assert cli.main(["export", str(first / "model.json"), str(second), "--samples", "3"]) == cli.DONE
    assert (second / "log.csv").read_bytes() == (tiny_spectrum_run / "log.csv").read_bytes()


def test_the_last_checkpoint_can_be_handed_on_too(tiny_spectrum_run, tmp_path):
    for name in ("best", "last"):
        out = tmp_path / name
        asked = ["export", str(tiny_spectrum_run), str(out), "--checkpoint", name, "--samples", "3"]
        assert cli.main(asked) == cli.DONE
        steps = json.loads((tiny_spectrum_run / "checkpoints" / f"{name}.json").read_text())["facts"]["progress"]
        assert json.loads((out / "record.json").read_text())["progress"]["step"] == steps["step"]
        assert (out / "log.csv").read_bytes() == (tiny_spectrum_run / "log.csv").read_bytes()


def test_figures_on_what_a_model_remembers_come_with_a_word(tiny_spectrum_run, tmp_path, capsys):
    out = tmp_path / "run"
    assert train_recognising(tiny_spectrum_run, out) == cli.DONE
    for split, said in (("train", True), ("test", False)):
        assert (
            cli.main(["evaluate", str(out), "--decode", "known", "--split", split, "--samples", "3"]) == cli.DONE
        )
        assert ("remembers training inputs" in capsys.readouterr().out) == said


def test_a_file_without_structures_is_refused_by_name(tmp_path, capsys):
    path = tmp_path / "bare.mgf"
    path.write_text("BEGIN IONS\nPEPMASS=91.05\n91.05 1\n65.04 2\nEND IONS\n")
    assert cli.main(["train", str(path), "--out", str(tmp_path / "run")]) == cli.USAGE
    assert "bare.mgf has no scaffold to learn" in capsys.readouterr().err


def test_known_graphs_are_read_once_at_a_start_and_no_spectrum_is_encoded_for_them(
    tiny_spectrum_run, tmp_path, monkeypatch
):
    plain = settings(tiny_spectrum_run)
    run = Run.model_validate(plain | {"loss": plain["loss"] | {"recognition": 1.0}})
    made, encoded, of, encode = [], [], Library.of, SpectrumDataset.encoded

    def counted(graphs, slots):
        made.append(of(graphs, slots))
        return made[-1]

    def noted(self, row):
        encoded.append(row)
        return encode(self, row)

    monkeypatch.setattr(Library, "of", counted)
    monkeypatch.setattr(SpectrumDataset, "encoded", noted)
    session = Session(run, tmp_path / "run", Display.silent())
    assert len(made) == 1
    assert not encoded
    assert session.model.recognition[0].library is made[0]
    assert session.run.model.known_graphs == len(made[0])


def test_the_graph_alone_is_that_of_the_sample(tiny_spectrum_run):
    data = load_model(str(tiny_spectrum_run)).task.data("train")
    assert [data.graph(index) for index in range(len(data))] == [data[index].graph for index in range(len(data))]
