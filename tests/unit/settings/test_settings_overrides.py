"""Settings by name: what is accepted, and one clear line for what is not."""

import pytest

from graphwright.settings import Override, SettingsError, load_run, options
from graphwright.settings.options import nearest_option


def message(*pairs, source="coloring10"):
    with pytest.raises(SettingsError) as error:
        load_run(source, [Override(key, value) for key, value in pairs])
    assert "\n" not in str(error.value)
    return str(error.value)


def test_values_are_read_as_their_types():
    run = load_run(
        "coloring10",
        [
            Override("model.width", "128"),
            Override("matching.temperature", "3e-5"),
            Override("matching.kind", "mirror"),
            Override("train.augment", "false"),
            Override("train.devices", "2"),
            Override("model.encoder_weights", "some/folder"),
        ],
    )
    assert (run.model.width, run.matching.temperature, run.matching.kind) == (128, 3e-5, "mirror")
    assert (run.train.augment, run.train.devices, str(run.model.encoder_weights)) == (False, "2", "some/folder")


def test_python_values_do_as_well_and_the_last_one_counts():
    run = load_run(
        "coloring10", [Override("model.width", 64), Override("model.width", 32), Override("train.devices", 1)]
    )
    assert (run.model.width, run.train.devices) == (32, "1")


def test_what_is_not_named_stays():
    changed = load_run("coloring20", [Override("model.width", "128")])
    preset = load_run("coloring20")
    assert changed.model == preset.model.model_copy(update={"width": 128})
    assert (changed.task, changed.matching, changed.loss, changed.train) == (
        preset.task,
        preset.matching,
        preset.loss,
        preset.train,
    )


@pytest.mark.parametrize(
    ("source", "given", "epochs", "steps", "minutes"),
    [
        ("coloring10-paper", {"train.minutes": "30"}, None, None, 30),
        ("coloring10-paper", {"train.steps": "7"}, None, 7, None),
        ("coloring10-cpu", {"train.epochs": "2"}, 2, None, None),
        ("coloring10-cpu", {"train.epochs": "2", "train.minutes": "5"}, 2, None, 5),
        ("coloring10-cpu", {"train.clip": "2"}, None, None, 60),
        ("coloring10-cpu", {"train.epochs": "none"}, None, None, 60),
    ],
)
def test_a_budget_replaces_the_presets(source, given, epochs, steps, minutes):
    train = load_run(source, [Override(key, value) for key, value in given.items()]).train
    assert (train.epochs, train.steps, train.minutes) == (epochs, steps, minutes)


def test_no_budget_at_all_is_refused():
    assert message(("train.minutes", "none")) == "--train.minutes: give a budget: epochs, steps or minutes"


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("matching.temp", "matching.temperature (a number above 0)"),
        ("matching.temperatur", "matching.temperature (a number above 0)"),
        ("model.temperature", "matching.temperature (a number above 0)"),
        ("temp", "matching.temperature (a number above 0)"),
        ("train.lr", "train.learning_rate (a number above 0)"),
        ("model.with", "model.width (a whole number at least 1)"),
        ("modle.width", "model.width (a whole number at least 1)"),
        ("Model.Width", "model.width (a whole number at least 1)"),
        ("train.batch-size", "train.batch_size (a whole number at least 1)"),
        ("model.batch_size", "train.batch_size (a whole number at least 1)"),
        ("task.N", "task.noise (a number at least 0)"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(key, nearest):
    assert message((key, "3")) == f"--{key}: there is no such setting; did you mean {nearest}?"


def test_every_name_with_a_letter_missing_finds_itself():
    missed = []
    for key in options():
        section, _, name = key.partition(".")
        for at in range(1, len(name)):
            typed = f"{section}.{name[:at]}{name[at + 1 :]}"
            if len(name) > 4 and typed not in options() and nearest_option(typed).key != key:
                missed.append((typed, key))
    assert missed == []


def test_a_name_like_no_other_is_answered_with_those_that_there_are():
    assert "model has encoder, encoder_width," in message(("model.qqq", "3"))
    assert message(("zzz.qqq", "3")).endswith("the sections are task, model, matching, loss, train")


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("model.width", "wide", "must be a whole number at least 1, got 'wide'"),
        ("model.width", "0", "must be a whole number at least 1, got '0'"),
        ("model.encoder_layers", "0", "must be a whole number at least 1, got '0'"),
        ("model.width", "12.5", "must be a whole number at least 1, got '12.5'"),
        ("model.width", "none", "must be a whole number at least 1, got 'none'"),
        ("model.dropout", "1", "must be a number at least 0 and below 1, got '1'"),
        ("model.dropout", "nan", "must be a number at least 0 and below 1, got 'nan'"),
        ("task.capacity", "251", "must be a whole number at least 1 and at most 250, got '251'"),
        ("matching.temperature", "0", "must be a number above 0, got '0'"),
        ("matching.temperature", "inf", "must be a number above 0, got 'inf'"),
        ("train.learning_rate", "-1", "must be a number above 0, got '-1'"),
        ("train.augment", "maybe", "must be true or false, got 'maybe'"),
        ("train.epochs", "many", "must be a whole number at least 1, or none, got 'many'"),
        ("train.devices", "0", "must be a whole number at least 1, auto, or cores, got '0'"),
        (
            "model.encoder",
            "vit",
            "must be one of fingerprint, vector, tokens, set, columns, cnn, segformer, spectrum, several, "
            "got 'vit'",
        ),
        (
            "model.encoder",
            "segformr",
            "must be one of fingerprint, vector, tokens, set, columns, cnn, segformer, spectrum, several, "
            "got 'segformr'; did you mean segformer?",
        ),
    ],
)
def test_a_bad_value_is_answered_with_what_is_allowed(key, value, expected):
    assert message((key, value)) == f"--{key} {expected}"


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("model.width", "130", "--model.width: width 130 is not a multiple of heads 4"),
        ("model.heads", "5", "--model.heads: width 96 is not a multiple of heads 5"),
        ("task.capacity", "4", "--task.capacity: min_size 5 is more than capacity 4"),
    ],
)
def test_values_that_do_not_fit_together_are_told_where_they_were_given(key, value, expected):
    assert message((key, value)) == expected


def test_an_unknown_name_comes_before_a_bad_value():
    assert "no such setting" in message(("model.width", "wide"), ("model.qqq", "3"))


def test_every_option_is_explained():
    assert [key for key, option in options().items() if not option.meaning.endswith(".")] == []
