"""A real step of the paper's presets: which they are, what is asked of the process, what is kept."""

import json

import pytest
import torch

from benchmarks import paper_presets
from graphwright.settings import Override, find_preset

SMALL = {
    "task.samples": 40,
    "model.encoder": "cnn",
    "model.encoder_width": 16,
    "model.width": 16,
    "model.layers": 1,
}
SMALL |= {"model.heads": 2, "model.head_width": 16, "matching.target_width": 8, "matching.target_layers": 1}
SMALL |= {"train.batch_size": 8, "train.workers": 0}
OVERRIDES = [Override(key, str(value)) for key, value in SMALL.items()]


def test_every_preset_of_the_papers_size_is_stepped_and_no_other():
    names = paper_presets.in_epochs()
    assert {"coloring10-paper", "coloring60-paper", "ms2scaffold-paper", "qm9"} <= set(names)
    assert all(find_preset(name).name == name for name in names)
    assert not [name for name in names if name.endswith("-cpu")]


def test_a_step_is_made_at_the_presets_batch_in_parts_that_fit():
    # A gigabyte holds far more than eight such samples, a few megabytes hold few of them.
    whole = paper_presets.measure("coloring10-paper", 1.0, OVERRIDES)
    assert (whole.batch, whole.parts, whole.samples_per_epoch) == (8, 1, 32)
    assert whole.samples == 120 * 32
    fixed = 4 * 4 * (whole.predictor + whole.matcher) + 4 * whole.predictor
    room = fixed + 2.5e6 * whole.megabytes_per_sample
    tight = paper_presets.measure("coloring10-paper", room / 0.7e9, OVERRIDES)
    assert tight.parts == 4
    assert tight.processor_seconds > 0.5  # a process that has imported torch
    assert 0.1 < tight.peak_gigabytes < 5


def test_the_peak_is_that_of_the_step_whatever_this_process_holds():
    _, small = paper_presets.one_step("coloring10-paper", 1, OVERRIDES)
    held = torch.ones(400_000_000)  # 1.6 GB, which a process that is started begins with
    _, beside = paper_presets.one_step("coloring10-paper", 1, OVERRIDES)
    assert held[0] == 1
    assert beside < 1.2 * small


def test_what_a_step_says_when_it_fails_is_told():
    with pytest.raises(ValueError, match=r"coloring10-paper could not make a step.*heads"):
        paper_presets.one_step("coloring10-paper", 1, [*OVERRIDES, Override("model.heads", "3")])


def test_a_sample_that_does_not_fit_is_refused_by_name_before_anything_is_measured(capsys, monkeypatch):
    monkeypatch.setattr(paper_presets, "measure_cost", None)
    assert paper_presets.main(["coloring10-paper", "--gigabytes", "0.1"]) == 2
    assert "coloring10-paper: one sample is too much for 0.1 GB" in capsys.readouterr().err


def test_figures_of_other_presets_stay_in_the_file(tmp_path, monkeypatch):
    out = tmp_path / "steps.json"
    out.write_text(json.dumps([{"preset": "qm9", "parts": 3}, {"preset": "z"}]))
    step = paper_presets.Step("qm9", None, {}, 1, 1, 2, 1, 1.0, 1.0, 10, 20, 1.0, 1.0)
    monkeypatch.setattr(paper_presets, "measure", lambda *_: step)
    assert paper_presets.main(["qm9", "--json", str(out)]) == 0
    rows = json.loads(out.read_text())
    assert [row["preset"] for row in rows] == ["qm9", "z"]
    assert rows[0]["parts"] == 1
