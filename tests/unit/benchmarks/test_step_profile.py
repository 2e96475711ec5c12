"""Where a step's time goes."""

import json

import pytest

from benchmarks import step_profile


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_the_operations_of_a_step_are_listed_the_dearest_first(precision, tmp_path, monkeypatch, capsys):
    for name, count in (("WARM_UP", 1), ("TIMED", 2), ("PROFILED", 2)):
        monkeypatch.setattr(step_profile, name, count)
    out = tmp_path / "profile.json"
    assert step_profile.main(["demo", "--precision", precision, "--json", str(out)]) == 0
    facts = json.loads(out.read_text())
    assert (facts["preset"], facts["precision"], facts["batch"]) == ("demo", precision, 64)
    assert facts["milliseconds"] > 0
    times = [each["milliseconds"] for each in facts["operations"]]
    assert times == sorted(times, reverse=True)
    names = {each["name"] for each in facts["operations"]}
    assert "aten::convolution_backward" in names
    # Whole steps were counted: every one of them has its convolutions once.
    (convolutions,) = (
        each["calls"] for each in facts["operations"] if each["name"] == "aten::convolution_backward"
    )
    assert convolutions == 12
    assert precision in capsys.readouterr().out


def test_a_preset_that_there_is_not_is_named(capsys):
    assert step_profile.main(["no-such"]) == 2
    assert "no-such" in capsys.readouterr().err
