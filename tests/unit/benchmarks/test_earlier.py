"""An earlier commit's training beside today's: the same network, turn by turn."""

import subprocess

import pytest
import yaml

from benchmarks import earlier
from graphwright.settings import load_run

HEAD = subprocess.run(
    ["git", "rev-parse", "HEAD"], cwd=earlier.ROOT, capture_output=True, text=True
).stdout.strip()


@pytest.mark.parametrize("preset", earlier.TRAINED)
def test_both_sides_train_the_earlier_presets_network(preset, tmp_path):
    source = earlier.ROOT / "configs" / f"{preset}.yaml"
    was, now = (earlier.settings(source, now=flag) for flag in (False, True))
    (tmp_path / "now.yaml").write_text(yaml.safe_dump(now))
    run, preset = load_run(str(tmp_path / "now.yaml")), load_run(preset)
    assert run.model.model_dump() == preset.model.model_dump() | {"pairs": "sum"}
    assert run.train.batch_size == preset.train.batch_size == was["train"]["batch_size"]
    assert (run.train.optimizer, run.matching.kind) == ("adamw", "conditional_gradient")
    assert (run.train.devices, run.train.precision, run.train.steps) == ("cores", "auto", earlier.STEPS)
    assert "devices" not in was["train"]
    assert "pairs" not in was["model"]


def test_the_sides_take_turns_and_the_first_turn_does_not_count(monkeypatch):
    asked = []

    def rate(tree, run):
        asked.append((tree.name, tree == earlier.ROOT, run["train"]["batch_size"]))
        return len(asked)

    monkeypatch.setattr(earlier, "_rate", rate)
    (found,) = earlier.measure(HEAD, rounds=3, presets=["coloring10-cpu"])
    assert [now for _, now, _ in asked] == [False, True] * 4
    assert found.earlier == [64 * count for count in (3, 5, 7)]
    assert found.now == [64 * count for count in (4, 6, 8)]
    assert found.ratio == 6 / 5


def test_a_side_that_cannot_train_says_why():
    with pytest.raises(RuntimeError, match=r"could not train.*no_such"):
        earlier._rate(earlier.ROOT, {"task": {"no_such": 1}})
