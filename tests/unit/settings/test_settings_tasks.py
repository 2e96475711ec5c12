"""Settings of several kinds of task in one section."""

import pytest

from graphwright.cli.train import settings_help
from graphwright.settings import (
    Model,
    Override,
    Run,
    SettingsError,
    load_run,
    to_yaml,
)
from graphwright.settings.choices import TASKS, encoders_of
from graphwright.settings.options import options, options_of, sections
from graphwright.tasks.coloring import ColoringTask
from graphwright.tasks.molecules import FingerprintTask


def message(source, *pairs):
    with pytest.raises(SettingsError) as error:
        load_run(source, [Override(key, value) for key, value in pairs])
    assert "\n" not in str(error.value)
    return str(error.value)


def test_settings_older_than_kinds_are_colorings():
    assert Run.model_validate({"task": {"capacity": 7}}).task == ColoringTask(capacity=7)
    assert Run().task.kind == "coloring"


@pytest.mark.parametrize("kind", TASKS)
def test_a_kind_is_given_by_name(kind):
    run = Run.model_validate({"task": {"kind": kind}})
    assert type(run.task) is TASKS[kind].settings_class
    assert run.model.encoder == {"coloring": "cnn", "table": "columns"}.get(kind, kind)
    assert run.model.encoder in encoders_of(run.task.input_kinds)


def test_the_encoder_follows_the_task_unless_it_is_named():
    task = FingerprintTask()
    assert Run(task=task).model.encoder == "fingerprint"
    assert Run(task=task, model=Model(width=64)).model == Model(width=64, encoder="fingerprint")
    assert message("qm9-cpu", ("model.encoder", "cnn")) == (
        "--model.encoder: model.encoder cnn cannot read the inputs of task.kind fingerprint; it takes fingerprint"
    )
    assert "--model.encoder: model.encoder fingerprint cannot read" in message(
        "coloring10", ("model.encoder", "fingerprint")
    )


def test_heads_must_divide_the_encoders_width_only_where_there_are_heads():
    expected = "--model.encoder_heads: model.encoder_width 128 is not a multiple of model.encoder_heads 3"
    assert message("qm9-cpu", ("model.encoder_heads", "3")) == expected
    assert load_run("coloring10", [Override("model.encoder_heads", "3")]).model.encoder_heads == 3


@pytest.mark.parametrize(
    "objective",
    [
        {"loss.objective": "J_a"},
        {"loss.objective": "J_b"},
        {"loss.order": "target_first", "loss.reading": "literal"},
    ],
)
def test_a_matching_that_cannot_minimise_the_objective_is_refused_before_training(objective):
    found = message("coloring10", ("matching.kind", "conditional_gradient"), *objective.items())
    assert "matching.kind conditional_gradient needs loss.objective J, not swapped literally, got" in found
    without = [Override(*pair) for pair in objective.items()]
    assert load_run("coloring10", [*without, Override("matching.kind", "mirror")])
    assert load_run("coloring10", [*without, Override("matching.kind", "learned")])


def test_a_setting_of_another_kind_is_answered_with_those_that_there_are():
    assert message("qm9-cpu", ("task.noise", "0.1")) == (
        "--task.noise: a fingerprint task has no such setting; it has kind, data, capacity, elements, diffusion"
    )
    assert "--task.data: a coloring task has no such setting" in message("coloring10", ("task.data", "x"))


def test_another_kind_starts_from_its_own_defaults():
    run = load_run("coloring10", [Override("task.kind", "fingerprint"), Override("model.encoder", "fingerprint")])
    assert run.task == FingerprintTask()


def test_an_unknown_kind_is_answered_with_the_nearest():
    assert message("coloring10", ("task.kind", "fingerprints")) == (
        "--task.kind must be one of coloring, fingerprint, spectrum, table, got 'fingerprints'; "
        "did you mean fingerprint?"
    )


@pytest.mark.parametrize(("value", "complaint"), [("0", "at least 1"), ("x", "a whole number")])
def test_a_bad_value_of_any_kind_is_explained(value, complaint):
    assert message("qm9-cpu", ("task.capacity", value)).startswith("--task.capacity must be a whole number")
    assert complaint in message("qm9-cpu", ("task.capacity", value))


def test_a_misspelt_setting_of_another_kind_is_found():
    assert "did you mean task.elements" in message("qm9-cpu", ("task.element", "C"))


def test_written_settings_hold_one_kind_and_explain_it():
    text = to_yaml(load_run("qm9-cpu"))
    assert 'kind: "fingerprint"' in text
    assert "noise" not in text
    assert "# Largest number of heavy atoms, N; larger molecules are left out." in text


def test_the_help_lists_every_kind():
    text = " ".join(settings_help(115).split())
    for kind in TASKS:
        assert f"task: {TASKS[kind].settings_class.__doc__} --task.kind" in text
        assert f"One of {', '.join(TASKS)}; default {kind}." in text
    assert "--task.elements" in text


def test_every_kind_has_its_options_and_shares_the_others():
    assert set(options()) == {key for kind in TASKS for key in options_of(kind)}
    assert "task.noise" not in options_of("fingerprint")
    assert options_of("fingerprint")["task.capacity"].meaning.startswith("Largest number of heavy atoms")
    assert [section.name for section in sections()].count("train") == 1
